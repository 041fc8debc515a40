//! Shuffled joins in which a few keys hold most of the rows.
//!
//! A shuffle by the hash of the keys sends all rows of a key to one partition, so a key with a third of the rows keeps one
//! core busy while the others wait. Rows of such keys are spread, and their matches are sent to wherever they may be:
//!
//! ```text
//!   HashJoin on k, salt
//!     Repartition                             Repartition
//!       Unnest salt                             salt: random for heavy k, else 0
//!         salt: all of them for heavy k, else [0]   probe side
//!           build side
//! ```
//!
//! A row of the probe side meets one copy of every row that matches it. A row of the build side may be in many partitions, so this
//! is for joins that yield nothing for it by itself. Which keys are heavy a sample of the scan's key column says, taken before the query runs
//! and kept with the file that it is of. A key that was wrongly taken for heavy costs copies of its build rows, nothing else.

mod candidates;
mod sample;
mod spread;

pub(crate) use sample::SampleCache;
pub(crate) use spread::is_salt;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;

/// When joins are looked at for skew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SkewOptions {
    /// Probe sides that are estimated to have fewer rows are shuffled as they are.
    pub min_rows: usize,
    /// Partitions that a shuffle has, in all tasks together.
    pub partitions: usize,
}

/// The plan with the rows of heavy keys spread. Of a file that cannot be read nothing is known: the query will tell, if it reads it.
pub(crate) async fn with_spread_joins(
    plan: Arc<dyn ExecutionPlan>,
    options: SkewOptions,
    task: &Arc<TaskContext>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut heavy = HashMap::new();
    for candidate in candidates::candidates(&plan, options)? {
        match sample::heavy_keys(&candidate, options, task).await {
            Ok(found) => heavy.extend(found.map(|found| (candidate.join, found))),
            Err(error) => tracing::warn!(%error, "the keys of a join cannot be sampled"),
        }
    }
    if heavy.is_empty() {
        return Ok(plan);
    }
    // The old nodes are kept until the end: a new one must not get the address of one that is gone.
    let old = Arc::clone(&plan);
    let spread = plan.transform_down(|node| {
        let address = address(&node);
        Ok(
            match (heavy.get(&address), node.downcast_ref::<HashJoinExec>()) {
                (Some(keys), Some(join)) => {
                    Transformed::yes(spread::spread(join, keys, options.partitions, task)?)
                }
                _ => Transformed::no(node),
            },
        )
    });
    drop(old);
    spread.data()
}

/// Tells the nodes of one plan apart.
fn address(node: &Arc<dyn ExecutionPlan>) -> usize {
    Arc::as_ptr(node).cast::<()>() as usize
}
