//! What our time limits and retries are to object_store.

use object_store::{BackoffConfig, ClientOptions, Error, Result, RetryConfig};
use url::Url;

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

/// The address of a store, less its last slash.
///
/// # Errors
/// What is no address of HTTP: object_store would panic with it.
pub(super) fn endpoint<'a>(store: &'static str, key: &str, value: &'a str) -> Result<&'a str> {
    let parsed = Url::parse(value).ok();
    let named = parsed.is_some_and(|url| {
        matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|it| !it.is_empty())
    });
    match named {
        true => Ok(value.trim_end_matches('/')),
        false => Err(Error::Generic {
            store,
            source: format!(
                "'{key}' is '{value}', which is no address: one begins with http:// or https:// and names a host"
            )
            .into(),
        }),
    }
}

/// A token that is sent in a header.
///
/// # Errors
/// A line break or the like inside: object_store would panic with it. The message does not show the token.
pub(super) fn token<'a>(store: &'static str, key: &str, value: &'a str) -> Result<&'a str> {
    if value.chars().any(char::is_control) {
        return Err(Error::Generic {
            store,
            source: format!("'{key}' has a line break or another control character in it").into(),
        });
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_refused() {
        for address in ["http://localhost:9000/", "https://s3.example.com/path"] {
            let endpoint = endpoint("S3", "s3.endpoint", address).unwrap();
            assert_eq!(endpoint, address.trim_end_matches('/'));
        }
        for wrong in [
            "minio:9000",
            "minio",
            "http://",
            "http://[bad",
            "ftp://host",
            "/path",
            "",
        ] {
            let error = endpoint("S3", "s3.endpoint", wrong)
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(&format!("'s3.endpoint' is '{wrong}', which is no address")),
                "{error}"
            );
        }
    }

    #[test]
    fn tokens_are_of_one_line_and_are_not_shown() {
        assert_eq!(token("GCS", "k", "hush").unwrap(), "hush");
        for wrong in ["hush\nhush", "hush\r", "hush\0"] {
            let error = token("GCS", "gcs.oauth2.token", wrong)
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("'gcs.oauth2.token'") && !error.contains("hush"),
                "{error}"
            );
        }
    }
}
