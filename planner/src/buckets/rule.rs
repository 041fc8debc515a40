//! The optimiser's rule.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::plan_err;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::combine_partial_final_agg::CombinePartialFinalAggregate;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::hinted::{has_hints, with_hinted_loops, without_hints};
use super::nodes::subtree_of;
use super::placement::BucketPlacement;
use super::scan::tells_buckets;
use super::shared_build::with_shared_builds;
use super::subtree::Grouping;

/// Takes away the shuffles (and broadcasts) that buckets make needless.
///
/// It goes after all of DataFusion's rules: `EnforceDistribution` would put a shuffle back, and the sanity check knows
/// nothing of buckets. What it makes of a plan is right because it saw both sides of each join; a scan by itself never
/// claims to be partitioned by anything.
#[derive(Debug)]
pub(crate) struct BucketJoins {
    /// Without, only joins with hints are looked at.
    pub(crate) unasked: bool,
}

impl PhysicalOptimizerRule for BucketJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let hinted = has_hints(&plan)?;
        // A recursive query runs a part of itself again and again, over rows that are in no bucket.
        let asked = hinted || (self.unasked && plan.exists(|node| Ok(tells_buckets(node)))?);
        if !asked {
            return Ok(plan);
        }
        if plan.exists(|node| Ok(node.is::<RecursiveQueryExec>()))? {
            return match hinted {
                true => plan_err!("hints are impossible in a statement with a recursive query"),
                false => Ok(plan),
            };
        }
        let grouping = Grouping {
            placement: BucketPlacement::of_session(config),
            partitions: config.execution.target_partitions.max(1),
        };
        let plan = match hinted {
            true => with_hinted_loops(plan)?,
            false => plan,
        };
        let root = subtree_of(&plan, &grouping)?;
        let single = plan.output_partitioning().partition_count() == 1;
        let (rewritten, saved) = match single {
            true => (root.kept, root.kept_saved),
            false => (root.free, root.free_saved),
        };
        let rewritten = match saved {
            0 => plan,
            // Aggregates in two phases with nothing left between them become one.
            _ => CombinePartialFinalAggregate::new().optimize(rewritten, config)?,
        };
        let rewritten = match hinted {
            true => without_hints(rewritten)?,
            false => rewritten,
        };
        with_shared_builds(rewritten)
    }

    fn name(&self) -> &str {
        "bucket_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
