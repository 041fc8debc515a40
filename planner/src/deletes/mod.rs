//! Row-level deletes: which rows of a data file are no longer there.
//!
//! ```text
//!   delete manifests ─► index ──► FileDeletes, an extension of the data file's PartitionedFile
//!   (coordinator)      (scope)            │ codec: each delete file once a message
//!                                         ▼
//!   (worker)            loader ─┬─ position         rows of (file path, position)  ─┐
//!                               ├─ deletion_vector  a bitmap in a Puffin file      ─┼─► positions of the data file
//!                               └─ equality         keys, held against the file's ─┘            │
//!                                                   key columns                                 ▼
//!                                                                          selection: a ParquetAccessPlan
//! ```
//!
//! Whatever kind they are of, deletes end as a set of positions before the data file is opened for the query: its own
//! projection, filters, limit and byte range then need to know nothing of them. What was loaded is kept in a bounded
//! [`cache`](DeleteCache) of the process, and who asks for what is being loaded waits for that.

mod cache;
mod delete_file;
mod deletion_vector;
mod equality;
mod file_bounds;
mod index;
#[cfg(test)]
mod index_tests;
mod key_columns;
mod loader;
mod partition_key;
mod position;
mod rows;
mod selection;

pub(crate) use cache::DeleteCache;
pub(crate) use delete_file::{DeleteFile, DeleteKind, FileDeletes};
pub(crate) use file_bounds::ValueRange;
pub(crate) use index::{Applied, DeleteIndex, blob_range, unpartitioned_specs};
pub(crate) use key_columns::{KeyColumns, KeyColumnsOf, KeyError};
pub(crate) use loader::DeleteLoader;
pub(crate) use rows::is_readable;

#[cfg(test)]
pub(crate) use deletion_vector::blob as vector_blob;
