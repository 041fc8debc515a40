use std::time::Duration;

/// Limits of the Flight SQL server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlightSettings {
    /// The largest gRPC message that is taken or sent, in bytes.
    pub max_message_bytes: usize,
    /// Sessions that may be open at once; the one idle longest gives way to a new one.
    pub max_sessions: usize,
    /// A session that nobody has used for this long is closed.
    pub session_idle: Duration,
    /// A session is closed this long after the last connection that used it is gone.
    pub orphan_grace: Duration,
    /// How long a stopping server waits for results that are still being read.
    pub drain: Duration,
}

impl Default for FlightSettings {
    fn default() -> Self {
        Self {
            max_message_bytes: 64 << 20,
            max_sessions: 1024,
            session_idle: Duration::from_secs(30 * 60),
            orphan_grace: Duration::from_secs(60),
            drain: Duration::from_secs(10),
        }
    }
}
