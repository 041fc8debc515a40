use std::path::PathBuf;
use std::sync::Arc;

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
    /// The object was replaced while it was being read.
    #[error("{path} changed while it was being read")]
    Changed { path: String },
    /// The store could not be read.
    #[error("{path} could not be read: {source}")]
    Remote {
        path: String,
        source: Arc<object_store::Error>,
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

/// A failed remote read, told to everybody who waited for it.
#[derive(Debug, Clone)]
pub(crate) struct FetchError {
    pub path: Arc<str>,
    pub source: Arc<object_store::Error>,
}

impl FetchError {
    /// The same kind of error for one of those who wait (`object_store::Error` is not `Clone`).
    pub fn to_store_error(&self) -> object_store::Error {
        use object_store::Error as E;
        let path = self.path.to_string();
        let source = Box::new(Arc::clone(&self.source));
        match *self.source {
            E::NotFound { .. } => E::NotFound { path, source },
            E::PermissionDenied { .. } => E::PermissionDenied { path, source },
            E::Unauthenticated { .. } => E::Unauthenticated { path, source },
            _ => CacheError::Remote {
                path,
                source: Arc::clone(&self.source),
            }
            .into(),
        }
    }
}
