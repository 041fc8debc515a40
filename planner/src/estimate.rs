//! What a query would read, from metadata alone: `EXPLAIN ESTIMATE`.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use tarn_catalog::TableName;

use crate::scan::iceberg_scans;

/// One scan of a table, after pruning by metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableEstimate {
    pub table: TableName,
    /// Data files of the snapshot.
    pub files_total: u64,
    /// Data files to read.
    pub files: u64,
    /// Rows in them.
    pub rows: u64,
    /// Their size.
    pub bytes: u64,
}

/// A row for each scan of an Iceberg table in the plan, in the plan's order.
pub fn estimate(plan: &Arc<dyn ExecutionPlan>) -> Vec<TableEstimate> {
    iceberg_scans(plan)
        .into_iter()
        .map(|scan| TableEstimate {
            files_total: scan.report.files.total,
            files: scan.report.files.kept - scan.report.files_answered,
            rows: scan.report.rows_in_files,
            bytes: scan.report.data_in_bytes,
            table: scan.table,
        })
        .collect()
}
