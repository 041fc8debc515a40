use crate::worker_info::{CacheUsage, QueryLoad, WorkerId, WorkerState};
use serde::{Deserialize, Serialize};
use url::Url;

/// What a worker tells the coordinator every few seconds. The first one registers it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The process.
    pub id: WorkerId,
    /// Where it takes tasks.
    pub url: Url,
    /// Where it serves its status.
    #[serde(default)]
    pub http_url: Option<Url>,
    /// The engine's version.
    pub version: String,
    /// Processor cores it works with.
    pub cores: u32,
    /// The size of its memory pool, in bytes.
    pub memory_bytes: u64,
    /// Active or draining; `Lost` says that it leaves now (deregistration).
    pub state: WorkerState,
    /// Tasks alive on it.
    #[serde(default)]
    pub running_tasks: u64,
    /// Bytes in use in its memory pool.
    #[serde(default)]
    pub memory_used: u64,
    /// Bytes of spill files on its disk.
    #[serde(default)]
    pub spill_used: u64,
    /// Its DataCache.
    #[serde(default)]
    pub cache: CacheUsage,
    /// When the process started, in milliseconds since the Unix epoch.
    pub started_ms: i64,
    /// The queries it works on.
    #[serde(default)]
    pub queries: Vec<QueryLoad>,
}

/// The coordinator's answer to a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatReply {
    /// Whether the worker is given tasks.
    pub in_service: bool,
    /// Why not, where it is not.
    pub note: Option<String>,
    /// How often the coordinator wants to hear from it, in milliseconds.
    pub interval_ms: u64,
}
