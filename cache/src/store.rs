use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, RenameOptions, Result, UploadPart,
};

use crate::block::{Block, ObjectIdentity, ObjectKey};
use crate::counters::Tally;
use crate::runs::{blocks_of, wanted, within};
use crate::{CacheError, DataCache, ReadCounters};

/// Windows of a long read that are under way at once.
const WINDOWS_AHEAD: usize = 2;
/// HEAD requests under way at once when many objects are deleted.
const HEADS_AT_ONCE: usize = 8;

/// An object store whose reads are served from the blocks of a [`DataCache`].
#[derive(Clone)]
pub(crate) struct CachedStore {
    cache: Arc<DataCache>,
    store: Arc<dyn ObjectStore>,
    scope: Arc<str>,
}

impl CachedStore {
    pub fn new(cache: Arc<DataCache>, store: Arc<dyn ObjectStore>, scope: &str) -> Self {
        Self {
            cache,
            store,
            scope: scope.into(),
        }
    }

    fn object(&self, location: &Path) -> ObjectKey {
        ObjectKey {
            scope: Arc::clone(&self.scope),
            path: location.as_ref().into(),
        }
    }

    /// Size and identity of an object; asks the store if nobody did before.
    async fn identity(&self, location: &Path, object: &ObjectKey) -> Result<Arc<ObjectIdentity>> {
        if let Some(known) = self.cache.known(object) {
            return Ok(known);
        }
        let options = GetOptions::new().with_head(true);
        let identity = Arc::new(ObjectIdentity::of(
            &self.store.get_opts(location, options).await?.meta,
        ));
        self.cache.learn(object, Arc::clone(&identity));
        Ok(identity)
    }

    /// The bytes of `range`, as slices of blocks.
    async fn slices(
        &self,
        object: &ObjectKey,
        range: Range<u64>,
        tally: &Tally,
    ) -> Result<Vec<Bytes>> {
        let block_bytes = self.cache.block_bytes();
        let wanted = wanted(std::slice::from_ref(&range), block_bytes);
        let blocks = self.cache.read(&self.store, object, &wanted, tally).await?;
        wanted
            .keys()
            .map(|&index| slice(object, &blocks, index, &range, block_bytes))
            .collect()
    }

    /// A range read in windows of one remote request's length, so that a long one is not held in memory
    /// as a whole.
    fn stream(
        &self,
        object: ObjectKey,
        range: Range<u64>,
        tally: Tally,
    ) -> BoxStream<'static, Result<Bytes>> {
        let window = self.cache.longest_run() * self.cache.block_bytes();
        let first = range.start / window;
        let last = range.end.div_ceil(window);
        let this = self.clone();
        futures::stream::iter(first..last)
            .map(move |i| {
                let (this, object, tally) = (this.clone(), object.clone(), tally.clone());
                let part = range.start.max(i * window)..range.end.min((i + 1) * window);
                async move {
                    let slices = this.slices(&object, part, &tally).await?;
                    Ok::<_, object_store::Error>(futures::stream::iter(slices.into_iter().map(Ok)))
                }
            })
            .buffered(WINDOWS_AHEAD)
            .try_flatten()
            .boxed()
    }

    /// Forgets an object that is about to change; `before` is what [`CachedStore::size_before`] found.
    fn forget(&self, location: &Path, before: u64) {
        let object = self.object(location);
        let known = self
            .cache
            .known(&object)
            .map_or(0, |identity| identity.size);
        self.cache.forget(&object, known.max(before));
    }

    /// Bytes of the object that a write will replace: its blocks can only be found by counting them.
    async fn size_before(&self, location: &Path) -> u64 {
        match self.identity(location, &self.object(location)).await {
            Ok(identity) => identity.size,
            Err(_) => 0,
        }
    }
}

/// The part of `range` in block `index`, as a slice of it.
fn slice(
    object: &ObjectKey,
    blocks: &BTreeMap<u64, Block>,
    index: u64,
    range: &Range<u64>,
    block_bytes: u64,
) -> Result<Bytes> {
    let within = within(range, index, block_bytes);
    match blocks.get(&index) {
        Some(block) if within.end <= block.bytes.len() => Ok(block.bytes.slice(within)),
        _ => Err(CacheError::OutOfRange {
            path: object.path.to_string(),
            size: blocks.values().next().map_or(0, |block| block.object.size),
            start: range.start,
            end: range.end,
        }
        .into()),
    }
}

/// Slices of adjacent blocks as one buffer; a range within one block is not copied.
fn join(mut slices: Vec<Bytes>) -> Bytes {
    if slices.len() == 1
        && let Some(only) = slices.pop()
    {
        return only;
    }
    let mut joined = BytesMut::with_capacity(slices.iter().map(Bytes::len).sum());
    for slice in slices {
        joined.extend_from_slice(&slice);
    }
    joined.freeze()
}

fn bad_range(
    location: &Path,
    e: impl std::error::Error + Send + Sync + 'static,
) -> object_store::Error {
    CacheError::Remote {
        path: location.to_string(),
        source: Arc::new(object_store::Error::Generic {
            store: "DataCache",
            source: Box::new(e),
        }),
    }
    .into()
}

#[async_trait]
impl ObjectStore for CachedStore {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let conditional = options.if_match.is_some()
            || options.if_none_match.is_some()
            || options.if_modified_since.is_some()
            || options.if_unmodified_since.is_some()
            || options.version.is_some();
        if conditional {
            return self.store.get_opts(location, options).await;
        }
        let object = self.object(location);
        if options.head {
            let identity = self.identity(location, &object).await?;
            return Ok(GetResult {
                payload: GetResultPayload::Stream(futures::stream::empty().boxed()),
                meta: identity.meta(location),
                range: 0..identity.size,
                attributes: Attributes::default(),
            });
        }

        let reader = options.extensions.get::<Arc<ReadCounters>>().cloned();
        let tally = self.cache.tally(reader.or_else(ReadCounters::current));
        let block_bytes = self.cache.block_bytes();
        let window = self.cache.longest_run() * block_bytes;

        // A bounded range needs no HEAD: the first blocks come with the size of the object.
        if let Some(GetRange::Bounded(range)) = &options.range
            && self.cache.known(&object).is_none()
        {
            GetRange::Bounded(range.clone())
                .is_valid()
                .map_err(|e| bad_range(location, e))?;
            let first = range.start..range.end.min(range.start + window);
            let wanted = wanted(std::slice::from_ref(&first), block_bytes);
            let blocks = self
                .cache
                .read(&self.store, &object, &wanted, &tally)
                .await?;
            if let Some(block) = blocks.values().next() {
                self.cache.learn(&object, Arc::clone(&block.object));
                let identity = Arc::clone(&block.object);
                let range = GetRange::Bounded(range.clone())
                    .as_range(identity.size)
                    .map_err(|e| bad_range(location, e))?;
                return self
                    .serve(location, object, identity, range, Some(blocks), tally)
                    .await;
            }
        }
        let identity = self.identity(location, &object).await?;
        let range = match &options.range {
            Some(range) => range
                .as_range(identity.size)
                .map_err(|e| bad_range(location, e))?,
            None => 0..identity.size,
        };
        self.serve(location, object, identity, range, None, tally)
            .await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        for range in ranges {
            GetRange::Bounded(range.clone())
                .is_valid()
                .map_err(|e| bad_range(location, e))?;
        }
        let object = self.object(location);
        if let Some(known) = self.cache.known(&object)
            && let Some(range) = ranges.iter().find(|range| range.end > known.size)
        {
            return Err(CacheError::OutOfRange {
                path: object.path.to_string(),
                size: known.size,
                start: range.start,
                end: range.end,
            }
            .into());
        }
        let tally = self.cache.tally(ReadCounters::current());
        let block_bytes = self.cache.block_bytes();
        let wanted = wanted(ranges, block_bytes);
        let blocks = self
            .cache
            .read(&self.store, &object, &wanted, &tally)
            .await?;
        ranges
            .iter()
            .map(|range| {
                blocks_of(range, block_bytes)
                    .map(|index| slice(&object, &blocks, index, range, block_bytes))
                    .collect::<Result<Vec<_>>>()
                    .map(join)
            })
            .collect()
    }

    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        let before = self.size_before(location).await;
        let result = self.store.put_opts(location, payload, opts).await;
        // Whether it failed or not: it may have been written all the same.
        self.forget(location, before);
        result
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let before = self.size_before(location).await;
        Ok(Box::new(Upload {
            inner: self.store.put_multipart_opts(location, opts).await?,
            store: self.clone(),
            location: location.clone(),
            before,
        }))
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        let forgetting = locations
            .map(move |location| {
                let this = this.clone();
                async move {
                    let location = location?;
                    let before = this.size_before(&location).await;
                    this.forget(&location, before);
                    Ok(location)
                }
            })
            .buffered(HEADS_AT_ONCE)
            .boxed();
        self.store.delete_stream(forgetting)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.store.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.store.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let before = self.size_before(to).await;
        let result = self.store.copy_opts(from, to, options).await;
        self.forget(to, before);
        result
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        let (source, target) = (self.size_before(from).await, self.size_before(to).await);
        let result = self.store.rename_opts(from, to, options).await;
        self.forget(from, source);
        self.forget(to, target);
        result
    }
}

impl CachedStore {
    /// Answers a read of `range`. `read` are blocks at its start that were read already.
    async fn serve(
        &self,
        location: &Path,
        object: ObjectKey,
        identity: Arc<ObjectIdentity>,
        range: Range<u64>,
        read: Option<BTreeMap<u64, Block>>,
        tally: Tally,
    ) -> Result<GetResult> {
        let block_bytes = self.cache.block_bytes();
        let window = self.cache.longest_run() * block_bytes;
        let payload = match read {
            Some(blocks) => {
                let covered = blocks
                    .keys()
                    .next_back()
                    .map_or(range.start, |last| (last + 1) * block_bytes);
                let head = range.start..range.end.min(covered);
                let slices = blocks_of(&head, block_bytes)
                    .map(|index| slice(&object, &blocks, index, &head, block_bytes))
                    .collect::<Result<Vec<_>>>()?;
                let head_stream = futures::stream::iter(slices.into_iter().map(Ok));
                if head.end < range.end {
                    let rest = self.stream(object, head.end..range.end, tally);
                    head_stream.chain(rest).boxed()
                } else {
                    head_stream.boxed()
                }
            }
            None if range.end - range.start <= window => {
                // Errors of a short read belong to the call, not to its stream.
                let slices = self.slices(&object, range.clone(), &tally).await?;
                futures::stream::iter(slices.into_iter().map(Ok)).boxed()
            }
            None => self.stream(object, range.clone(), tally),
        };
        Ok(GetResult {
            payload: GetResultPayload::Stream(payload),
            meta: identity.meta(location),
            range,
            attributes: Attributes::default(),
        })
    }
}

/// A multipart upload that forgets the object it replaces once it is complete.
struct Upload {
    inner: Box<dyn MultipartUpload>,
    store: CachedStore,
    location: Path,
    before: u64,
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let result = self.inner.complete().await;
        self.store.forget(&self.location, self.before);
        result
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload")
            .field("location", &self.location)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for CachedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedStore")
            .field("scope", &self.scope)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for CachedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataCache({})", self.store)
    }
}
