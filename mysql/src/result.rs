//! A statement's rows on their way to the client, batch by batch.
//!
//! ```text
//!   engine's stream ──batch──▶ RowEncoder ──rows──▶ send buffer ──await──▶ socket
//!          ▲                                                        │
//!          └──────────── not polled while the client is slow ◀──────┘
//! ```

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use tarn_coordinator::{Error, ErrorKind, Refusal, ResultRows};
use tokio_util::sync::CancellationToken;

use crate::channel::Channel;
use crate::error::ConnectionError;
use crate::rows::{RowEncoder, RowEncoding, align, column_definition};
use crate::wire::capabilities::Capabilities;
use crate::wire::column::ColumnDefinition;
use crate::wire::lenenc;
use crate::wire::response::put_end;
use crate::wire::status::Status;

/// Why an exchange stops before its end.
pub(crate) enum Stop {
    /// The statement failed: the client is told, and may send another.
    Statement(Error),
    Connection(ConnectionError),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Statement(error)
    }
}

impl From<ConnectionError> for Stop {
    fn from(error: ConnectionError) -> Self {
        Self::Connection(error)
    }
}

/// The columns of a result, as the client is told of them.
pub(crate) fn column_definitions(schema: &SchemaRef) -> Result<Vec<ColumnDefinition>, Error> {
    let columns = schema.fields().iter().map(|field| {
        column_definition(field).map_err(|error| {
            Error::new(
                ErrorKind::Unsupported,
                format!("column '{}': {error}", field.name()),
            )
        })
    });
    columns.collect()
}

/// Encodes column definitions and what ends them for a client that has not agreed to do without.
pub(crate) fn put_columns(
    channel: &mut Channel,
    client: Capabilities,
    columns: &[ColumnDefinition],
    status: Status,
) {
    for column in columns {
        channel.put(|out| column.put(out));
    }
    if !client.has(Capabilities::DEPRECATE_EOF) {
        channel.put(|out| put_end(out, client, status, 0));
    }
}

/// The rows of one statement that have not been sent yet. Dropping them cancels the query.
pub(crate) struct PendingRows {
    schema: SchemaRef,
    columns: Vec<ColumnDefinition>,
    stream: BoxStream<'static, Result<RecordBatch, Error>>,
    batch: Option<RecordBatch>,
    next_row: usize,
    refusal: Refusal,
    failed: CancellationToken,
}

impl PendingRows {
    /// Waits for the first batch, so that a query that fails before it yields a row fails as a whole.
    pub async fn open(channel: &mut Channel, rows: ResultRows) -> Result<Self, Stop> {
        let columns = column_definitions(&rows.schema)?;
        let mut pending = Self {
            schema: rows.schema,
            columns,
            stream: rows.stream,
            batch: None,
            next_row: 0,
            refusal: rows.refusal,
            failed: rows.failed,
        };
        pending.advance(channel).await?;
        Ok(pending)
    }

    /// Encodes the number of columns.
    pub fn put_column_count(&self, channel: &mut Channel) {
        channel.put(|out| lenenc::put_int(out, self.columns.len() as u64));
    }

    pub fn columns(&self) -> &[ColumnDefinition] {
        &self.columns
    }

    /// Sends rows, at most `limit`. Returns whether all have been sent.
    pub async fn send(
        &mut self,
        channel: &mut Channel,
        encoding: RowEncoding,
        limit: Option<u32>,
    ) -> Result<bool, Stop> {
        let mut left = limit.map_or(usize::MAX, |limit| limit as usize);
        loop {
            let Some(batch) = &self.batch else {
                return Ok(true);
            };
            if left == 0 {
                return Ok(false);
            }
            let encoder = RowEncoder::new(&self.schema, batch, encoding)
                .map_err(|error| self.refused(&error))?;
            let end = batch.num_rows().min(self.next_row.saturating_add(left));
            while self.next_row < end {
                let packets = channel.packets();
                let start = packets.begin();
                if let Err(error) = encoder.put_row(self.next_row, packets.payload()) {
                    packets.abandon(start);
                    return Err(self.refused(&error).into());
                }
                packets.end(start);
                self.next_row += 1;
                left -= 1;
                if channel.is_full() {
                    channel.flush().await?;
                    if self.failed.is_cancelled() {
                        break;
                    }
                }
            }
            drop(encoder);
            // The rows that are left may take a slow client minutes; the error does not wait for them.
            if self.failed.is_cancelled() {
                return Err(self.why().await.into());
            }
            if self.next_row == batch.num_rows() {
                self.batch = None;
                self.advance(channel).await?;
            }
        }
    }

    /// The error that the rows end with.
    async fn why(&mut self) -> Error {
        match self.stream.next().await {
            Some(Err(error)) => error,
            _ => Error::new(ErrorKind::Internal, "the query failed without saying why"),
        }
    }

    /// A value that the protocol has no form for.
    fn refused(&self, error: &dyn std::fmt::Display) -> Error {
        let error = Error::new(ErrorKind::WrongValue, error.to_string());
        self.refusal.tell(&error);
        error
    }

    /// Makes the next batch with rows the current one, if there is one.
    async fn advance(&mut self, channel: &mut Channel) -> Result<(), Stop> {
        loop {
            // What is already there is taken at once; before waiting, the client gets what it can
            // have.
            let next = match self.stream.next().now_or_never() {
                Some(next) => next,
                None => {
                    channel.flush().await?;
                    channel.watch(self.stream.next()).await?
                }
            };
            let Some(batch) = next.transpose()? else {
                return Ok(());
            };
            if batch.num_rows() > 0 {
                let batch = align(&self.schema, batch).map_err(|error| {
                    let message = format!("rows are not of the types that were planned: {error}");
                    Error::new(ErrorKind::Internal, message)
                })?;
                self.batch = Some(batch);
                self.next_row = 0;
                return Ok(());
            }
        }
    }
}

impl std::fmt::Debug for PendingRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingRows")
            .field("schema", &Arc::clone(&self.schema))
            .finish_non_exhaustive()
    }
}
