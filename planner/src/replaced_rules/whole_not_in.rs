//! `x NOT IN (SELECT …)`, whose subquery is read whole.
//!
//! DataFusion 54 asks of the subquery what a filter asks of `x`: of `x >= 10 AND x NOT IN (SELECT k FROM t)` it makes
//! `k >= 10` for `t`. That takes away the NULL which makes the condition unknown for every row. Here the filter goes to the
//! side of `x` alone.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{Filter, JoinType, LogicalPlan};
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// DataFusion's pushdown of filters, but for joins in which NULLs count.
#[derive(Debug, Default)]
pub(super) struct WholeNotIn {
    inner: PushDownFilter,
}

impl WholeNotIn {
    /// DataFusion's name for its rule.
    pub(super) const NAME: &str = "push_down_filter";
}

fn counts_nulls(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if join.null_aware && join.join_type == JoinType::LeftAnti)
}

impl OptimizerRule for WholeNotIn {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.inner.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Filter(filter) if counts_nulls(&filter.input) => {
                match Arc::unwrap_or_clone(filter.input) {
                    LogicalPlan::Join(mut join) => {
                        // What comes out of the join are the columns of its left side.
                        let left = Filter::try_new(filter.predicate, join.left)?;
                        join.left = Arc::new(LogicalPlan::Filter(left));
                        Ok(Transformed::yes(LogicalPlan::Join(join)))
                    }
                    other => internal_err!("a join that counts NULLs is {}", other.display()),
                }
            }
            plan if counts_nulls(&plan) => Ok(Transformed::no(plan)),
            plan => self.inner.rewrite(plan, config),
        }
    }
}
