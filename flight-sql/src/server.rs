use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use futures::stream;
use tarn_coordinator::{Engine, Error, ErrorKind};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;

use crate::FlightSettings;
use crate::connection::Connection;
use crate::front::Front;
use crate::service::Service;
use crate::sessions::Sessions;

/// How often idle sessions are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(15);
/// A client that does not answer a ping in this time is gone, and its queries stop.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// How often a quiet connection is pinged.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(30);
/// Calls under way on one connection.
const STREAMS_PER_CONNECTION: u32 = 256;
/// After a failed accept (too many open files, say) the listener rests this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves Flight SQL on `listener` until `shutdown`; results under way then get
/// [`FlightSettings::drain`] to end.
///
/// # Errors
/// The transport failed.
pub async fn serve(
    listener: TcpListener,
    engine: Arc<Engine>,
    settings: FlightSettings,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let drain = settings.drain;
    let max_message_bytes = settings.max_message_bytes;
    let sessions = Arc::new(Sessions::new(engine, settings));
    let service = Service::new(Arc::clone(&sessions))?;
    let flight = FlightServiceServer::new(Front::new(service))
        .max_decoding_message_size(max_message_bytes)
        .max_encoding_message_size(max_message_bytes);

    let accepted = stream::unfold(
        (listener, Arc::clone(&sessions)),
        |(listener, sessions)| async move {
            loop {
                match listener.accept().await {
                    Ok((stream, peer)) => {
                        // Small messages would wait 40 ms for each other.
                        if let Err(error) = stream.set_nodelay(true) {
                            tracing::debug!(%peer, %error, "TCP_NODELAY cannot be set");
                        }
                        let connection = Connection::new(stream, peer, Arc::clone(&sessions));
                        return Some((Ok::<_, std::io::Error>(connection), (listener, sessions)));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a Flight SQL connection cannot be accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        },
    );

    let sweeper = async {
        let mut ticks = tokio::time::interval(SWEEP_EVERY);
        loop {
            ticks.tick().await;
            sessions.sweep();
        }
    };
    let server = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_EVERY))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .add_service(flight)
        .serve_with_incoming_shutdown(accepted, shutdown.clone().cancelled_owned());
    let patience = async {
        shutdown.cancelled().await;
        tokio::time::sleep(drain).await;
    };
    let result = tokio::select! {
        result = server => result,
        () = sweeper => Ok(()),
        () = patience => Ok(()),
    };
    sessions.close_all();
    result.map_err(|e| {
        Error::new(
            ErrorKind::Internal,
            format!("the Flight SQL server failed: {e}"),
        )
    })
}
