//! Committing anew after another writer was faster.

use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::catalog::Catalog;
use crate::error::{CatalogError, Result};
use crate::name::TableName;
use crate::pinned::PinnedTable;

/// Attempts, if the table does not say (`commit.retry.num-retries`). Appends never contradict each other, so a lost
/// attempt only means that another writer was faster.
const RETRIES: u32 = 30;

/// Pauses between attempts, if the table does not say (`commit.retry.min-wait-ms`, `max-wait-ms`).
const MIN_WAIT: Duration = Duration::from_millis(20);
const MAX_WAIT: Duration = Duration::from_secs(2);

/// All attempts together, if the table does not say (`commit.retry.total-timeout-ms`).
const TOTAL_WAIT: Duration = Duration::from_secs(120);

/// How often and how long to try a commit, and how far that has come.
pub(crate) struct CommitRetry {
    table: Uuid,
    retries: u32,
    min: Duration,
    max: Duration,
    total: Duration,
    started: Instant,
    lost: u32,
}

impl CommitRetry {
    /// As the table's properties say; the time begins to run.
    pub(crate) fn of(base: &PinnedTable) -> Self {
        let metadata = base.metadata();
        let get = |key: &str| {
            metadata
                .properties()
                .get(key)
                .and_then(|text| text.trim().parse::<u64>().ok())
        };
        let wait = |key: &str, default| get(key).map_or(default, Duration::from_millis);
        Self {
            table: metadata.uuid(),
            retries: get("commit.retry.num-retries")
                .map_or(RETRIES, |n| u32::try_from(n).unwrap_or(u32::MAX)),
            min: wait("commit.retry.min-wait-ms", MIN_WAIT),
            max: wait("commit.retry.max-wait-ms", MAX_WAIT),
            total: wait("commit.retry.total-timeout-ms", TOTAL_WAIT),
            started: Instant::now(),
            lost: 0,
        }
    }

    /// Attempts that other writers were faster than.
    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    /// The table to try on next, after an attempt that was lost for `reason`, and a pause.
    ///
    /// # Errors
    /// [`CatalogError::CommitConflict`] after attempts or time enough, and if the name is another table's by now.
    pub(crate) async fn next_base(
        &mut self,
        catalog: &Catalog,
        name: &TableName,
        reason: String,
    ) -> Result<PinnedTable> {
        self.lost += 1;
        if self.lost > self.retries || self.started.elapsed() > self.total {
            return Err(self.conflict(name, reason));
        }
        tokio::time::sleep(self.wait()).await;
        let base = catalog.table(&name.database, &name.table).await?;
        if base.metadata().uuid() != self.table {
            let reason = "the table was dropped and made again meanwhile".to_string();
            return Err(self.conflict(name, reason));
        }
        Ok(base)
    }

    fn conflict(&self, name: &TableName, reason: String) -> CatalogError {
        CatalogError::CommitConflict {
            table: name.clone(),
            attempts: self.lost,
            reason,
        }
    }

    /// Doubles with each attempt, and is spread out, so that writers that met do not meet again.
    fn wait(&self) -> Duration {
        let doubled = self
            .min
            .saturating_mul(1 << (self.lost - 1).min(16))
            .min(self.max);
        let spread = (Uuid::new_v4().as_u128() % 1024) as u32;
        doubled.mul_f64(0.25 + f64::from(spread) / 1024.0)
    }
}
