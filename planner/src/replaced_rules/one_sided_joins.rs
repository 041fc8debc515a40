//! Projections that are not pushed below joins whose rows are those of one side.
//!
//! DataFusion 54 pushes a projection below a join as if the join's columns were those of the left and then those of the right
//! (its issue 23010). A `RightSemi` join has those of the right alone: where the names happen to fit, the projection
//! splits them between the wrong inputs.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::projection_pushdown::ProjectionPushdown;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};

use super::stop::stopping_at;

/// DataFusion's pushdown of projections, which joins of one side's rows take in instead.
#[derive(Debug, Default)]
pub(super) struct OneSidedJoins {
    inner: ProjectionPushdown,
}

impl PhysicalOptimizerRule for OneSidedJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        stopping_at(plan, one_sided, |plan| self.inner.optimize(plan, config))
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn schema_check(&self) -> bool {
        self.inner.schema_check()
    }
}

fn one_sided(node: &Arc<dyn ExecutionPlan>) -> bool {
    let hash = node
        .downcast_ref::<HashJoinExec>()
        .map(|it| *it.join_type());
    let nested = node
        .downcast_ref::<NestedLoopJoinExec>()
        .map(|it| *it.join_type());
    hash.or(nested).is_some_and(|kind| match kind {
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => false,
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => true,
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => true,
    })
}
