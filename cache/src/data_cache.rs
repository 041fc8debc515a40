use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};

use bytes::BytesMut;
use foyer::{
    BlockEngineConfig, Cache, CacheBuilder, DeviceBuilder, FsDeviceBuilder, HybridCache,
    HybridCachePolicy, PsyncIoEngineConfig, S3FifoConfig, Source,
};
use futures::future::{BoxFuture, join_all};
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{GetOptions, GetResultPayload, ObjectStore};

use crate::block::{Block, BlockKey, ObjectIdentity, ObjectKey};
use crate::counters::{BlockSource, Tally};
use crate::error::FetchError;
use crate::single_flight::{Claim, Fetched, Flights};
use crate::store::CachedStore;
use crate::{CacheError, CacheSettings, CacheStats, ReadCounters};

/// Bytes that one remote request may ask for: long enough to hide its latency, short enough for several
/// requests of one read to run side by side.
const RUN_BYTES: u64 = 8 << 20;
/// Remote requests that one read has under way at once.
const RUNS_AT_ONCE: usize = 8;
/// Objects whose size and identity are remembered in memory.
const HEADS: usize = 64 << 10;

/// A hybrid (memory and disk) cache of blocks of immutable objects.
///
/// ```text
///   object    |----------------------------------------------|
///   blocks    |  0  |  1  |  2  |  3  |  4  |  5  |  6  | 7  |      of block_bytes, the last one shorter
///   a read            [.............]
///   found         1: memory   2: disk   3: missing, with 4 if that is wanted too: one request
/// ```
///
/// Trouble with the disk tier never fails a read: what cannot be found or written there is read from the
/// remote store. What comes from the remote store is kept only if it is as long as the store said.
#[derive(Debug)]
pub struct DataCache {
    blocks: HybridCache<BlockKey, Block>,
    heads: Cache<ObjectKey, Arc<ObjectIdentity>>,
    flights: Arc<Flights>,
    counters: Arc<ReadCounters>,
    block_bytes: u64,
    disk_trouble: Once,
    closed: AtomicBool,
    /// Held locked for as long as the disk tier is ours.
    _lock: Option<File>,
}

impl DataCache {
    /// Opens the cache; what its disk tier held before is found again.
    pub async fn open(settings: CacheSettings) -> Result<Arc<DataCache>, CacheError> {
        let block_bytes = settings.block_bytes;
        if !(4 << 10..=64 << 20).contains(&block_bytes) {
            return Err(CacheError::Setting {
                setting: "block_bytes",
                reason: format!("{block_bytes} is not between 4096 and 67108864"),
            });
        }
        let memory_bytes = usize::try_from(settings.memory_bytes).unwrap_or(usize::MAX);
        // Each shard has its share of the memory; a share of a few blocks would evict all the time.
        let shards = (settings.memory_bytes / (block_bytes * 32)).clamp(1, 16) as usize;
        let builder = HybridCache::builder()
            .with_name("tarn-data-cache")
            // So that a process that is killed finds its blocks again.
            .with_policy(HybridCachePolicy::WriteOnInsertion)
            .with_flush_on_close(false)
            .memory(memory_bytes)
            .with_shards(shards)
            // A scan over more than fits does not wash out what is read again and again.
            .with_eviction_config(S3FifoConfig::default())
            .with_weighter(Block::weight)
            .storage()
            .with_io_engine_config(PsyncIoEngineConfig::new());

        let (builder, lock) = if settings.disk_bytes == 0 {
            (builder, None)
        } else {
            // The disk tier evicts by regions, each of which holds several blocks.
            let region =
                (settings.disk_bytes / 32).clamp(block_bytes * 4, (block_bytes * 4).max(64 << 20));
            if settings.disk_bytes < region * 4 {
                return Err(CacheError::Setting {
                    setting: "disk_bytes",
                    reason: format!(
                        "{} is too small for blocks of {block_bytes} bytes; at least {} are needed",
                        settings.disk_bytes,
                        region * 4
                    ),
                });
            }
            let lock = lock_directory(&settings)?;
            let device = FsDeviceBuilder::new(&settings.disk_path)
                .with_capacity(settings.disk_bytes as usize)
                .build()
                .map_err(|e| disk_error(&settings, &e))?;
            let engine = BlockEngineConfig::new(device)
                .with_block_size(region as usize)
                .with_buffer_pool_size((block_bytes as usize * 8).max(32 << 20))
                .with_submit_queue_size_threshold((block_bytes as usize * 16).max(64 << 20))
                .with_tombstone_log(true);
            (builder.with_engine_config(engine), Some(lock))
        };
        let blocks = builder
            .build()
            .await
            .map_err(|e| disk_error(&settings, &e))?;
        Ok(Arc::new(Self {
            blocks,
            heads: CacheBuilder::new(HEADS).build(),
            flights: Arc::default(),
            counters: Arc::default(),
            block_bytes,
            disk_trouble: Once::new(),
            closed: AtomicBool::new(false),
            _lock: lock,
        }))
    }

    /// A store whose reads go through the cache; `scope` tells stores apart (e.g. `s3://endpoint/bucket`).
    ///
    /// Meant for immutable data files. Conditional and versioned reads, lists and writes pass by; a write
    /// or a delete through the wrapped store forgets what was cached of its path.
    pub fn wrap(
        self: &Arc<Self>,
        store: Arc<dyn ObjectStore>,
        scope: &str,
    ) -> Arc<dyn ObjectStore> {
        Arc::new(CachedStore::new(Arc::clone(self), store, scope))
    }

    /// Hits, misses and bytes of all readers since the cache was opened.
    pub fn stats(&self) -> CacheStats {
        self.counters.snapshot()
    }

    /// Waits for pending disk writes and closes the disk tier; reads go on without it.
    pub async fn close(&self) -> Result<(), CacheError> {
        self.closed.store(true, Ordering::Release);
        self.blocks.close().await.map_err(|e| CacheError::Setting {
            setting: "disk_path",
            reason: format!("the disk tier did not close: {e}"),
        })
    }

    pub(crate) fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Blocks in the longest remote request.
    pub(crate) fn longest_run(&self) -> u64 {
        (RUN_BYTES / self.block_bytes).max(1)
    }

    pub(crate) fn tally(&self, reader: Option<Arc<ReadCounters>>) -> Tally {
        Tally {
            total: Arc::clone(&self.counters),
            reader,
        }
    }

    /// What is known about an object without asking its store.
    pub(crate) fn known(&self, object: &ObjectKey) -> Option<Arc<ObjectIdentity>> {
        self.heads
            .get(object)
            .map(|entry| Arc::clone(entry.value()))
    }

    pub(crate) fn learn(&self, object: &ObjectKey, identity: Arc<ObjectIdentity>) {
        self.heads.insert(object.clone(), identity);
    }

    /// Forgets all blocks of an object of `size` bytes, and what is on its way.
    pub(crate) fn forget(&self, object: &ObjectKey, size: u64) {
        self.flights.outdate(object);
        self.heads.remove(object);
        for index in 0..size.div_ceil(self.block_bytes) {
            self.blocks.remove(&self.key(object, index));
        }
    }

    fn key(&self, object: &ObjectKey, index: u64) -> BlockKey {
        BlockKey {
            object: object.clone(),
            block_bytes: self.block_bytes,
            index,
        }
    }

    /// The blocks of an object, from the nearest place that has them. `wanted` maps a block to the bytes of
    /// it that the reader will use (for the counters). A block past the object's end is left out.
    pub(crate) async fn read(
        self: &Arc<Self>,
        store: &Arc<dyn ObjectStore>,
        object: &ObjectKey,
        wanted: &BTreeMap<u64, u64>,
        tally: &Tally,
    ) -> object_store::Result<BTreeMap<u64, Block>> {
        let blocks = self.read_once(store, object, wanted, tally).await?;
        if same_object(&blocks) {
            return Ok(blocks);
        }
        // The path was given to another object, and blocks of both are cached: neither is to be trusted.
        let size = blocks
            .values()
            .map(|block| block.object.size)
            .max()
            .unwrap_or(0);
        self.forget(object, size);
        let blocks = self.read_once(store, object, wanted, tally).await?;
        if same_object(&blocks) {
            return Ok(blocks);
        }
        Err(CacheError::Changed {
            path: object.path.to_string(),
        }
        .into())
    }

    async fn read_once(
        self: &Arc<Self>,
        store: &Arc<dyn ObjectStore>,
        object: &ObjectKey,
        wanted: &BTreeMap<u64, u64>,
        tally: &Tally,
    ) -> object_store::Result<BTreeMap<u64, Block>> {
        let mut blocks = BTreeMap::new();
        let mut missing = Vec::new();
        let found = join_all(wanted.keys().map(|&index| self.look_up(object, index))).await;
        for ((&index, &bytes), found) in wanted.iter().zip(found) {
            match found {
                Some((block, source)) => {
                    tally.served(source, bytes);
                    blocks.insert(index, block);
                }
                None => missing.push(index),
            }
        }
        if missing.is_empty() {
            return Ok(blocks);
        }

        let fetch = |run: Range<u64>| -> BoxFuture<'static, Result<Arc<Fetched>, FetchError>> {
            let (store, path, tally) = (Arc::clone(store), Arc::clone(&object.path), tally.clone());
            let block_bytes = self.block_bytes;
            async move {
                fetch_run(&*store, &path, run, block_bytes, &tally)
                    .await
                    .map(Arc::new)
                    .map_err(|e| FetchError {
                        path,
                        source: Arc::new(e),
                    })
            }
            .boxed()
        };
        let keeper = Arc::clone(self);
        let keep = move |key: BlockKey, block: Block| {
            if key.index == 0 || keeper.known(&key.object).is_none() {
                keeper.learn(&key.object, Arc::clone(&block.object));
            }
            keeper.blocks.insert(key, block);
        };
        let arrived = |key: &BlockKey| {
            self.blocks
                .memory()
                .get(key)
                .map(|entry| entry.value().clone())
        };
        let claims = self.flights.claim(
            |index| self.key(object, index),
            &missing,
            self.longest_run(),
            arrived,
            fetch,
            keep,
        );

        let mut arriving = futures::stream::iter(claims)
            .map(|(index, claim)| async move {
                let (flight, source) = match claim {
                    Claim::Arrived(block) => return Ok((index, Some(block), BlockSource::Memory)),
                    Claim::Join(flight) => (flight, BlockSource::Joined),
                    Claim::Own(flight) => (flight, BlockSource::Remote),
                };
                match flight.await {
                    Ok(fetched) => Ok((index, fetched.block(index).cloned(), source)),
                    Err(e) => Err(e.to_store_error()),
                }
            })
            // Blocks of one run share their request.
            .buffer_unordered(RUNS_AT_ONCE * self.longest_run() as usize);
        while let Some((index, block, source)) = arriving.try_next().await? {
            if let Some(block) = block {
                tally.served(source, wanted.get(&index).copied().unwrap_or(0));
                blocks.insert(index, block);
            }
        }
        Ok(blocks)
    }

    /// A block from memory or disk.
    async fn look_up(&self, object: &ObjectKey, index: u64) -> Option<(Block, BlockSource)> {
        let key = self.key(object, index);
        if !self.blocks.is_hybrid() || self.closed.load(Ordering::Acquire) {
            let entry = self.blocks.memory().get(&key)?;
            return Some((entry.value().clone(), BlockSource::Memory));
        }
        match self.blocks.get(&key).await {
            Ok(Some(entry)) => {
                let source = match entry.source() {
                    Source::Disk => BlockSource::Disk,
                    Source::Memory | Source::Outer => BlockSource::Memory,
                };
                Some((entry.value().clone(), source))
            }
            Ok(None) => None,
            Err(e) => {
                // The remote store has the bytes; a disk that fails would fill the log.
                self.disk_trouble.call_once(|| {
                    tracing::warn!(error = %e, "the cache's disk tier cannot be read; reading from the store instead");
                });
                None
            }
        }
    }
}

/// Whether all blocks were read from the same object.
fn same_object(blocks: &BTreeMap<u64, Block>) -> bool {
    let mut identities = blocks.values().map(|block| &block.object);
    let Some(first) = identities.next() else {
        return true;
    };
    identities.all(|other| Arc::ptr_eq(first, other) || first == other)
}

/// Reads a run of blocks with one request, and cuts it up.
async fn fetch_run(
    store: &dyn ObjectStore,
    path: &str,
    run: Range<u64>,
    block_bytes: u64,
    tally: &Tally,
) -> object_store::Result<Fetched> {
    let (start, end) = (run.start * block_bytes, run.end * block_bytes);
    let options = GetOptions::new().with_range(Some(start..end));
    let location = Path::parse(path)?;
    let result = store.get_opts(&location, options).await?;
    let object = Arc::new(ObjectIdentity::of(&result.meta));
    let expected = start..end.min(object.size);
    if result.range != expected {
        return Err(CacheError::WrongRange {
            path: path.to_owned(),
            start: expected.start,
            end: expected.end,
            got_start: result.range.start,
            got_end: result.range.end,
        }
        .into());
    }

    let mut cutter = Cutter {
        block_bytes: block_bytes as usize,
        left: (expected.end - expected.start) as usize,
        open: BytesMut::new(),
        object,
        blocks: Vec::new(),
    };
    let mut got = 0u64;
    match result.payload {
        // Small reads of a local file cost a thread hop each: take it whole.
        GetResultPayload::File(..) => {
            let bytes = result.bytes().await?;
            got += bytes.len() as u64;
            cutter.push(&bytes);
        }
        GetResultPayload::Stream(mut stream) => {
            while let Some(chunk) = stream.try_next().await? {
                got += chunk.len() as u64;
                cutter.push(&chunk);
            }
        }
    }
    tally.fetched(got);
    if got != expected.end - expected.start {
        return Err(CacheError::Truncated {
            path: path.to_owned(),
            start: expected.start,
            end: expected.end,
            got,
        }
        .into());
    }
    Ok(Fetched {
        first: run.start,
        blocks: cutter.blocks,
    })
}

/// Cuts a stream of chunks into blocks, each in an allocation of its own.
struct Cutter {
    block_bytes: usize,
    /// Bytes still to come.
    left: usize,
    open: BytesMut,
    object: Arc<ObjectIdentity>,
    blocks: Vec<Block>,
}

impl Cutter {
    fn push(&mut self, mut chunk: &[u8]) {
        while !chunk.is_empty() && self.left > 0 {
            if self.open.is_empty() {
                self.open = BytesMut::with_capacity(self.block_bytes.min(self.left));
            }
            let room = (self.block_bytes - self.open.len()).min(self.left);
            let (now, later) = chunk.split_at(room.min(chunk.len()));
            self.open.extend_from_slice(now);
            self.left -= now.len();
            if self.open.len() == self.block_bytes || self.left == 0 {
                self.blocks.push(Block {
                    object: Arc::clone(&self.object),
                    bytes: std::mem::take(&mut self.open).freeze(),
                });
            }
            chunk = later;
        }
    }
}

fn lock_directory(settings: &CacheSettings) -> Result<File, CacheError> {
    let path = &settings.disk_path;
    std::fs::create_dir_all(path).map_err(|e| disk_error(settings, &e))?;
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path.join("lock"))
        .map_err(|e| disk_error(settings, &e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(CacheError::InUse { path: path.clone() }),
        Err(std::fs::TryLockError::Error(e)) => Err(disk_error(settings, &e)),
    }
}

fn disk_error(settings: &CacheSettings, e: &dyn std::fmt::Display) -> CacheError {
    CacheError::Disk {
        path: settings.disk_path.clone(),
        reason: e.to_string(),
    }
}
