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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use datafusion::execution::SessionStateBuilder;
    use datafusion::physical_plan::collect;
    use datafusion::prelude::SessionContext;

    use super::*;

    /// On one thread, a join of 10^12 rows under an aggregate must leave that thread to the timer that
    /// cancels it. Without the rule this test does not end.
    #[tokio::test(flavor = "current_thread")]
    async fn a_join_that_multiplies_leaves_its_thread_to_others() {
        let state = SessionStateBuilder::new()
            .with_default_features()
            .with_physical_optimizer_rule(Arc::new(YieldingJoins))
            .build();
        let context = SessionContext::new_with_state(state);
        let sql = "SELECT count(a.value + b.value) FROM range(0, 1000000) a \
                   JOIN range(0, 1000000) b ON a.value % 1 = b.value % 1";
        let plan = context
            .sql(sql)
            .await
            .unwrap()
            .create_physical_plan()
            .await
            .unwrap();
        let running = collect(plan, context.task_ctx());
        let ended = tokio::time::timeout(Duration::from_millis(100), running).await;
        assert!(ended.is_err(), "it cannot have ended so soon");
    }
}
