//! A hash join of two sides that are partitioned by the same buckets.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Statistics;
use datafusion::common::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

/// Joins partition `i` of one side with partition `i` of the other.
///
/// A [`HashJoinExec`] of partitioned sides does that too. But the filter that it makes of its left side's keys, for the
/// scan of the right, looks for the partition of a row by DataFusion's repartition hash: it would drop rows that are where
/// their Iceberg bucket is. And a worker that pushes filters down in what it was sent would give the filter back to it.
/// So the join is hidden in here, where nobody can.
#[derive(Debug)]
pub(crate) struct BucketJoinExec {
    join: HashJoinExec,
}

impl BucketJoinExec {
    /// The join, of these sides.
    pub(super) fn of(join: &HashJoinExec, sides: Vec<Arc<dyn ExecutionPlan>>) -> Result<Self> {
        let join = join
            .builder()
            .with_partition_mode(PartitionMode::Partitioned)
            .with_new_children(sides)?
            .reset_state()
            .build()?;
        Ok(Self { join })
    }

    /// The join inside.
    pub(crate) fn join(&self) -> &HashJoinExec {
        &self.join
    }
}

impl DisplayAs for BucketJoinExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "BucketJoinExec: ")?;
            }
            DisplayFormatType::TreeRender => {}
        }
        self.join.fmt_as(format, f)
    }
}

impl ExecutionPlan for BucketJoinExec {
    fn name(&self) -> &str {
        "BucketJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.join.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.join.children()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        ExecutionPlan::maintains_input_order(&self.join)
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false, false]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::of(&self.join, children)?))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let sides = self.join.children().into_iter().cloned().collect();
        Ok(Arc::new(Self::of(&self.join, sides)?))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if self.join.dynamic_filter_expr().is_some() {
            return Err(DataFusionError::Internal(
                "a join of buckets has a filter that routes by hash".to_string(),
            ));
        }
        self.join.execute(partition, context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.join.metrics()
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        self.join.partition_statistics(partition)
    }

    fn fetch(&self) -> Option<usize> {
        self.join.fetch()
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        self.join.cardinality_effect()
    }

    fn gather_filters_for_pushdown(
        &self,
        phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let mut config = config.clone();
        config.optimizer.enable_join_dynamic_filter_pushdown = false;
        self.join
            .gather_filters_for_pushdown(phase, parent_filters, &config)
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        child_pushdown_result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_any(child_pushdown_result))
    }
}
