use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Client, Process};

/// A coordinator and its workers, or everything in one process, over a lake in a temporary folder.
pub struct Cluster {
    pub coordinator: Process,
    /// Empty when everything runs in one process.
    pub workers: Vec<Process>,
    settings: Settings,
    dir: LakeDir,
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

enum LakeDir {
    Own(TempDir),
    /// A folder that outlives the cluster.
    Shared(PathBuf),
}

impl LakeDir {
    fn path(&self) -> &Path {
        match self {
            Self::Own(dir) => dir.path(),
            Self::Shared(path) => path,
        }
    }
}

impl Cluster {
    /// Everything in one process.
    pub fn server() -> Self {
        Self::server_with(Settings::default())
    }

    pub fn server_with(settings: Settings) -> Self {
        Self::start_in(new_dir(), &["server"], 0, settings)
    }

    /// A coordinator and `workers` worker processes.
    pub async fn start(workers: usize) -> Self {
        Self::start_with(workers, Settings::default()).await
    }

    pub async fn start_with(workers: usize, settings: Settings) -> Self {
        let cluster = Self::start_in(new_dir(), &["coordinator"], workers, settings);
        cluster.wait_for_workers(workers).await;
        cluster
    }

    /// The same over a lake that is there already; 0 workers means one process.
    pub async fn over(dir: &Path, workers: usize) -> Self {
        let command = if workers == 0 { "server" } else { "coordinator" };
        let cluster =
            Self::start_in(LakeDir::Shared(dir.to_owned()), &[command], workers, Settings::default());
        if workers > 0 {
            cluster.wait_for_workers(workers).await;
        }
        cluster
    }

    fn start_in(dir: LakeDir, args: &[&str], workers: usize, settings: Settings) -> Self {
        let free = [
            ("TARN_DATA_DIR", dir.path().to_str().expect("UTF-8")),
            ("TARN_COORDINATOR_MYSQL_LISTEN", "127.0.0.1:0"),
            ("TARN_COORDINATOR_FLIGHT_LISTEN", "127.0.0.1:0"),
            ("TARN_COORDINATOR_HTTP_LISTEN", "127.0.0.1:0"),
        ];
        let env = variables(&free, &settings);
        let coordinator = Process::start(args, &env);
        let mut cluster = Self { coordinator, workers: vec![], settings, dir };
        for _ in 0..workers {
            cluster.add_worker();
        }
        cluster
    }

    /// Starts one more worker process; its index in `workers`. It registers by itself.
    pub fn add_worker(&mut self) -> usize {
        let own_dir = self.dir().join(format!("worker-{}", self.workers.len()));
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
        let addresses: Vec<(&str, String)> = [
            ("TARN_COORDINATOR_MYSQL_LISTEN", "mysql"),
            ("TARN_COORDINATOR_FLIGHT_LISTEN", "flight"),
            ("TARN_COORDINATOR_HTTP_LISTEN", "http"),
        ]
        .map(|(variable, name)| (variable, self.coordinator.address(name).to_owned()))
        .into();
        self.coordinator.kill();
        let dir = self.dir().to_str().expect("UTF-8").to_owned();
        let mut fixed = vec![("TARN_DATA_DIR", dir.as_str())];
        fixed.extend(addresses.iter().map(|(variable, address)| (*variable, address.as_str())));
        self.coordinator = Process::start(&["coordinator"], &variables(&fixed, &self.settings));
    }

    /// The data directory of the coordinator.
    pub fn dir(&self) -> &Path {
        self.dir.path()
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
        eventually(&format!("{n} active workers"), async || active_workers(&mut client).await == n)
            .await;
    }

    /// The audit records so far, as JSON.
    pub fn audit(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.dir().join("audit/audit.log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
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
        assert!(Instant::now() < deadline, "did not come to be within 60 s: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn new_dir() -> LakeDir {
    LakeDir::Own(tempfile::tempdir().expect("a temporary folder"))
}

fn variables(own: &[(&str, &str)], settings: &Settings) -> Vec<(String, String)> {
    own.iter()
        .map(|(variable, value)| ((*variable).to_owned(), (*value).to_owned()))
        .chain(settings.0.iter().cloned())
        .collect()
}
