//! Filters that are not pushed to another column of the same name.
//!
//! A filter that stands above a join, `b.k IS NULL` above `a LEFT JOIN b`, is pushed down the physical plan as far as it goes. On
//! the way DataFusion 54 looks its columns up by name in each operator (its issue 25244): where both sides have a `k` and the
//! sides were swapped, it lands on `a.k`. So operators with several columns of one name let no filter through, and neither
//! does a `NOT IN`, whose right side has to be read whole. What belongs below was pushed there in the logical plan, which tells the
//! columns apart.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};

use crate::pass_through::partitioned_as_input;

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
        let stopped = plan
            .transform_up(|node| {
                Ok(match misleads(&node) {
                    true => Transformed::yes(Arc::new(FilterStop { input: node })),
                    false => Transformed::no(node),
                })
            })
            .data()?;
        self.inner
            .optimize(stopped, config)?
            .transform_up(|node| {
                Ok(match node.downcast_ref::<FilterStop>() {
                    Some(stop) => Transformed::yes(Arc::clone(&stop.input)),
                    None => Transformed::no(node),
                })
            })
            .data()
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

/// Lets no filter through. It is gone when the rule is done.
#[derive(Debug)]
struct FilterStop {
    input: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for FilterStop {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "FilterStop")
    }
}

impl ExecutionPlan for FilterStop {
    fn name(&self) -> &str {
        "FilterStop"
    }

    partitioned_as_input!(input);

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match <[Arc<dyn ExecutionPlan>; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(Self { input })),
            Err(children) => internal_err!("a stop has one input, not {}", children.len()),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
