//! When a process is told to leave.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::ServiceError;

/// Cancelled on SIGTERM or SIGINT. A second signal ends the process at once.
///
/// Signals have a thread of their own: they are heard however busy the others are.
pub fn shutdown_signal() -> Result<CancellationToken, ServiceError> {
    let listening = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(ServiceError::Runtime)?;
    let (mut terminate, mut interrupt) = {
        let _entered = listening.enter();
        let terminate = signal(SignalKind::terminate()).map_err(ServiceError::Signals)?;
        let interrupt = signal(SignalKind::interrupt()).map_err(ServiceError::Signals)?;
        (terminate, interrupt)
    };
    let token = CancellationToken::new();
    let told = token.clone();
    let listen = async move {
        for time in 0.. {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if time > 0 {
                tracing::warn!("told again to leave: leaving at once");
                std::process::exit(130);
            }
            tracing::info!("told to leave");
            told.cancel();
        }
    };
    std::thread::spawn(move || listening.block_on(listen));
    Ok(token)
}

/// Also cancelled when standard input closes. The demo starts its processes with a pipe there: however the demo ends,
/// the system closes the pipe, and its processes end too.
pub fn with_stdin(token: &CancellationToken) {
    let told = token.clone();
    std::thread::spawn(move || {
        let mut rest = std::io::stdin().lock();
        let _ = std::io::copy(&mut rest, &mut std::io::sink());
        told.cancel();
    });
}
