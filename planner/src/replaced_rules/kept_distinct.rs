//! `DISTINCT` over a join with what is grouped already.
//!
//! DataFusion 54 drops a `DISTINCT` of columns that a `GROUP BY` below has made unique. A join between the two repeats them, and
//! it drops it all the same. Here it always becomes an aggregate.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::utils::expand_wildcard;
use datafusion::logical_expr::{Aggregate, Distinct, LogicalPlan};
use datafusion::optimizer::replace_distinct_aggregate::ReplaceDistinctWithAggregate;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

#[derive(Debug, Default)]
pub(super) struct KeptDistinct {
    inner: ReplaceDistinctWithAggregate,
}

impl KeptDistinct {
    /// DataFusion's name for its rule.
    pub(super) const NAME: &str = "replace_distinct_aggregate";
}

impl OptimizerRule for KeptDistinct {
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
        if let LogicalPlan::Distinct(Distinct::All(input)) = &plan {
            let columns = expand_wildcard(input.schema(), input, None)?;
            if !columns.is_empty() {
                let groups = Aggregate::try_new(input.clone(), columns, vec![])?;
                return Ok(Transformed::yes(LogicalPlan::Aggregate(groups)));
            }
        }
        self.inner.rewrite(plan, config)
    }
}
