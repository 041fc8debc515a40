use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A `tarn` process that is killed when the test lets go of it.
pub struct Process {
    child: Child,
    /// The addresses of its `ready` line, e.g. `mysql` -> `127.0.0.1:41234`.
    addresses: BTreeMap<String, String>,
    log: Arc<Mutex<String>>,
}

impl Process {
    /// Starts `tarn ARGS` with `env`, and waits for its `ready name=address …` line.
    pub fn start(args: &[&str], env: &[(String, String)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tarn"))
            .args(args)
            .envs(env.iter().map(|(k, v)| (k, v)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the tarn binary starts");
        let log = Arc::new(Mutex::new(String::new()));
        let (lines, ready) = mpsc::channel();
        forward(
            child.stdout.take().expect("piped"),
            lines.clone(),
            Arc::clone(&log),
        );
        forward(child.stderr.take().expect("piped"), lines, Arc::clone(&log));
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            match ready.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    if let Some(addresses) = line.strip_prefix("ready ") {
                        let addresses = parse_addresses(addresses);
                        return Self {
                            child,
                            addresses,
                            log,
                        };
                    }
                }
                Err(reason) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    let why = match reason {
                        RecvTimeoutError::Timeout => "was not ready within 60 s",
                        RecvTimeoutError::Disconnected => "ended before it was ready",
                    };
                    panic!(
                        "`tarn {}` {why}:\n{}",
                        args.join(" "),
                        log.lock().expect("log")
                    );
                }
            }
        }
    }

    /// The address under `name` in the ready line.
    pub fn address(&self, name: &str) -> &str {
        self.addresses
            .get(name)
            .unwrap_or_else(|| panic!("no address `{name}` in {:?}", self.addresses))
    }

    /// The port under `name` in the ready line.
    pub fn port(&self, name: &str) -> u16 {
        let address = self.address(name);
        address
            .rsplit(':')
            .next()
            .and_then(|port| port.parse().ok())
            .expect("host:port")
    }

    /// What it has written so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("log").clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// kill -9.
    pub fn kill(&mut self) {
        self.child.kill().expect("the process is ours");
        self.child.wait().expect("it is reaped");
    }

    /// Sends `signal` (e.g. `TERM`, `STOP`).
    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill")
            .args([&format!("-{signal}"), &self.child.id().to_string()])
            .status()
            .expect("kill runs");
        assert!(status.success(), "kill -{signal} failed");
    }

    /// Waits for its end; its exit code.
    pub fn wait(&mut self, limit: Duration) -> Option<i32> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait().expect("the process is ours") {
                return status.code();
            }
            assert!(
                Instant::now() < deadline,
                "tarn did not end within {limit:?}:\n{}",
                self.log()
            );
            std::thread::yield_now();
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!(
                "--- log of tarn process {}:\n{}",
                self.child.id(),
                self.log()
            );
        }
    }
}

fn forward(pipe: impl Read + Send + 'static, lines: mpsc::Sender<String>, log: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            {
                let mut log = log.lock().expect("log");
                log.push_str(&line);
                log.push('\n');
            }
            // The test may have stopped listening after the ready line.
            let _ = lines.send(line);
        }
    });
}

fn parse_addresses(line: &str) -> BTreeMap<String, String> {
    line.split_whitespace()
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, address)| (name.to_owned(), address.to_owned()))
        .collect()
}
