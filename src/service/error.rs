//! Why a process cannot start or go on.

use std::net::SocketAddr;

use crate::config::ConfigError;

#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(
        "cannot listen on {address}, the setting {setting}: {source}{}",
        hint(source)
    )]
    Listen {
        setting: &'static str,
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error("cannot open the catalogs: {0}")]
    Catalog(#[from] tarn_catalog::CatalogError),
    #[error("cannot open the block cache: {0}")]
    Cache(#[from] tarn_cache::CacheError),
    #[error(transparent)]
    Worker(#[from] tarn_worker::WorkerError),
    #[error("cannot open the audit file: {0}")]
    Audit(std::io::Error),
    #[error("cannot start the engine: {0}")]
    Engine(String),
    #[error("the {protocol} server failed: {reason}")]
    Served {
        protocol: &'static str,
        reason: String,
    },
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
    #[error("cannot start the threads: {0}")]
    Runtime(std::io::Error),
    #[error("log.filter: {0}")]
    LogFilter(String),
}

fn hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => "; another process has it (port 0 takes a free one)",
        _ => "",
    }
}
