//! A server, by Arrow Flight SQL.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema, UInt64Type};
use arrow_flight::Action;
use arrow_flight::error::FlightError;
use arrow_flight::sql::client::FlightSqlServiceClient;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use tonic::transport::{Channel, Endpoint};

use super::connection::{Answer, Client, ClientError};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A server that does not answer is left without a word.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// As much as the engine may put into one message.
const MAX_MESSAGE_BYTES: usize = 1 << 30;

/// A connection to a server. Its session there ends when it is dropped.
pub struct FlightClient {
    flight: FlightSqlServiceClient<Channel>,
    login: Login,
    closed: AtomicBool,
}

#[derive(Clone)]
struct Login {
    host: String,
    port: u16,
    user: String,
    password: String,
}

impl FlightClient {
    /// Connects and logs in.
    pub async fn connect(
        host: &str,
        port: u16,
        user: &str,
        password: &str,
    ) -> Result<Self, ClientError> {
        let (host, user, password) = (host.to_string(), user.to_string(), password.to_string());
        Self::log_in(Login {
            host,
            port,
            user,
            password,
        })
        .await
    }

    async fn log_in(login: Login) -> Result<Self, ClientError> {
        let place = place_of(&login);
        let host = if login.host.contains(':') && !login.host.starts_with('[') {
            format!("[{}]", login.host)
        } else {
            login.host.clone()
        };
        let channel = Endpoint::from_shared(format!("http://{host}:{}", login.port))
            .map_err(|e| ClientError(format!("{place} is no address: {e}")))?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .connect()
            .await
            .map_err(|e| ClientError(format!("cannot connect to {place}: {}", root_cause(&e))))?;
        let inner = arrow_flight::flight_service_client::FlightServiceClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE_BYTES);
        let mut flight = FlightSqlServiceClient::new_from_inner(inner);
        flight
            .handshake(&login.user, &login.password)
            .await
            .map_err(|e| {
                let text = plain(&e);
                ClientError(format!(
                    "cannot log in to {place} as {}: {text}",
                    login.user
                ))
            })?;
        Ok(Self {
            flight,
            login,
            closed: AtomicBool::new(false),
        })
    }
}

#[async_trait::async_trait]
impl Client for FlightClient {
    async fn run(&self, sql: &str) -> Result<Answer, ClientError> {
        let mut flight = self.flight.clone();
        let info = flight
            .execute(sql.to_string(), None)
            .await
            .map_err(|e| ClientError(plain(&e)))?;
        let schema = info
            .clone()
            .try_decode_schema()
            .unwrap_or_else(|_| Schema::empty());
        let rows = stream::iter(info.endpoint)
            .map(Ok)
            .and_then(move |endpoint| {
                let mut flight = flight.clone();
                async move {
                    let ticket = endpoint
                        .ticket
                        .ok_or_else(|| ClientError("an endpoint has no ticket".to_string()))?;
                    let batches = flight
                        .do_get(ticket)
                        .await
                        .map_err(|e| ClientError(plain(&e)))?;
                    Ok(batches.map_err(|e| ClientError(plain(&e))))
                }
            })
            .try_flatten()
            .boxed();
        if is_outcome(&schema, sql) {
            let affected_rows = affected_rows(rows).await?;
            return Ok(Answer::Done {
                affected_rows,
                info: String::new(),
            });
        }
        Ok(Answer::Rows {
            schema: Arc::new(schema),
            rows,
        })
    }

    async fn another(&self) -> Result<Box<dyn Client>, ClientError> {
        Ok(Box::new(Self::log_in(self.login.clone()).await?))
    }

    async fn close(&self) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            close_session(self.flight.clone()).await;
        }
    }

    fn cancel(&self) {
        // Dropping the answer resets its stream, and the server then cancels the query.
    }

    fn place(&self) -> String {
        place_of(&self.login)
    }
}

impl Drop for FlightClient {
    fn drop(&mut self) {
        if !self.closed.load(Ordering::Acquire)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(close_session(self.flight.clone()));
        }
    }
}

/// A server that is gone, or too busy to say so, lets the session idle out.
async fn close_session(mut flight: FlightSqlServiceClient<Channel>) {
    let mut request = tonic::Request::new(Action::new("CloseSession", Vec::new()));
    if let Some(token) = flight
        .token()
        .and_then(|token| format!("Bearer {token}").parse().ok())
    {
        request.metadata_mut().insert("authorization", token);
    }
    let closing = flight.inner_mut().do_action(request);
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, closing).await;
}

/// A statement without rows answers with one row of one column, `affected_rows`; a query may call its column so too.
fn is_outcome(schema: &Schema, sql: &str) -> bool {
    const QUERIES: &[&str] = &[
        "select", "with", "values", "table", "show", "describe", "desc", "explain", "(",
    ];
    let sql = sql.trim_start().to_ascii_lowercase();
    matches!(&schema.fields()[..], [field] if field.name() == "affected_rows")
        && !QUERIES.iter().any(|word| sql.starts_with(word))
}

async fn affected_rows(
    rows: BoxStream<'static, Result<RecordBatch, ClientError>>,
) -> Result<u64, ClientError> {
    let batches: Vec<RecordBatch> = rows.try_collect().await?;
    let count = batches.iter().find(|b| b.num_rows() > 0).and_then(|batch| {
        let count = cast(batch.column(0), &DataType::UInt64).ok()?;
        Some(count.as_primitive::<UInt64Type>().value(0))
    });
    Ok(count.unwrap_or(0))
}

fn place_of(login: &Login) -> String {
    format!("{}:{}", login.host, login.port)
}

/// The server's own words, without the layers that they came through.
fn plain(error: &FlightError) -> String {
    match error {
        FlightError::Tonic(status) => status.message().to_string(),
        other => strip(&other.to_string()),
    }
}

/// `handshake` only gives a status as text: `… message: "…", details: …`.
fn strip(text: &str) -> String {
    let message = text.split_once("message: \"").map(|(_, rest)| {
        let end = rest.find("\", ").or_else(|| rest.rfind('"'));
        &rest[..end.unwrap_or(rest.len())]
    });
    match message {
        Some(message) => message.replace("\\\"", "\"").replace("\\n", "\n"),
        None => text.to_string(),
    }
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_told_from_queries() {
        let schema = Schema::new(vec![arrow::datatypes::Field::new(
            "affected_rows",
            DataType::Int64,
            false,
        )]);
        assert!(is_outcome(&schema, "INSERT INTO t VALUES (1)"));
        assert!(!is_outcome(&schema, " SELECT 1 AS affected_rows"));
        assert!(!is_outcome(&Schema::empty(), "USE d"));
    }

    #[test]
    fn a_status_in_a_text_is_reduced_to_its_message() {
        let text = "Ipc error: Can't handshake code: 'x', message: \"wrong password for \\\"ann\\\"\", source: None";
        assert_eq!(strip(text), "wrong password for \"ann\"");
        let text = "Ipc error: Can't handshake code: 'x', message: \"denied 'bob'\"";
        assert_eq!(strip(text), "denied 'bob'");
        assert_eq!(strip("something else"), "something else");
    }
}
