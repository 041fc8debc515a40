use crate::queries::Queries;
use datafusion::execution::runtime_env::RuntimeEnv;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tarn_cache::DataCache;
use tarn_cluster::{CacheUsage, HEARTBEAT_PATH, Heartbeat, HeartbeatReply, WorkerId, WorkerState};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use url::Url;

/// How long the coordinator may take to answer a heartbeat.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// What this worker is and does, told to the coordinator and shown at its own HTTP address.
#[derive(Debug)]
pub(crate) struct Reporter {
    pub(crate) id: WorkerId,
    pub(crate) url: Url,
    pub(crate) http_url: Option<Url>,
    pub(crate) version: String,
    pub(crate) cores: u32,
    pub(crate) memory_bytes: u64,
    pub(crate) queries: Arc<Queries>,
    pub(crate) runtime: Arc<RuntimeEnv>,
    pub(crate) cache: Option<Arc<DataCache>>,
    started: SystemTime,
    state: Mutex<WorkerState>,
    now: Notify,
}

/// The parts of a [`Reporter`].
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) url: Url,
    pub(crate) http_url: Option<Url>,
    pub(crate) version: String,
    pub(crate) cores: u32,
    pub(crate) memory_bytes: u64,
}

impl Reporter {
    pub(crate) fn new(
        identity: Identity,
        queries: Arc<Queries>,
        runtime: Arc<RuntimeEnv>,
        cache: Option<Arc<DataCache>>,
    ) -> Self {
        Self {
            id: WorkerId::random(),
            url: identity.url,
            http_url: identity.http_url,
            version: identity.version,
            cores: identity.cores,
            memory_bytes: identity.memory_bytes,
            queries,
            runtime,
            cache,
            started: SystemTime::now(),
            state: Mutex::new(WorkerState::Active),
            now: Notify::new(),
        }
    }

    pub(crate) fn state(&self) -> WorkerState {
        *self.state.lock()
    }

    /// Takes no more queries from here on, and says so at once.
    pub(crate) fn drain(&self) {
        *self.state.lock() = WorkerState::Draining;
        self.now.notify_one();
    }

    pub(crate) fn cache_usage(&self) -> CacheUsage {
        let Some(cache) = &self.cache else {
            return CacheUsage::default();
        };
        let stats = cache.stats();
        CacheUsage {
            hits_memory: stats.hits_memory,
            hits_disk: stats.hits_disk,
            misses: stats.misses,
            bytes_memory: stats.bytes_memory,
            bytes_disk: stats.bytes_disk,
            bytes_remote: stats.bytes_remote,
        }
    }

    pub(crate) fn heartbeat(&self) -> Heartbeat {
        let started = self.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        Heartbeat {
            id: self.id.clone(),
            url: self.url.clone(),
            http_url: self.http_url.clone(),
            version: self.version.clone(),
            cores: self.cores,
            memory_bytes: self.memory_bytes,
            state: self.state(),
            running_tasks: self.queries.running_tasks(),
            memory_used: self.runtime.memory_pool.reserved() as u64,
            spill_used: self.runtime.disk_manager.used_disk_space(),
            cache: self.cache_usage(),
            started_ms: i64::try_from(started.as_millis()).unwrap_or(i64::MAX),
            queries: self.queries.loads(),
        }
    }

    /// Reports to the coordinator until told to stop.
    ///
    /// A coordinator that does not answer is asked again at the next beat: it may be restarting, and learns of
    /// its workers by their heartbeats alone.
    pub(crate) async fn report(
        &self,
        coordinator: &Url,
        period: Duration,
        stop: &CancellationToken,
    ) {
        let Some(link) = Link::new(coordinator) else {
            tracing::error!(%coordinator, "the coordinator's address takes no path; this worker cannot register");
            return;
        };
        let mut period = period;
        let mut heard: Option<HeartbeatReply> = None;
        let mut failing = false;
        loop {
            match link.send(&self.heartbeat()).await {
                Ok(reply) => {
                    if failing || heard.is_none() {
                        tracing::info!(%coordinator, worker = %self.id, url = %self.url, "registered with the coordinator");
                    }
                    failing = false;
                    if !reply.in_service
                        && heard.as_ref() != Some(&reply)
                        && self.state() == WorkerState::Active
                    {
                        let note = reply.note.as_deref().unwrap_or("no reason given");
                        tracing::warn!(%coordinator, "the coordinator does not use this worker: {note}");
                    }
                    period = Duration::from_millis(reply.interval_ms)
                        .clamp(Duration::from_millis(50), Duration::from_secs(60));
                    heard = Some(reply);
                }
                Err(error) => {
                    if !failing {
                        tracing::warn!(%coordinator, error, "the coordinator does not answer; trying again until it does");
                    }
                    failing = true;
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.now.notified() => {}
                () = tokio::time::sleep(period) => {}
            }
        }
    }

    /// Tells the coordinator that this worker leaves.
    pub(crate) async fn leave(&self, coordinator: &Url) {
        let mut last = self.heartbeat();
        last.state = WorkerState::Lost;
        if let Some(link) = Link::new(coordinator)
            && let Err(error) = link.send(&last).await
        {
            tracing::warn!(%coordinator, error, "could not say good-bye; the coordinator will miss the heartbeats");
        }
    }
}

/// The way to the coordinator.
struct Link {
    client: reqwest::Client,
    url: Url,
}

impl Link {
    fn new(coordinator: &Url) -> Option<Self> {
        let client = reqwest::Client::builder()
            .timeout(ANSWER_TIMEOUT)
            .build()
            .ok()?;
        let url = coordinator.join(HEARTBEAT_PATH).ok()?;
        Some(Self { client, url })
    }

    async fn send(&self, beat: &Heartbeat) -> Result<HeartbeatReply, String> {
        let sent = self.client.post(self.url.clone()).json(beat).send().await;
        let response = sent
            .and_then(reqwest::Response::error_for_status)
            .map_err(|error| with_causes(&error))?;
        response.json().await.map_err(|error| with_causes(&error))
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
