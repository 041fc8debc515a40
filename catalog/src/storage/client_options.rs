//! What our time limits and retries are to object_store.

use object_store::{BackoffConfig, ClientOptions, RetryConfig};

use super::StoreSettings;

pub(super) fn retry_config(settings: &StoreSettings) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: settings.initial_backoff,
            max_backoff: settings.max_backoff,
            base: 2.0,
        },
        max_retries: settings.max_retries as usize,
        retry_timeout: settings.retry_timeout,
    }
}

pub(super) fn client_options(settings: &StoreSettings, allow_http: bool) -> ClientOptions {
    ClientOptions::new()
        .with_allow_http(allow_http)
        .with_connect_timeout(settings.connect_timeout)
        .with_timeout(settings.request_timeout)
}
