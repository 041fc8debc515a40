use crate::filter_transport::FilterClient;
use datafusion::execution::runtime_env::RuntimeEnv;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use tarn_cluster::QueryLoad;
use tarn_planner::{QueryProgress, RuntimeFilterLink, query_runtime};
use tokio::sync::Notify;

/// The queries that have tasks on this worker.
///
/// Tasks of one query share a memory pool (its limit is the query's, not the task's) and a progress. An entry
/// lives as long as a task of the query holds its [`TaskGuard`], which is as long as anything of the task can hold
/// memory: the guard sits in the task's own configuration, beside its plan and its streams.
#[derive(Debug)]
pub(crate) struct Queries {
    shared: Arc<RuntimeEnv>,
    /// The way to the coordinator; `None` for a worker that has none.
    filters: Option<FilterClient>,
    /// What a query without a limit may hold: everything. It has a pool of its own all the same, to be counted by.
    memory_bytes: u64,
    entries: Mutex<HashMap<String, Weak<QueryEntry>>>,
    tasks: Arc<TaskCount>,
}

/// What the tasks of one query share.
#[derive(Debug)]
pub(crate) struct QueryEntry {
    pub(crate) query_id: String,
    pub(crate) runtime: Arc<RuntimeEnv>,
    pub(crate) progress: Arc<QueryProgress>,
    /// What the query's joins know of their keys.
    pub(crate) filters: Option<Arc<RuntimeFilterLink>>,
    tasks: AtomicU64,
}

/// Tasks alive, and those that ever were.
#[derive(Debug, Default)]
struct TaskCount {
    alive: AtomicU64,
    started: AtomicU64,
    ended: Notify,
}

/// Held by a task while it lives.
#[derive(Debug)]
pub(crate) struct TaskGuard {
    entry: Arc<QueryEntry>,
    count: Arc<TaskCount>,
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.entry.tasks.fetch_sub(1, Ordering::Relaxed);
        self.count.alive.fetch_sub(1, Ordering::AcqRel);
        self.count.ended.notify_waiters();
    }
}

impl TaskGuard {
    pub(crate) fn query(&self) -> &Arc<QueryEntry> {
        &self.entry
    }
}

impl Queries {
    /// No query yet, over the process's runtime.
    pub(crate) fn new(
        shared: Arc<RuntimeEnv>,
        memory_bytes: u64,
        filters: Option<FilterClient>,
    ) -> Self {
        Self {
            shared,
            filters,
            memory_bytes,
            entries: Mutex::default(),
            tasks: Arc::default(),
        }
    }

    /// Takes in a task of a query, with the query's memory limit in bytes.
    ///
    /// A task whose query is not named is a query of its own.
    pub(crate) fn enter(&self, query_id: &str, memory_bytes: Option<u64>) -> TaskGuard {
        let entry = {
            let mut entries = self.entries.lock();
            entries.retain(|_, entry| entry.strong_count() > 0);
            let known = match query_id.is_empty() {
                true => None,
                false => entries.get(query_id).and_then(Weak::upgrade),
            };
            known.unwrap_or_else(|| {
                let entry = Arc::new(QueryEntry {
                    query_id: query_id.to_string(),
                    runtime: query_runtime(
                        &self.shared,
                        Some(memory_bytes.unwrap_or(self.memory_bytes)),
                    ),
                    progress: Arc::default(),
                    filters: self.filters.as_ref().map(|client| {
                        let transport = Arc::new(client.of_query(query_id));
                        Arc::new(RuntimeFilterLink::new(transport))
                    }),
                    tasks: AtomicU64::new(0),
                });
                if !query_id.is_empty() {
                    entries.insert(query_id.to_string(), Arc::downgrade(&entry));
                }
                entry
            })
        };
        entry.tasks.fetch_add(1, Ordering::Relaxed);
        self.tasks.alive.fetch_add(1, Ordering::AcqRel);
        self.tasks.started.fetch_add(1, Ordering::Relaxed);
        TaskGuard {
            entry,
            count: Arc::clone(&self.tasks),
        }
    }

    /// Tasks alive.
    pub(crate) fn running_tasks(&self) -> u64 {
        self.tasks.alive.load(Ordering::Acquire)
    }

    /// Tasks since the process started.
    pub(crate) fn started_tasks(&self) -> u64 {
        self.tasks.started.load(Ordering::Relaxed)
    }

    /// Comes back when no task is alive.
    pub(crate) async fn idle(&self) {
        loop {
            let ended = self.tasks.ended.notified();
            if self.running_tasks() == 0 {
                return;
            }
            ended.await;
        }
    }

    /// How far each query is, for the heartbeat.
    pub(crate) fn loads(&self) -> Vec<QueryLoad> {
        let entries: Vec<_> = self
            .entries
            .lock()
            .values()
            .filter_map(Weak::upgrade)
            .collect();
        let mut loads: Vec<_> = entries.iter().map(|entry| entry.load()).collect();
        loads.sort_by(|a, b| a.query_id.cmp(&b.query_id));
        loads
    }
}

impl QueryEntry {
    fn load(&self) -> QueryLoad {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        QueryLoad {
            query_id: self.query_id.clone(),
            tasks: get(&self.tasks),
            splits_total: get(&self.progress.splits_total),
            splits_done: get(&self.progress.splits_done),
            rows: get(&self.progress.rows),
            bytes: get(&self.progress.bytes),
            memory_bytes: self.runtime.memory_pool.reserved() as u64,
        }
    }
}
