//! The rows of an INSERT in the sort order of the table.
//!
//! ```text
//!   query ─▶ Mapping ─▶ rows beside their keys ─▶ SortExec (spills) ─▶ rows alone ─▶ AppendWriter
//! ```
//!
//! All rows are sorted, not those of a file: each partition then has its rows in order, and each file of it a range of them.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::{StreamExt, future};
use tarn_catalog::SortKeys;

use super::insert_mapping::Mapping;
use crate::error::Error;

/// The plan of the query's rows as the table holds them, in its order.
pub(super) fn sorted(
    query: &Arc<dyn ExecutionPlan>,
    mapping: Mapping,
    keys: Arc<SortKeys>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let table = Arc::clone(mapping.table());
    let width = table.fields().len();
    let fields: Vec<_> = table
        .fields()
        .iter()
        .chain(&keys.fields())
        .cloned()
        .collect();
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let key_fields = keys.fields();
    let order = keys.options().iter().zip(&key_fields).enumerate();
    let order = order.map(|(index, (options, field))| PhysicalSortExpr {
        expr: Arc::new(Column::new(field.name(), width + index)),
        options: *options,
    });
    let Some(order) = LexOrdering::new(order) else {
        return Err(DataFusionError::Internal(
            "a sort order has no keys".to_owned(),
        ));
    };
    let columns = table.fields().iter().enumerate().map(|(index, field)| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), index));
        (column, field.name().clone())
    });
    let columns: Vec<_> = columns.collect();
    let rows = KeyedRows {
        query: Arc::clone(query),
        mapping: Arc::new(mapping),
        keys,
        schema: Arc::clone(&schema),
    };
    let rows = StreamingTableExec::try_new(schema, vec![Arc::new(rows)], None, None, false, None)?;
    let rows = SortExec::new(order, Arc::new(rows));
    Ok(Arc::new(ProjectionExec::try_new(columns, Arc::new(rows))?))
}

/// The table's columns, then the keys.
struct KeyedRows {
    query: Arc<dyn ExecutionPlan>,
    mapping: Arc<Mapping>,
    keys: Arc<SortKeys>,
    schema: SchemaRef,
}

impl fmt::Debug for KeyedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedRows")
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl PartitionStream for KeyedRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, task: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = match execute_stream(Arc::clone(&self.query), task) {
            Ok(rows) => rows,
            Err(error) => {
                let failed = futures::stream::once(future::ready(Err(error)));
                return Box::pin(RecordBatchStreamAdapter::new(
                    Arc::clone(&self.schema),
                    failed,
                ));
            }
        };
        let (mapping, keys) = (Arc::clone(&self.mapping), Arc::clone(&self.keys));
        let schema = Arc::clone(&self.schema);
        let mut rows_before = 0;
        let keyed = rows.map(move |batch| {
            let batch = batch?;
            let rows = mapping.apply(&batch, rows_before).map_err(of_ours)?;
            rows_before += batch.num_rows();
            let keys = keys.of(&rows).map_err(|error| of_ours(error.into()))?;
            let columns = rows.columns().iter().cloned().chain(keys).collect();
            Ok(RecordBatch::try_new(Arc::clone(&schema), columns)?)
        });
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            keyed,
        ))
    }
}

/// It is found again in what DataFusion makes of it.
fn of_ours(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
