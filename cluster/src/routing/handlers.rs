use super::balance::balance;
use super::pieces::{Piece, split_files};
use super::placement::{home_of, place};
use crate::snapshot::WorkerSnapshot;
use async_trait::async_trait;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion_distributed::{
    DesiredTaskCountEvent, DesiredTaskCountEventResponse, DesiredTaskCountHandler,
    DistributedLeafExec, RouteTasksEvent, RouteTasksEventResponse, RouteTasksHandler,
    ScaleUpLeafNodeEvent, ScaleUpLeafNodeEventResponse, ScaleUpLeafNodeHandler,
};
use std::sync::Arc;
use url::Url;

/// How scans are spread over workers.
#[derive(Debug, Clone, PartialEq)]
pub struct RoutingSettings {
    /// A scan of fewer bytes than this runs in one task; a bigger one in a task on every worker.
    pub task_bytes: u64,
    /// Bigger files are given to workers in chunks of about this many bytes.
    pub split_bytes: u64,
    /// How many times the mean a worker may get of one scan before its files go elsewhere.
    pub slack: f64,
}

impl Default for RoutingSettings {
    fn default() -> Self {
        Self {
            task_bytes: 16 << 20,
            split_bytes: 32 << 20,
            slack: 1.25,
        }
    }
}

/// The hooks of datafusion-distributed for one query: how many tasks, what each reads, where each runs.
#[derive(Debug, Clone)]
pub struct ScanRouting {
    settings: Arc<RoutingSettings>,
    workers: WorkerSnapshot,
}

impl ScanRouting {
    /// Routing over the workers of one query.
    pub fn new(settings: RoutingSettings, workers: WorkerSnapshot) -> Self {
        Self {
            settings: Arc::new(settings),
            workers,
        }
    }

    fn pieces(&self, scan: &FileScanConfig) -> Vec<Piece> {
        split_files(
            scan.file_groups
                .iter()
                .flat_map(|group| group.iter().cloned()),
            self.settings.split_bytes,
        )
    }

    fn scale_up(
        &self,
        leaf: &Arc<dyn ExecutionPlan>,
        scan: &FileScanConfig,
        tasks: usize,
        partitions: usize,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if tasks <= 1 {
            return Ok(Arc::clone(leaf));
        }
        let groups = if keeps_groups(scan) {
            deal_groups(&scan.file_groups, tasks)
        } else {
            // Any number of tasks but the snapshot's own is odd; the first workers then serve as well as any.
            let nodes: Vec<String> = match tasks == self.workers.len() {
                true => self.workers.nodes().to_vec(),
                false => (0..tasks)
                    .map(|i| match self.workers.nodes().get(i) {
                        Some(node) => node.clone(),
                        None => format!("task {i}"),
                    })
                    .collect(),
            };
            place(self.pieces(scan), &nodes, self.settings.slack)
                .pieces
                .into_iter()
                .map(|pieces| {
                    balance(pieces, partitions)
                        .into_iter()
                        .map(|group| FileGroup::new(group.iter().map(Piece::to_file).collect()))
                        .collect()
                })
                .collect()
        };
        let variants = groups.into_iter().map(|file_groups: Vec<FileGroup>| {
            let mut scan = scan.clone();
            scan.file_groups = file_groups;
            DataSourceExec::from_data_source(scan) as Arc<dyn ExecutionPlan>
        });
        Ok(Arc::new(DistributedLeafExec::try_new(
            Arc::clone(leaf),
            variants,
        )?))
    }

    fn route(&self, stage: &Arc<dyn ExecutionPlan>, tasks: usize) -> Option<Vec<Url>> {
        let urls = self.workers.urls();
        if urls.is_empty() {
            return None;
        }
        if tasks != 1 {
            return Some((0..tasks).map(|i| urls[i % urls.len()].clone()).collect());
        }
        let mut pieces = Vec::new();
        let _ = stage.apply(|node| {
            let leaf = match node.downcast_ref::<DistributedLeafExec>() {
                Some(leaf) => leaf.original(),
                None => node,
            };
            if let Some(scan) = file_scan(leaf) {
                pieces.extend(self.pieces(scan));
            }
            Ok(TreeNodeRecursion::Continue)
        });
        // Without files of its own, a stage is best where its input is: leave that to the built-in rules.
        home_of(&pieces, self.workers.nodes()).map(|home| vec![urls[home].clone()])
    }
}

/// The files of a scan leaf.
pub(crate) fn file_scan(plan: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    plan.downcast_ref::<DataSourceExec>()?
        .data_source()
        .downcast_ref::<FileScanConfig>()
}

/// Whether the leaf gives rows that metadata had, in place of a part of a scan's files (tarn_planner's
/// `MetadataAnswerExec`).
pub(crate) fn is_answer(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.name() == "MetadataAnswerExec"
}

/// The leaf for so many tasks: its rows are there once, so one task has them.
fn in_first_task(leaf: &Arc<dyn ExecutionPlan>, tasks: usize) -> Result<Arc<dyn ExecutionPlan>> {
    if tasks <= 1 {
        return Ok(Arc::clone(leaf));
    }
    let partitions = leaf.output_partitioning().partition_count();
    let nothing: Arc<dyn ExecutionPlan> =
        Arc::new(EmptyExec::new(leaf.schema()).with_partitions(partitions));
    let variants = (0..tasks).map(|task| match task {
        0 => Arc::clone(leaf),
        _ => Arc::clone(&nothing),
    });
    Ok(Arc::new(DistributedLeafExec::try_new(
        Arc::clone(leaf),
        variants,
    )?))
}

/// Whether the scan's groups mean something (an order, a bucket), so that files may not change groups.
fn keeps_groups(scan: &FileScanConfig) -> bool {
    scan.partitioned_by_file_group || scan.preserve_order || !scan.output_ordering.is_empty()
}

/// Group `i` goes to task `i mod tasks`, padded so that every task has as many groups.
fn deal_groups(groups: &[FileGroup], tasks: usize) -> Vec<Vec<FileGroup>> {
    let each = groups.len().div_ceil(tasks).max(1);
    (0..tasks)
        .map(|task| {
            (0..each)
                .map(|i| {
                    groups
                        .get(i * tasks + task)
                        .cloned()
                        .unwrap_or_else(|| FileGroup::new(Vec::new()))
                })
                .collect()
        })
        .collect()
}

#[async_trait]
impl DesiredTaskCountHandler for ScanRouting {
    async fn handle(
        &self,
        event: DesiredTaskCountEvent<'_>,
    ) -> Option<Result<DesiredTaskCountEventResponse>> {
        if is_answer(event.plan) {
            return Some(Ok(DesiredTaskCountEventResponse::desired(1)));
        }
        let scan = file_scan(event.plan)?;
        let bytes: u64 = scan
            .file_groups
            .iter()
            .flat_map(|group| group.iter())
            .map(|file| file.effective_size())
            .sum();
        let tasks = match bytes > self.settings.task_bytes {
            true => self.workers.len().max(1),
            false => 1,
        };
        Some(Ok(DesiredTaskCountEventResponse::desired(tasks)))
    }
}

impl ScaleUpLeafNodeHandler for ScanRouting {
    fn handle(&self, event: ScaleUpLeafNodeEvent) -> Option<Result<ScaleUpLeafNodeEventResponse>> {
        if is_answer(event.plan) {
            return Some(
                in_first_task(event.plan, event.task_count).map(ScaleUpLeafNodeEventResponse::new),
            );
        }
        let scan = file_scan(event.plan)?;
        let partitions = event.session_config.target_partitions();
        Some(
            self.scale_up(event.plan, scan, event.task_count, partitions)
                .map(ScaleUpLeafNodeEventResponse::new),
        )
    }
}

impl RouteTasksHandler for ScanRouting {
    fn handle(&self, event: RouteTasksEvent) -> Option<Result<RouteTasksEventResponse>> {
        self.route(event.plan, event.task_count)
            .map(|urls| Ok(RouteTasksEventResponse::new(urls)))
    }
}
