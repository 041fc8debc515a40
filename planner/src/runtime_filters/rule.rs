//! Which joins get a filter.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};
use uuid::Uuid;

use super::FilterEnd;
use super::source::RuntimeFilterSource;
use super::summary::can_be_summed_up;
use super::target::RuntimeFilterTarget;
use crate::buckets::{BucketJoinExec, hash_join};
use crate::proven_filters::ProvenFilters;
use crate::scan::iceberg_scans;

/// Bits of hashes for each key: less than 1 % of other keys pass.
const BITS_PER_KEY: usize = 12;
/// The least and the most bytes of hashes: what each task sends, and each worker gets.
const BLOOM_BYTES: std::ops::RangeInclusive<usize> = 4 << 10..=2 << 20;
/// With more keys the hashes tell little.
const MOST_KEYS: usize = 4 << 20;

/// How joins are filtered at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuntimeFilterOptions {
    /// The longest that a scan waits for the keys of a join, in milliseconds.
    pub wait_ms: u32,
    /// Probe sides estimated to have fewer rows are read as they are. With 0 every join that may have a filter has one.
    pub min_rows: usize,
}

impl Default for RuntimeFilterOptions {
    fn default() -> Self {
        Self {
            wait_ms: 1000,
            min_rows: 100_000,
        }
    }
}

/// Puts both ends of a filter below joins whose build side excludes some of the keys: below their shuffles, where rows are
/// shuffled, and where they are read, in joins by buckets.
#[derive(Debug)]
pub(crate) struct RuntimeFilters {
    pub(crate) options: RuntimeFilterOptions,
    /// How many workers run the plan; 0 if it runs in this process.
    pub(crate) workers: usize,
}

impl PhysicalOptimizerRule for RuntimeFilters {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let number = AtomicU32::new(0);
        let filtered = plan.transform_up(|node| {
            Ok(match self.filtered(&node, &number)? {
                Some(node) => Transformed::yes(node),
                None => Transformed::no(node),
            })
        })?;
        // Workers do so themselves.
        match filtered.transformed && self.workers == 0 {
            true => with_filters_in_scans(filtered.data, config),
            false => Ok(filtered.data),
        }
    }

    fn name(&self) -> &str {
        "runtime_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl RuntimeFilters {
    /// The join with a filter; `None` for what is no join, or a join that may have none or would not gain by it.
    fn filtered(
        &self,
        node: &Arc<dyn ExecutionPlan>,
        number: &AtomicU32,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(join) = hash_join(node).filter(|join| drops_rows(join)) else {
            return Ok(None);
        };
        let ends = (below_shuffle(&join.left), below_shuffle(&join.right));
        let (build, probe) = match ends {
            (Some(build), Some(probe)) => (build, probe),
            _ if !node.is::<BucketJoinExec>() => return Ok(None),
            // Rows that were sent here already are not worth waiting for.
            (_, None) if is_sent(&join.right) => return Ok(None),
            (build, probe) => (build.unwrap_or(&join.left), probe.unwrap_or(&join.right)),
        };
        // Other joins of one worker have DataFusion's own filters, within their stage.
        if self.workers <= 1 && !node.is::<BucketJoinExec>() {
            return Ok(None);
        }
        let (build_keys, probe_keys): (Vec<PhysicalExprRef>, Vec<PhysicalExprRef>) =
            join.on.iter().cloned().unzip();
        for key in &build_keys {
            if !can_be_summed_up(&key.data_type(&build.schema())?) {
                return Ok(None);
            }
        }
        let Some(keys) = self.worth_it(build, probe)? else {
            return Ok(None);
        };
        let bloom_bytes = (keys.saturating_mul(BITS_PER_KEY) / 8)
            .clamp(*BLOOM_BYTES.start(), *BLOOM_BYTES.end())
            .next_power_of_two();
        let id = Uuid::new_v4();
        let number = number.fetch_add(1, Ordering::Relaxed) + 1;
        let end = |keys| FilterEnd { id, number, keys };
        let source = RuntimeFilterSource::new(
            end(build_keys),
            u32::try_from(bloom_bytes).unwrap_or(u32::MAX),
            Arc::ptr_eq(build, &join.left),
            Arc::clone(build),
        );
        let target =
            RuntimeFilterTarget::new(end(probe_keys), self.options.wait_ms, Arc::clone(probe));
        let left = in_place_of(build, &join.left, Arc::new(source))?;
        let right = in_place_of(probe, &join.right, Arc::new(target))?;
        Arc::clone(node)
            .with_new_children(vec![left, right])
            .map(Some)
    }

    /// How many keys the build side may have, if a filter is expected to drop enough.
    fn worth_it(
        &self,
        build: &Arc<dyn ExecutionPlan>,
        probe: &Arc<dyn ExecutionPlan>,
    ) -> Result<Option<usize>> {
        // Without tables both may run where no filter arrives.
        if iceberg_scans(build).is_empty() || iceberg_scans(probe).is_empty() {
            return Ok(None);
        }
        let rows = |plan: &Arc<dyn ExecutionPlan>| -> Result<Option<usize>> {
            Ok(plan
                .partition_statistics(None)?
                .num_rows
                .get_value()
                .copied())
        };
        let keys = rows(build)?.unwrap_or(MOST_KEYS);
        if self.options.min_rows == 0 {
            return Ok(Some(keys));
        }
        let probed = rows(probe)?.unwrap_or(0);
        let gains = probed >= self.options.min_rows
            && probed / 2 >= keys
            && keys <= MOST_KEYS
            && leaves_rows_out(build)?;
        Ok(gains.then_some(keys))
    }
}

/// Whether rows of the probe side without a match make no difference, and rows with a null key have none.
fn drops_rows(join: &HashJoinExec) -> bool {
    let unmatched_count = match join.join_type {
        JoinType::Inner
        | JoinType::Left
        | JoinType::LeftSemi
        | JoinType::LeftAnti
        | JoinType::RightSemi => false,
        JoinType::Right
        | JoinType::Full
        | JoinType::RightAnti
        | JoinType::LeftMark
        | JoinType::RightMark => true,
    };
    join.mode == PartitionMode::Partitioned
        && !unmatched_count
        && !join.null_aware
        && join.null_equality == NullEquality::NullEqualsNothing
}

/// What is shuffled by the hash of its keys.
fn below_shuffle(side: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    side.downcast_ref::<RepartitionExec>()
        .filter(|_| matches!(side.output_partitioning(), Partitioning::Hash(..)))
        .map(|shuffle| shuffle.input())
}

/// Whether the rows of a side come out of a shuffle, with nothing but filters and projections since.
fn is_sent(side: &Arc<dyn ExecutionPlan>) -> bool {
    let mut at = side;
    while let [child] = at.children().as_slice() {
        if at.is::<RepartitionExec>() {
            return true;
        }
        at = child;
    }
    false
}

/// The side with a node put in at `place`, which is the side itself or what it shuffles.
fn in_place_of(
    place: &Arc<dyn ExecutionPlan>,
    side: &Arc<dyn ExecutionPlan>,
    node: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    match Arc::ptr_eq(place, side) {
        true => Ok(node),
        false => Arc::clone(side).with_new_children(vec![node]),
    }
}

/// Hands the filters of this module down to the scans. Those that DataFusion makes are there already.
fn with_filters_in_scans(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut ours = config.clone();
    ours.optimizer.enable_join_dynamic_filter_pushdown = false;
    ours.optimizer.enable_topk_dynamic_filter_pushdown = false;
    ours.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    let plan = FilterPushdown::new_post_optimization().optimize(plan, &ours)?;
    ProvenFilters.optimize(plan, config)
}

/// Whether keys of the tables below may be missing: a side with all of them would filter nothing.
fn leaves_rows_out(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let filtered = iceberg_scans(plan)
        .iter()
        .any(|scan| !scan.report.filter.is_empty());
    if filtered {
        return Ok(true);
    }
    plan.exists(|node| {
        Ok(node.is::<FilterExec>()
            || node.fetch().is_some()
            || node.downcast_ref::<HashJoinExec>().is_some_and(|join| {
                matches!(
                    join.join_type,
                    JoinType::LeftSemi
                        | JoinType::LeftAnti
                        | JoinType::RightSemi
                        | JoinType::RightAnti
                )
            })
            || node
                .downcast_ref::<AggregateExec>()
                .is_some_and(|aggregate| aggregate.group_expr().expr().is_empty()))
    })
}
