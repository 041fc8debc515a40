use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};
use parking_lot::Mutex;

use crate::block::{Block, BlockKey, ObjectKey};
use crate::error::FetchError;
use crate::runs::runs;

/// The blocks of one remote read: `blocks[i]` is block `first + i`. Shorter than the run that was
/// asked for if the object ends within it.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub first: u64,
    pub blocks: Vec<Block>,
}

impl Fetched {
    pub fn block(&self, index: u64) -> Option<&Block> {
        self.blocks.get(index.checked_sub(self.first)? as usize)
    }
}

type FetchResult = Result<Arc<Fetched>, FetchError>;

/// A remote read under way. It makes progress while any of its holders polls it, and is abandoned when
/// the last one drops it, so a killed query leaves no reads behind unless others wait for them.
pub(crate) type Flight = Shared<BoxFuture<'static, FetchResult>>;

/// The remote reads under way, by block, so that nobody reads a block that is already on its way.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    by_block: Mutex<HashMap<BlockKey, Entry>>,
    next_id: AtomicU64,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    flight: WeakShared<BoxFuture<'static, FetchResult>>,
    outdated: Arc<AtomicBool>,
}

/// What to do for one missing block.
pub(crate) enum Claim {
    /// It arrived meanwhile.
    Arrived(Block),
    /// Wait for a read that somebody else has begun.
    Join(Flight),
    /// Wait for a read begun for this claim.
    Own(Flight),
}

impl Flights {
    /// Claims the blocks `indices` (ascending) of one object: what is under way is joined, what is left is
    /// read in runs of adjacent blocks of at most `longest`, one call of `fetch` each. `arrived` looks
    /// again into the cache, and `keep` puts what came into it.
    pub fn claim(
        self: &Arc<Self>,
        key: impl Fn(u64) -> BlockKey,
        indices: &[u64],
        longest: u64,
        arrived: impl Fn(&BlockKey) -> Option<Block>,
        fetch: impl Fn(Range<u64>) -> BoxFuture<'static, FetchResult>,
        keep: impl Fn(BlockKey, Block) + Clone + Send + 'static,
    ) -> Vec<(u64, Claim)> {
        let mut claims = Vec::with_capacity(indices.len());
        let mut fresh = Vec::new();
        let mut by_block = self.by_block.lock();
        for &index in indices {
            let key = key(index);
            if let Some(flight) = by_block.get(&key).and_then(|entry| entry.flight.upgrade()) {
                claims.push((index, Claim::Join(flight)));
            } else if let Some(block) = arrived(&key) {
                // It landed between the caller's look into the cache and this lock.
                claims.push((index, Claim::Arrived(block)));
            } else {
                fresh.push(index);
            }
        }
        for run in runs(&fresh, longest) {
            let keys: Vec<_> = run.clone().map(&key).collect();
            let outdated = Arc::new(AtomicBool::new(false));
            let landing = Landing {
                flights: Arc::clone(self),
                id: self.next_id.fetch_add(1, Ordering::Relaxed),
                keys: keys.clone(),
            };
            let id = landing.id;
            let read = fetch(run.clone());
            let (keep, stale) = (keep.clone(), Arc::clone(&outdated));
            let flight = async move {
                let landing = landing;
                let fetched = read.await?;
                // Under the lock, so that `outdate` is either seen here or comes after.
                let under_way = landing.flights.by_block.lock();
                if !stale.load(Ordering::Acquire) {
                    // Kept before the flight lands, so that there is no moment in which it is neither
                    // in the cache nor on its way.
                    for (key, block) in landing.keys.iter().zip(&fetched.blocks) {
                        keep(key.clone(), block.clone());
                    }
                }
                drop(under_way);
                Ok(fetched)
            }
            .boxed()
            .shared();
            if let Some(weak) = flight.downgrade() {
                for key in keys {
                    let entry = Entry {
                        id,
                        flight: weak.clone(),
                        outdated: Arc::clone(&outdated),
                    };
                    by_block.insert(key, entry);
                }
            }
            claims.extend(run.map(|index| (index, Claim::Own(flight.clone()))));
        }
        claims
    }

    /// Reads of `object` under way may still answer those who wait, but are not kept, nor joined.
    pub fn outdate(&self, object: &ObjectKey) {
        self.by_block.lock().retain(|key, entry| {
            let other = key.object != *object;
            if !other {
                entry.outdated.store(true, Ordering::Release);
            }
            other
        });
    }
}

/// Takes a flight off the list when it is done, failed or abandoned.
struct Landing {
    flights: Arc<Flights>,
    id: u64,
    keys: Vec<BlockKey>,
}

impl Drop for Landing {
    fn drop(&mut self) {
        let mut by_block = self.flights.by_block.lock();
        for key in &self.keys {
            if by_block.get(key).is_some_and(|entry| entry.id == self.id) {
                by_block.remove(key);
            }
        }
    }
}
