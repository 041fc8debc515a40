use crate::control::Control;
use crate::error::WorkerError;
use crate::filter_transport::FilterClient;
use crate::janitor::free_ended_tasks;
use crate::queries::Queries;
use crate::report::{Identity, Reporter};
use crate::runtime::runtime_env;
use crate::session::SessionFactory;
use crate::settings::WorkerSettings;
use datafusion_distributed::Worker;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tarn_cache::DataCache;
use tarn_cluster::WorkerChannels;
use tarn_planner::ScanStores;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

/// A query that was planned just before the worker began to drain still sends its tasks: how long the worker must
/// have been idle before it leaves.
const DRAIN_GRACE: Duration = Duration::from_millis(1000);
/// How long streams may take to close once the last task is done.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The sockets of a worker, bound.
#[derive(Debug)]
pub struct Listeners {
    /// For tasks.
    pub tasks: TcpListener,
    /// For health, metrics and status.
    pub http: Option<TcpListener>,
}

impl Listeners {
    /// Binds the addresses of the settings.
    pub async fn bind(settings: &WorkerSettings) -> Result<Self, WorkerError> {
        Ok(Self {
            tasks: bind(settings.listen, "tasks").await?,
            http: match settings.http_listen {
                Some(address) => Some(bind(address, "HTTP").await?),
                None => None,
            },
        })
    }
}

async fn bind(address: SocketAddr, purpose: &'static str) -> Result<TcpListener, WorkerError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| WorkerError::Listen {
            purpose,
            address,
            source,
        })
}

/// Runs a worker until `shutdown`, then drains it.
pub async fn run(settings: WorkerSettings, shutdown: CancellationToken) -> Result<(), WorkerError> {
    let listeners = Listeners::bind(&settings).await?;
    serve(settings, listeners, shutdown).await
}

/// [`run`] on sockets that are bound already.
pub async fn serve(
    settings: WorkerSettings,
    listeners: Listeners,
    shutdown: CancellationToken,
) -> Result<(), WorkerError> {
    let url = settings.advertised(local_address(&listeners.tasks, settings.listen)?)?;
    let http_url = match (&listeners.http, settings.http_listen) {
        (Some(http), Some(wanted)) => Some(settings.advertised(local_address(http, wanted)?)?),
        _ => None,
    };

    let runtime = runtime_env(
        settings.memory_bytes,
        &settings.spill_dir,
        settings.spill_bytes,
    )?;
    let cache = match settings.cache.memory_bytes + settings.cache.disk_bytes {
        0 => None,
        _ => Some(DataCache::open(settings.cache.clone()).await?),
    };
    let stores = ScanStores::new(cache.clone(), settings.store.clone());
    let queries = Arc::new(Queries::new(
        Arc::clone(&runtime),
        settings.memory_bytes,
        FilterClient::new(&settings.coordinator_url),
    ));
    let cores = settings.effective_cores();

    let worker = Worker::from_session_builder(SessionFactory {
        queries: Arc::clone(&queries),
        stores,
        channels: WorkerChannels::new(settings.channels.clone()),
        cores,
    })
    .with_runtime_env(Arc::clone(&runtime))
    .with_version(settings.version.clone());

    let identity = Identity {
        url,
        http_url,
        version: settings.version.clone(),
        cores,
        memory_bytes: settings.memory_bytes,
    };
    let reporter = Arc::new(Reporter::new(
        identity,
        Arc::clone(&queries),
        runtime,
        cache,
    ));
    tracing::info!(worker = %reporter.id, url = %reporter.url, cores, memory_bytes = settings.memory_bytes, "worker starts");

    // Everything beside the task server ends with `stop`, whichever way this function is left.
    let stop = CancellationToken::new();
    let _stop_on_leaving = stop.clone().drop_guard();
    let _janitor = tokio::spawn(free_ended_tasks(
        worker.clone(),
        Arc::clone(&queries),
        stop.clone(),
    ));
    let control = Control {
        reporter: Arc::clone(&reporter),
        coordinator: settings.coordinator_url.clone(),
        heartbeat: settings.heartbeat,
        http: match listeners.http {
            Some(listener) => Some(listener.into_std().map_err(WorkerError::Thread)?),
            None => None,
        },
    };
    let left = control.start(stop.clone())?;

    let close = CancellationToken::new();
    let server = Server::builder()
        .tcp_nodelay(true)
        .http2_keepalive_interval(Some(settings.channels.keepalive_interval))
        // Whoever reads from it may be busier than it is, and finds out sooner by itself if this worker is gone.
        .http2_keepalive_timeout(Some(settings.channels.keepalive_timeout * 4))
        // A query has a stream for each task and for each pair of tasks that talk: a cap would let a stream wait
        // for another that waits for it.
        .max_concurrent_streams(u32::MAX)
        .http2_max_pending_accept_reset_streams(Some(100_000))
        .initial_stream_window_size(4 << 20)
        .initial_connection_window_size(64 << 20)
        .add_service(worker.into_worker_server())
        .serve_with_incoming_shutdown(
            TcpIncoming::from(listeners.tasks).with_nodelay(Some(true)),
            close.clone().cancelled_owned(),
        );
    tokio::pin!(server);

    tokio::select! {
        ended = &mut server => return Ok(ended?),
        () = shutdown.cancelled() => {}
    }
    tracing::info!(worker = %reporter.id, tasks = queries.running_tasks(), "worker drains");
    reporter.drain();
    tokio::select! {
        ended = &mut server => return Ok(ended?),
        done = tokio::time::timeout(settings.drain_timeout, quiet(&queries)) => {
            if done.is_err() {
                tracing::warn!(tasks = queries.running_tasks(), "tasks did not finish in time; leaving without them");
            }
        }
    }
    stop.cancel();
    close.cancel();
    if tokio::time::timeout(CLOSE_TIMEOUT, server).await.is_err() {
        tracing::warn!("connections did not close in time");
    }
    // Good-bye has a timeout of its own.
    let _ = left.await;
    tracing::info!(worker = %reporter.id, "worker stopped");
    Ok(())
}

/// Comes back when no task has been alive for a while.
async fn quiet(queries: &Queries) {
    loop {
        let started = queries.started_tasks();
        queries.idle().await;
        tokio::time::sleep(DRAIN_GRACE).await;
        if queries.running_tasks() == 0 && queries.started_tasks() == started {
            return;
        }
    }
}

fn local_address(listener: &TcpListener, wanted: SocketAddr) -> Result<SocketAddr, WorkerError> {
    listener.local_addr().map_err(|source| WorkerError::Listen {
        purpose: "tasks",
        address: wanted,
        source,
    })
}
