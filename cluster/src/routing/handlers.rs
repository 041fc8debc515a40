use super::balance::balance;
use super::pieces::{Piece, split_files};
use super::placement::{home_of, place};
use crate::snapshot::WorkerSnapshot;
use async_trait::async_trait;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::listing::PartitionedFile;
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
use tarn_cache::ChosenWorker;
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
        let groups = if has_chosen_workers(scan) {
            if let Some(chosen) = chosen_worker(scan)
                && chosen.meets_shuffled
                && tasks != chosen.workers
            {
                return internal_err!(
                    "rows are sent to {} workers, and those that they meet are on {tasks}",
                    chosen.workers
                );
            }
            (0..tasks)
                .map(|task| chosen_groups(&scan.file_groups, task, tasks))
                .collect()
        } else if keeps_groups(scan) {
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

/// Whether the plan chose the worker of each file. It did so for a scan by groups from which all files were pruned, too.
fn has_chosen_workers(scan: &FileScanConfig) -> bool {
    let mut files = scan.file_groups.iter().flat_map(|group| group.iter());
    scan.partitioned_by_file_group
        && files.all(|file| file.extensions.get::<ChosenWorker>().is_some())
}

/// The choice for one of the files: what it says of all of them is the same.
fn chosen_worker(scan: &FileScanConfig) -> Option<&ChosenWorker> {
    let mut files = scan.file_groups.iter().flat_map(|group| group.iter());
    files.next()?.extensions.get::<ChosenWorker>()
}

/// The groups of one task: in each, the files whose worker was chosen to be this one. Groups that are left empty stay, so
/// that group `i` of every scan has the same place.
fn chosen_groups(groups: &[FileGroup], task: usize, tasks: usize) -> Vec<FileGroup> {
    let is_here = |file: &&PartitionedFile| {
        let chosen = file.extensions.get::<ChosenWorker>();
        chosen.map_or(0, |chosen| chosen.worker) % tasks == task
    };
    groups
        .iter()
        .map(|group| FileGroup::new(group.iter().filter(is_here).cloned().collect()))
        .collect()
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
        if chosen_worker(scan).is_some_and(|chosen| chosen.meets_shuffled) {
            let tasks = self.workers.len().max(1);
            return Some(Ok(DesiredTaskCountEventResponse::desired(tasks)));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn group(files: &[(&str, usize)]) -> FileGroup {
        let file = |(path, worker): &(&str, usize)| {
            PartitionedFile::new(*path, 1).with_extension(ChosenWorker {
                worker: *worker,
                workers: 3,
                meets_shuffled: false,
            })
        };
        FileGroup::new(files.iter().map(file).collect())
    }

    fn paths(groups: &[FileGroup]) -> Vec<Vec<&str>> {
        groups
            .iter()
            .map(|group| {
                let files = group.iter();
                files
                    .map(|file| file.object_meta.location.as_ref())
                    .collect()
            })
            .collect()
    }

    #[test]
    fn a_chosen_worker_gets_its_files_in_the_groups_that_they_were_in() {
        let groups = [group(&[("a", 0), ("b", 2), ("c", 0)]), group(&[("d", 1)])];
        assert_eq!(
            paths(&chosen_groups(&groups, 0, 3)),
            [vec!["a", "c"], vec![]]
        );
        assert_eq!(paths(&chosen_groups(&groups, 1, 3)), [vec![], vec!["d"]]);
        assert_eq!(paths(&chosen_groups(&groups, 2, 3)), [vec!["b"], vec![]]);
        // A scan that lost all its files to pruning has as many groups as those that it meets.
        assert_eq!(
            paths(&chosen_groups(&[group(&[]), group(&[])], 1, 3)).len(),
            2
        );
    }
}
