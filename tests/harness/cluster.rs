use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Client, Process, run};

/// A coordinator and its workers, or everything in one process, over a lake in a temporary folder.
pub struct Cluster {
    pub coordinator: Process,
    /// Empty when everything runs in one process.
    pub workers: Vec<Process>,
    settings: Settings,
    /// The coordinator's data directory.
    lake: PathBuf,
    /// What this cluster alone writes: its lake unless it was given one, audit, workers' folders.
    own: TempDir,
}

/// What a test wants to be otherwise than the defaults: `TARN_…` variables, for all processes.
#[derive(Clone, Default)]
pub struct Settings(Vec<(String, String)>);

impl Settings {
    pub fn with(mut self, variable: &str, value: &str) -> Self {
        self.0.push((variable.to_owned(), value.to_owned()));
        self
    }
}

impl Cluster {
    /// Everything in one process.
    pub fn server() -> Self {
        Self::server_with(Settings::default())
    }

    pub fn server_with(settings: Settings) -> Self {
        Self::start_in(None, "server", 0, settings)
    }

    /// A coordinator and `workers` worker processes.
    pub async fn start(workers: usize) -> Self {
        Self::start_with(workers, Settings::default()).await
    }

    pub async fn start_with(workers: usize, settings: Settings) -> Self {
        let cluster = Self::start_in(None, "coordinator", workers, settings);
        cluster.wait_for_workers(workers).await;
        cluster
    }

    /// The same over a lake that is there already; 0 workers means one process.
    pub async fn over(lake: &Path, workers: usize) -> Self {
        Self::over_with(lake, workers, Settings::default()).await
    }

    pub async fn over_with(lake: &Path, workers: usize, settings: Settings) -> Self {
        let command = if workers == 0 {
            "server"
        } else {
            "coordinator"
        };
        let cluster = Self::start_in(Some(lake), command, workers, settings);
        if workers > 0 {
            cluster.wait_for_workers(workers).await;
        }
        cluster
    }

    fn start_in(lake: Option<&Path>, command: &str, workers: usize, settings: Settings) -> Self {
        let own = tempfile::tempdir().expect("a temporary folder");
        let lake = lake.map_or_else(|| own.path().join("lake"), Path::to_owned);
        let listen = ["MYSQL", "FLIGHT", "HTTP"].map(|name| {
            (
                format!("TARN_COORDINATOR_{name}_LISTEN"),
                "127.0.0.1:0".to_owned(),
            )
        });
        let coordinator = start_coordinator(command, &lake, &own, listen, &settings);
        let mut cluster = Self {
            coordinator,
            workers: vec![],
            settings,
            lake,
            own,
        };
        for _ in 0..workers {
            cluster.add_worker();
        }
        cluster
    }

    /// Starts one more worker process; its index in `workers`. It registers by itself.
    pub fn add_worker(&mut self) -> usize {
        let own_dir = self
            .own
            .path()
            .join(format!("worker-{}", self.workers.len()));
        let coordinator = format!("http://{}", self.coordinator.address("http"));
        let env = variables(
            &[
                ("TARN_DATA_DIR", own_dir.to_str().expect("UTF-8")),
                ("TARN_WORKER_LISTEN", "127.0.0.1:0"),
                ("TARN_WORKER_HTTP_LISTEN", "127.0.0.1:0"),
                ("TARN_WORKER_COORDINATOR", &coordinator),
                ("TARN_WORKER_HEARTBEAT", "200ms"),
                ("TARN_WORKER_MEMORY", "2GiB"),
            ],
            &self.settings,
        );
        self.workers.push(Process::start(&["worker"], &env));
        self.workers.len() - 1
    }

    /// Starts the coordinator anew on the addresses that it had.
    pub fn restart_coordinator(&mut self) {
        let listen = ["MYSQL", "FLIGHT", "HTTP"].map(|name| {
            let address = self.coordinator.address(&name.to_lowercase());
            (
                format!("TARN_COORDINATOR_{name}_LISTEN"),
                address.to_owned(),
            )
        });
        self.coordinator.kill();
        self.coordinator =
            start_coordinator("coordinator", &self.lake, &self.own, listen, &self.settings);
    }

    /// The data directory of the coordinator.
    pub fn dir(&self) -> &Path {
        &self.lake
    }

    /// A Flight SQL connection as `root`.
    pub async fn client(&self) -> Client {
        self.client_as("root", "").await.expect("root may connect")
    }

    pub async fn client_as(&self, user: &str, password: &str) -> Result<Client, String> {
        Client::connect(self.coordinator.address("flight"), user, password).await
    }

    pub fn mysql_port(&self) -> u16 {
        self.coordinator.port("mysql")
    }

    pub fn flight_port(&self) -> u16 {
        self.coordinator.port("flight")
    }

    /// Waits until `SHOW WORKERS` lists exactly `n` workers that take tasks.
    pub async fn wait_for_workers(&self, n: usize) {
        let mut client = self.client().await;
        eventually(&format!("{n} active workers"), async || {
            active_workers(&mut client).await == n
        })
        .await;
    }

    /// The audit records so far, as JSON.
    pub fn audit(&self) -> Vec<serde_json::Value> {
        let text =
            std::fs::read_to_string(self.own.path().join("audit/audit.log")).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).expect("a line is JSON"))
            .collect()
    }
}

async fn active_workers(client: &mut Client) -> usize {
    client
        .query("SELECT count(*) FROM tarn.system.workers WHERE state = 'active'")
        .await
        .first()
        .and_then(|row| row[0].parse().ok())
        .unwrap_or(0)
}

/// Asks again until `holds`, for at most 60 s.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds().await {
        assert!(
            Instant::now() < deadline,
            "did not come to be within 60 s: {what}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn start_coordinator(
    command: &str,
    lake: &Path,
    own: &TempDir,
    listen: [(String, String); 3],
    settings: &Settings,
) -> Process {
    let audit = own.path().join("audit");
    let spill = own.path().join("spill");
    let mut env = variables(
        &[
            ("TARN_DATA_DIR", lake.to_str().expect("UTF-8")),
            ("TARN_AUDIT_DIR", audit.to_str().expect("UTF-8")),
            ("TARN_WORKER_SPILL_DIR", spill.to_str().expect("UTF-8")),
        ],
        settings,
    );
    env.extend(listen);
    Process::start(&[command], &env)
}

/// A lake with TPC-H at scale 0.01 in the database `tpch`, made once for all tests of a run.
pub fn generate_tpch() -> &'static Path {
    static LAKE: OnceLock<PathBuf> = OnceLock::new();
    LAKE.get_or_init(|| {
        let lake = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tpch-sf0.01");
        run(Command::new(env!("CARGO_BIN_EXE_tarn"))
            .args(["generate", "tpch", "--scale", "0.01", "--data-dir"])
            .arg(&lake));
        lake
    })
}

fn variables(own: &[(&str, &str)], settings: &Settings) -> Vec<(String, String)> {
    own.iter()
        .map(|(variable, value)| ((*variable).to_owned(), (*value).to_owned()))
        .chain(settings.0.iter().cloned())
        .collect()
}
