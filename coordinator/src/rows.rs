//! Small results made by the coordinator itself: `SHOW`, `EXPLAIN` and system tables.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    UInt64Array,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::error::Result;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Null,
    Text(String),
    Int(i64),
    UInt(u64),
    Float(f64),
    /// Microseconds since the Unix epoch, UTC.
    Time(i64),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self::UInt(number)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A column's name and the type of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    pub name: &'static str,
    pub kind: Kind,
}

/// The types of [`Cell`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Int,
    UInt,
    Float,
    Time,
}

pub(crate) const fn text(name: &'static str) -> Column {
    Column {
        name,
        kind: Kind::Text,
    }
}

pub(crate) const fn int(name: &'static str) -> Column {
    Column {
        name,
        kind: Kind::Int,
    }
}

pub(crate) const fn uint(name: &'static str) -> Column {
    Column {
        name,
        kind: Kind::UInt,
    }
}

pub(crate) const fn float(name: &'static str) -> Column {
    Column {
        name,
        kind: Kind::Float,
    }
}

pub(crate) const fn time(name: &'static str) -> Column {
    Column {
        name,
        kind: Kind::Time,
    }
}

impl Kind {
    pub fn data_type(self) -> DataType {
        match self {
            Self::Text => DataType::Utf8,
            Self::Int => DataType::Int64,
            Self::UInt => DataType::UInt64,
            Self::Float => DataType::Float64,
            Self::Time => DataType::Timestamp(TimeUnit::Microsecond, None),
        }
    }
}

/// Rows as a batch with `schema`, whose types must be those of `columns`.
pub(crate) fn batch(
    schema: SchemaRef,
    columns: &[Column],
    rows: &[Vec<Cell>],
) -> Result<RecordBatch> {
    let arrays: Vec<ArrayRef> = columns
        .iter()
        .enumerate()
        .map(|(index, column)| array(column.kind, rows.iter().map(|row| row.get(index))))
        .collect();
    Ok(RecordBatch::try_new(schema, arrays)?)
}

fn array<'a>(kind: Kind, cells: impl Iterator<Item = Option<&'a Cell>>) -> ArrayRef {
    match kind {
        Kind::Text => Arc::new(
            cells
                .map(|cell| match cell? {
                    Cell::Text(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect::<StringArray>(),
        ),
        Kind::Int => Arc::new(cells.map(|cell| integer(cell?)).collect::<Int64Array>()),
        Kind::UInt => Arc::new(
            cells
                .map(|cell| match cell? {
                    Cell::UInt(number) => Some(*number),
                    cell => integer(cell).and_then(|number| u64::try_from(number).ok()),
                })
                .collect::<UInt64Array>(),
        ),
        Kind::Float => Arc::new(
            cells
                .map(|cell| match cell? {
                    Cell::Float(number) => Some(*number),
                    _ => None,
                })
                .collect::<Float64Array>(),
        ),
        Kind::Time => Arc::new(
            cells
                .map(|cell| match cell? {
                    Cell::Time(micros) => Some(*micros),
                    _ => None,
                })
                .collect::<TimestampMicrosecondArray>(),
        ),
    }
}

fn integer(cell: &Cell) -> Option<i64> {
    match cell {
        Cell::Int(number) => Some(*number),
        Cell::UInt(number) => i64::try_from(*number).ok(),
        _ => None,
    }
}

/// A complete small result.
#[derive(Debug, Clone)]
pub(crate) struct RowSet {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
    /// Other names for the columns, where they depend on the statement.
    pub names: Vec<String>,
}

impl RowSet {
    pub fn new(columns: &[Column], rows: Vec<Vec<Cell>>) -> Self {
        Self {
            columns: columns.to_vec(),
            rows,
            names: columns
                .iter()
                .map(|column| column.name.to_owned())
                .collect(),
        }
    }

    /// Calls the column at `index` `name`.
    pub fn named(mut self, index: usize, name: impl Into<String>) -> Self {
        if let Some(slot) = self.names.get_mut(index) {
            *slot = name.into();
        }
        self
    }

    pub fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(
            self.columns
                .iter()
                .zip(&self.names)
                .map(|(column, name)| Field::new(name, column.kind.data_type(), true))
                .collect::<Vec<_>>(),
        ))
    }

    pub fn batch(&self) -> Result<RecordBatch> {
        batch(self.schema(), &self.columns, &self.rows)
    }
}
