//! What an engine is started with.

use std::path::PathBuf;
use std::time::Duration;

use crate::users::User;

/// How an [`Engine`](crate::Engine) behaves. The root crate fills it from the configuration file.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// The folder of everything this process keeps on disk.
    pub data_dir: PathBuf,
    /// Limits of queries that a session can override with `SET`.
    pub query: QuerySettings,
    /// Who may log in; none means `root` without a password.
    pub users: Vec<User>,
    /// Sessions that may be open at once.
    pub max_connections: u32,
    /// The largest packet a client may send, in bytes: what `@@max_allowed_packet` says.
    pub max_allowed_packet_bytes: u64,
    /// Profiles of finished queries that are kept for `SHOW PROFILE`.
    pub kept_profiles: usize,
    /// The settings in force as (name, value, unit, where it came from), shown by
    /// `tarn.system.settings`. Filled by the root crate.
    pub shown_settings: Vec<ShownSetting>,
}

/// One row of `tarn.system.settings`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShownSetting {
    pub name: String,
    pub value: String,
    pub unit: String,
    /// `default`, the configuration file's path, or the environment variable's name.
    pub source: String,
}

/// The defaults of the session variables that rule queries.
#[derive(Debug, Clone)]
pub struct QuerySettings {
    /// A query that takes longer is stopped; zero means no limit. Variable `query_timeout`, in
    /// seconds.
    pub timeout: Duration,
    /// Memory that one query's operators may hold in one process, in bytes; `None` leaves only the
    /// process's own limit. Variable `query_memory_bytes`.
    pub memory_bytes: Option<u64>,
    /// Partitions of a plan in one process; 0 means one per core. Variable `target_partitions`.
    pub target_partitions: usize,
    /// Rows of a batch between operators. Variable `batch_rows`.
    pub batch_rows: usize,
    /// Tables that one query may join with each other by shuffling both sides, beside the first. Variable
    /// `max_shuffled_dimensions`.
    pub max_shuffled_dimensions: u32,
    /// How often a query is started anew when a worker is lost before any row reached the client.
    pub retries: u32,
    /// Batches that may wait between the execution and a client that reads slowly.
    pub result_queue_batches: usize,
    /// Data files of an INSERT are closed when they reach this size, in bytes.
    pub target_file_bytes: u64,
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("tarn-data"),
            query: QuerySettings::default(),
            users: Vec::new(),
            max_connections: 1024,
            max_allowed_packet_bytes: 64 << 20,
            kept_profiles: 100,
            shown_settings: Vec::new(),
        }
    }
}

impl Default for QuerySettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(3600),
            memory_bytes: None,
            target_partitions: 0,
            batch_rows: 8192,
            max_shuffled_dimensions: 4,
            retries: 3,
            result_queue_batches: 4,
            target_file_bytes: 512 << 20,
        }
    }
}
