//! Time limits and retries of stores and catalog servers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How patient we are with a store or a catalog server that is slow or down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreSettings {
    /// Time to set up a connection.
    pub connect_timeout: Duration,
    /// Time for one request, its body included.
    pub request_timeout: Duration,
    /// How often a failed request is sent again.
    pub max_retries: u32,
    /// The first pause between two attempts; it doubles, with jitter, up to `max_backoff`.
    pub initial_backoff: Duration,
    /// The longest pause between two attempts.
    pub max_backoff: Duration,
    /// No attempt of a request begins later than this after its first; each ends by the request timeout.
    pub retry_timeout: Duration,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(30),
            max_retries: 4,
            initial_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(5),
            retry_timeout: Duration::from_secs(90),
        }
    }
}
