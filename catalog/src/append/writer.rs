//! The writer of an append: takes batches, makes files, commits once.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::error::{CatalogError, Result};

/// How an append lays out its files.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// The size of data files to aim at, in bytes of Arrow data in memory (files on disk are smaller, since they are
    /// encoded and compressed). The table property `write.target-file-size-bytes`, which is about bytes on disk, also
    /// ends a file.
    pub target_file_bytes: u64,
    /// The most files that are written at the same time; rows of more partitions than this are buffered and sorted.
    pub max_open_files: usize,
    /// Memory for rows that wait to be written, in bytes.
    pub buffer_bytes: u64,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            target_file_bytes: 512 * 1024 * 1024,
            max_open_files: 16,
            buffer_bytes: 256 * 1024 * 1024,
        }
    }
}

/// What an append did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendSummary {
    /// Rows added.
    pub rows: u64,
    /// Data files added.
    pub files: u64,
    /// Their bytes on disk.
    pub bytes: u64,
    /// The snapshot made; `None` if there were no rows to add, so that none was needed.
    pub snapshot_id: Option<i64>,
}

/// Writes batches into data files and makes all of them visible with one commit.
///
/// Dropped without [`commit`](Self::commit), it deletes its files in the background and leaves no visible change.
#[derive(Debug)]
pub struct AppendWriter {
    arrow_schema: SchemaRef,
}

impl AppendWriter {
    pub(crate) fn to_table(
        _c: crate::Catalog,
        t: crate::PinnedTable,
        _o: WriteOptions,
    ) -> Result<Self> {
        Ok(Self {
            arrow_schema: t.arrow_schema(),
        })
    }

    pub(crate) fn to_new_table(
        _c: crate::Catalog,
        _t: crate::backend::StagedTable,
        _o: WriteOptions,
    ) -> Result<Self> {
        Err(CatalogError::Internal(
            "appending is not there yet".to_string(),
        ))
    }

    /// The table's schema as Arrow's. Batches may be of types that convert to it without loss.
    pub fn arrow_schema(&self) -> SchemaRef {
        self.arrow_schema.clone()
    }

    /// Takes rows. Columns are matched by position.
    pub async fn write(&mut self, _batch: RecordBatch) -> Result<()> {
        Err(CatalogError::Internal(
            "appending is not there yet".to_string(),
        ))
    }

    /// Finishes the files and commits them. On an error nothing is visible and the files are deleted.
    pub async fn commit(self) -> Result<AppendSummary> {
        Err(CatalogError::Internal(
            "appending is not there yet".to_string(),
        ))
    }

    /// Deletes what was written.
    pub async fn abort(self) {}
}
