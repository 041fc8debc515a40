//! Filters that are not pushed to another column of the same name.
//!
//! A filter that stands above a join, `b.k IS NULL` above `a LEFT JOIN b`, is pushed down the physical plan as far as it goes. On
//! the way DataFusion 54 looks its columns up by name in each operator (its issue 25244): where both sides have a `k` and the
//! sides were swapped, it lands on `a.k`. So operators with several columns of one name let no filter through, and neither
//! does a `NOT IN`, whose right side has to be read whole. What belongs below was pushed there in the logical plan, which tells the
//! columns apart.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;

use super::stop::stopping_at;

/// DataFusion's pushdown of the filters that are known when a query is planned. Of those that are known as it runs,
/// [`ProvenFilters`](crate::ProvenFilters) takes care.
#[derive(Debug)]
pub(super) struct SameNameFilters {
    inner: FilterPushdown,
}

impl Default for SameNameFilters {
    fn default() -> Self {
        Self {
            inner: FilterPushdown::new(),
        }
    }
}

impl PhysicalOptimizerRule for SameNameFilters {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        stopping_at(plan, misleads, |plan| self.inner.optimize(plan, config))
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn schema_check(&self) -> bool {
        self.inner.schema_check()
    }
}

fn misleads(node: &Arc<dyn ExecutionPlan>) -> bool {
    let counts_nulls = node
        .downcast_ref::<HashJoinExec>()
        .is_some_and(|join| join.null_aware);
    let schema = node.schema();
    let mut names = HashSet::new();
    counts_nulls
        || !schema
            .fields()
            .iter()
            .all(|field| names.insert(field.name()))
}
