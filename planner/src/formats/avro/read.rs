//! The rows of an Avro file, in batches of many blocks or of a part of one.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use futures::stream::{self, BoxStream, StreamExt};

use super::columns::Record;
use super::container::Container;
use super::cursor::{Cursor, damaged};
use super::schema::{FileSchema, Node};
use crate::formats::error::FormatError;
use crate::formats::rows::{FileRows, RowShape, RowsRequest};

/// A batch ends when so many bytes of records are in it: rows can be of any size.
const BATCH_BYTES: usize = 32 << 20;

/// Reads the whole file if the range that is asked for starts with it, and nothing otherwise: where in the file a row
/// of another part is, as deletes by position need it, is known only to who has read up to it.
pub(crate) fn read(request: RowsRequest) -> BoxStream<'static, Result<FileRows, FormatError>> {
    if request.range.as_ref().is_some_and(|range| range.start > 0) {
        return stream::empty().boxed();
    }
    stream::try_unfold(State::Start(Box::new(request)), State::next).boxed()
}

enum State {
    Start(Box<RowsRequest>),
    Blocks(Box<Reading>),
}

struct Reading {
    container: Container,
    shape: RowShape,
    record: Record,
    /// Whether any bytes of the records are looked at.
    columns: bool,
    /// Whether records take bytes at all.
    empty_records: bool,
    batch_rows: usize,
    next_row: u64,
    /// What is left of the current block.
    count: u64,
    records: Bytes,
}

impl State {
    async fn next(self) -> Result<Option<(FileRows, State)>, FormatError> {
        let mut reading = match self {
            State::Start(request) => Box::new(Reading::start(*request).await?),
            State::Blocks(reading) => reading,
        };
        let rows = reading.next().await?;
        Ok(rows.map(|rows| (rows, State::Blocks(reading))))
    }
}

impl Reading {
    async fn start(request: RowsRequest) -> Result<Self, FormatError> {
        let (container, schema) = Container::open(Arc::clone(&request.bytes), request.size).await?;
        let mut schema = FileSchema::parse(&schema)?;
        let shape = RowShape::new(&request, &mut schema.fields)?;
        let record = Record::new(&shape.plan, &schema.nodes)?;
        Ok(Self {
            columns: !shape.plan.reads.is_empty(),
            empty_records: Node::Record(schema.nodes).least_bytes() == 0,
            container,
            shape,
            record,
            batch_rows: request.batch_rows.max(1),
            next_row: 0,
            count: 0,
            records: Bytes::new(),
        })
    }

    async fn next(&mut self) -> Result<Option<FileRows>, FormatError> {
        let (mut rows, mut bytes) = (0, 0);
        while rows < self.batch_rows && bytes < BATCH_BYTES {
            if self.count == 0 && !self.open_block().await? {
                break;
            }
            let wanted = self.count.min((self.batch_rows - rows) as u64) as usize;
            let (read, length) = self.push(wanted, BATCH_BYTES - bytes)?;
            rows += read;
            bytes += length;
        }
        if rows == 0 {
            return Ok(None);
        }
        let first_row = self.next_row;
        self.next_row += rows as u64;
        let batch = self.shape.batch(&self.record.finish()?, rows)?;
        Ok(Some(FileRows { first_row, batch }))
    }

    /// Goes on to the next block that has records.
    async fn open_block(&mut self) -> Result<bool, FormatError> {
        while let Some(block) = self.container.next(self.columns).await? {
            if self.columns && !self.empty_records && block.count > block.records.len() as u64 {
                return Err(damaged(format!(
                    "a block of {} bytes counts {} records",
                    block.records.len(),
                    block.count
                )));
            }
            if self.columns && block.count == 0 && !block.records.is_empty() {
                return Err(damaged("a block has more records than it counts"));
            }
            (self.count, self.records) = (block.count, block.records);
            if self.count > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Pushes up to so many records, and no more than about so many bytes. Returns how many of both.
    fn push(&mut self, wanted: usize, most_bytes: usize) -> Result<(usize, usize), FormatError> {
        if !self.columns {
            self.count -= wanted as u64;
            return Ok((wanted, 0));
        }
        let mut cursor = Cursor::new(&self.records);
        let mut rows = 0;
        while rows < wanted && cursor.position() < most_bytes {
            self.record.push(&mut cursor)?;
            rows += 1;
        }
        let bytes = cursor.position();
        self.records.advance(bytes);
        self.count -= rows as u64;
        if self.count == 0 && !self.records.is_empty() {
            return Err(damaged("a block has more records than it counts"));
        }
        Ok((rows, bytes))
    }
}
