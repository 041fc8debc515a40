//! What the MySQL front end is started with.

use std::time::Duration;

/// How the MySQL server behaves. Limits that a client can see (`max_allowed_packet`, `wait_timeout`,
/// `net_write_timeout`, `max_connections`) are the engine's variables, and are read from there.
#[derive(Debug, Clone)]
pub struct MysqlSettings {
    /// A client that has not logged in by then is dropped.
    pub connect_timeout: Duration,
    /// Rows are sent when this many bytes of them have been encoded.
    pub send_buffer_bytes: usize,
    /// Prepared statements that one connection may hold.
    pub prepared_statements: usize,
}

impl Default for MysqlSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            send_buffer_bytes: 128 * 1024,
            prepared_statements: 16_382,
        }
    }
}
