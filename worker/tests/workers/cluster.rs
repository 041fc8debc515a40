//! A coordinator's membership and workers, each worker in a runtime of its own so that it can be killed.

use crate::tables::Tables;
use axum::serve::ListenerExt;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::TryStreamExt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tarn_cache::CacheSettings;
use tarn_catalog::StoreSettings;
use tarn_cluster::{
    ChannelSettings, ClusterDispatch, ClusterSettings, Heartbeat, Membership, MembershipSettings, QueryContext,
    RoutingSettings, api_router,
};
use tarn_planner::{ScanCodec, ScanStores};
use tarn_worker::{Listeners, WorkerSettings, serve};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use url::Url;

/// How long anything here may take before a test fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The HTTP side of a coordinator.
pub struct Coordinator {
    pub membership: Arc<Membership>,
    pub address: SocketAddr,
    server: JoinHandle<()>,
}

impl Coordinator {
    pub async fn start() -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Starts at an address, as a restarted coordinator does.
    pub async fn start_at(address: SocketAddr) -> Self {
        let membership = Arc::new(Membership::new(MembershipSettings {
            heartbeat: Duration::from_millis(100),
            missed_heartbeats: 20,
            ..MembershipSettings::default()
        }));
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = api_router(Arc::clone(&membership));
        let server = tokio::spawn(async move {
            axum::serve(listener.tap_io(|_| ()), router).await.unwrap();
        });
        Self {
            membership,
            address,
            server,
        }
    }

    pub async fn stop(self) -> SocketAddr {
        self.server.abort();
        let _ = self.server.await;
        self.address
    }

    /// Waits until so many workers are in service.
    pub async fn wait_for_workers(&self, count: usize) {
        wait_until("workers in service", || self.membership.snapshot().len() == count).await;
    }
}

/// One worker.
pub struct TestWorker {
    pub url: Url,
    pub http: Url,
    pub shutdown: CancellationToken,
    runtime: Option<Runtime>,
    served: Option<JoinHandle<()>>,
    _spill: TempDir,
}

impl TestWorker {
    pub async fn start(coordinator: SocketAddr) -> Self {
        Self::start_with(coordinator, |_| ()).await
    }

    pub async fn start_with(coordinator: SocketAddr, change: impl FnOnce(&mut WorkerSettings)) -> Self {
        let spill = tempfile::tempdir().unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut settings = WorkerSettings {
            listen: any,
            http_listen: Some(any),
            coordinator_url: Url::parse(&format!("http://{coordinator}")).unwrap(),
            cores: 2,
            memory_bytes: 256 << 20,
            spill_dir: spill.path().to_path_buf(),
            cache: CacheSettings {
                memory_bytes: 0,
                disk_bytes: 0,
                ..CacheSettings::default()
            },
            heartbeat: Duration::from_millis(100),
            channels: impatient(),
            ..WorkerSettings::default()
        };
        change(&mut settings);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let shutdown = CancellationToken::new();
        let token = shutdown.clone();
        let (told, addresses) = tokio::sync::oneshot::channel();
        let served = runtime.spawn(async move {
            let listeners = Listeners::bind(&settings).await.unwrap();
            let addresses = (
                listeners.tasks.local_addr().unwrap(),
                listeners.http.as_ref().unwrap().local_addr().unwrap(),
            );
            told.send(addresses).unwrap();
            serve(settings, listeners, token).await.unwrap();
        });
        let (tasks, http) = addresses.await.unwrap();
        Self {
            url: Url::parse(&format!("http://{tasks}")).unwrap(),
            http: Url::parse(&format!("http://{http}")).unwrap(),
            shutdown,
            runtime: Some(runtime),
            served: Some(served),
            _spill: spill,
        }
    }

    /// Ends the worker as kill -9 does: its sockets close, and nobody is told.
    pub fn kill(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// Waits until the worker has left by itself.
    pub async fn left(&mut self) {
        let served = self.served.take().unwrap();
        tokio::time::timeout(PATIENCE, served).await.unwrap().unwrap();
    }

    pub async fn status(&self) -> Heartbeat {
        let url = self.http.join("/api/status").unwrap();
        reqwest::get(url).await.unwrap().json().await.unwrap()
    }

    pub async fn text(&self, path: &str) -> (u16, String) {
        let response = reqwest::get(self.http.join(path).unwrap()).await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }
}

impl Drop for TestWorker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Losses are to be seen within a test.
pub fn impatient() -> ChannelSettings {
    ChannelSettings {
        connect_timeout: Duration::from_secs(2),
        keepalive_interval: Duration::from_millis(500),
        keepalive_timeout: Duration::from_secs(5),
    }
}

/// Small scans are spread too, since the tests' tables are small.
pub fn small_scans() -> ClusterSettings {
    ClusterSettings {
        channels: impatient(),
        routing: RoutingSettings {
            task_bytes: 1000,
            split_bytes: 4 << 10,
            slack: 1.25,
        },
        // Both ways to join are wanted: the dimension is below, the facts are above.
        broadcast_bytes: 16 << 10,
        broadcast_rows: 500,
        ..ClusterSettings::default()
    }
}

pub fn dispatch(coordinator: &Coordinator, settings: ClusterSettings) -> ClusterDispatch {
    let stores = ScanStores::new(None, StoreSettings::default());
    let codec = Arc::new(ScanCodec::new(stores));
    ClusterDispatch::new(settings, Arc::clone(&coordinator.membership), codec)
}

pub fn query(id: &str) -> QueryContext {
    QueryContext {
        query_id: id.to_string(),
        ..QueryContext::default()
    }
}

/// A session over the tables, spread over the workers that are in service now.
pub async fn session(dispatch: &ClusterDispatch, query: &QueryContext, tables: &Tables) -> SessionContext {
    let builder = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config());
    let state = dispatch.configure(builder, query).unwrap().build();
    let context = SessionContext::new_with_state(state);
    tables.register(&context).await;
    context
}

/// A session over the tables, in this process.
pub async fn local_session(tables: &Tables) -> SessionContext {
    let context = SessionContext::new_with_config(config());
    tables.register(&context).await;
    context
}

fn config() -> SessionConfig {
    SessionConfig::new()
        .with_target_partitions(2)
        .with_information_schema(true)
        .with_collect_statistics(true)
}

pub async fn plan(context: &SessionContext, sql: &str) -> Result<Arc<dyn ExecutionPlan>> {
    context.sql(sql).await?.create_physical_plan().await
}

pub async fn run(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    let plan = plan(context, sql).await?;
    let stream = execute_stream(plan, context.task_ctx())?;
    tokio::time::timeout(PATIENCE, stream.try_collect()).await.expect("the query hangs")
}

/// Rows as sorted lines, to compare answers whose order is not fixed.
pub fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let text = pretty_format_batches(batches).unwrap().to_string();
    let mut lines: Vec<String> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    lines.sort();
    // Columns are padded to the widest value, rules with them.
    lines.retain(|line| !line.starts_with("+-"));
    lines
}

pub async fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "no {what} after {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub fn scratch() -> TempDir {
    tempfile::tempdir().unwrap()
}

pub fn file_url(path: &Path) -> String {
    format!("{}/", path.display())
}
