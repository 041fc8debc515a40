//! A coordinator's membership and workers, each worker a process of its own so that it can be killed.

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
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tarn_cache::CacheSettings;
use tarn_catalog::StoreSettings;
use tarn_cluster::{
    ChannelSettings, ClusterDispatch, ClusterSettings, Heartbeat, Membership, MembershipSettings,
    QueryContext, RoutingSettings, RuntimeFilters, api_router,
};
use tarn_planner::{ScanCodec, ScanStores, merge_runtime_filters};
use tarn_worker::{Listeners, WorkerSettings, serve};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin, Command};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use url::Url;

/// How long anything here may take before a test fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The HTTP side of a coordinator.
pub struct Coordinator {
    pub membership: Arc<Membership>,
    pub filters: Arc<RuntimeFilters>,
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
        let filters = RuntimeFilters::new(merge_runtime_filters);
        let router = api_router(Arc::clone(&membership), Arc::clone(&filters));
        let server = tokio::spawn(async move {
            axum::serve(listener.tap_io(|_| ()), router).await.unwrap();
        });
        Self {
            membership,
            filters,
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
        wait_until("workers in service", || {
            self.membership.snapshot().len() == count
        })
        .await;
    }
}

/// One worker process: this test binary, started again to run [`worker_process`].
pub struct TestWorker {
    pub url: Url,
    pub http: Url,
    process: Child,
    // The worker drains when it can read no more.
    orders: Option<ChildStdin>,
    _spill: TempDir,
}

const COORDINATOR: &str = "TARN_TEST_COORDINATOR";
const SPILL: &str = "TARN_TEST_SPILL";
const VERSION: &str = "TARN_TEST_VERSION";

/// Not a test: what a [`TestWorker`]'s process runs.
#[test]
fn worker_process() {
    let Ok(coordinator) = std::env::var(COORDINATOR) else {
        return;
    };
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut settings = WorkerSettings {
        listen: any,
        http_listen: Some(any),
        coordinator_url: Url::parse(&coordinator).unwrap(),
        cores: 2,
        memory_bytes: 256 << 20,
        spill_dir: std::env::var(SPILL).unwrap().into(),
        cache: CacheSettings {
            memory_bytes: 0,
            disk_bytes: 0,
            ..CacheSettings::default()
        },
        heartbeat: Duration::from_millis(100),
        channels: impatient(),
        ..WorkerSettings::default()
    };
    if let Ok(version) = std::env::var(VERSION) {
        settings.version = version;
    }
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async move {
        let listeners = Listeners::bind(&settings).await.unwrap();
        let http = listeners.http.as_ref().unwrap().local_addr().unwrap();
        println!(
            "\nLISTENING {} {http}",
            listeners.tasks.local_addr().unwrap()
        );
        let shutdown = CancellationToken::new();
        let token = shutdown.clone();
        std::thread::spawn(move || {
            let _ = std::io::stdin().lines().count();
            token.cancel();
        });
        serve(settings, listeners, shutdown).await.unwrap();
    });
    // Nobody reads the test's result any more.
    std::process::exit(0);
}

impl TestWorker {
    pub async fn start(coordinator: SocketAddr) -> Self {
        Self::start_as(coordinator, tarn_cluster::ENGINE_VERSION).await
    }

    pub async fn start_as(coordinator: SocketAddr, version: &str) -> Self {
        let spill = tempfile::tempdir().unwrap();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "cluster::worker_process", "--nocapture"])
            .env(COORDINATOR, format!("http://{coordinator}"))
            .env(SPILL, spill.path())
            .env(VERSION, version)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (tasks, http) = loop {
            let line = lines
                .next_line()
                .await
                .unwrap()
                .expect("the worker did not start");
            if let Some((tasks, http)) = line
                .strip_prefix("LISTENING ")
                .and_then(|line| line.split_once(' '))
            {
                break (tasks.to_string(), http.to_string());
            }
        };
        Self {
            url: Url::parse(&format!("http://{tasks}")).unwrap(),
            http: Url::parse(&format!("http://{http}")).unwrap(),
            orders: process.stdin.take(),
            process,
            _spill: spill,
        }
    }

    /// kill -9.
    pub async fn kill(&mut self) {
        self.process.kill().await.unwrap();
    }

    /// Tells the worker to drain and leave.
    pub fn shut_down(&mut self) {
        drop(self.orders.take());
    }

    /// Waits until the worker has left by itself.
    pub async fn left(&mut self) {
        let status = tokio::time::timeout(PATIENCE, self.process.wait())
            .await
            .unwrap()
            .unwrap();
        assert!(status.success(), "{status}");
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

/// Losses are to be seen within a test.
pub fn impatient() -> ChannelSettings {
    ChannelSettings {
        connect_timeout: Duration::from_secs(2),
        keepalive_interval: Duration::from_millis(500),
        keepalive_timeout: Duration::from_secs(5),
        ..ChannelSettings::default()
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
    ClusterDispatch::new(
        settings,
        Arc::clone(&coordinator.membership),
        codec,
        Arc::clone(&coordinator.filters),
    )
}

pub fn query(id: &str) -> QueryContext {
    QueryContext {
        query_id: id.to_string(),
        ..QueryContext::default()
    }
}

/// A session over the tables, spread over the workers that are in service now.
pub async fn session(
    dispatch: &ClusterDispatch,
    query: &QueryContext,
    tables: &Tables,
) -> SessionContext {
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
    tokio::time::timeout(PATIENCE, stream.try_collect())
        .await
        .expect("the query hangs")
}

/// Rows as sorted lines, to compare answers whose order is not fixed.
pub fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let text = pretty_format_batches(batches).unwrap().to_string();
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
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

pub fn file_url(path: &Path) -> String {
    format!("{}/", path.display())
}
