use std::path::PathBuf;

/// How much the cache may hold, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSettings {
    /// Bytes of blocks kept in memory.
    pub memory_bytes: u64,
    /// Bytes of blocks kept on disk; 0 means no disk tier.
    pub disk_bytes: u64,
    /// Directory of the disk tier, owned by one process at a time.
    pub disk_path: PathBuf,
    /// Bytes in one block: what is read, kept and evicted as a unit.
    pub block_bytes: u64,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            disk_bytes: 0,
            disk_path: PathBuf::new(),
            block_bytes: 1 << 20,
        }
    }
}
