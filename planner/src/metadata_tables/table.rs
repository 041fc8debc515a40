//! A metadata table as DataFusion sees it: its rows are made while they are read.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatchOptions};
use arrow::datatypes::{FieldRef, SchemaRef};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::StreamExt;
use futures::stream::BoxStream;
use iceberg::spec::StructType;
use tarn_catalog::{CatalogError, PinnedTable, TableVersion};

use super::MetadataTable;
use super::files::file_rows;
use super::manifests::manifest_rows;
use super::partitions::partition_rows;
use super::schemas::columns;
use super::static_tables::static_rows;

/// A metadata table of a table that was just pinned, at one of its versions.
pub(crate) fn metadata_table(
    kind: MetadataTable,
    table: PinnedTable,
    version: &TableVersion,
) -> Result<Arc<dyn TableProvider>, CatalogError> {
    // Columns are those of the table as it is now, whatever the snapshot.
    let (schema, partition) = columns(kind, &table)?;
    Ok(Arc::new(Rows {
        kind,
        table: table.version(version)?,
        partition,
        schema,
    }))
}

/// A metadata table, or some of its columns.
#[derive(Clone)]
struct Rows {
    kind: MetadataTable,
    table: PinnedTable,
    partition: StructType,
    schema: SchemaRef,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}${}", self.table.name(), self.kind.name())
    }
}

#[async_trait]
impl TableProvider for Rows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut rows = self.clone();
        if let Some(projection) = projection {
            rows.schema = Arc::new(self.schema.project(projection)?);
        }
        Ok(Arc::new(StreamingTableExec::try_new(
            Arc::clone(&rows.schema),
            vec![Arc::new(rows)],
            None,
            None,
            false,
            limit,
        )?))
    }
}

impl PartitionStream for Rows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (table, schema) = (self.table.clone(), Arc::clone(&self.schema));
        let rows: BoxStream<'static, Result<RecordBatch>> = match self.kind {
            MetadataTable::Snapshots
            | MetadataTable::History
            | MetadataTable::Refs
            | MetadataTable::MetadataLogEntries
            | MetadataTable::Properties => {
                let kind = self.kind;
                futures::stream::once(async move { static_rows(kind, &table, &schema) }).boxed()
            }
            MetadataTable::Manifests | MetadataTable::AllManifests => {
                manifest_rows(self.kind, table, schema).boxed()
            }
            MetadataTable::Partitions => {
                let partition = self.partition.clone();
                futures::stream::once(partition_rows(table, partition, schema)).boxed()
            }
            _ => file_rows(self.kind, table, self.partition.clone(), schema).boxed(),
        };
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            rows,
        ))
    }
}

/// A batch of so many rows, column by column. It may have no column at all, as `count(*)` wants it.
pub(super) fn batch(
    schema: &SchemaRef,
    rows: usize,
    column: impl Fn(&FieldRef) -> Result<ArrayRef>,
) -> Result<RecordBatch> {
    let columns = schema
        .fields()
        .iter()
        .map(column)
        .collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &options,
    )?)
}
