use std::net::SocketAddr;
use std::path::PathBuf;
use thiserror::Error;

/// Why a worker cannot start or go on.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// An address is taken, or is not this machine's.
    #[error("cannot listen on {address} ({purpose}): {source}")]
    Listen {
        /// What the address is for.
        purpose: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The spill directory cannot be used.
    #[error("cannot use the spill directory {path}: {source}", path = path.display())]
    Spill {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A setting has a value that cannot work.
    #[error("worker setting {name}: {reason}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The cache could not be opened.
    #[error(transparent)]
    Cache(#[from] tarn_cache::CacheError),
    /// DataFusion refused the runtime's settings.
    #[error(transparent)]
    DataFusion(#[from] datafusion::error::DataFusionError),
    /// The system gave no thread.
    #[error("cannot start the worker's control thread: {0}")]
    Thread(std::io::Error),
    /// The task server failed.
    #[error("the task server failed: {0}")]
    Serve(#[from] tonic::transport::Error),
}
