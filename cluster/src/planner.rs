use crate::error::ClusterError;
use crate::joined_tasks::shuffle_small_joins;
use crate::routing::{file_scan, is_answer};
use async_trait::async_trait;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::streaming::StreamingTableExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect};
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion_distributed::{
    DistributedExec, DistributedLeafExec, NetworkBoundary, NetworkBoundaryExt, NetworkCoalesceExec,
    Stage,
};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

/// Whether a plan reads table files, so that it belongs on workers. `SELECT 1`, `information_schema` and the
/// like do not: they run where they are planned.
pub fn needs_cluster(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.exists(|node| Ok(is_scan(node))).unwrap_or(true)
}

fn is_scan(node: &Arc<dyn ExecutionPlan>) -> bool {
    match node.downcast_ref::<DistributedLeafExec>() {
        Some(leaf) => file_scan(leaf.original()).is_some(),
        None => file_scan(node).is_some(),
    }
}

/// Plans a query in one process and prepares its scans for being cut off: the step before
/// datafusion-distributed's planner.
///
/// That planner makes no stage of a bare scan under the node that gathers its partitions; the coordinator would
/// then read all the files of `SELECT * FROM t` itself. A node that does nothing between the two makes a stage.
pub(crate) struct ScanStagePlanner {
    pub(crate) inner: Option<Arc<dyn QueryPlanner + Send + Sync>>,
}

/// Sends what datafusion-distributed left to the coordinator to a worker: the step after its planner.
///
/// A plan that fits in one task is not cut at all by that planner, and a head above the last boundary runs where
/// the query was planned. Reading and heavy work belong on workers, whose memory and caches are there for it:
///
/// ```text
///   one task:   Aggregate                    DistributedExec
///                 DataSource    ─────▶         CoalescePartitions
///                                                NetworkCoalesce ── stage 1, one task
///                                                  Aggregate
///                                                    DataSource
/// ```
pub(crate) struct HeadStagePlanner {
    pub(crate) inner: Arc<dyn QueryPlanner + Send + Sync>,
    /// Plans for this process alone.
    pub(crate) local: Arc<dyn QueryPlanner + Send + Sync>,
    pub(crate) collect_metrics: bool,
    /// Why the query has no worker, if it has none.
    pub(crate) no_workers: Option<String>,
}

impl fmt::Debug for ScanStagePlanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScanStagePlanner")
    }
}

impl fmt::Debug for HeadStagePlanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeadStagePlanner")
    }
}

#[async_trait]
impl QueryPlanner for ScanStagePlanner {
    async fn create_physical_plan(
        &self,
        logical: &LogicalPlan,
        state: &SessionState,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = match &self.inner {
            Some(planner) => planner.create_physical_plan(logical, state).await?,
            None => {
                DefaultPhysicalPlanner::default()
                    .create_physical_plan(logical, state)
                    .await?
            }
        };
        let plan = shuffle_small_joins(plan, state.config().target_partitions())?;
        stage_bare_scans(with_rows_that_travel(plan, state).await?)
    }
}

#[async_trait]
impl QueryPlanner for HeadStagePlanner {
    async fn create_physical_plan(
        &self,
        logical: &LogicalPlan,
        state: &SessionState,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if is_recursive(logical)? {
            return self.local.create_physical_plan(logical, state).await;
        }
        let plan = self.inner.create_physical_plan(logical, state).await?;
        if let Some(reason) = &self.no_workers {
            return match needs_cluster(&plan) {
                true => Err(ClusterError::NoWorkers(reason.clone()).into()),
                false => Ok(plan),
            };
        }
        move_head_to_worker(plan, self.collect_metrics)
    }
}

/// A recursive query runs its body again and again, which streams from other processes cannot do.
fn is_recursive(logical: &LogicalPlan) -> Result<bool> {
    let mut recursive = false;
    logical.apply_with_subqueries(|node| {
        recursive |= matches!(node, LogicalPlan::RecursiveQuery(_));
        Ok(match recursive {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(recursive)
}

/// What reads metadata does so where the query is planned. Beside scans of files it may become part of a stage that runs
/// elsewhere, so its rows are read now and go along.
async fn with_rows_that_travel(
    plan: Arc<dyn ExecutionPlan>,
    state: &SessionState,
) -> Result<Arc<dyn ExecutionPlan>> {
    if !needs_cluster(&plan) {
        return Ok(plan);
    }
    let mut leaves = Vec::new();
    plan.apply(|node| {
        if node.is::<StreamingTableExec>() {
            leaves.push(Arc::clone(node));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut rows = VecDeque::with_capacity(leaves.len());
    for leaf in leaves {
        let schema = leaf.schema();
        let batches = collect(leaf, state.task_ctx()).await?;
        rows.push_back(MemorySourceConfig::try_new_exec(&[batches], schema, None)?);
    }
    if rows.is_empty() {
        return Ok(plan);
    }
    // Leaves are met in the same order from above and from below.
    plan.transform_up(|node| match node.is::<StreamingTableExec>() {
        true => match rows.pop_front() {
            Some(rows) => Ok(Transformed::yes(rows as Arc<dyn ExecutionPlan>)),
            None => internal_err!("a plan has more leaves than were read"),
        },
        false => Ok(Transformed::no(node)),
    })
    .map(|transformed| transformed.data)
}

fn stage_bare_scans(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let wrap = |scan: &Arc<dyn ExecutionPlan>| -> Arc<dyn ExecutionPlan> {
        Arc::new(CooperativeExec::new(Arc::clone(scan)))
    };
    if is_scan(&plan) && plan.output_partitioning().partition_count() > 1 {
        return Ok(wrap(&plan));
    }
    plan.transform_down(|node| {
        let gathers = node.is::<CoalescePartitionsExec>() || node.is::<SortPreservingMergeExec>();
        match node.children().first() {
            Some(child) if gathers && is_scan(child) => {
                let child = wrap(child);
                Ok(Transformed::yes(node.with_new_children(vec![child])?))
            }
            _ => Ok(Transformed::no(node)),
        }
    })
    .map(|transformed| transformed.data)
}

fn move_head_to_worker(
    plan: Arc<dyn ExecutionPlan>,
    collect_metrics: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    // EXPLAIN ANALYZE gathers what its input did where that ends: here.
    if matches!(plan.name(), "AnalyzeExec" | "DistributedAnalyzeExec") {
        return Ok(plan);
    }
    let head = match plan.downcast_ref::<DistributedExec>() {
        Some(distributed) => match distributed.children().first() {
            Some(head) => Arc::clone(head),
            None => return Ok(plan),
        },
        None => Arc::clone(&plan),
    };
    if !needs_cluster(&head) || !belongs_on_worker(&head)? {
        return Ok(plan);
    }

    // The new stage joins the query of the stages below it, with the next number.
    let mut query_id = None;
    let mut stages = 0;
    head.apply(|node| {
        if let Some(boundary) = node.as_network_boundary() {
            query_id.get_or_insert(boundary.input_stage().query_id());
            stages = stages.max(boundary.input_stage().num());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;

    let gather = NetworkCoalesceExec::try_new(with_whole_leaves(head)?, 1, 1)?;
    let mut stage = gather.input_stage().clone();
    if let Stage::Local(local) = &mut stage {
        local.query_id = query_id.unwrap_or_else(Uuid::new_v4);
        local.num = stages + 1;
    }
    let gather: Arc<dyn ExecutionPlan> = gather.with_input_stage(stage)?;
    // One partition or several: the root of a plan must not be a boundary, or the stages below it are not shown.
    let gather = Arc::new(CoalescePartitionsExec::new(gather));
    Ok(Arc::new(
        DistributedExec::new(gather).with_metrics_collection(collect_metrics),
    ))
}

/// A leaf of the head may be cut for several tasks already. Here a head takes it as a whole; a task on a worker would be
/// sent the first part alone.
fn with_whole_leaves(head: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    head.transform_down(|node| {
        if node.is_network_boundary() {
            return Ok(Transformed::new(node, false, TreeNodeRecursion::Jump));
        }
        match node.downcast_ref::<DistributedLeafExec>() {
            Some(leaf) => Ok(Transformed::yes(Arc::clone(leaf.original()))),
            None => Ok(Transformed::no(node)),
        }
    })
    .map(|transformed| transformed.data)
}

/// Whether the part of a plan above its network boundaries is more than gathering rows, and can travel.
fn belongs_on_worker(head: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let (mut heavy, mut travels) = (false, true);
    head.apply(|node| {
        if node.is_network_boundary() {
            return Ok(TreeNodeRecursion::Jump);
        }
        heavy |= !is_light(node);
        travels &= !node.children().is_empty() || is_portable_leaf(node);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(heavy && travels)
}

/// Leaves that can be sent to another process: files and rows, not the live state of this one.
fn is_portable_leaf(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.is::<DataSourceExec>()
        || is_answer(node)
        || node.is::<DistributedLeafExec>()
        || node.is::<EmptyExec>()
        || node.is::<PlaceholderRowExec>()
}

/// Nodes whose work and memory do not grow with their input (or that only merge streams).
fn is_light(node: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        // Without groups there is one row of state, unless it collects its input (array_agg, percentiles).
        return aggregate.group_expr().is_empty()
            && aggregate.aggr_expr().iter().all(|function| {
                matches!(
                    function.fun().name(),
                    "count" | "sum" | "min" | "max" | "avg"
                ) && !function.is_distinct()
            });
    }
    node.is::<CoalescePartitionsExec>()
        || node.is::<SortPreservingMergeExec>()
        || node.is::<ProjectionExec>()
        || node.is::<GlobalLimitExec>()
        || node.is::<LocalLimitExec>()
        || node.is::<CooperativeExec>()
}
