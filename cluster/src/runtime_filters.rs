//! Where the tasks of a query exchange what they know of a join's keys.
//!
//! Each task of the build side posts its part; when all are there, every worker that waits for the filter gets the whole.
//! What a filter holds is the planner's business. Filters may be late or lost, so nothing here fails a query.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use datafusion::error::Result;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use uuid::Uuid;

/// Where filters are posted and asked for: this, the query's id and the filter's.
pub const RUNTIME_FILTERS_PATH: &str = "/cluster/v1/runtime-filters";
/// The largest part that is taken, in bytes.
const MOST_PART_BYTES: usize = 8 << 20;
/// The longest that a question is left unanswered.
const MOST_WAIT: Duration = Duration::from_secs(60);

/// Puts two parts together.
type Merge = fn(&[u8], &[u8]) -> Result<Vec<u8>>;

/// The filters of the queries that run.
pub struct RuntimeFilters {
    merge: Merge,
    queries: Mutex<HashMap<String, QueryFilters>>,
}

#[derive(Default)]
struct QueryFilters {
    /// Guards of the query.
    holders: usize,
    filters: HashMap<Uuid, Filter>,
}

#[derive(Default)]
struct Filter {
    tasks: HashSet<usize>,
    merged: Option<Vec<u8>>,
    whole: watch::Sender<Option<Bytes>>,
}

impl fmt::Debug for RuntimeFilters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeFilters")
            .field("queries", &self.queries.lock().len())
            .finish_non_exhaustive()
    }
}

impl RuntimeFilters {
    /// No query yet.
    pub fn new(merge: Merge) -> Arc<Self> {
        Arc::new(Self {
            merge,
            queries: Mutex::default(),
        })
    }

    /// Takes in a query: its filters are kept as long as the guard is.
    pub fn open(self: &Arc<Self>, query_id: &str) -> RuntimeFilterGuard {
        let mut queries = self.queries.lock();
        queries.entry(query_id.to_owned()).or_default().holders += 1;
        RuntimeFilterGuard {
            filters: Arc::clone(self),
            query_id: query_id.to_owned(),
        }
    }

    /// Takes in the part that one of `tasks` tasks made; `false` if its query does not run (any more).
    pub fn publish(
        &self,
        query_id: &str,
        filter: Uuid,
        task: usize,
        tasks: usize,
        part: &[u8],
    ) -> bool {
        let mut queries = self.queries.lock();
        let Some(query) = queries.get_mut(query_id) else {
            return false;
        };
        let filter = query.filters.entry(filter).or_default();
        if !filter.tasks.insert(task) {
            return true;
        }
        let merged = match filter.merged.take() {
            None => Ok(part.to_vec()),
            Some(merged) => (self.merge)(&merged, part),
        };
        match merged {
            Ok(merged) if filter.tasks.len() == tasks => {
                filter.whole.send_replace(Some(merged.into()));
            }
            Ok(merged) => filter.merged = Some(merged),
            // Never whole from here on: this task does not count, and the others' parts wait for it.
            Err(error) => {
                tracing::warn!(query_id, %error, "parts of a runtime filter cannot be put together")
            }
        }
        true
    }

    /// Waits for a filter, at most so long; `None` if it is not there by then, or if its query does not run.
    pub async fn receive(&self, query_id: &str, filter: Uuid, most: Duration) -> Option<Bytes> {
        let mut whole = {
            let mut queries = self.queries.lock();
            let query = queries.get_mut(query_id)?;
            query.filters.entry(filter).or_default().whole.subscribe()
        };
        let there = whole.wait_for(Option::is_some);
        let there = tokio::time::timeout(most.min(MOST_WAIT), there).await;
        there.ok()?.ok()?.clone()
    }

    fn runs(&self, query_id: &str) -> bool {
        self.queries.lock().contains_key(query_id)
    }
}

/// Keeps the filters of a query.
#[derive(Debug)]
pub struct RuntimeFilterGuard {
    filters: Arc<RuntimeFilters>,
    query_id: String,
}

impl Drop for RuntimeFilterGuard {
    fn drop(&mut self) {
        let mut queries = self.filters.queries.lock();
        if let Some(query) = queries.get_mut(&self.query_id) {
            query.holders -= 1;
            if query.holders == 0 {
                queries.remove(&self.query_id);
            }
        }
    }
}

/// Which task made a part; goes with it as the query of its address.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct FilterPart {
    /// Its number in its stage.
    pub task: usize,
    /// How many tasks the stage has.
    pub tasks: usize,
}

/// How long a worker waits for an answer; the query of the address that it asks at.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct FilterWait {
    /// Milliseconds.
    pub wait_ms: u64,
}

/// The part of the coordinator's HTTP interface for runtime filters.
pub(crate) fn router(filters: Arc<RuntimeFilters>) -> Router {
    Router::new()
        .route(
            &format!("{RUNTIME_FILTERS_PATH}/{{query}}/{{filter}}"),
            get(receive).post(publish),
        )
        .layer(DefaultBodyLimit::max(MOST_PART_BYTES))
        .with_state(filters)
}

async fn publish(
    State(filters): State<Arc<RuntimeFilters>>,
    Path((query, filter)): Path<(String, Uuid)>,
    Query(part): Query<FilterPart>,
    body: Bytes,
) -> StatusCode {
    match filters.publish(&query, filter, part.task, part.tasks, &body) {
        true => StatusCode::NO_CONTENT,
        false => StatusCode::NOT_FOUND,
    }
}

/// 200 with the filter, 204 if it is not there yet, 404 if its query does not run.
async fn receive(
    State(filters): State<Arc<RuntimeFilters>>,
    Path((query, filter)): Path<(String, Uuid)>,
    Query(wait): Query<FilterWait>,
) -> Response {
    let most = Duration::from_millis(wait.wait_ms);
    match filters.receive(&query, filter, most).await {
        Some(whole) => whole.into_response(),
        None if filters.runs(&query) => StatusCode::NO_CONTENT.into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(30);
    const NOW: Duration = Duration::ZERO;

    fn filters() -> Arc<RuntimeFilters> {
        RuntimeFilters::new(|one, other| {
            if other == b"bad" {
                return datafusion::common::exec_err!("not a part");
            }
            Ok([one, other].concat())
        })
    }

    #[tokio::test]
    async fn a_filter_is_whole_when_all_tasks_handed_in_their_parts() {
        let (filters, id) = (filters(), Uuid::new_v4());
        let _guard = filters.open("q");
        let waiting = tokio::spawn({
            let filters = Arc::clone(&filters);
            async move { filters.receive("q", id, SOON).await }
        });
        assert!(filters.publish("q", id, 1, 2, b"b"));
        assert!(filters.publish("q", id, 1, 2, b"b"), "sent again");
        assert_eq!(filters.receive("q", id, NOW).await, None);
        assert!(filters.publish("q", id, 0, 2, b"a"));
        assert_eq!(waiting.await.unwrap().unwrap().as_ref(), b"ba");
        assert_eq!(filters.receive("q", id, NOW).await.unwrap().as_ref(), b"ba");
    }

    #[tokio::test]
    async fn filters_go_with_the_last_guard_of_their_query() {
        let (filters, id) = (filters(), Uuid::new_v4());
        assert!(!filters.publish("q", id, 0, 1, b"a"));
        let (first, second) = (filters.open("q"), filters.open("q"));
        assert!(filters.publish("q", id, 0, 1, b"a"));
        drop(first);
        assert!(filters.receive("q", id, NOW).await.is_some());
        let other = Uuid::new_v4();
        let waiting = tokio::spawn({
            let filters = Arc::clone(&filters);
            async move { filters.receive("q", other, SOON).await }
        });
        while filters.queries.lock()["q"].filters.len() < 2 {
            tokio::task::yield_now().await;
        }
        drop(second);
        assert_eq!(waiting.await.unwrap(), None, "whoever waits is told");
        assert!(!filters.runs("q"));
    }

    #[tokio::test]
    async fn a_part_that_does_not_fit_makes_no_filter() {
        let (filters, id) = (filters(), Uuid::new_v4());
        let _guard = filters.open("q");
        assert!(filters.publish("q", id, 0, 2, b"a"));
        assert!(filters.publish("q", id, 1, 2, b"bad"));
        assert_eq!(filters.receive("q", id, NOW).await, None);
    }
}
