//! The coordinator and the workers of the demo: processes of this same binary.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a process may take to be ready.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long it may take to leave before it is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// A process that leaves when this is dropped, or when the demo is gone for whatever reason.
pub struct Process {
    child: Child,
    /// The process leaves when this closes.
    stdin: Option<ChildStdin>,
    /// From its `ready` line.
    addresses: BTreeMap<String, String>,
}

impl Process {
    /// Starts `tarn ARGS`, its log in `log`, and waits until it is ready.
    pub fn start(arguments: &[String], log: &Path) -> Result<Self, String> {
        let name = arguments.first().map_or("tarn", String::as_str).to_string();
        let fail = |what: String| {
            format!(
                "the {name} did not start: {what}; its log is {}",
                log.display()
            )
        };
        let program = std::env::current_exe().map_err(|e| fail(e.to_string()))?;
        let file =
            File::create(log).map_err(|e| fail(format!("cannot write {}: {e}", log.display())))?;
        let mut child = Command::new(program)
            .args(arguments)
            .arg("--stop-with-stdin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(file)
            // Ctrl-C is for the demo, which then stops its processes in order.
            .process_group(0)
            .spawn()
            .map_err(|e| fail(e.to_string()))?;
        let stdin = child.stdin.take();
        let ready = child.stdout.take().map(ready_line);
        let mut process = Self {
            child,
            stdin,
            addresses: BTreeMap::new(),
        };
        let line = ready.and_then(|lines| lines.recv_timeout(START_TIMEOUT).ok());
        match line {
            Some(line) => {
                process.addresses = parse_addresses(&line);
                Ok(process)
            }
            None => Err(fail(last_line(log))),
        }
    }

    /// An address of its `ready` line.
    pub fn address(&self, name: &str) -> Result<&str, String> {
        match self.addresses.get(name) {
            Some(address) => Ok(address),
            None => Err(format!("a process did not say its {name} address")),
        }
    }

    /// Tells it to leave.
    pub fn stop(&mut self) {
        self.stdin = None;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
        let begun = Instant::now();
        while begun.elapsed() < STOP_TIMEOUT {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(20)),
                _ => return,
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a process's output to its end; the line that says it is ready comes out.
fn ready_line(output: std::process::ChildStdout) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some(addresses) = line.strip_prefix("ready ") {
                let _ = sender.send(addresses.to_string());
            }
        }
    });
    receiver
}

fn parse_addresses(line: &str) -> BTreeMap<String, String> {
    let pairs = line
        .split_whitespace()
        .filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, address)| (name.to_string(), address.to_string()))
        .collect()
}

fn last_line(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines()
        .last()
        .unwrap_or("it said nothing")
        .trim()
        .to_string()
}

/// `127.0.0.1:port` with the wanted port, or 0 (any free one) if it is taken.
pub fn listen_address(port: u16) -> String {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    format!("127.0.0.1:{}", if free { port } else { 0 })
}

/// The file that a process's log goes to.
pub fn log_file(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.log"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_taken_becomes_any() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert_eq!(
            listen_address(taken.local_addr().unwrap().port()),
            "127.0.0.1:0"
        );
    }

    #[test]
    fn addresses_of_a_ready_line() {
        let addresses = parse_addresses("mysql=127.0.0.1:1 flight=127.0.0.1:2");
        assert_eq!(addresses["flight"], "127.0.0.1:2");
        assert_eq!(addresses.len(), 2);
    }
}
