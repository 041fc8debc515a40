use crate::lost::{LostWorkerError, describe, transport_failure};
use async_trait::async_trait;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{
    ChannelResolver, CoordinatorToWorkerMsg, DistributedConfig, ExecuteTaskRequest,
    GetWorkerInfoRequest, GetWorkerInfoResponse, WorkerChannel, WorkerToCoordinatorMsg,
};
use futures::future::{BoxFuture, Shared};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use http::HeaderMap;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tonic::Status;
use tonic::transport::Endpoint;
use url::Url;

/// How this process talks to workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelSettings {
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How often a connection with calls in flight is asked whether the other side lives.
    pub keepalive_interval: Duration,
    /// How long the answer may take. A worker whose processors are busy answers late; a frozen one never does.
    pub keepalive_timeout: Duration,
    /// Bytes that are read ahead from each task below, over all of its partitions that are read here. Besides, a message
    /// and a window of [`STREAM_WINDOW_BYTES`] for each partition.
    pub read_ahead_bytes: usize,
}

impl Default for ChannelSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(2),
            keepalive_interval: Duration::from_secs(5),
            // A worker that ends closes its connections; only a frozen one, or one whose machine is gone, is found
            // out by silence. A busy one must not be taken for that.
            keepalive_timeout: Duration::from_secs(30),
            read_ahead_bytes: 8 << 20,
        }
    }
}

/// Bytes a stream that nobody reads may leave in this process: the price of one paused stream.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// What a partition may read ahead even where the task has many: a message or two.
const LEAST_READ_AHEAD_BYTES: usize = 256 << 10;
/// All streams to one worker share a connection. Were its window the tighter one, a few paused streams (a client
/// that reads slowly) would stop every other stream to that worker, of this query and of others.
const CONNECTION_WINDOW_BYTES: u32 = i32::MAX as u32;

/// A connection that is being made or was made, shared by all who wait for it: a worker that does not answer costs
/// them one timeout together, not one each.
type Connecting = Shared<BoxFuture<'static, Result<BoxCloneSyncChannel, String>>>;
type LostHook = dyn Fn(&Url, &str) + Send + Sync;

/// The gRPC channels to workers: one connection per address, made when first needed, dropped when it fails.
///
/// Every error of the transport names the worker, so that [`crate::worker_lost`] can tell who is gone.
#[derive(Clone)]
pub struct WorkerChannels {
    settings: ChannelSettings,
    channels: Arc<Mutex<HashMap<Url, Connecting>>>,
    on_lost: Option<Arc<LostHook>>,
}

impl fmt::Debug for WorkerChannels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerChannels")
            .field("settings", &self.settings)
            .field("open", &self.channels.lock().len())
            .finish()
    }
}

impl WorkerChannels {
    /// Channels that tell nobody of losses but the query that met one.
    pub fn new(settings: ChannelSettings) -> Self {
        Self {
            settings,
            channels: Arc::default(),
            on_lost: None,
        }
    }

    /// Calls `hook` with the address and the reason whenever a worker cannot be reached.
    pub fn with_lost_hook(mut self, hook: impl Fn(&Url, &str) + Send + Sync + 'static) -> Self {
        self.on_lost = Some(Arc::new(hook));
        self
    }

    /// Forgets the connection to a worker; the next call makes a new one.
    pub fn forget(&self, url: &Url) {
        self.channels.lock().remove(url);
    }

    async fn channel(&self, url: &Url) -> Result<BoxCloneSyncChannel> {
        let connecting = self
            .channels
            .lock()
            .entry(url.clone())
            .or_insert_with(|| connect(self.settings.clone(), url.clone()).boxed().shared())
            .clone();
        connecting.await.map_err(|reason| self.lost(url, &reason))
    }

    /// Names the worker in an error of the transport; leaves errors of the query alone.
    fn named(&self, url: &Url, error: DataFusionError) -> DataFusionError {
        let reason = match &error {
            DataFusionError::External(inner) => {
                inner.downcast_ref::<Status>().and_then(transport_failure)
            }
            _ => None,
        };
        match reason {
            Some(reason) => self.lost(url, &reason),
            None => error,
        }
    }

    fn lost(&self, url: &Url, reason: &str) -> DataFusionError {
        self.forget(url);
        if let Some(hook) = &self.on_lost {
            hook(url, reason);
        }
        DataFusionError::External(Box::new(LostWorkerError {
            url: url.clone(),
            reason: reason.to_string(),
        }))
    }
}

async fn connect(settings: ChannelSettings, url: Url) -> Result<BoxCloneSyncChannel, String> {
    let endpoint = Endpoint::from_shared(url.to_string())
        .map_err(|error| describe(&error))?
        .connect_timeout(settings.connect_timeout)
        // Between stages go many small messages; each would wait 40 ms for the last one's acknowledgement.
        .tcp_nodelay(true)
        .tcp_keepalive(Some(Duration::from_secs(30)))
        .http2_keep_alive_interval(settings.keepalive_interval)
        .keep_alive_timeout(settings.keepalive_timeout)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    let channel = endpoint.connect().await.map_err(|error| describe(&error))?;
    Ok(BoxCloneSyncChannel::new(channel))
}

#[async_trait]
impl ChannelResolver for WorkerChannels {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        Ok(Box::new(NamedChannel {
            inner: create_worker_client(self.channel(url).await?),
            url: url.clone(),
            channels: self.clone(),
        }))
    }
}

/// A channel whose transport errors name the worker at its other end.
struct NamedChannel {
    inner: Box<dyn WorkerChannel>,
    url: Url,
    channels: WorkerChannels,
}

impl NamedChannel {
    fn name_errors<T: Send + 'static>(
        &self,
        stream: BoxStream<'static, Result<T>>,
    ) -> BoxStream<'static, Result<T>> {
        let (channels, url) = (self.channels.clone(), self.url.clone());
        stream
            .map_err(move |error| channels.named(&url, error))
            .boxed()
    }
}

#[async_trait]
impl WorkerChannel for NamedChannel {
    async fn coordinator_channel(
        &mut self,
        headers: HeaderMap,
        messages: BoxStream<'static, CoordinatorToWorkerMsg>,
    ) -> Result<BoxStream<'static, Result<WorkerToCoordinatorMsg>>> {
        match self.inner.coordinator_channel(headers, messages).await {
            Ok(stream) => Ok(self.name_errors(stream)),
            Err(error) => Err(self.channels.named(&self.url, error)),
        }
    }

    /// A call for each partition. In one call all partitions share a stream, and one that is not read (a merge takes
    /// its rows later) fills what may be read ahead: the merge then waits for ever for the others behind it.
    async fn execute_task(
        &mut self,
        headers: HeaderMap,
        request: ExecuteTaskRequest,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<Vec<BoxStream<'static, Result<RecordBatch>>>> {
        let partitions = request.target_partition_start..request.target_partition_end;
        let read_ahead = self.channels.settings.read_ahead_bytes / partitions.len().max(1);
        let context = Arc::new(reading_ahead(
            context,
            read_ahead.max(LEAST_READ_AHEAD_BYTES),
        )?);
        let mut streams = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let request = ExecuteTaskRequest {
                task_key: request.task_key,
                target_partition_start: partition,
                target_partition_end: partition + 1,
                producer_head_spec: request.producer_head_spec.clone(),
            };
            match self
                .inner
                .execute_task(headers.clone(), request, metrics.clone(), &context)
                .await
            {
                Ok(ours) => streams.extend(ours.into_iter().map(|s| self.name_errors(s))),
                Err(error) => return Err(self.channels.named(&self.url, error)),
            }
        }
        Ok(streams)
    }

    async fn get_worker_info(
        &mut self,
        request: GetWorkerInfoRequest,
    ) -> Result<GetWorkerInfoResponse> {
        self.inner
            .get_worker_info(request)
            .await
            .map_err(|error| self.channels.named(&self.url, error))
    }
}

/// The context with another bound on what a stream reads ahead, in bytes.
fn reading_ahead(context: &TaskContext, bytes: usize) -> Result<TaskContext> {
    let mut config = context.session_config().clone();
    DistributedConfig::from_config_options_mut(config.options_mut())?
        .worker_connection_buffer_budget_bytes = bytes;
    // Nothing but these is used to read.
    Ok(TaskContext::default()
        .with_session_config(config)
        .with_runtime(context.runtime_env()))
}
