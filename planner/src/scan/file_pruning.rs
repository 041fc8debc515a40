//! Leaves out, before deletes are loaded for it, what the Parquet source would leave out after.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileMetrics;
use datafusion::datasource::physical_plan::parquet::{
    ParquetAccessPlan, RowGroupAccessPlanFilter, apply_file_schema_type_coercions,
};
use datafusion::error::Result;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, PhysicalExprSimplifier};
use datafusion::physical_expr_adapter::PhysicalExprAdapterFactory;
use datafusion::physical_expr_common::physical_expr::is_dynamic_physical_expr;
use datafusion::physical_optimizer::pruning::{FilePruner, PruningPredicate};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet};
use datafusion::scalar::ScalarValue;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::basic::Type;
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::ColumnDescPtr;

use super::column_adapter::ColumnAdapterFactory;

/// The filters of a scan, dynamic ones with what they have learnt so far.
pub(crate) struct FilePruning {
    pub(crate) predicate: Option<Arc<dyn PhysicalExpr>>,
    /// The table's.
    pub(crate) schema: SchemaRef,
    pub(crate) metrics: ExecutionPlanMetricsSet,
    pub(crate) partition: usize,
}

impl FilePruning {
    /// Whether the file's statistics show that none of its rows can match.
    pub(crate) fn rules_out(&self, file: &PartitionedFile) -> Result<bool> {
        let Some(predicate) = &self.predicate else {
            return Ok(false);
        };
        let Some(bounded) = self.with_bounds(predicate, file) else {
            return Ok(false);
        };
        let pruner = FilePruner::try_new(
            Arc::clone(predicate),
            &self.schema,
            &bounded,
            Count::default(),
        );
        let out = match pruner {
            Some(mut pruner) => pruner.should_prune()?,
            None => false,
        };
        if out {
            ParquetFileMetrics::new(
                self.partition,
                file.object_meta.location.as_ref(),
                &self.metrics,
            )
            .files_ranges_pruned_statistics
            .add_pruned(1);
        }
        Ok(out)
    }

    /// Whether the predicate has learnt anything since the files were planned.
    pub(crate) fn learns(&self) -> bool {
        self.predicate
            .as_ref()
            .is_some_and(is_dynamic_physical_expr)
    }

    /// The file with bounds of the predicate's columns as exact statistics, which alone are looked at. A text that was cut
    /// short is still a bound.
    fn with_bounds(
        &self,
        predicate: &Arc<dyn PhysicalExpr>,
        file: &PartitionedFile,
    ) -> Option<PartitionedFile> {
        let known = file.statistics.as_ref()?;
        let mut statistics = Statistics::new_unknown(&self.schema);
        statistics.num_rows = known.num_rows;
        let exact = |value: &Precision<ScalarValue>| match value.get_value() {
            Some(value) => Precision::Exact(value.clone()),
            None => Precision::Absent,
        };
        for column in collect_columns(predicate) {
            let index = self.schema.index_of(column.name()).ok()?;
            let known = known.column_statistics.get(index)?;
            statistics.column_statistics[index] = ColumnStatistics {
                null_count: known.null_count,
                min_value: exact(&known.min_value),
                max_value: exact(&known.max_value),
                ..ColumnStatistics::new_unknown()
            };
        }
        let mut bounded = PartitionedFile::new_from_meta(file.object_meta.clone());
        bounded.statistics = Some(Arc::new(statistics));
        Some(bounded)
    }

    /// Clears the place of row groups whose statistics show that none of their rows can match.
    pub(crate) fn prune_row_groups(
        &self,
        footer: &ParquetMetaData,
        adapter: &ColumnAdapterFactory,
        wanted: &mut [bool],
    ) {
        // What cannot be evaluated may match.
        if let Some(kept) = self.matching_row_groups(footer, adapter) {
            for (wanted, kept) in wanted.iter_mut().zip(kept) {
                *wanted &= kept;
            }
        }
    }

    fn matching_row_groups(
        &self,
        footer: &ParquetMetaData,
        adapter: &ColumnAdapterFactory,
    ) -> Option<Vec<bool>> {
        let predicate = Arc::clone(self.predicate.as_ref()?);
        let descriptor = footer.file_metadata().schema_descr();
        // Timestamps of 96 bits have statistics in no order.
        let int96 = |column: &ColumnDescPtr| column.physical_type() == Type::INT96;
        if descriptor.columns().iter().any(int96) {
            return None;
        }
        let physical = parquet_to_arrow_schema(descriptor, None).ok()?;
        let physical =
            Arc::new(apply_file_schema_type_coercions(&self.schema, &physical).unwrap_or(physical));
        let adapter = adapter
            .create(Arc::clone(&self.schema), Arc::clone(&physical))
            .ok()?;
        let predicate = PhysicalExprSimplifier::new(&physical)
            .simplify(adapter.rewrite(predicate).ok()?)
            .ok()?;
        let predicate = PruningPredicate::try_new(predicate, Arc::clone(&physical)).ok()?;
        let groups = footer.row_groups();
        let mut filter = RowGroupAccessPlanFilter::new(ParquetAccessPlan::new_all(groups.len()));
        filter.prune_by_statistics(
            &physical,
            descriptor,
            groups,
            &predicate,
            // The Parquet source does the same again, and counts it.
            &ParquetFileMetrics::new(0, "", &ExecutionPlanMetricsSet::new()),
        );
        let plan = filter.build();
        Some((0..plan.len()).map(|i| plan.should_scan(i)).collect())
    }
}
