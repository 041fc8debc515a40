//! How the Parquet reader gets its bytes: footers from the cache, data through the scan's store, all of it counted.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::error::Result;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::{AsyncFileReader, MetadataFetch};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use tarn_cache::ReadCounters;

use super::file_columns::TableColumns;
use super::footers::{FooterCache, FooterKey};
use super::positions::{position_bytes, with_positions};
use crate::formats::FileBytes;
use crate::progress::QueryProgress;

/// Bytes at the end of a file that are read at once in the hope that they hold footer and page index. A round trip
/// to a remote store costs more than the bytes, a local one less.
const LOCAL_FOOTER_BYTES: usize = 64 << 10;
const REMOTE_FOOTER_BYTES: usize = 512 << 10;

/// Makes the readers of one partition of a scan; they share its counters.
pub(crate) struct ReaderFactory {
    pub(crate) source: Arc<ReadSource>,
    /// Whether its files are the scan's own, and not what is read beside them.
    pub(crate) counts_files: bool,
}

/// What all readers of one partition share.
pub(crate) struct ReadSource {
    store: Arc<dyn ObjectStore>,
    store_url: Arc<str>,
    remote: bool,
    footers: Arc<FooterCache>,
    columns: Arc<TableColumns>,
    metrics: ReadMetrics,
    progress: Option<Arc<QueryProgress>>,
}

/// The metrics of one partition, as they appear in `EXPLAIN ANALYZE` and the profile.
#[derive(Clone)]
struct ReadMetrics {
    files_opened: Count,
    bytes_scanned: Count,
    bytes_memory: Count,
    bytes_disk: Count,
    bytes_remote: Count,
    cache_hits_memory: Count,
    cache_hits_disk: Count,
    cache_misses: Count,
}

impl ReadMetrics {
    fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let counter = |name: &'static str| MetricBuilder::new(metrics).counter(name, partition);
        Self {
            // DataFusion counts those it was about to open by the shorter name.
            files_opened: counter("data_files_opened"),
            bytes_scanned: counter("bytes_scanned"),
            bytes_memory: counter("bytes_memory"),
            bytes_disk: counter("bytes_disk"),
            bytes_remote: counter("bytes_remote"),
            cache_hits_memory: counter("cache_hits_memory"),
            cache_hits_disk: counter("cache_hits_disk"),
            cache_misses: counter("cache_misses"),
        }
    }

    /// Adds what one read met, as soon as it is done: a task's metrics are sent off when its last row is.
    fn add(&self, read: &ReadCounters) {
        let read = read.snapshot();
        for (metric, value) in [
            (&self.bytes_memory, read.bytes_memory),
            (&self.bytes_disk, read.bytes_disk),
            (&self.bytes_remote, read.bytes_remote),
            (&self.cache_hits_memory, read.hits_memory + read.joined),
            (&self.cache_hits_disk, read.hits_disk),
            (&self.cache_misses, read.misses),
        ] {
            metric.add(value as usize);
        }
    }
}

impl ReadSource {
    #[allow(clippy::too_many_arguments)] // The parts of a scan, put together in one place.
    pub(crate) fn new(
        store: Arc<dyn ObjectStore>,
        store_url: Arc<str>,
        remote: bool,
        footers: Arc<FooterCache>,
        columns: Arc<TableColumns>,
        metrics: &ExecutionPlanMetricsSet,
        partition: usize,
        progress: Option<Arc<QueryProgress>>,
    ) -> Self {
        Self {
            store,
            store_url,
            remote,
            footers,
            columns,
            metrics: ReadMetrics::new(metrics, partition),
            progress,
        }
    }

    /// A source of the same bytes, whose footers are named after other columns.
    pub(crate) fn with_columns(&self, columns: Arc<TableColumns>) -> Self {
        Self {
            store: Arc::clone(&self.store),
            store_url: Arc::clone(&self.store_url),
            remote: self.remote,
            footers: Arc::clone(&self.footers),
            columns,
            metrics: self.metrics.clone(),
            progress: self.progress.clone(),
        }
    }

    pub(crate) fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// Names the store within the process.
    pub(crate) fn store_url(&self) -> &Arc<str> {
        &self.store_url
    }

    /// Counts a data file, or a part of one that is read by itself.
    pub(crate) fn count_file(&self) {
        self.metrics.files_opened.add(1);
    }

    fn count_bytes(&self, bytes: u64) {
        self.metrics.bytes_scanned.add(bytes as usize);
        if let Some(progress) = &self.progress {
            progress.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    pub(crate) async fn read(&self, path: &Path, range: Range<u64>) -> object_store::Result<Bytes> {
        self.count_bytes(range.end - range.start);
        if !self.remote {
            return self.store.get_range(path, range).await;
        }
        let counters = Arc::new(ReadCounters::default());
        let mut options = GetOptions::new().with_range(Some(range));
        options.extensions.insert(Arc::clone(&counters));
        let bytes = self.store.get_opts(path, options).await?.bytes().await;
        self.metrics.add(&counters);
        bytes
    }

    /// The footer of a Parquet file, with the names of this source's columns.
    pub(crate) async fn footer(
        self: &Arc<Self>,
        path: &Path,
        size: u64,
    ) -> ParquetResult<Arc<ParquetMetaData>> {
        let key = FooterKey {
            store: Arc::clone(&self.store_url),
            path: path.clone(),
            size,
            columns: self.columns.fingerprint(),
        };
        let source = Arc::clone(self);
        let path = path.clone();
        self.footers
            .get_or_load(key, async move {
                let hint = if source.remote {
                    REMOTE_FOOTER_BYTES
                } else {
                    LOCAL_FOOTER_BYTES
                };
                // The page index comes along even when it is not asked for: the footer is kept, and the next
                // query may have a filter.
                let footer = ParquetMetaDataReader::new()
                    .with_page_index_policy(PageIndexPolicy::Optional)
                    .with_prefetch_hint(Some(hint))
                    .load_and_finish(
                        FooterFetch {
                            source: &source,
                            path: &path,
                        },
                        size,
                    )
                    .await?;
                let footer = source.columns.name_columns(footer)?;
                match source.columns.has_positions() {
                    true => with_positions(footer, size),
                    false => Ok(footer),
                }
            })
            .await
    }

    async fn read_many(
        &self,
        path: &Path,
        ranges: &[Range<u64>],
    ) -> object_store::Result<Vec<Bytes>> {
        self.count_bytes(ranges.iter().map(|r| r.end - r.start).sum());
        if !self.remote {
            return self.store.get_ranges(path, ranges).await;
        }
        let counters = Arc::new(ReadCounters::default());
        let bytes = counters.count(self.store.get_ranges(path, ranges)).await;
        self.metrics.add(&counters);
        bytes
    }
}

impl fmt::Debug for ReaderFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderFactory")
            .field("store", &self.source.store_url)
            .finish_non_exhaustive()
    }
}

impl ParquetFileReaderFactory for ReaderFactory {
    fn create_reader(
        &self,
        _partition_index: usize,
        file: PartitionedFile,
        _metadata_size_hint: Option<usize>,
        _metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        Ok(Box::new(Reader {
            source: Arc::clone(&self.source),
            path: file.object_meta.location,
            size: file.object_meta.size,
            counted: !self.counts_files,
        }))
    }
}

/// Reads one file.
struct Reader {
    source: Arc<ReadSource>,
    path: Path,
    size: u64,
    counted: bool,
}

impl Reader {
    /// Whether bytes are of the column of positions, which no file holds.
    fn is_made(&self, range: &Range<u64>) -> bool {
        self.source.columns.has_positions() && range.start >= self.size
    }

    fn footer(&self) -> BoxFuture<'static, ParquetResult<Arc<ParquetMetaData>>> {
        let source = Arc::clone(&self.source);
        let (path, size) = (self.path.clone(), self.size);
        async move { source.footer(&path, size).await }.boxed()
    }
}

impl AsyncFileReader for Reader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move {
            if self.is_made(&range) {
                return position_bytes(self.footer().await?.as_ref(), &range);
            }
            self.source
                .read(&self.path, range)
                .await
                .map_err(store_error)
        }
        .boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        async move {
            let (made, stored): (Vec<_>, Vec<_>) = ranges
                .iter()
                .cloned()
                .partition(|range| self.is_made(range));
            let mut stored = self
                .source
                .read_many(&self.path, &stored)
                .await
                .map_err(store_error)?
                .into_iter();
            if made.is_empty() {
                return Ok(stored.collect());
            }
            let footer = self.footer().await?;
            ranges
                .iter()
                .map(|range| match self.is_made(range) {
                    true => position_bytes(&footer, range),
                    false => stored
                        .next()
                        .ok_or_else(|| ParquetError::EOF(format!("bytes {range:?} are missing"))),
                })
                .collect()
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        // A reader is made before it is known whether the file is opened.
        if !std::mem::replace(&mut self.counted, true) {
            self.source.count_file();
        }
        self.footer()
    }
}

/// The ranges of a file that hold its footer.
struct FooterFetch<'a> {
    source: &'a ReadSource,
    path: &'a Path,
}

impl MetadataFetch for FooterFetch<'_> {
    fn fetch(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move {
            self.source
                .read(self.path, range)
                .await
                .map_err(store_error)
        }
        .boxed()
    }
}

/// A file of another format, whose reads are counted as those of Parquet files are.
pub(crate) struct ScannedFile {
    source: Arc<ReadSource>,
    path: Path,
}

impl ScannedFile {
    pub(crate) fn new(source: Arc<ReadSource>, path: Path) -> Self {
        Self { source, path }
    }
}

#[async_trait]
impl FileBytes for ScannedFile {
    async fn read(&self, range: Range<u64>) -> object_store::Result<Bytes> {
        self.source.read(&self.path, range).await
    }

    async fn read_many(&self, ranges: &[Range<u64>]) -> object_store::Result<Vec<Bytes>> {
        self.source.read_many(&self.path, ranges).await
    }
}

fn store_error(error: object_store::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}
