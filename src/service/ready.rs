//! Tells people, and scripts that wait for it, where the process listens.

use std::io::Write;

use tokio::net::TcpListener;

/// Writes `ready name=address …` to standard output: one line, once every socket accepts.
pub fn announce(listeners: &[(&str, &TcpListener)]) {
    let mut line = String::from("ready");
    for (name, listener) in listeners {
        if let Ok(address) = listener.local_addr() {
            tracing::info!("{name} listens on {address}");
            line.push_str(&format!(" {name}={address}"));
        }
    }
    let mut out = std::io::stdout().lock();
    // Nobody may be reading, and that is no reason to stop.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
