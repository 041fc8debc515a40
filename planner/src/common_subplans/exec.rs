//! A place of the physical plan that reads shared rows.

use std::fmt;
use std::sync::Arc;

use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::{StreamExt, TryStreamExt};

use super::rows::SharedRows;
use crate::pass_through::{partitioned_as_input, sized_as_input};

/// Gives the rows of its input, or of its like at another place of the plan if that was asked before.
///
/// No filter goes through it: what one place does not need another may.
#[derive(Debug)]
pub(super) struct SharedSubplanExec {
    number: usize,
    input: Arc<dyn ExecutionPlan>,
    rows: Arc<SharedRows>,
    metrics: ExecutionPlanMetricsSet,
}

impl SharedSubplanExec {
    pub(super) fn new(number: usize, input: Arc<dyn ExecutionPlan>, rows: Arc<SharedRows>) -> Self {
        Self {
            number,
            input,
            rows,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl DisplayAs for SharedSubplanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "SharedSubplanExec: number={}", self.number)
    }
}

impl ExecutionPlan for SharedSubplanExec {
    fn name(&self) -> &str {
        "SharedSubplanExec"
    }

    partitioned_as_input!(input);
    sized_as_input!(input);

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match <[Arc<dyn ExecutionPlan>; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(Self::new(
                self.number,
                input,
                Arc::clone(&self.rows),
            ))),
            Err(children) => {
                internal_err!("a shared subplan has one input, not {}", children.len())
            }
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (rows, input) = (Arc::clone(&self.rows), Arc::clone(&self.input));
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let own = self.metrics.clone();
        let stream =
            futures::stream::once(async move { rows.read(&input, partition, context, &own).await })
                .try_flatten()
                .inspect_ok(move |batch| {
                    metrics.record_output(batch.num_rows());
                });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            stream.boxed(),
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
