//! Joins that give way.
//!
//! DataFusion's scans yield to other tasks after some batches, and so does whatever reads from them. A join
//! may make any number of batches from one that it read: above it nothing yields, and a query that was killed
//! keeps its thread until the join is through, while every other session waits for that thread.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};
use datafusion::physical_plan::unnest::UnnestExec;

/// Puts a [`CooperativeExec`] above each operator that can make many batches from one. It goes last: other
/// rules look for joins by their type.
#[derive(Debug)]
pub(crate) struct YieldingJoins;

impl PhysicalOptimizerRule for YieldingJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            Ok(if multiplies(&node) {
                Transformed::yes(Arc::new(CooperativeExec::new(node)))
            } else {
                Transformed::no(node)
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "yielding_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn multiplies(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.is::<HashJoinExec>()
        || node.is::<NestedLoopJoinExec>()
        || node.is::<CrossJoinExec>()
        || node.is::<SortMergeJoinExec>()
        || node.is::<UnnestExec>()
}
