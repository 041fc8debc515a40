//! Rows of a scan by buckets are looked at on their way out.

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::projection::ProjectionExprs;

use crate::buckets::check::misplaced;
use crate::buckets::{FileBucket, FileBuckets, ScanBuckets, column_of};

/// Where a scan yields the column that it reads the buckets of.
#[derive(Debug, Clone, Copy)]
pub(super) struct BucketCheck {
    buckets: ScanBuckets,
    output: usize,
}

impl BucketCheck {
    pub(super) fn new(
        buckets: ScanBuckets,
        projection: &ProjectionExprs,
        schema: &Schema,
    ) -> Result<Self> {
        let output = projection
            .iter()
            .position(|e| column_of(&e.expr, schema) == Some(buckets.column));
        match output {
            Some(output) => Ok(Self { buckets, output }),
            None => Err(DataFusionError::Internal(
                "a scan by buckets does not yield the column that they are of".to_string(),
            )),
        }
    }

    /// What the rows of a file are held against.
    pub(super) fn of_file(&self, file: &PartitionedFile) -> Result<FileCheck> {
        let buckets = file.extensions.get::<FileBuckets>();
        match buckets.and_then(|buckets| buckets.of_column(self.buckets.column)) {
            Some(bucket) => Ok(FileCheck {
                bucket: *bucket,
                output: self.output,
            }),
            None => Err(DataFusionError::Internal(
                "a scan by buckets has a file that does not tell its bucket".to_string(),
            )),
        }
    }
}

/// The bucket that all rows of a file must be in.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileCheck {
    bucket: FileBucket,
    output: usize,
}

impl FileCheck {
    /// An error if a row is in another bucket.
    pub(super) fn check(&self, batch: &RecordBatch) -> Result<()> {
        match misplaced(batch.column(self.output), &self.bucket) {
            None => Ok(()),
            Some(reason) => Err(DataFusionError::Execution(reason)),
        }
    }
}
