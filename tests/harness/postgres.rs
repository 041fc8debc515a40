use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::service::free_port;
use super::tools::run;

/// The one user's name and password.
const USER: &str = "tarn";
const PASSWORD: &str = "secret-of-the-test";

/// A PostgreSQL server of its own, on a free loopback port; ended when the test lets go of it.
pub struct Postgres {
    port: u16,
    server: Child,
    _dir: TempDir,
}

impl Postgres {
    pub fn start() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let password = dir.path().join("password");
        std::fs::write(&password, PASSWORD).expect("a file");
        let account = Account::of_server();
        for path in [dir.path(), &password] {
            account.give(path);
        }
        let data = dir.path().join("data");
        run(account
            .command("initdb")
            .arg("--pgdata")
            .arg(&data)
            .args(["--username", USER, "--auth", "scram-sha-256", "--no-sync"])
            .arg("--pwfile")
            .arg(&password));
        let port = free_port();
        let server = account
            .command("postgres")
            .arg("-D")
            .arg(&data)
            .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-F", "-k"])
            .arg(dir.path())
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("PostgreSQL starts");
        let postgres = Self {
            port,
            server,
            _dir: dir,
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while !postgres.is_ready() {
            assert!(Instant::now() < deadline, "PostgreSQL is not ready");
            std::thread::sleep(Duration::from_millis(50));
        }
        postgres
    }

    /// `postgresql://user:password@host:port/database`
    pub fn uri(&self) -> String {
        format!(
            "postgresql://{USER}:{PASSWORD}@127.0.0.1:{}/postgres",
            self.port
        )
    }

    /// Executes statements as an administrator would.
    pub fn execute(&self, sql: &str) {
        run(Command::new(program("psql"))
            .args(["--quiet", "--set", "ON_ERROR_STOP=1", "--command", sql])
            .arg(self.uri()));
    }

    fn is_ready(&self) -> bool {
        let mut ready = Command::new(program("pg_isready"));
        ready.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
        ready.status().is_ok_and(|status| status.success())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Who the server runs as: it refuses to run as root.
struct Account(Option<(u32, u32)>);

impl Account {
    fn of_server() -> Self {
        let number = |arguments: &[&str]| -> u32 {
            let printed = run(Command::new("id").args(arguments));
            printed.trim().parse().expect("a number")
        };
        match number(&["-u"]) {
            0 => Self(Some((
                number(&["-u", "postgres"]),
                number(&["-g", "postgres"]),
            ))),
            _ => Self(None),
        }
    }

    fn give(&self, path: &Path) {
        if let Self(Some((user, group))) = self {
            chown(path, Some(*user), Some(*group)).expect("root may give files away");
        }
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(program(name));
        if let Self(Some((user, group))) = self {
            command.uid(*user).gid(*group);
        }
        command
    }
}

/// A program of PostgreSQL. Debian keeps the server's apart from PATH, a folder for each version.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let mut found: Vec<PathBuf> = versions
        .flatten()
        .map(|version| version.path().join("bin").join(name))
        .filter(|path| path.exists())
        .collect();
    found.sort();
    found.pop().unwrap_or_else(|| name.into())
}
