//! One connection to an engine, wherever it runs.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::TryStreamExt;
use futures::stream::BoxStream;

/// A statement failed, or the engine could not be reached. The text is for the user as it stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ClientError(pub String);

/// What a statement gave.
pub enum Answer {
    /// Rows, as they come. Dropping the stream cancels the query.
    Rows {
        schema: SchemaRef,
        rows: BoxStream<'static, Result<RecordBatch, ClientError>>,
    },
    /// A statement without rows.
    Done { affected_rows: u64, info: String },
}

/// A connection. Dropping what [`run`](Client::run) returned, before or after it is ready, cancels the statement.
#[async_trait::async_trait]
pub trait Client: Send + Sync {
    /// Runs exactly one statement.
    async fn run(&self, sql: &str) -> Result<Answer, ClientError>;

    /// Another connection as the same user, to ask about this one while it is busy.
    async fn another(&self) -> Result<Box<dyn Client>, ClientError>;

    /// Ends the session on the engine's side, so that it need not idle out.
    async fn close(&self);

    /// Stops the statement that runs.
    fn cancel(&self);

    /// Where the engine is, for the greeting.
    fn place(&self) -> String;
}

/// Runs a statement and collects its rows; meant for small answers.
pub async fn collect(client: &dyn Client, sql: &str) -> Result<Vec<RecordBatch>, ClientError> {
    match client.run(sql).await? {
        Answer::Rows { rows, .. } => rows.try_collect().await,
        Answer::Done { .. } => Ok(Vec::new()),
    }
}
