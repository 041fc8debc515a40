//! Requests to a REST catalog: address, credentials, time limits, retries.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, OnceCell};
use url::Url;

use super::messages::{ErrorBody, ServerConfig};
use super::signing::Signing;
use super::token::HeldToken;
use crate::error::{CatalogError, Result};
use crate::secrets::{Masked, shown_value};
use crate::storage::{StoreSettings, root_cause};

/// The most of an answer's text that an error repeats.
const MAX_QUOTED: usize = 300;

/// Where a REST catalog is.
#[derive(Clone)]
pub(crate) struct RestConfig {
    pub(super) catalog: String,
    pub(super) uri: Url,
    pub(super) properties: BTreeMap<String, String>,
}

impl fmt::Debug for RestConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestConfig")
            .field("catalog", &self.catalog)
            .field("properties", &Masked(&self.properties))
            .finish()
    }
}

impl RestConfig {
    pub(crate) fn new(
        catalog: &str,
        uri: &str,
        properties: &BTreeMap<String, String>,
    ) -> Result<Self> {
        let invalid = |reason: String| CatalogError::InvalidCatalog {
            catalog: catalog.to_string(),
            reason,
        };
        let shown = shown_value("uri", uri);
        let parsed =
            Url::parse(uri).map_err(|e| invalid(format!("uri '{shown}' is not a URL: {e}")))?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.cannot_be_a_base() {
            return Err(invalid(format!(
                "the uri of a REST catalog starts with http:// or https://, not '{shown}'"
            )));
        }
        headers(properties).map_err(invalid)?;
        Signing::of_properties(properties, &StoreSettings::default()).map_err(invalid)?;
        Ok(Self {
            catalog: catalog.to_string(),
            uri: parsed,
            properties: properties.clone(),
        })
    }
}

/// Headers that every request has: the user's `header.*`, and what asks for credentials of the storage.
fn headers(properties: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(
        HeaderName::from_static("x-iceberg-access-delegation"),
        HeaderValue::from_static("vended-credentials"),
    );
    for (key, value) in properties {
        let Some(name) = key.strip_prefix("header.") else {
            continue;
        };
        let name = HeaderName::try_from(name)
            .map_err(|_| format!("'{name}' is not the name of a header"))?;
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| format!("the value of '{key}' is not valid"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// What came back.
#[derive(Debug)]
pub(crate) enum Answer {
    Ok(Bytes),
    /// 404, with the reason given.
    NotFound(String),
    /// 409, with the reason given.
    Conflict(String),
    /// A request that changes something was sent, and what became of it is not known.
    Unknown(String),
}

pub(crate) struct RestClient {
    pub(super) config: RestConfig,
    settings: StoreSettings,
    http: OnceCell<reqwest::Client>,
    server: OnceCell<Server>,
    pub(super) token: Mutex<Option<HeldToken>>,
    signing: Option<Signing>,
}

/// What the server said of itself when first asked.
struct Server {
    base: Url,
    prefix: Vec<String>,
    properties: BTreeMap<String, String>,
}

impl fmt::Debug for RestClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestClient")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl RestClient {
    pub(crate) fn new(config: RestConfig, settings: StoreSettings) -> Self {
        // That they are right was checked when the configuration was made.
        let signing = Signing::of_properties(&config.properties, &settings);
        Self {
            signing: signing.unwrap_or_default(),
            config,
            settings,
            http: OnceCell::new(),
            server: OnceCell::new(),
            token: Mutex::default(),
        }
    }

    pub(crate) fn user_properties(&self) -> &BTreeMap<String, String> {
        &self.config.properties
    }

    /// Properties that the server gives to all its clients.
    pub(crate) async fn server_properties(&self) -> Result<BTreeMap<String, String>> {
        Ok(self.server().await?.properties.clone())
    }

    fn shown_uri(&self) -> String {
        let mut uri = self.config.uri.clone();
        // Fails only for URLs that cannot have a user, which then have none.
        let _ = uri.set_password(None);
        uri.to_string()
    }

    pub(crate) fn refused(&self, reason: String) -> CatalogError {
        CatalogError::Refused {
            catalog: self.config.catalog.clone(),
            uri: self.shown_uri(),
            reason,
        }
    }

    pub(super) fn unreachable(&self, reason: String) -> CatalogError {
        CatalogError::Unreachable {
            catalog: self.config.catalog.clone(),
            uri: self.shown_uri(),
            reason,
        }
    }

    pub(crate) fn decode<T: DeserializeOwned>(&self, body: Bytes) -> Result<T> {
        serde_json::from_slice(&body).map_err(|e| {
            self.refused(format!(
                "it did not answer as an Iceberg REST catalog does ({e})"
            ))
        })
    }

    /// Sends a request below `/v1/{prefix}/`.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &[String],
        query: &[(&str, &str)],
        body: Option<&serde_json::Value>,
    ) -> Result<Answer> {
        let server = self.server().await?;
        let mut url = server.base.clone();
        push_segments(
            &mut url,
            std::iter::once("v1").chain(server.prefix.iter().map(String::as_str)),
        );
        push_segments(&mut url, path.iter().map(String::as_str));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.request(method, url, body).await
    }

    pub(super) async fn http(&self) -> Result<&reqwest::Client> {
        self.http
            .get_or_try_init(|| async {
                let headers = headers(&self.config.properties).map_err(|reason| {
                    CatalogError::InvalidCatalog {
                        catalog: self.config.catalog.clone(),
                        reason,
                    }
                })?;
                reqwest::Client::builder()
                    .connect_timeout(self.settings.connect_timeout)
                    .timeout(self.settings.request_timeout)
                    .default_headers(headers)
                    .user_agent(concat!("tarn/", env!("CARGO_PKG_VERSION")))
                    .build()
                    .map_err(|e| {
                        CatalogError::Internal(format!("no HTTP client: {}", root_cause(&e)))
                    })
            })
            .await
    }

    /// The server's configuration, fetched once; a failure is not remembered.
    async fn server(&self) -> Result<&Server> {
        self.server
            .get_or_try_init(|| async {
                let mut url = self.config.uri.clone();
                push_segments(&mut url, ["v1", "config"]);
                if let Some(warehouse) = self.config.properties.get("warehouse") {
                    url.query_pairs_mut().append_pair("warehouse", warehouse);
                }
                let answer = self.request(Method::GET, url, None).await?;
                let Answer::Ok(body) = answer else {
                    return Err(super::unexpected(self, answer));
                };
                let config: ServerConfig = self.decode(body)?;
                let mut properties = config.defaults;
                for key in self.config.properties.keys() {
                    properties.remove(key);
                }
                properties.extend(config.overrides);
                let base = match properties.get("uri") {
                    Some(uri) => Url::parse(uri)
                        .map_err(|e| self.refused(format!("it gave the uri '{uri}': {e}")))?,
                    None => self.config.uri.clone(),
                };
                let prefix = properties
                    .get("prefix")
                    .or_else(|| self.config.properties.get("prefix"));
                let prefix = prefix.map(|prefix| {
                    prefix
                        .split('/')
                        .filter(|part| !part.is_empty())
                        .map(decoded_segment)
                        .collect()
                });
                Ok(Server {
                    base,
                    prefix: prefix.unwrap_or_default(),
                    properties,
                })
            })
            .await
    }

    /// Sends, again if that is safe, until there is an answer or patience ends.
    async fn request(
        &self,
        method: Method,
        url: Url,
        body: Option<&serde_json::Value>,
    ) -> Result<Answer> {
        let started = Instant::now();
        let reads = method == Method::GET || method == Method::HEAD;
        let mut renewed_token = false;
        let mut attempt = 0;
        loop {
            let outcome = self.request_once(&method, &url, body).await?;
            let (reason, retriable) = match outcome {
                Outcome::Answer(answer) => return Ok(answer),
                Outcome::Denied(_)
                    if !renewed_token && self.config.properties.contains_key("credential") =>
                {
                    // The token may have been revoked before its time.
                    renewed_token = true;
                    *self.token.lock().await = None;
                    continue;
                }
                Outcome::Denied(reason) => return Err(self.refused(reason)),
                Outcome::NotSent(reason) => (reason, true),
                Outcome::Busy(reason) => (reason, true),
                Outcome::Lost(reason) if reads => (reason, true),
                Outcome::Lost(reason) => return Ok(Answer::Unknown(reason)),
            };
            attempt += 1;
            let out_of_time = started.elapsed() >= self.settings.retry_timeout;
            if !retriable || attempt > self.settings.max_retries || out_of_time {
                return Err(self.unreachable(format!("{reason} ({attempt} attempt(s))")));
            }
            tokio::time::sleep(backoff(&self.settings, attempt)).await;
        }
    }

    async fn request_once(
        &self,
        method: &Method,
        url: &Url,
        body: Option<&serde_json::Value>,
    ) -> Result<Outcome> {
        let mut request = self.http().await?.request(method.clone(), url.clone());
        if let Some(token) = self.bearer().await? {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let http = self.http().await?;
        let mut request = request
            .build()
            .map_err(|e| self.refused(root_cause(&e.without_url())))?;
        if let Some(signing) = &self.signing {
            let signed = signing.sign(&mut request).await;
            signed.map_err(|reason| self.unreachable(reason))?;
        }
        let response = match http.execute(request).await {
            Ok(response) => response,
            Err(error) if error.is_connect() || error.is_builder() => {
                return Ok(Outcome::NotSent(root_cause(&error.without_url())));
            }
            Err(error) if error.is_timeout() => {
                return Ok(Outcome::Lost(format!(
                    "no answer within {} s",
                    self.settings.request_timeout.as_secs_f64()
                )));
            }
            Err(error) => return Ok(Outcome::Lost(root_cause(&error.without_url()))),
        };
        let status = response.status();
        let bytes = match response.bytes().await {
            Ok(bytes) => bytes,
            Err(error) => return Ok(Outcome::Lost(root_cause(&error.without_url()))),
        };
        if status.is_success() {
            return Ok(Outcome::Answer(Answer::Ok(bytes)));
        }
        let reason = reason(status, &bytes);
        Ok(match status {
            StatusCode::NOT_FOUND => Outcome::Answer(Answer::NotFound(reason)),
            StatusCode::CONFLICT => Outcome::Answer(Answer::Conflict(reason)),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Outcome::Denied(reason),
            // The protocol says of 503 that nothing was done.
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Outcome::Busy(reason)
            }
            status if status.is_server_error() => Outcome::Lost(reason),
            _ => return Err(self.refused(reason)),
        })
    }
}

enum Outcome {
    Answer(Answer),
    /// 401 or 403.
    Denied(String),
    /// No connection: nothing was sent.
    NotSent(String),
    /// The server refused to start on it.
    Busy(String),
    /// It was sent, and what became of it is not known.
    Lost(String),
}

/// Adds path segments, whatever characters they have.
pub(super) fn push_segments<'a>(url: &mut Url, segments: impl IntoIterator<Item = &'a str>) {
    // Checked when the catalog was made: these URLs have paths.
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
}

/// Some servers give a prefix that is percent-encoded already, which must not be encoded once more.
fn decoded_segment(segment: &str) -> String {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = (first == b'%' && tail.len() >= 2)
            .then(|| {
                std::str::from_utf8(&tail[..2])
                    .ok()
                    .and_then(|hex| u8::from_str_radix(hex, 16).ok())
            })
            .flatten();
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| segment.to_string())
}

pub(super) fn reason(status: StatusCode, body: &[u8]) -> String {
    let text = match serde_json::from_slice::<ErrorBody>(body) {
        Ok(body) => body.error.message,
        Err(_) => String::from_utf8_lossy(body).trim().to_string(),
    };
    let text: String = text.chars().take(MAX_QUOTED).collect();
    if text.is_empty() {
        format!("status {status}")
    } else {
        format!("{text} (status {})", status.as_u16())
    }
}

fn backoff(settings: &StoreSettings, attempt: u32) -> Duration {
    let doubled = settings
        .initial_backoff
        .saturating_mul(1 << (attempt - 1).min(16));
    // Between half and all of it, so that clients that failed together do not come back together.
    let spread = (uuid::Uuid::new_v4().as_u128() % 512) as u32;
    doubled
        .min(settings.max_backoff)
        .mul_f64(0.5 + f64::from(spread) / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_encoded_once() {
        let mut url = Url::parse("http://localhost:8181/catalog/").unwrap();
        push_segments(
            &mut url,
            ["v1", "namespaces", "a\u{1f}b", "tables", "x/y z"],
        );
        assert_eq!(
            url.as_str(),
            "http://localhost:8181/catalog/v1/namespaces/a%1Fb/tables/x%2Fy%20z"
        );
        assert_eq!(decoded_segment("my%2Fwarehouse"), "my/warehouse");
        assert_eq!(decoded_segment("100%"), "100%");
    }

    #[test]
    fn secrets_are_masked_in_debug() {
        let properties: BTreeMap<String, String> = [
            ("token".to_string(), "hush".to_string()),
            ("header.X-Key".to_string(), "k".to_string()),
        ]
        .into();
        let config = RestConfig::new("c", "http://me:pw@localhost", &properties).unwrap();
        let client = RestClient::new(config, StoreSettings::default());
        let shown = format!("{client:?} {}", client.unreachable("down".to_string()));
        assert!(!shown.contains("hush") && !shown.contains("pw"), "{shown}");
    }

    #[tokio::test]
    async fn a_server_that_is_down_is_named_after_bounded_retries() {
        // A port that was free a moment ago, and that nobody listens on.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let uri = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let settings = StoreSettings {
            max_retries: 2,
            initial_backoff: Duration::from_millis(1),
            max_backoff: Duration::from_millis(2),
            ..StoreSettings::default()
        };
        let client = RestClient::new(
            RestConfig::new("far", &uri, &BTreeMap::new()).unwrap(),
            settings,
        );
        let error = client.server_properties().await.unwrap_err().to_string();
        assert!(
            error.contains("catalog 'far'")
                && error.contains(&uri)
                && error.contains("3 attempt(s)"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_server_that_never_answers_is_named_in_time() {
        // Connections are taken by the kernel's backlog; nobody reads from them.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let uri = format!("http://{}", listener.local_addr().unwrap());
        let settings = StoreSettings {
            request_timeout: Duration::from_millis(50),
            max_retries: 1,
            initial_backoff: Duration::from_millis(1),
            ..StoreSettings::default()
        };
        let client = RestClient::new(
            RestConfig::new("slow", &uri, &BTreeMap::new()).unwrap(),
            settings,
        );
        let error = client.server_properties().await.unwrap_err().to_string();
        assert!(
            error.contains("catalog 'slow'")
                && error.contains("no answer within 0.05 s (2 attempt(s))"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_server_that_is_no_catalog_is_told_from_one_that_is_down() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}", listener.local_addr().unwrap());
        let served = tokio::spawn(async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>";
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let config = RestConfig::new("web", &uri, &BTreeMap::new()).unwrap();
        let error = RestClient::new(config, StoreSettings::default())
            .server_properties()
            .await
            .unwrap_err();
        served.await.unwrap();
        assert!(matches!(error, CatalogError::Refused { .. }), "{error}");
        assert!(
            error
                .to_string()
                .contains("did not answer as an Iceberg REST catalog does"),
            "{error}"
        );
    }
}
