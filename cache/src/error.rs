use std::path::PathBuf;

/// Why a cache could not be opened, or a read through it failed.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// A setting is out of its range.
    #[error("cache setting {setting}: {reason}")]
    Setting {
        setting: &'static str,
        reason: String,
    },
    /// Another process has the disk tier's directory.
    #[error("cache directory {} is in use by another process", path.display())]
    InUse { path: PathBuf },
    /// The disk tier's directory cannot be made, locked or opened.
    #[error("cache directory {}: {reason}", path.display())]
    Disk { path: PathBuf, reason: String },
    /// The store gave fewer bytes than the object or the request says there are.
    #[error("{path} is truncated: bytes {start}..{end} were wanted, {got} bytes came")]
    Truncated {
        path: String,
        start: u64,
        end: u64,
        got: u64,
    },
    /// A range lies outside of the object.
    #[error("{path} has {size} bytes, but bytes {start}..{end} were wanted")]
    OutOfRange {
        path: String,
        size: u64,
        start: u64,
        end: u64,
    },
    /// The store answered with another range than the one that was asked for.
    #[error(
        "{path}: bytes {start}..{end} were wanted, the store sent bytes {got_start}..{got_end}"
    )]
    WrongRange {
        path: String,
        start: u64,
        end: u64,
        got_start: u64,
        got_end: u64,
    },
}

impl From<CacheError> for object_store::Error {
    fn from(e: CacheError) -> Self {
        object_store::Error::Generic {
            store: "DataCache",
            source: Box::new(e),
        }
    }
}
