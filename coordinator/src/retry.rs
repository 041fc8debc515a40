//! Whether a query that failed is started anew.

use std::sync::atomic::Ordering;

use datafusion::error::DataFusionError;
use tarn_cluster::worker_lost;
use url::Url;

use crate::dispatch::Dispatch;
use crate::error::{Error, ErrorKind, Result};
use crate::planning::StatementContext;
use crate::processes::QueryState;

/// The workers that one query has lost.
#[derive(Debug)]
pub(crate) struct Losses {
    workers: Vec<Url>,
    count: u32,
    most: u32,
}

impl Losses {
    /// None yet; the session's `query_retries` says how many there may be.
    pub fn none(context: &StatementContext) -> Self {
        Self {
            workers: Vec::new(),
            count: 0,
            most: u32::try_from(context.variables.number("query_retries")).unwrap_or(u32::MAX),
        }
    }

    /// The workers not to be used again.
    pub fn workers(&self) -> &[Url] {
        &self.workers
    }

    /// Takes in the failure of an attempt. `Ok` means: plan and start anew.
    ///
    /// `may_retry` is asked only when a worker was lost and there are attempts left; it says no once rows have
    /// reached the client.
    pub fn after(
        &mut self,
        context: &StatementContext,
        error: DataFusionError,
        may_retry: impl FnOnce() -> bool,
    ) -> Result<()> {
        let Some(lost) = worker_lost(&error) else {
            return Err(error.into());
        };
        if let Dispatch::Cluster(cluster) = &context.engine.parts().dispatch {
            cluster.report_lost(&lost);
        }
        let worker = match &lost.url {
            Some(url) => format!("worker {url} was lost"),
            None => "a worker was lost".to_owned(),
        };
        let why_not = if self.count >= self.most {
            format!(
                "it was started {} times (see query_retries)",
                self.count + 1
            )
        } else if may_retry() {
            self.count += 1;
            self.workers.extend(lost.url);
            context.running.retries.fetch_add(1, Ordering::Relaxed);
            context.running.set_state(QueryState::Planning);
            tracing::warn!(query = %context.running.id, reason = %lost.reason, "{worker}: the query is started anew");
            return Ok(());
        } else {
            "rows had already been sent to the client, so it could not be started anew".to_owned()
        };
        Err(Error::new(
            ErrorKind::WorkerLost,
            format!("{worker} while the query ran ({}); {why_not}", lost.reason),
        ))
    }
}
