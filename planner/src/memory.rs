//! A memory limit for one query above the pool that all queries of a process share.
//!
//! ```text
//!   operator ── try_grow ──► query_memory_bytes ──► the process's pool
//! ```
//!
//! Both are [`MarginPool`]s.

use std::fmt;
use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use datafusion::execution::runtime_env::RuntimeEnv;

use crate::margin_pool::MarginPool;

/// The limit of one query, over the process's pool. See the [module](self).
#[derive(Debug)]
pub struct QueryMemoryPool {
    own: MarginPool,
    shared: Arc<dyn MemoryPool>,
}

impl QueryMemoryPool {
    /// At most `limit` bytes of `shared`.
    pub fn new(shared: Arc<dyn MemoryPool>, limit: usize) -> Self {
        Self {
            own: MarginPool::new(limit),
            shared,
        }
    }
}

impl fmt::Display for QueryMemoryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "query({})", self.own)
    }
}

impl MemoryPool for QueryMemoryPool {
    fn name(&self) -> &str {
        "query"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.own.register(consumer);
        self.shared.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.own.unregister(consumer);
        self.shared.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.own.grow(reservation, additional);
        self.shared.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.own.shrink(reservation, shrink);
        self.shared.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.own
            .try_grow(reservation, additional)
            .map_err(|error| {
                explained(
                    error,
                    "the query needs more memory than it may use (setting query_memory_bytes)",
                )
            })?;
        self.shared.try_grow(reservation, additional).map_err(|error| {
            self.own.shrink(reservation, additional);
            explained(
                error,
                "the memory that all queries of this process share is used up (setting worker.memory)",
            )
        })
    }

    fn reserved(&self) -> usize {
        self.own.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.own.memory_limit()
    }
}

/// The error with what it means. An operator that can spill does so when it sees `ResourcesExhausted`, so the kind
/// stays.
fn explained(error: DataFusionError, meaning: &str) -> DataFusionError {
    match error {
        DataFusionError::ResourcesExhausted(why) => {
            DataFusionError::ResourcesExhausted(format!("{meaning}: {why}"))
        }
        other => other,
    }
}

/// The process's runtime (spill files, caches, stores), with its memory limited for one query.
///
/// Without a limit the runtime is the process's own.
pub fn query_runtime(shared: &Arc<RuntimeEnv>, limit: Option<u64>) -> Arc<RuntimeEnv> {
    let Some(limit) = limit else {
        return Arc::clone(shared);
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut runtime = RuntimeEnv::clone(shared);
    runtime.memory_pool = Arc::new(QueryMemoryPool::new(Arc::clone(&shared.memory_pool), limit));
    Arc::new(runtime)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    fn pools(shared: usize, limit: usize) -> (Arc<dyn MemoryPool>, Arc<dyn MemoryPool>) {
        let shared: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(shared));
        let query: Arc<dyn MemoryPool> = Arc::new(QueryMemoryPool::new(Arc::clone(&shared), limit));
        (shared, query)
    }

    #[test]
    fn a_query_above_its_limit_is_told_which_setting_limits_it() {
        let (shared, query) = pools(1000, 100);
        let reservation = MemoryConsumer::new("join").register(&query);
        reservation.try_grow(90).unwrap();
        let error = reservation.try_grow(20).unwrap_err();
        assert!(matches!(error, DataFusionError::ResourcesExhausted(_)));
        assert!(error.to_string().contains("query_memory_bytes"), "{error}");
        // What was refused is nowhere counted, what was given is given back.
        assert_eq!((query.reserved(), shared.reserved()), (90, 90));
        drop(reservation);
        assert_eq!((query.reserved(), shared.reserved()), (0, 0));
    }

    #[test]
    fn what_the_process_cannot_give_is_not_counted_to_the_query() {
        let (shared, query) = pools(50, 100);
        let reservation = MemoryConsumer::new("join").register(&query);
        let error = reservation.try_grow(60).unwrap_err();
        assert!(error.to_string().contains("worker.memory"), "{error}");
        assert_eq!((query.reserved(), shared.reserved()), (0, 0));
    }
}
