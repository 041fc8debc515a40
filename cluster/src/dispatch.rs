use crate::channels::{ChannelSettings, WorkerChannels};
use crate::error::ClusterError;
use crate::headers::TaskHeaders;
use crate::lost::LostWorker;
use crate::membership::Membership;
use crate::planner::{HeadStagePlanner, ScanStagePlanner};
use crate::routing::{RoutingSettings, ScanRouting};
use crate::runtime_filters::RuntimeFilters;
use crate::snapshot::WorkerSnapshot;
use crate::watch::WorkerWatch;
use crate::worker_info::QueryLoad;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SessionStateBuilder, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{
    DistributedConfig, DistributedExec, DistributedExt, SessionStateBuilderExt,
    get_distributed_worker_resolver,
};
use datafusion_proto::physical_plan::PhysicalExtensionCodec;
use std::sync::Arc;
use std::time::Instant;
use url::Url;

/// How batches are packed between processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// As they are: the least work, for fast networks and one machine.
    None,
    /// LZ4: little work, about half the bytes.
    #[default]
    Lz4,
    /// Zstandard: more work, fewer bytes.
    Zstd,
}

impl Compression {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// How queries are spread over the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterSettings {
    /// The connections to workers.
    pub channels: ChannelSettings,
    /// How scans are spread over workers.
    pub routing: RoutingSettings,
    /// How batches are packed between processes.
    pub compression: Compression,
    /// At most this many workers run one stage; 0 is all of them.
    pub max_tasks_per_stage: usize,
    /// Partitions in a task; 0 is the number of cores of the smallest worker.
    pub partitions_per_task: usize,
    /// The build side of a join is sent whole to every task when it is smaller than this, in bytes.
    pub broadcast_bytes: usize,
    /// And has fewer rows than this (used where the bytes are not known).
    pub broadcast_rows: usize,
    /// Aggregates once more before a shuffle, within a task.
    pub partial_reduce: bool,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            channels: ChannelSettings::default(),
            routing: RoutingSettings::default(),
            compression: Compression::default(),
            max_tasks_per_stage: 0,
            partitions_per_task: 0,
            broadcast_bytes: 8 << 20,
            broadcast_rows: 512 << 10,
            partial_reduce: false,
        }
    }
}

/// What the cluster needs to know of a query.
#[derive(Debug, Clone, Default)]
pub struct QueryContext {
    /// The coordinator's id of the query, as text.
    pub query_id: String,
    /// What the query may hold of each worker's memory pool, in bytes.
    pub query_memory_bytes: Option<u64>,
    /// Partitions in a task, where the user asked for a number.
    pub partitions_per_task: Option<usize>,
    /// Workers that failed this query before, not to be used again.
    pub exclude: Vec<Url>,
    /// The workers to use, if whoever plans had to know them before; otherwise those that are there.
    pub workers: Option<WorkerSnapshot>,
}

/// Spreads queries over the workers of a [`Membership`].
#[derive(Debug)]
pub struct ClusterDispatch {
    settings: ClusterSettings,
    membership: Arc<Membership>,
    channels: WorkerChannels,
    codec: Arc<dyn PhysicalExtensionCodec>,
    filters: Arc<RuntimeFilters>,
}

impl ClusterDispatch {
    /// Dispatch over the members; `codec` carries the scans (tarn_planner's `ScanCodec`), and `filters` is where their
    /// tasks meet.
    pub fn new(
        settings: ClusterSettings,
        membership: Arc<Membership>,
        codec: Arc<dyn PhysicalExtensionCodec>,
        filters: Arc<RuntimeFilters>,
    ) -> Self {
        let suspects = Arc::clone(&membership);
        let channels = WorkerChannels::new(settings.channels.clone())
            .with_lost_hook(move |url, reason| suspects.suspect(url, reason));
        Self {
            settings,
            membership,
            channels,
            codec,
            filters,
        }
    }

    /// The members.
    pub fn membership(&self) -> &Arc<Membership> {
        &self.membership
    }

    /// The runtime filters of the queries that run.
    pub fn filters(&self) -> &Arc<RuntimeFilters> {
        &self.filters
    }

    /// The settings in force.
    pub fn settings(&self) -> &ClusterSettings {
        &self.settings
    }

    /// The workers that a query planned now would use.
    pub fn workers(&self, query: &QueryContext) -> WorkerSnapshot {
        if let Some(workers) = &query.workers {
            return workers.clone();
        }
        self.membership
            .snapshot()
            .without(&query.exclude)
            .limited(self.settings.max_tasks_per_stage)
    }

    /// Makes a session plan and run over the cluster. Call it last, on a builder that is complete otherwise.
    ///
    /// Plans that read no table files stay where they are planned. Without a worker in service only those can be
    /// planned; the others are refused with [`ClusterError::NoWorkers`], which says why.
    pub fn configure(
        &self,
        mut builder: SessionStateBuilder,
        query: &QueryContext,
    ) -> Result<SessionStateBuilder, ClusterError> {
        let workers = self.workers(query);
        let no_workers = workers.is_empty().then(|| self.why_none(query));
        let routing = ScanRouting::new(self.settings.routing.clone(), workers.clone());

        let config = builder.config().get_or_insert_default();
        let partitions = match (query.partitions_per_task, self.settings.partitions_per_task) {
            (Some(partitions), _) => partitions.max(1),
            (None, 0) => workers.cores() as usize,
            (None, partitions) => partitions,
        };
        if !workers.is_empty() {
            config.options_mut().execution.target_partitions = partitions;
        }
        let optimizer = &mut config.options_mut().optimizer;
        optimizer.hash_join_single_partition_threshold = self.settings.broadcast_bytes;
        optimizer.hash_join_single_partition_threshold_rows = self.settings.broadcast_rows;
        let headers = TaskHeaders {
            query_id: query.query_id.clone(),
            query_memory_bytes: query.query_memory_bytes,
            batch_rows: Some(config.batch_size()),
            target_partitions: Some(partitions),
            late_materialization: config.options().execution.parquet.pushdown_filters,
        };

        let local: Arc<dyn QueryPlanner + Send + Sync> = Arc::new(ScanStagePlanner {
            inner: std::mem::take(builder.query_planner()),
        });
        let mut builder = builder
            .with_query_planner(Arc::clone(&local))
            .with_distributed_worker_resolver(workers)
            .with_distributed_planner()
            .with_distributed_channel_resolver(self.channels.clone())
            .with_distributed_user_codec_arc(Arc::clone(&self.codec))
            .with_distributed_passthrough_headers(headers.to_headers())?
            .with_distributed_desired_task_count_handler(routing.clone())
            .with_distributed_scale_up_leaf_node_handler(routing.clone())
            .with_distributed_route_tasks_handler(routing);

        let config = builder.config().get_or_insert_default();
        let distributed = DistributedConfig::from_config_options_mut(config.options_mut())?;
        distributed.collect_metrics = true;
        distributed.broadcast_joins = true;
        distributed.compression = self.settings.compression.name().to_string();
        distributed.max_tasks_per_stage = self.settings.max_tasks_per_stage;
        distributed.partial_reduce = self.settings.partial_reduce;
        // Isolated children would run in tasks whose numbers no longer name their workers.
        distributed.children_isolator_unions = false;

        if let Some(inner) = std::mem::take(builder.query_planner()) {
            builder = builder.with_query_planner(Arc::new(HeadStagePlanner {
                inner,
                local,
                collect_metrics: true,
                no_workers,
            }));
        }
        Ok(builder)
    }

    fn why_none(&self, query: &QueryContext) -> String {
        match self.membership.snapshot().is_empty() {
            true => self.membership.why_none(),
            false => {
                let lost: Vec<&str> = query.exclude.iter().map(Url::as_str).collect();
                format!(
                    "every worker in service was lost while it ran this query: {}",
                    lost.join(", ")
                )
            }
        }
    }

    /// Takes note that a query lost a worker: it is left out until it is heard of again, and its connection is
    /// dropped. Losses between workers are only known from the query's error, so call this with every loss.
    pub fn report_lost(&self, lost: &LostWorker) {
        if let Some(url) = &lost.url {
            self.channels.forget(url);
            self.membership.suspect(url, &lost.reason);
        }
    }

    /// Watches the workers that a plan was made for, from now on; `None` for a plan that runs where it was made.
    pub fn watch(
        &self,
        query_id: &str,
        plan: &Arc<dyn ExecutionPlan>,
        task: &TaskContext,
    ) -> Option<WorkerWatch> {
        if !plan.is::<DistributedExec>() {
            return None;
        }
        let workers = get_distributed_worker_resolver(task.session_config()).ok()?;
        Some(WorkerWatch::new(
            Arc::clone(&self.membership),
            query_id.to_owned(),
            self.settings.channels.connect_timeout,
            &workers.get_urls().ok()?,
            Instant::now(),
        ))
    }

    /// How far the workers are with a query, as of their last heartbeats.
    pub fn query_load(&self, query_id: &str) -> Option<QueryLoad> {
        self.membership.query_load(query_id)
    }
}
