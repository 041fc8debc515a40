use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// Hits, misses and bytes by source, counted live.
///
/// One is kept by the cache for all readers. A reader that wants its own (a scan, for the profile of
/// its query) passes an `Arc<ReadCounters>` with its reads, either in the request
///
/// ```
/// # use std::sync::Arc;
/// # use tarn_cache::ReadCounters;
/// let counters = Arc::new(ReadCounters::default());
/// let mut options = object_store::GetOptions::new().with_range(Some(0..10));
/// options.extensions.insert(Arc::clone(&counters));
/// ```
///
/// or, since `get_ranges` takes no options, around the future: `counters.count(store.get_ranges(…))`.
#[derive(Debug, Default)]
pub struct ReadCounters {
    /// Blocks found in memory.
    pub hits_memory: AtomicU64,
    /// Blocks found on disk.
    pub hits_disk: AtomicU64,
    /// Blocks that this reader had to read from the remote store.
    pub misses: AtomicU64,
    /// Blocks that somebody else was already reading from the remote store.
    pub joined: AtomicU64,
    /// Bytes handed to the reader from memory (and from reads it joined).
    pub bytes_memory: AtomicU64,
    /// Bytes handed to the reader from disk.
    pub bytes_disk: AtomicU64,
    /// Bytes read from the remote store: whole blocks, so it can exceed what was asked for.
    pub bytes_remote: AtomicU64,
    /// Requests sent to the remote store.
    pub requests_remote: AtomicU64,
}

tokio::task_local! {
    static CURRENT: Arc<ReadCounters>;
}

impl ReadCounters {
    /// Runs `read` with its cache accesses counted here (besides the cache's own totals).
    pub async fn count<F: Future>(self: &Arc<Self>, read: F) -> F::Output {
        CURRENT.scope(Arc::clone(self), read).await
    }

    /// The counters that [`ReadCounters::count`] has put around the calling future.
    pub(crate) fn current() -> Option<Arc<ReadCounters>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    /// The values now.
    pub fn snapshot(&self) -> CacheStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheStats {
            hits_memory: load(&self.hits_memory),
            hits_disk: load(&self.hits_disk),
            misses: load(&self.misses),
            joined: load(&self.joined),
            bytes_memory: load(&self.bytes_memory),
            bytes_disk: load(&self.bytes_disk),
            bytes_remote: load(&self.bytes_remote),
            requests_remote: load(&self.requests_remote),
        }
    }
}

/// What [`ReadCounters`] stood at. The fields have the same meaning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheStats {
    pub hits_memory: u64,
    pub hits_disk: u64,
    pub misses: u64,
    pub joined: u64,
    pub bytes_memory: u64,
    pub bytes_disk: u64,
    pub bytes_remote: u64,
    pub requests_remote: u64,
}

/// Where a block came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockSource {
    Memory,
    Disk,
    Remote,
    Joined,
}

/// The counters of one read: the cache's own, and the reader's if it brought some.
#[derive(Clone)]
pub(crate) struct Tally {
    pub total: Arc<ReadCounters>,
    pub reader: Option<Arc<ReadCounters>>,
}

impl Tally {
    fn each(&self, f: impl Fn(&ReadCounters)) {
        f(&self.total);
        if let Some(reader) = &self.reader {
            f(reader);
        }
    }

    /// A block was served from `source`; `bytes` of it go to the reader.
    pub fn served(&self, source: BlockSource, bytes: u64) {
        self.each(|c| {
            let (blocks, served) = match source {
                BlockSource::Memory => (&c.hits_memory, Some(&c.bytes_memory)),
                BlockSource::Disk => (&c.hits_disk, Some(&c.bytes_disk)),
                BlockSource::Joined => (&c.joined, Some(&c.bytes_memory)),
                // Its bytes were counted when they came over the wire.
                BlockSource::Remote => (&c.misses, None),
            };
            blocks.fetch_add(1, Ordering::Relaxed);
            if let Some(served) = served {
                served.fetch_add(bytes, Ordering::Relaxed);
            }
        });
    }

    /// One request to the remote store brought `bytes`.
    pub fn fetched(&self, bytes: u64) {
        self.each(|c| {
            c.requests_remote.fetch_add(1, Ordering::Relaxed);
            c.bytes_remote.fetch_add(bytes, Ordering::Relaxed);
        });
    }
}
