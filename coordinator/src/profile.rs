//! What finished queries did, kept for `SHOW PROFILE` and `tarn.system.query_profiles`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{
    DistributedExec, DistributedMetricsFormat, display_plan_ascii,
    rewrite_distributed_plan_with_metrics,
};
use parking_lot::RwLock;
use tarn_audit::ScanReport;
use tarn_cluster::QueryContext;
use tarn_planner::QueryCatalogs;

use crate::QueryId;
use crate::dispatch::Dispatch;
use crate::finish::millis;
use crate::planning::StatementContext;

/// How long the end of a query waits for the metrics of its tasks. They follow the last rows at
/// once; a worker that died sends none.
const METRICS_PATIENCE: Duration = Duration::from_millis(500);

/// One finished query.
#[derive(Debug, Clone)]
pub struct Profile {
    pub query_id: QueryId,
    pub connection: u32,
    pub user: String,
    pub text: String,
    pub start_ms: i64,
    /// Until the first operator started, in milliseconds.
    pub planning_ms: u64,
    /// From then to the last row, in milliseconds.
    pub execution_ms: u64,
    /// Rows that the plan gave.
    pub rows: u64,
    pub retries: u32,
    /// Workers that took part; 0 in process.
    pub workers: u32,
    /// Whether the plan ran to its end.
    pub complete: bool,
    /// The plan of every stage with its metrics.
    pub plan: String,
    pub scans: Vec<ScanReport>,
}

/// The profiles of the last queries, oldest first.
#[derive(Debug)]
pub struct Profiles {
    kept: usize,
    profiles: RwLock<VecDeque<Arc<Profile>>>,
}

impl Profiles {
    pub(crate) fn new(kept: usize) -> Self {
        Self {
            kept,
            profiles: RwLock::new(VecDeque::new()),
        }
    }

    fn add(&self, profile: Profile) {
        if self.kept == 0 {
            return;
        }
        let mut profiles = self.profiles.write();
        while profiles.len() >= self.kept {
            profiles.pop_front();
        }
        profiles.push_back(Arc::new(profile));
    }

    /// All that are kept, oldest first.
    pub fn list(&self) -> Vec<Arc<Profile>> {
        self.profiles.read().iter().cloned().collect()
    }

    /// The profile of one query.
    pub fn get(&self, id: QueryId) -> Option<Arc<Profile>> {
        self.profiles
            .read()
            .iter()
            .rev()
            .find(|profile| profile.query_id == id)
            .cloned()
    }

    /// The last query of a connection.
    pub fn last_of(&self, connection: u32) -> Option<Arc<Profile>> {
        self.profiles
            .read()
            .iter()
            .rev()
            .find(|profile| profile.connection == connection)
            .cloned()
    }
}

/// Takes down what a plan did: its scan reports for the audit, its metrics for the profile.
pub(crate) async fn finish(
    context: &StatementContext,
    catalogs: &QueryCatalogs,
    plan: &Arc<dyn ExecutionPlan>,
    rows: u64,
    complete: bool,
) {
    let running = &context.running;
    let executed = with_metrics(plan, DistributedMetricsFormat::Aggregated, complete).await;
    let scans = with_answered_by_metadata(tarn_planner::finish_scan_reports(&executed), catalogs);
    let workers = workers(context, plan);
    running.workers.store(workers, Ordering::Relaxed);
    let planning = running
        .execution_started()
        .map_or(running.elapsed(), |start| {
            start.duration_since(running.started_at)
        });
    let profile = Profile {
        query_id: running.id,
        connection: running.connection,
        user: running.user.clone(),
        text: running.text.clone(),
        start_ms: running.start_ms(),
        planning_ms: millis(planning),
        execution_ms: millis(running.elapsed().saturating_sub(planning)),
        rows,
        retries: running.retries.load(Ordering::Relaxed),
        workers,
        complete,
        plan: display_plan_ascii(executed.as_ref(), true),
        scans: scans.clone(),
    };
    *running.scans.lock() = scans;
    context.engine.profiles().add(profile);
}

/// The reports of a plan's scans, and of the tables that it does not scan because their metadata
/// answered the query, such as a bare `count(*)`.
pub(crate) fn with_answered_by_metadata(
    mut scans: Vec<ScanReport>,
    catalogs: &QueryCatalogs,
) -> Vec<ScanReport> {
    let table = |scan: &ScanReport| {
        (
            scan.catalog.clone(),
            scan.database.clone(),
            scan.table.clone(),
            // A query may read several snapshots of a table.
            scan.snapshot_id,
        )
    };
    let mut seen: Vec<_> = scans.iter().map(table).collect();
    for planned in catalogs.planned_scans() {
        // A table is planned again with every attempt and, within one plan, once per scan.
        if !seen.contains(&table(&planned)) {
            seen.push(table(&planned));
            scans.push(planned);
        }
    }
    scans
}

/// The plan with the metrics of its tasks on every worker, or as it is when they do not come.
pub(crate) async fn with_metrics(
    plan: &Arc<dyn ExecutionPlan>,
    format: DistributedMetricsFormat,
    complete: bool,
) -> Arc<dyn ExecutionPlan> {
    if !complete || !plan.is::<DistributedExec>() {
        return Arc::clone(plan);
    }
    let rewritten = tokio::time::timeout(
        METRICS_PATIENCE,
        rewrite_distributed_plan_with_metrics(Arc::clone(plan), format),
    );
    match rewritten.await {
        Ok(Ok(rewritten)) => rewritten,
        Ok(Err(error)) => {
            tracing::debug!(%error, "the metrics of a query could not be put into its plan");
            Arc::clone(plan)
        }
        Err(_) => {
            tracing::debug!("the metrics of a query did not come in time");
            Arc::clone(plan)
        }
    }
}

fn workers(context: &StatementContext, plan: &Arc<dyn ExecutionPlan>) -> u32 {
    match &context.engine.parts().dispatch {
        Dispatch::Cluster(cluster) if plan.is::<DistributedExec>() => {
            let workers = cluster.workers(&QueryContext::default()).len();
            u32::try_from(workers).unwrap_or(u32::MAX)
        }
        _ => 0,
    }
}
