//! Sockets, bound before anything slow is done, so that a port that is taken is said at once.

use tarn_worker::Listeners;
use tokio::net::TcpListener;

use super::ServiceError;
use crate::config::Settings;

/// Binds the address of a setting.
pub async fn bind(settings: &Settings, setting: &'static str) -> Result<TcpListener, ServiceError> {
    let address = settings.address(setting);
    TcpListener::bind(address)
        .await
        .map_err(|source| ServiceError::Listen {
            setting,
            address,
            source,
        })
}

/// Binds a worker's addresses.
pub async fn bind_worker(settings: &Settings) -> Result<Listeners, ServiceError> {
    Ok(Listeners {
        tasks: bind(settings, "worker.listen").await?,
        http: Some(bind(settings, "worker.http_listen").await?),
    })
}
