//! Reads through the cache, against a store in memory that counts, waits and lies on demand.
#![expect(
    clippy::single_range_in_vec_init,
    reason = "lists of ranges are what is meant"
)]

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::{CacheError, CacheSettings, CacheStats, DataCache, ReadCounters};

const BLOCK: u64 = 4096;

/// Counts requests, lets them wait for a permit, and cuts off what it sends.
#[derive(Debug)]
struct Remote {
    inner: InMemory,
    gets: Mutex<Vec<Range<u64>>>,
    heads: AtomicU64,
    /// Each GET takes one; closed means they are free.
    permits: Semaphore,
    /// Bytes that are missing at the end of each answer.
    cut_off: AtomicU64,
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Remote")
    }
}

impl Remote {
    fn new() -> Arc<Self> {
        let remote = Self {
            inner: InMemory::new(),
            gets: Mutex::default(),
            heads: AtomicU64::new(0),
            permits: Semaphore::new(0),
            cut_off: AtomicU64::new(0),
        };
        remote.permits.close();
        Arc::new(remote)
    }

    /// A remote whose GETs wait until permits are added.
    fn held() -> Arc<Self> {
        Arc::new(Self {
            inner: InMemory::new(),
            gets: Mutex::default(),
            heads: AtomicU64::new(0),
            permits: Semaphore::new(0),
            cut_off: AtomicU64::new(0),
        })
    }

    fn gets(&self) -> Vec<Range<u64>> {
        self.gets.lock().clone()
    }
}

#[async_trait]
impl ObjectStore for Remote {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if options.head {
            self.heads.fetch_add(1, Ordering::Relaxed);
            return self.inner.get_opts(location, options).await;
        }
        if let Some(GetRange::Bounded(range)) = &options.range {
            self.gets.lock().push(range.clone());
        }
        if let Ok(permit) = self.permits.acquire().await {
            permit.forget();
        }
        let result = self.inner.get_opts(location, options).await?;
        let cut_off = self.cut_off.load(Ordering::Relaxed) as usize;
        let (meta, range, attributes) = (
            result.meta.clone(),
            result.range.clone(),
            result.attributes.clone(),
        );
        let bytes = result.bytes().await?;
        let kept = bytes.slice(..bytes.len().saturating_sub(cut_off));
        // In small pieces, as a network would.
        let pieces: Vec<_> = kept
            .chunks(1000)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        Ok(GetResult {
            payload: GetResultPayload::Stream(futures::stream::iter(pieces).boxed()),
            meta,
            range,
            attributes,
        })
    }

    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        o: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, o).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// Bytes in which every position can be told from its neighbours.
fn content(length: u64) -> Bytes {
    (0..length)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 7) as u8)
        .collect::<Vec<_>>()
        .into()
}

fn settings() -> CacheSettings {
    CacheSettings {
        memory_bytes: 8 << 20,
        disk_bytes: 0,
        disk_path: PathBuf::new(),
        block_bytes: BLOCK,
    }
}

async fn cached(remote: &Arc<Remote>) -> (Arc<DataCache>, Arc<dyn ObjectStore>) {
    let cache = DataCache::open(settings()).await.unwrap();
    let store = cache.wrap(Arc::clone(remote) as _, "test://");
    (cache, store)
}

async fn put(remote: &Remote, path: &str, bytes: &Bytes) -> Path {
    let path = Path::from(path);
    remote.inner.put(&path, bytes.clone().into()).await.unwrap();
    path
}

#[tokio::test]
async fn ranges_at_block_edges_equal_a_direct_read() {
    let remote = Remote::new();
    let (_, store) = cached(&remote).await;
    for size in [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 5 * BLOCK + 17] {
        let bytes = content(size);
        let path = put(&remote, &format!("edge/{size}"), &bytes).await;
        let edges: Vec<u64> = (0..=size.div_ceil(BLOCK))
            .flat_map(|block| [-1, 0, 1].map(|off| (block * BLOCK).saturating_add_signed(off)))
            .filter(|&edge| edge <= size)
            .chain([size])
            .collect();
        let ranges: Vec<Range<u64>> = edges
            .iter()
            .flat_map(|&a| edges.iter().map(move |&b| a..b))
            .filter(|range| !range.is_empty())
            .collect();
        for range in &ranges {
            let expected = bytes.slice(range.start as usize..range.end as usize);
            let read = store.get_range(&path, range.clone()).await.unwrap();
            assert_eq!(read, expected, "{range:?} of {size}");
        }
        let together = store.get_ranges(&path, &ranges).await.unwrap();
        for (range, read) in ranges.iter().zip(together) {
            assert_eq!(read, bytes.slice(range.start as usize..range.end as usize));
        }
    }
}

#[tokio::test]
async fn random_ranges_equal_a_direct_read_with_a_cache_too_small_for_them() {
    let remote = Remote::new();
    let small = CacheSettings {
        memory_bytes: 3 * BLOCK,
        ..settings()
    };
    let store = DataCache::open(small)
        .await
        .unwrap()
        .wrap(Arc::clone(&remote) as _, "s");
    let bytes = content(40 * BLOCK + 123);
    let path = put(&remote, "random", &bytes).await;
    // A linear congruential generator: the cases are the same in every run.
    let mut state = 42u64;
    let mut next = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..300 {
        let ranges: Vec<Range<u64>> = (0..1 + next(4))
            .map(|_| {
                let start = next(bytes.len() as u64);
                start..start + 1 + next((bytes.len() as u64 - start).min(9 * BLOCK))
            })
            .map(|range| range.start..range.end.min(bytes.len() as u64))
            .collect();
        let read = store.get_ranges(&path, &ranges).await.unwrap();
        for (range, read) in ranges.iter().zip(read) {
            assert_eq!(
                read,
                bytes.slice(range.start as usize..range.end as usize),
                "{range:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_repeated_read_makes_no_remote_request() {
    let remote = Remote::new();
    let (cache, store) = cached(&remote).await;
    let bytes = content(10 * BLOCK);
    let path = put(&remote, "a", &bytes).await;

    let counters = Arc::new(ReadCounters::default());
    let read = || async {
        let mut options = GetOptions::new().with_range(Some(100..3 * BLOCK));
        options.extensions.insert(Arc::clone(&counters));
        store
            .get_opts(&path, options)
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap()
    };
    assert_eq!(read().await, bytes.slice(100..3 * BLOCK as usize));
    // Three adjacent blocks, one request.
    assert_eq!(remote.gets(), vec![0..3 * BLOCK]);
    let cold = CacheStats {
        misses: 3,
        bytes_remote: 3 * BLOCK,
        requests_remote: 1,
        ..CacheStats::default()
    };
    assert_eq!(counters.snapshot(), cold);

    assert_eq!(read().await, bytes.slice(100..3 * BLOCK as usize));
    assert_eq!(remote.gets().len(), 1);
    let warm = CacheStats {
        hits_memory: 3,
        bytes_memory: 3 * BLOCK - 100,
        ..cold
    };
    assert_eq!(counters.snapshot(), warm);
    assert_eq!(cache.stats(), warm);

    // Only the block between the cached ones and the new ones is read.
    store.get_range(&path, 2 * BLOCK..4 * BLOCK).await.unwrap();
    assert_eq!(remote.gets()[1..], [3 * BLOCK..4 * BLOCK]);
    // Size and identity came with the data.
    assert_eq!(store.head(&path).await.unwrap().size, 10 * BLOCK);
    assert_eq!(remote.heads.load(Ordering::Relaxed), 0);
    // Another reader's counters have seen nothing of it.
    assert_eq!(counters.snapshot(), warm);
}

#[tokio::test]
async fn get_ranges_counts_for_the_reader_around_it() {
    let remote = Remote::new();
    let (_, store) = cached(&remote).await;
    let path = put(&remote, "a", &content(4 * BLOCK)).await;
    let counters = Arc::new(ReadCounters::default());
    counters
        .count(store.get_ranges(&path, &[0..10, 20..30, BLOCK..BLOCK + 5]))
        .await
        .unwrap();
    store
        .get_ranges(&path, &[3 * BLOCK..4 * BLOCK])
        .await
        .unwrap();
    assert_eq!(counters.snapshot().misses, 2);
    counters
        .count(store.get_ranges(&path, &[0..10, 20..30, BLOCK..BLOCK + 5]))
        .await
        .unwrap();
    let stats = counters.snapshot();
    assert_eq!(
        (stats.misses, stats.hits_memory, stats.bytes_memory),
        (2, 2, 25)
    );
}

#[tokio::test]
async fn concurrent_misses_of_a_block_share_one_request() {
    let remote = Remote::held();
    let (cache, store) = cached(&remote).await;
    let bytes = content(4 * BLOCK);
    let path = put(&remote, "a", &bytes).await;

    let readers: Vec<_> = (0..16u64)
        .map(|i| {
            let (store, path) = (Arc::clone(&store), path.clone());
            // All want block 1, in ranges of their own.
            async move { store.get_range(&path, BLOCK + i..BLOCK + i + 10).await }.boxed()
        })
        .collect();
    let mut all = futures::future::join_all(readers);
    // All have asked before the first answer comes.
    assert!((&mut all).now_or_never().is_none());
    remote.permits.add_permits(1);
    for (i, read) in all.await.into_iter().enumerate() {
        let start = BLOCK as usize + i;
        assert_eq!(read.unwrap(), bytes.slice(start..start + 10));
    }
    assert_eq!(remote.gets(), vec![BLOCK..2 * BLOCK]);
    let stats = cache.stats();
    assert_eq!((stats.misses, stats.joined, stats.hits_memory), (1, 15, 0));
    assert_eq!((stats.requests_remote, stats.bytes_remote), (1, BLOCK));
}

#[tokio::test]
async fn a_reader_that_gives_up_does_not_take_the_others_with_it() {
    let remote = Remote::held();
    let (_, store) = cached(&remote).await;
    let bytes = content(4 * BLOCK);
    let path = put(&remote, "a", &bytes).await;

    let mut first = Box::pin(store.get_range(&path, 0..10));
    let mut second = Box::pin(store.get_range(&path, 5..15));
    assert!((&mut first).now_or_never().is_none());
    assert!((&mut second).now_or_never().is_none());
    drop(first);
    remote.permits.add_permits(1);
    assert_eq!(second.await.unwrap(), bytes.slice(5..15));
    assert_eq!(remote.gets().len(), 1);

    // Nobody waits any more: the read is abandoned, and the next one starts afresh.
    let mut alone = Box::pin(store.get_range(&path, BLOCK..BLOCK + 10));
    assert!((&mut alone).now_or_never().is_none());
    drop(alone);
    remote.permits.add_permits(2);
    let read = store.get_range(&path, BLOCK..BLOCK + 10).await.unwrap();
    assert_eq!(read, bytes.slice(BLOCK as usize..BLOCK as usize + 10));
    assert_eq!(remote.gets().len(), 3);
}

#[tokio::test]
async fn a_truncated_answer_is_an_error_that_names_the_path_and_is_not_kept() {
    let remote = Remote::new();
    let (_, store) = cached(&remote).await;
    let bytes = content(4 * BLOCK);
    let path = put(&remote, "lake/t/cut.parquet", &bytes).await;
    remote.cut_off.store(1, Ordering::Relaxed);
    let error = store
        .get_range(&path, 0..2 * BLOCK)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("lake/t/cut.parquet") && error.contains("truncated"),
        "{error}"
    );

    remote.cut_off.store(0, Ordering::Relaxed);
    assert_eq!(
        store.get_range(&path, 0..2 * BLOCK).await.unwrap(),
        bytes.slice(..2 * BLOCK as usize)
    );
    assert_eq!(remote.gets().len(), 2);
}

#[tokio::test]
async fn a_range_past_the_end_is_an_error_that_names_the_path() {
    let remote = Remote::new();
    let (_, store) = cached(&remote).await;
    let path = put(&remote, "short.parquet", &content(BLOCK + 10)).await;
    for _cold_then_warm in 0..2 {
        let error = store
            .get_ranges(&path, &[BLOCK..BLOCK + 20])
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("short.parquet has 4106 bytes"), "{error}");
    }
    // `get_opts` gives what there is, as every object store does.
    let result = store
        .get_opts(&path, GetOptions::new().with_range(Some(BLOCK..BLOCK + 20)))
        .await
        .unwrap();
    assert_eq!(result.range, BLOCK..BLOCK + 10);
    assert_eq!(result.bytes().await.unwrap().len(), 10);
    let error = store
        .get_range(&path, 2 * BLOCK..3 * BLOCK)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("short.parquet"), "{error}");
    #[expect(clippy::reversed_empty_ranges)]
    let backwards = 20..10;
    assert!(store.get_range(&path, backwards).await.is_err());
}

#[tokio::test]
async fn a_missing_object_stays_not_found() {
    let remote = Remote::new();
    let (_, store) = cached(&remote).await;
    let path = Path::from("none");
    for result in [
        store.get_range(&path, 0..10).await.map(|_| ()),
        store.head(&path).await.map(|_| ()),
    ] {
        assert!(
            matches!(result, Err(object_store::Error::NotFound { .. })),
            "{result:?}"
        );
    }
}

#[tokio::test]
async fn whole_objects_offsets_and_suffixes_are_streamed() {
    let remote = Remote::new();
    let (_, store) = cached(&remote).await;
    // Longer than one remote request of 8 MiB.
    let bytes = content((9 << 20) + 5);
    let path = put(&remote, "whole", &bytes).await;
    assert_eq!(
        store.get(&path).await.unwrap().bytes().await.unwrap(),
        bytes
    );
    let long = store.get_range(&path, 3..(9 << 20)).await.unwrap();
    assert_eq!(long, bytes.slice(3..9 << 20));
    for (range, expected) in [
        (GetRange::Offset(9 << 20), bytes.slice(9 << 20..)),
        (GetRange::Suffix(7), bytes.slice(bytes.len() - 7..)),
    ] {
        let options = GetOptions::new().with_range(Some(range));
        let read = store
            .get_opts(&path, options)
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap();
        assert_eq!(read, expected);
    }
    let empty = put(&remote, "empty", &Bytes::new()).await;
    assert_eq!(
        store.get(&empty).await.unwrap().bytes().await.unwrap(),
        Bytes::new()
    );
}

#[tokio::test]
async fn a_put_or_a_delete_forgets_what_was_cached() {
    let remote = Remote::new();
    let (_, store) = cached(&remote).await;
    let (old, new) = (
        content(3 * BLOCK),
        Bytes::from(vec![7u8; 2 * BLOCK as usize]),
    );
    let path = put(&remote, "a", &old).await;
    assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), old);
    store.put(&path, new.clone().into()).await.unwrap();
    assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), new);
    assert_eq!(
        store.get_range(&path, BLOCK..BLOCK + 3).await.unwrap(),
        vec![7u8; 3]
    );
    store.delete(&path).await.unwrap();
    assert!(store.get_range(&path, 0..3).await.is_err());
    let listed: Vec<_> = store.list(None).try_collect().await.unwrap();
    assert!(listed.is_empty());
}

#[tokio::test]
async fn scopes_are_told_apart() {
    let (one, two) = (Remote::new(), Remote::new());
    let cache = DataCache::open(settings()).await.unwrap();
    let path = put(&one, "same", &Bytes::from_static(b"one")).await;
    put(&two, "same", &Bytes::from_static(b"two")).await;
    let first = cache.wrap(Arc::clone(&one) as _, "s3://one");
    let second = cache.wrap(Arc::clone(&two) as _, "s3://two");
    assert_eq!(first.get_range(&path, 0..3).await.unwrap(), "one");
    assert_eq!(second.get_range(&path, 0..3).await.unwrap(), "two");
}

fn disk_settings(path: &std::path::Path) -> CacheSettings {
    CacheSettings {
        memory_bytes: 16 * BLOCK,
        disk_bytes: 4 << 20,
        disk_path: path.to_owned(),
        block_bytes: BLOCK,
    }
}

#[tokio::test]
async fn the_disk_tier_survives_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let remote = Remote::new();
    let bytes = content(20 * BLOCK + 9);
    let path = put(&remote, "a", &bytes).await;
    {
        let cache = DataCache::open(disk_settings(directory.path()))
            .await
            .unwrap();
        let store = cache.wrap(Arc::clone(&remote) as _, "s");
        assert_eq!(
            store.get_range(&path, 0..bytes.len() as u64).await.unwrap(),
            bytes
        );
        cache.close().await.unwrap();
        // Readers that are left go on.
        assert_eq!(
            store.get_range(&path, 0..9).await.unwrap(),
            bytes.slice(..9)
        );
    }
    remote.gets.lock().clear();
    let cache = DataCache::open(disk_settings(directory.path()))
        .await
        .unwrap();
    let store = cache.wrap(Arc::clone(&remote) as _, "s");
    assert_eq!(
        store.get_range(&path, 0..bytes.len() as u64).await.unwrap(),
        bytes
    );
    assert_eq!(remote.gets(), Vec::<Range<u64>>::new());
    assert_eq!(remote.heads.load(Ordering::Relaxed), 0);
    let stats = cache.stats();
    assert_eq!(
        (stats.hits_disk, stats.bytes_disk, stats.misses),
        (21, bytes.len() as u64, 0)
    );
}

#[tokio::test]
async fn a_damaged_disk_tier_costs_time_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let remote = Remote::new();
    let bytes = content(20 * BLOCK);
    let path = put(&remote, "a", &bytes).await;
    {
        let cache = DataCache::open(disk_settings(directory.path()))
            .await
            .unwrap();
        let store = cache.wrap(Arc::clone(&remote) as _, "s");
        store.get_range(&path, 0..20 * BLOCK).await.unwrap();
        cache.close().await.unwrap();
    }
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let entry = entry.unwrap();
        let mut content = std::fs::read(entry.path()).unwrap();
        // A byte in each part of each entry.
        content
            .iter_mut()
            .step_by(509)
            .for_each(|byte| *byte ^= 0x55);
        std::fs::write(entry.path(), content).unwrap();
    }
    let cache = DataCache::open(disk_settings(directory.path()))
        .await
        .unwrap();
    let store = cache.wrap(Arc::clone(&remote) as _, "s");
    assert_eq!(store.get_range(&path, 0..20 * BLOCK).await.unwrap(), bytes);
}

#[tokio::test]
async fn a_directory_belongs_to_one_cache() {
    let directory = tempfile::tempdir().unwrap();
    let _first = DataCache::open(disk_settings(directory.path()))
        .await
        .unwrap();
    let second = DataCache::open(disk_settings(directory.path())).await;
    assert!(
        matches!(second, Err(CacheError::InUse { .. })),
        "{second:?}"
    );
}

#[tokio::test]
async fn bad_settings_name_themselves() {
    let blocks = CacheSettings {
        block_bytes: 10,
        ..settings()
    };
    let error = DataCache::open(blocks).await.unwrap_err().to_string();
    assert!(error.contains("block_bytes"), "{error}");

    let directory = tempfile::tempdir().unwrap();
    let tiny = CacheSettings {
        disk_bytes: 10,
        ..disk_settings(directory.path())
    };
    let error = DataCache::open(tiny).await.unwrap_err().to_string();
    assert!(error.contains("disk_bytes"), "{error}");

    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = DataCache::open(disk_settings(&file))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("cache directory"), "{error}");
}
