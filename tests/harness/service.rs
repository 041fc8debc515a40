use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::tools;

/// A service that is not ours, on a free loopback port; ended when the test lets go of it.
pub struct Service {
    pub url: String,
    child: Child,
    _dir: TempDir,
}

impl Service {
    /// An S3-compatible store (moto) that has a bucket `lake`.
    pub fn moto() -> Self {
        let port = free_port();
        let moto = tools::python().with_file_name("moto_server");
        let service = Self::start(
            Command::new(moto).args(["-H", "127.0.0.1", "-p", &port.to_string()]),
            port,
            "",
        );
        tools::run_python("make_bucket.py", &[&service.url, "lake"]);
        service
    }

    /// The Iceberg project's own REST catalog over a local warehouse.
    pub fn iceberg_rest() -> Self {
        let port = free_port();
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new("java");
        command
            .arg("-cp")
            .arg(tools::rest_fixture_class_path())
            .args(["RestFx", &port.to_string()])
            .arg(dir.path().join("rest.db"))
            .arg(format!("file://{}/warehouse", dir.path().display()));
        Self::start_in(&mut command, port, "", dir)
    }

    /// A Hive Metastore 4 over an empty Derby database. What it needs is fetched by Maven when it is first asked for, since
    /// only tests that are run by hand do.
    pub fn hive_metastore() -> Self {
        let port = free_port();
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new("java");
        command
            .arg("-cp")
            .arg(tools::hive_metastore_class_path())
            .args(["Hms", &port.to_string()])
            .arg(dir.path());
        Self::start_in(&mut command, port, "", dir)
    }

    fn start(command: &mut Command, port: u16, path: &str) -> Self {
        Self::start_in(
            command,
            port,
            path,
            tempfile::tempdir().expect("a temporary folder"),
        )
    }

    fn start_in(command: &mut Command, port: u16, path: &str, dir: TempDir) -> Self {
        let mut child = command
            .current_dir(tools::package_root())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        // Its log must be drained, or it stops when the pipe is full.
        let log = child.stderr.take().expect("piped");
        std::thread::spawn(move || {
            BufReader::new(log)
                .lines()
                .map_while(Result::ok)
                .for_each(drop)
        });
        let service = Self {
            url: format!("http://127.0.0.1:{port}{path}"),
            child,
            _dir: dir,
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(
                Instant::now() < deadline,
                "{command:?} does not listen on {port}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        service
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port()
}
