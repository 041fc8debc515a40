use crate::queries::Queries;
use crate::rewrite::FragmentRewrite;
use async_trait::async_trait;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion_distributed::{DistributedExt, WorkerQueryContext, WorkerSessionBuilder};
use std::sync::Arc;
use tarn_cluster::{TaskHeaders, WorkerChannels};
use tarn_planner::functions::register_functions;
use tarn_planner::{ScanCodec, ScanStores, SessionOptions, session_config};

/// Makes the session of each task: the same functions and codec as the coordinator's, this worker's runtime, and
/// the limits and counters of the task's query.
#[derive(Debug)]
pub(crate) struct SessionFactory {
    pub(crate) queries: Arc<Queries>,
    pub(crate) stores: Arc<ScanStores>,
    pub(crate) channels: WorkerChannels,
    pub(crate) cores: u32,
}

impl SessionFactory {
    fn options(&self, task: &TaskHeaders) -> SessionOptions {
        let defaults = SessionOptions::default();
        SessionOptions {
            target_partitions: task.target_partitions.unwrap_or(self.cores as usize),
            batch_rows: task.batch_rows.unwrap_or(defaults.batch_rows),
            query_memory_bytes: task.query_memory_bytes,
            late_materialization: task.late_materialization,
            ..defaults
        }
    }
}

#[async_trait]
impl WorkerSessionBuilder for SessionFactory {
    async fn build_session_state(&self, context: WorkerQueryContext) -> Result<SessionState> {
        let task = TaskHeaders::from_headers(&context.headers);
        let guard = self.queries.enter(&task.query_id, task.query_memory_bytes);
        let query = Arc::clone(guard.query());

        let mut builder = context.builder.with_runtime_env(Arc::clone(&query.runtime));
        let config = builder.config().get_or_insert_default();
        // The coordinator's settings, except for what datafusion-distributed put in for this task.
        let distributed = std::mem::take(&mut config.options_mut().extensions);
        *config.options_mut() = session_config(&self.options(&task))
            .options()
            .as_ref()
            .clone();
        config.options_mut().extensions = distributed;
        config.set_extension(Arc::clone(&query.progress));
        if let Some(filters) = &query.filters {
            config.set_extension(Arc::clone(filters));
        }
        config.set_extension(Arc::new(guard));
        // A worker asks other workers for rows on behalf of the same query: pass on what it was told.
        config.set_distributed_passthrough_headers(task.to_headers())?;

        let mut state = builder
            .with_distributed_user_codec(ScanCodec::new(Arc::clone(&self.stores)))
            .with_distributed_channel_resolver(self.channels.clone())
            .with_distributed_worker_plan_rewrite_handler(FragmentRewrite)
            .build();
        register_functions(&mut state)?;
        Ok(state)
    }
}
