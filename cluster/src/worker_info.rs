use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::fmt;
use url::Url;
use uuid::Uuid;

/// Names one worker process for as long as it lives. A restarted worker is another worker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(pub String);

impl WorkerId {
    /// A new id for a process that starts now.
    pub fn random() -> Self {
        Self(Uuid::new_v4().to_string())
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a worker takes new tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerState {
    /// Takes tasks.
    Active,
    /// Finishes its tasks and takes no more.
    Draining,
    /// Missed its heartbeats, or a query could not reach it; comes back with its next heartbeat.
    Lost,
}

impl fmt::Display for WorkerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Active => "active",
            Self::Draining => "draining",
            Self::Lost => "lost",
        })
    }
}

/// What a worker's DataCache holds and did since the process started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheUsage {
    /// Reads answered from memory.
    pub hits_memory: u64,
    /// Reads answered from the local disk.
    pub hits_disk: u64,
    /// Reads that went to the store.
    pub misses: u64,
    /// Bytes answered from memory.
    pub bytes_memory: u64,
    /// Bytes answered from the local disk.
    pub bytes_disk: u64,
    /// Bytes read from the store.
    pub bytes_remote: u64,
}

/// How far one worker is with its part of one query.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueryLoad {
    /// The coordinator's id of the query.
    pub query_id: String,
    /// Tasks of the query alive on the worker.
    pub tasks: u64,
    /// Splits (files or parts of files) the worker has to read, and has read.
    pub splits_total: u64,
    /// See `splits_total`.
    pub splits_done: u64,
    /// Rows read by the scans so far.
    pub rows: u64,
    /// Bytes read by the scans so far.
    pub bytes: u64,
    /// Bytes of the worker's memory pool the query holds.
    pub memory_bytes: u64,
}

/// One worker as the coordinator knows it (a row of `SHOW WORKERS`).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerInfo {
    /// The process.
    pub id: WorkerId,
    /// Where its tasks are sent (gRPC), as it advertised itself.
    pub url: Url,
    /// Where its health, metrics and status are served.
    pub http_url: Option<Url>,
    /// The engine's version; only workers of the coordinator's version are used.
    pub version: String,
    /// Processor cores it works with.
    pub cores: u32,
    /// The size of its memory pool, in bytes.
    pub memory_bytes: u64,
    /// Whether it takes tasks.
    pub state: WorkerState,
    /// Tasks alive on it.
    pub running_tasks: u64,
    /// Bytes in use in its memory pool.
    pub memory_used: u64,
    /// Bytes of spill files on its disk.
    pub spill_used: u64,
    /// Its DataCache.
    pub cache: CacheUsage,
    /// When the process started.
    pub started: DateTime<Utc>,
    /// When the coordinator last heard from it.
    pub last_heartbeat: DateTime<Utc>,
    /// Why it is not used, where it is not.
    pub note: Option<String>,
}
