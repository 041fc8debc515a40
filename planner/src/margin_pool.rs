//! A memory pool that keeps a margin for what cannot spill.
//!
//! ```text
//!   0                                            3/4            7/8          limit
//!   ├─ what can spill, in equal shares ───────────┤              │             │
//!   ├─ merges of a sort's spilled runs ──────────────────────────┤             │
//!   └─ whatever else cannot spill ─────────────────────────────────────────────┘
//! ```
//!
//! What can spill gets an equal share, as in DataFusion's fair pool: a sort spills when its share is used up, and one
//! operator cannot starve the others of the few megabytes that they need to begin with. Sorts fill their shares before
//! the merge above them asks for its first buffers: without a margin a query fails for want of a megabyte, though all
//! that is big in it spills.

use std::fmt;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, human_readable_size,
};
use parking_lot::Mutex;

/// How DataFusion names the merge of what a sort spilled. It takes as many runs at once as it is given memory for, and
/// makes do with less; the merge of partitions above it needs what it asks for.
const SPILL_MERGE: &str = "ExternalSorterMerge";

/// A pool with a margin for what cannot spill. See the [module](self).
pub struct MarginPool {
    /// Counts everything; its size bounds what can spill.
    share: FairSpillPool,
    limit: usize,
    /// Held between asking whether memory is left for what cannot spill, and taking it.
    unspillable: Mutex<()>,
}

impl MarginPool {
    /// At most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            share: FairSpillPool::new(limit - limit / 4),
            limit,
            unspillable: Mutex::new(()),
        }
    }
}

impl fmt::Debug for MarginPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MarginPool")
            .field("limit", &self.limit)
            .field("reserved", &self.reserved())
            .finish()
    }
}

impl fmt::Display for MarginPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {}",
            human_readable_size(self.reserved()),
            human_readable_size(self.limit)
        )
    }
}

impl MemoryPool for MarginPool {
    fn name(&self) -> &str {
        "margin"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.share.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.share.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.share.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.share.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        if reservation.consumer().can_spill() {
            return self.share.try_grow(reservation, additional);
        }
        let limit = match reservation.consumer().name().starts_with(SPILL_MERGE) {
            true => self.limit - self.limit / 8,
            false => self.limit,
        };
        let _one_at_a_time = self.unspillable.lock();
        if self.share.reserved().saturating_add(additional) > limit {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "{} asked for {} more while {} of {} are held",
                reservation.consumer().name(),
                human_readable_size(additional),
                human_readable_size(self.share.reserved()),
                human_readable_size(self.limit),
            )));
        }
        self.share.grow(reservation, additional);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.share.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_can_spill_shares_evenly_and_leaves_a_margin() {
        let pool: Arc<dyn MemoryPool> = Arc::new(MarginPool::new(100));
        let spilling = |name| {
            MemoryConsumer::new(name)
                .with_can_spill(true)
                .register(&pool)
        };
        let (one, two) = (spilling("sort 1"), spilling("sort 2"));
        // Half of three quarters.
        assert!(one.try_grow(38).is_err());
        one.try_grow(37).unwrap();
        two.try_grow(37).unwrap();
        let greedy = MemoryConsumer::new("ExternalSorterMerge[0]").register(&pool);
        assert!(greedy.try_grow(15).is_err());
        greedy.try_grow(14).unwrap();
        let merge = MemoryConsumer::new("merge").register(&pool);
        merge.try_grow(12).unwrap();
        let error = merge.try_grow(1).unwrap_err();
        assert!(matches!(error, DataFusionError::ResourcesExhausted(_)));
    }
}
