//! DataFusion's search for joins among cross joins, kept from plans where it would change the meaning of NULLs.
//!
//! It flattens inner joins and puts them together anew, all with the null equality of the outermost: of `a.k = b.k` and
//! `b.k <=> c.k` it makes two `<=>`. Such plans keep the joins that they are written with.

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{NullEquality, Result};
use datafusion::logical_expr::{Join, LogicalPlan};
use datafusion::optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

#[derive(Debug, Default)]
pub(super) struct PlainCrossJoins {
    inner: EliminateCrossJoin,
}

impl PlainCrossJoins {
    /// DataFusion's name for its rule.
    pub(super) const NAME: &str = "eliminate_cross_join";
}

impl OptimizerRule for PlainCrossJoins {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let mut nulls_equal = false;
        plan.apply_with_subqueries(|node| {
            nulls_equal |= matches!(
                node,
                LogicalPlan::Join(Join {
                    null_equality: NullEquality::NullEqualsNull,
                    ..
                })
            );
            Ok(match nulls_equal {
                true => TreeNodeRecursion::Stop,
                false => TreeNodeRecursion::Continue,
            })
        })?;
        match nulls_equal {
            true => Ok(Transformed::no(plan)),
            false => self.inner.rewrite(plan, config),
        }
    }
}
