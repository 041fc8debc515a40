//! The rows of an ORC file, stripe by stripe.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::ArrayRef;
use futures::stream::{self, BoxStream, StreamExt};

use super::columns::{ColumnReader, field_readers};
use super::stripe::Stripe;
use super::tail::{StripeAt, Tail};
use crate::formats::column_plan::{ShapePlan, StructPlan};
use crate::formats::error::FormatError;
use crate::formats::file_fields::{FileField, FileShape};
use crate::formats::rows::{FileRows, RowShape, RowsRequest};

/// Reads the stripes that start in the range that is asked for.
pub(crate) fn read(request: RowsRequest) -> BoxStream<'static, Result<FileRows, FormatError>> {
    stream::try_unfold(State::Start(Box::new(request)), State::next).boxed()
}

enum State {
    Start(Box<RowsRequest>),
    Stripes(Box<Reading>),
}

/// A file whose tail is known.
struct Reading {
    request: RowsRequest,
    tail: Tail,
    shape: RowShape,
    columns: HashSet<usize>,
    /// Stripes to come, the next one last.
    stripes: Vec<StripeAt>,
    current: Option<Current>,
}

/// A stripe of which rows are left.
struct Current {
    readers: Vec<ColumnReader>,
    first_row: u64,
    rows: u64,
}

impl State {
    async fn next(self) -> Result<Option<(FileRows, State)>, FormatError> {
        let mut reading = match self {
            State::Start(request) => Box::new(Reading::start(*request).await?),
            State::Stripes(reading) => reading,
        };
        let rows = reading.next().await?;
        Ok(rows.map(|rows| (rows, State::Stripes(reading))))
    }
}

impl Reading {
    async fn start(request: RowsRequest) -> Result<Self, FormatError> {
        let mut tail = Tail::read(request.bytes.as_ref(), request.size).await?;
        let shape = RowShape::new(&request, &mut tail.types.fields)?;
        let mut columns = HashSet::new();
        struct_columns(&shape.plan, &tail.types.fields, &mut columns);
        let in_range = |stripe: &&StripeAt| match &request.range {
            Some(range) => range.contains(&stripe.offset),
            None => true,
        };
        let stripes = tail
            .stripes
            .iter()
            .rev()
            .filter(in_range)
            .copied()
            .collect();
        Ok(Self {
            stripes,
            request,
            tail,
            shape,
            columns,
            current: None,
        })
    }

    async fn next(&mut self) -> Result<Option<FileRows>, FormatError> {
        loop {
            if let Some(current) = &mut self.current
                && current.rows > 0
            {
                return current.next(&self.shape, self.request.batch_rows).map(Some);
            }
            let Some(stripe) = self.stripes.pop() else {
                return Ok(None);
            };
            self.current = Some(self.open(stripe).await?);
        }
    }

    async fn open(&self, at: StripeAt) -> Result<Current, FormatError> {
        let mut current = Current {
            readers: vec![],
            first_row: at.first_row,
            rows: at.rows,
        };
        // Rows without columns are counted by the tail alone.
        if !self.columns.is_empty() {
            let bytes = Arc::clone(&self.request.bytes);
            let mut stripe =
                Stripe::read(bytes.as_ref(), at, self.tail.compression, &self.columns).await?;
            let types = &self.tail.types;
            current.readers =
                field_readers(&self.shape.plan, &types.fields, &types.kinds, &mut stripe)?;
        }
        Ok(current)
    }
}

impl Current {
    fn next(&mut self, shape: &RowShape, batch_rows: usize) -> Result<FileRows, FormatError> {
        let rows = usize::try_from(self.rows).map_or(batch_rows, |rows| rows.min(batch_rows));
        let reads: Vec<ArrayRef> = self
            .readers
            .iter_mut()
            .map(|reader| reader.next(rows, None))
            .collect::<Result<_, _>>()?;
        let batch = shape.batch(&reads, rows)?;
        let first_row = self.first_row;
        self.first_row += rows as u64;
        self.rows -= rows as u64;
        Ok(FileRows { first_row, batch })
    }
}

/// The numbers of the columns whose streams are read.
fn struct_columns(plan: &StructPlan, fields: &[FileField], columns: &mut HashSet<usize>) {
    for read in &plan.reads {
        if let Some(field) = fields.get(read.position) {
            shape_columns(&read.shape, field, columns);
        }
    }
}

fn shape_columns(plan: &ShapePlan, field: &FileField, columns: &mut HashSet<usize>) {
    columns.insert(field.number);
    match (plan, &field.shape) {
        (ShapePlan::Struct(plan), FileShape::Struct(fields)) => {
            struct_columns(plan, fields, columns);
        }
        (ShapePlan::List(plan), FileShape::List(element)) => {
            shape_columns(plan, element, columns);
        }
        (ShapePlan::Map(key, value), FileShape::Map(keys, values)) => {
            shape_columns(key, keys, columns);
            shape_columns(value, values, columns);
        }
        _ => {}
    }
}
