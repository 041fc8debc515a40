//! A memory limit for one query above the pool that all queries of a process share.
//!
//! ```text
//!   operator ── try_grow ──► QueryMemoryPool ──► fair share of query_memory_bytes ──► the process's pool
//! ```
//!
//! Within a query the limit is split as DataFusion's fair pool does: what cannot spill takes what it needs, what can
//! spill gets an equal share of the rest. So a sort spills when its share is used up, and one operator cannot starve
//! the others of the few megabytes that they need to begin with.
//!
//! A quarter of the limit is only for what cannot spill. Sorts fill their shares before the merge above them asks for
//! its first buffers: without that quarter a query fails for want of a megabyte, though all that is big in it spills.

use std::fmt;
use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, human_readable_size,
};
use datafusion::execution::runtime_env::RuntimeEnv;
use parking_lot::Mutex;

/// How DataFusion names the merge of what a sort spilled.
const SPILL_MERGE: &str = "ExternalSorterMerge";

/// The limit of one query, over the process's pool. See the [module](self).
pub struct QueryMemoryPool {
    /// Counts everything; its size bounds what can spill.
    share: FairSpillPool,
    limit: usize,
    /// Held between asking whether memory is left for what cannot spill, and taking it.
    unspillable: Mutex<()>,
    shared: Arc<dyn MemoryPool>,
}

impl QueryMemoryPool {
    /// At most `limit` bytes of `shared`.
    pub fn new(shared: Arc<dyn MemoryPool>, limit: usize) -> Self {
        Self {
            share: FairSpillPool::new(limit - limit / 4),
            limit,
            unspillable: Mutex::new(()),
            shared,
        }
    }
}

impl QueryMemoryPool {
    /// Takes the memory from the query's limit, if it is there.
    fn fits(&self, reservation: &MemoryReservation, additional: usize) -> bool {
        if reservation.consumer().can_spill() {
            return self.share.try_grow(reservation, additional).is_ok();
        }
        // The merge of a sort's spilled runs takes as many runs at once as it is given memory for, and makes do with
        // less; the merge of partitions above it needs what it asks for.
        let limit = match reservation.consumer().name().starts_with(SPILL_MERGE) {
            true => self.limit - self.limit / 8,
            false => self.limit,
        };
        let _one_at_a_time = self.unspillable.lock();
        let fits = self.share.reserved().saturating_add(additional) <= limit;
        if fits {
            self.share.grow(reservation, additional);
        }
        fits
    }
}

impl fmt::Debug for QueryMemoryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryMemoryPool")
            .field("limit", &self.limit)
            .field("reserved", &self.reserved())
            .finish()
    }
}

impl fmt::Display for QueryMemoryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "query({} of {})",
            human_readable_size(self.reserved()),
            human_readable_size(self.limit)
        )
    }
}

impl MemoryPool for QueryMemoryPool {
    fn name(&self) -> &str {
        "query"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.share.register(consumer);
        self.shared.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.share.unregister(consumer);
        self.shared.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.share.grow(reservation, additional);
        self.shared.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.share.shrink(reservation, shrink);
        self.shared.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        if !self.fits(reservation, additional) {
            // An operator that can spill does so when it sees `ResourcesExhausted`, so the kind must stay.
            return Err(DataFusionError::ResourcesExhausted(format!(
                "the query needs more memory than it may use: {} asked for {} more while the query holds {} of {} \
                 (setting query_memory_bytes)",
                reservation.consumer().name(),
                human_readable_size(additional),
                human_readable_size(self.share.reserved()),
                human_readable_size(self.limit),
            )));
        }
        self.shared.try_grow(reservation, additional).map_err(|error| {
            self.share.shrink(reservation, additional);
            match error {
                DataFusionError::ResourcesExhausted(why) => DataFusionError::ResourcesExhausted(format!(
                    "the memory that all queries of this process share is used up (setting memory_bytes): {why}"
                )),
                other => other,
            }
        })
    }

    fn reserved(&self) -> usize {
        self.share.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit)
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
        assert!(error.to_string().contains("memory_bytes"), "{error}");
        assert_eq!((query.reserved(), shared.reserved()), (0, 0));
    }

    #[test]
    fn operators_that_spill_share_the_limit_evenly() {
        let (_shared, query) = pools(1000, 100);
        let one = MemoryConsumer::new("sort 1")
            .with_can_spill(true)
            .register(&query);
        let two = MemoryConsumer::new("sort 2")
            .with_can_spill(true)
            .register(&query);
        // Half of what is not kept for others.
        assert!(one.try_grow(38).is_err());
        one.try_grow(37).unwrap();
        two.try_grow(37).unwrap();
        let greedy = MemoryConsumer::new("ExternalSorterMerge[0]").register(&query);
        assert!(greedy.try_grow(15).is_err());
        greedy.try_grow(14).unwrap();
        let merge = MemoryConsumer::new("merge").register(&query);
        merge.try_grow(12).unwrap();
        assert!(merge.try_grow(1).is_err());
    }
}
