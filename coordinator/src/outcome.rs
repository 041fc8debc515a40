//! What a statement gives back to the protocol that brought it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use futures::stream::BoxStream;
use tokio_util::sync::CancellationToken;

use crate::QueryId;
use crate::error::{Error, Result};

/// The outcome of one statement.
#[derive(Debug)]
pub enum StatementOutcome {
    /// A result set, maybe an empty one.
    Rows(ResultRows),
    /// A statement without a result set.
    Done(Done),
}

/// A statement without a result set succeeded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// Rows that were written.
    pub affected_rows: u64,
    /// A note for people, e.g. `Records: 3  Files: 1`; empty without one.
    pub info: String,
    /// Warnings that `SHOW WARNINGS` would list.
    pub warnings: u16,
}

/// A stream of rows. Dropping it before its end cancels the query on every worker.
///
/// An `Err` is the last item: the rows before it are then only a part of the answer.
pub struct ResultRows {
    pub query_id: QueryId,
    pub schema: SchemaRef,
    pub stream: BoxStream<'static, Result<RecordBatch>>,
    pub refusal: Refusal,
    /// Cancelled when the next item of the stream is an error: the rows that are left need not be sent first.
    pub failed: CancellationToken,
}

/// Why a protocol sent an error instead of rows that it was given: a value that it has no form for, say. Told before the
/// rows are dropped, it is what the audit says of the statement.
#[derive(Debug, Clone, Default)]
pub struct Refusal(Arc<OnceLock<Error>>);

impl Refusal {
    /// The error that the client gets. The first counts.
    pub fn tell(&self, error: &Error) {
        let _ = self.0.set(error.clone());
    }

    pub(crate) fn error(&self) -> Option<&Error> {
        self.0.get()
    }
}

impl fmt::Debug for ResultRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultRows")
            .field("query_id", &self.query_id)
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}
