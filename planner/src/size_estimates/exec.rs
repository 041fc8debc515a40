//! A side of a join in the physical plan, until it is chosen how to join it.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};

use super::SizeEstimate;
use crate::pass_through::partitioned_as_input;

/// Hands its input on, with other statistics.
#[derive(Debug)]
pub(super) struct SizeEstimateExec {
    size: SizeEstimate,
    input: Arc<dyn ExecutionPlan>,
}

impl SizeEstimateExec {
    pub(super) fn new(size: SizeEstimate, input: Arc<dyn ExecutionPlan>) -> Self {
        Self { size, input }
    }
}

impl DisplayAs for SizeEstimateExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "SizeEstimateExec: rows={}", self.size.rows)
    }
}

impl ExecutionPlan for SizeEstimateExec {
    fn name(&self) -> &str {
        "SizeEstimateExec"
    }

    partitioned_as_input!(input);

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match <[Arc<dyn ExecutionPlan>; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(Self::new(self.size, input))),
            Err(children) => internal_err!("an estimate has one input, not {}", children.len()),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        let known = self.input.partition_statistics(partition)?;
        if partition.is_some() {
            return Ok(known);
        }
        Ok(Arc::new(Statistics {
            num_rows: Precision::Inexact(self.size.rows),
            total_byte_size: Precision::Inexact(self.size.bytes),
            ..known.as_ref().clone()
        }))
    }
}

/// Takes the estimates out of a plan, right after joins were selected.
#[derive(Debug)]
pub(crate) struct ForgetSizeEstimates;

impl PhysicalOptimizerRule for ForgetSizeEstimates {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let without = plan.transform_up(|node| {
            Ok(match node.downcast_ref::<SizeEstimateExec>() {
                Some(estimate) => Transformed::yes(Arc::clone(&estimate.input)),
                None => Transformed::no(node),
            })
        })?;
        Ok(without.data)
    }

    fn name(&self) -> &str {
        "forget_size_estimates"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
