//! `tarn worker`.

use crate::config::Settings;
use crate::service::{ServiceError, announce, bind_worker, shutdown_signal, with_stdin};

/// Runs a worker until it is told to leave; it then drains.
pub async fn worker(settings: &Settings, stop_with_stdin: bool) -> Result<(), ServiceError> {
    let shutdown = shutdown_signal()?;
    if stop_with_stdin {
        with_stdin(&shutdown);
    }
    let listeners = bind_worker(settings).await?;
    let mut sockets = vec![("worker", &listeners.tasks)];
    sockets.extend(listeners.http.as_ref().map(|http| ("http", http)));
    announce(&sockets);
    tarn_worker::serve(settings.worker(), listeners, shutdown).await?;
    Ok(())
}
