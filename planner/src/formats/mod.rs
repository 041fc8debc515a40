//! Data and delete files that are not Parquet: ORC and Avro, read into the table's own types.
//!
//! ```text
//!   bytes ─► orc    tail ─► stripes ─► run lengths ─► columns ┐
//!        └─► avro   header ─► blocks ─► arrow-avro ───────────┴─► shape ─► rows in the table's types
//!                     │                                             ▲
//!                     └ file_fields ─► column_plan (by field id) ───┘
//! ```
//!
//! [`read_rows`] is the one way in. Parquet goes through DataFusion's own source and is not seen here.

mod avro;
mod column_plan;
mod compression;
mod default_value;
mod error;
mod file_bytes;
mod file_fields;
mod file_format;
mod leaf;
mod orc;
mod rows;
mod shape;
mod varint;

#[cfg(test)]
mod fixture_files;
#[cfg(test)]
mod type_rows;

#[cfg(test)]
pub(crate) use fixture_files::FixtureTable;

pub use default_value::write_default;
pub(crate) use error::FormatError;
pub(crate) use file_bytes::FileBytes;
pub(crate) use file_format::FileFormat;
pub(crate) use rows::{FileRows, RowsRequest, WantedField, read_rows};
