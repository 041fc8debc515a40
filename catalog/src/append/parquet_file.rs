//! One data file being written: a task that encodes row groups as they come and uploads their bytes.

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef as ArrowSchemaRef;
use bytes::Bytes;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, SchemaRef, Struct,
};
use object_store::ObjectStore;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use parking_lot::Mutex;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::TypePtr;
use tokio::io::AsyncWriteExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::metrics::{count_nans, file_metrics};
use super::properties::FileLayout;
use crate::error::{CatalogError, Result};
use crate::storage::{location_to_path, root_cause, store_error};

/// Bytes gathered before a part is uploaded.
const PART_BYTES: usize = 8 * 1024 * 1024;

/// Threads that encode for one append, at most.
const MAX_ENCODERS: usize = 16;

/// What all files of one append share.
#[derive(Debug)]
pub(crate) struct FileKind {
    pub(crate) layout: FileLayout,
    pub(crate) schema: SchemaRef,
    pub(crate) arrow_schema: ArrowSchemaRef,
    pub(crate) parquet_schema: TypePtr,
    pub(crate) partition_spec_id: i32,
    /// The order that the rows of each file come in, if it is one of the table's.
    pub(crate) sort_order_id: Option<i32>,
    pub(crate) store: Arc<dyn ObjectStore>,
    /// Held by each thread that encodes, so that many open files do not take more threads than there are cores.
    pub(crate) encoders: Arc<Semaphore>,
}

/// Threads that encode for one append.
pub(crate) fn encoder_threads() -> usize {
    std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MAX_ENCODERS)
}

/// Rows of one row group, and the share of memory that they hold until they are encoded.
pub(crate) struct RowGroup {
    pub(crate) batches: Vec<RecordBatch>,
    pub(crate) _memory: OwnedSemaphorePermit,
}

enum Message {
    RowGroup(RowGroup),
    /// No more rows. A channel that closes without this one is an abort.
    Finish,
}

/// A file that is being written. Dropped, it is abandoned: the upload is aborted.
pub(crate) struct OpenFile {
    sender: mpsc::Sender<Message>,
    task: JoinHandle<Result<Option<DataFile>>>,
    written: Arc<AtomicU64>,
    /// Bytes of Arrow data sent.
    pub(crate) arrow_bytes: u64,
}

/// A file that takes no more rows.
pub(crate) struct FinishingFile {
    task: JoinHandle<Result<Option<DataFile>>>,
}

impl OpenFile {
    pub(crate) fn create(kind: Arc<FileKind>, location: String, partition: Struct) -> Result<Self> {
        let path = location_to_path(&location)?;
        // One row group waits while one is encoded.
        let (sender, receiver) = mpsc::channel(1);
        let written = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn(run(
            kind,
            path,
            location,
            partition,
            receiver,
            written.clone(),
        ));
        Ok(Self {
            sender,
            task,
            written,
            arrow_bytes: 0,
        })
    }

    /// Bytes on disk so far; behind by what is being encoded.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Hands over rows. `false` if the task has failed; its error comes from [`finish`](Self::finish).
    pub(crate) async fn send(&mut self, rows: RowGroup, arrow_bytes: u64) -> bool {
        self.arrow_bytes += arrow_bytes;
        self.sender.send(Message::RowGroup(rows)).await.is_ok()
    }

    pub(crate) async fn finish(self) -> FinishingFile {
        // If the task has failed there is nobody to tell, and `done` gives the error.
        let _ = self.sender.send(Message::Finish).await;
        FinishingFile { task: self.task }
    }

    /// Abandons the file; when the future ends, its task has too.
    pub(crate) async fn abandon(self) {
        drop(self.sender);
        let _ = self.task.await;
    }
}

impl FinishingFile {
    /// The file, once its bytes are in the store.
    pub(crate) async fn done(&mut self) -> Result<DataFile> {
        match (&mut self.task).await {
            Ok(Ok(Some(file))) => Ok(file),
            Ok(Ok(None)) => Err(CatalogError::Internal(
                "a data file was abandoned".to_string(),
            )),
            Ok(Err(error)) => Err(error),
            Err(error) => Err(CatalogError::Internal(format!(
                "the task that wrote a data file ended: {error}"
            ))),
        }
    }
}

async fn run(
    kind: Arc<FileKind>,
    path: Path,
    location: String,
    partition: Struct,
    mut receiver: mpsc::Receiver<Message>,
    written: Arc<AtomicU64>,
) -> Result<Option<DataFile>> {
    let mut upload = BufWriter::with_capacity(kind.store.clone(), path, PART_BYTES);
    let mut file = match Encoder::new(kind.clone()) {
        Ok(file) => file,
        Err(error) => return Err(encoding_error(&location, &error)),
    };
    let encoded = async {
        loop {
            match receiver.recv().await {
                None => return Ok(false),
                Some(Message::Finish) => break,
                Some(Message::RowGroup(rows)) => {
                    file.row_group(rows)
                        .await
                        .map_err(|e| encoding_error(&location, &e))?;
                    let bytes = file.take_bytes();
                    written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                    upload
                        .put(bytes)
                        .await
                        .map_err(|e| store_error("write", &location, &e))?;
                }
            }
        }
        file.finish().map_err(|e| encoding_error(&location, &e))?;
        let bytes = file.take_bytes();
        written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        upload
            .put(bytes)
            .await
            .map_err(|e| store_error("write", &location, &e))?;
        Ok(true)
    };
    match encoded.await {
        Ok(true) => {
            upload.shutdown().await.map_err(|e| CatalogError::Store {
                action: "write",
                location: location.clone(),
                reason: root_cause(&e),
            })?;
            Ok(Some(file.data_file(
                location,
                partition,
                written.load(Ordering::Relaxed),
            )?))
        }
        outcome => {
            // Parts that were uploaded would be kept, and paid for, without this.
            if let Err(error) = upload.abort().await {
                tracing::warn!(location, %error, "could not abort an upload");
            }
            outcome.map(|_| None)
        }
    }
}

fn encoding_error(location: &str, error: &ParquetError) -> CatalogError {
    CatalogError::Store {
        action: "encode",
        location: location.to_string(),
        reason: root_cause(error),
    }
}

/// Takes what Parquet writes, until it is uploaded.
#[derive(Debug, Clone, Default)]
struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Encoder {
    kind: Arc<FileKind>,
    buffer: SharedBuffer,
    writer: SerializedFileWriter<SharedBuffer>,
    factory: Arc<ArrowRowGroupWriterFactory>,
    row_groups: usize,
    nans: HashMap<i32, u64>,
    footer: Option<parquet::file::metadata::ParquetMetaData>,
}

impl Encoder {
    fn new(kind: Arc<FileKind>) -> Result<Self, ParquetError> {
        let buffer = SharedBuffer::default();
        let writer = SerializedFileWriter::new(
            buffer.clone(),
            kind.parquet_schema.clone(),
            kind.layout.parquet.clone(),
        )?;
        let factory = Arc::new(ArrowRowGroupWriterFactory::new(
            &writer,
            kind.arrow_schema.clone(),
        ));
        Ok(Self {
            kind,
            buffer,
            writer,
            factory,
            row_groups: 0,
            nans: HashMap::new(),
            footer: None,
        })
    }

    fn take_bytes(&mut self) -> Bytes {
        std::mem::take(&mut *self.buffer.0.lock()).into()
    }

    /// Encodes the columns in parallel, then puts their chunks one after the other into the file.
    async fn row_group(&mut self, rows: RowGroup) -> Result<(), ParquetError> {
        let columns = self.encode(rows).await?;
        let mut group = self.writer.next_row_group()?;
        for column in columns {
            for chunk in column.chunks {
                chunk.append_to_row_group(&mut group)?;
            }
            for (id, count) in column.nans {
                *self.nans.entry(id).or_default() += count;
            }
        }
        group.close()?;
        self.row_groups += 1;
        Ok(())
    }

    async fn encode(&self, rows: RowGroup) -> Result<Vec<EncodedColumn>, ParquetError> {
        let mut writers = self
            .factory
            .create_column_writers(self.row_groups)?
            .into_iter();
        let descriptor = self.writer.schema_descr();
        let mut leaves = vec![0usize; self.kind.arrow_schema.fields().len()];
        for leaf in 0..descriptor.num_columns() {
            leaves[descriptor.get_column_root_idx(leaf)] += 1;
        }
        let jobs: VecDeque<Job> = leaves
            .iter()
            .enumerate()
            .map(|(column, count)| Job {
                column,
                writers: writers.by_ref().take(*count).collect(),
            })
            .collect();
        let threads = encoder_threads().min(jobs.len());
        let jobs = Arc::new(Mutex::new(jobs));
        let rows = Arc::new(rows);
        let tasks: Vec<_> = (0..threads)
            .map(|_| {
                let (jobs, rows, kind) = (jobs.clone(), rows.clone(), self.kind.clone());
                tokio::spawn(async move {
                    let permit = kind.encoders.clone().acquire_owned().await;
                    let encoded = tokio::task::spawn_blocking(move || {
                        let _permit = permit;
                        let mut done = Vec::new();
                        loop {
                            let Some(job) = jobs.lock().pop_front() else {
                                return Ok(done);
                            };
                            done.push(job.encode(&kind.arrow_schema, &rows.batches)?);
                        }
                    });
                    encoded
                        .await
                        .map_err(|e| ParquetError::General(format!("the encoder stopped: {e}")))?
                })
            })
            .collect();
        drop(rows);
        let mut columns = Vec::with_capacity(leaves.len());
        for task in tasks {
            let done: Result<Vec<EncodedColumn>, ParquetError> = task
                .await
                .map_err(|e| ParquetError::General(format!("the encoder stopped: {e}")))?;
            columns.extend(done?);
        }
        columns.sort_by_key(|column| column.column);
        Ok(columns)
    }

    fn finish(&mut self) -> Result<(), ParquetError> {
        self.footer = Some(self.writer.finish()?);
        Ok(())
    }

    fn data_file(self, location: String, partition: Struct, bytes: u64) -> Result<DataFile> {
        let Some(footer) = self.footer else {
            return Err(CatalogError::Internal(
                "a data file was not finished".to_string(),
            ));
        };
        let metrics = file_metrics(
            &self.kind.schema,
            &self.kind.layout.metrics,
            &footer,
            &self.nans,
        );
        let mut file = DataFileBuilder::default();
        if let Some(order) = self.kind.sort_order_id {
            file.sort_order_id(order);
        }
        file.content(DataContentType::Data)
            .file_path(location)
            .file_format(DataFileFormat::Parquet)
            .partition(partition)
            .partition_spec_id(self.kind.partition_spec_id)
            .record_count(footer.file_metadata().num_rows() as u64)
            .file_size_in_bytes(bytes)
            .column_sizes(metrics.column_sizes)
            .value_counts(metrics.value_counts)
            .null_value_counts(metrics.null_value_counts)
            .nan_value_counts(metrics.nan_value_counts)
            .lower_bounds(metrics.lower_bounds)
            .upper_bounds(metrics.upper_bounds)
            .split_offsets(Some(metrics.split_offsets))
            .build()
            .map_err(|e| CatalogError::Internal(format!("a data file is incomplete: {e}")))
    }
}

/// One column of a row group to encode.
struct Job {
    column: usize,
    /// One for each leaf of a nested column.
    writers: Vec<ArrowColumnWriter>,
}

struct EncodedColumn {
    column: usize,
    chunks: Vec<ArrowColumnChunk>,
    nans: HashMap<i32, u64>,
}

impl Job {
    fn encode(
        mut self,
        schema: &ArrowSchemaRef,
        batches: &[RecordBatch],
    ) -> Result<EncodedColumn, ParquetError> {
        let field = schema.field(self.column);
        let mut nans = HashMap::new();
        for batch in batches {
            let array = batch.column(self.column);
            count_nans(field, array, &mut nans);
            for (writer, leaf) in self.writers.iter_mut().zip(compute_leaves(field, array)?) {
                writer.write(&leaf)?;
            }
        }
        let chunks = self
            .writers
            .into_iter()
            .map(ArrowColumnWriter::close)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(EncodedColumn {
            column: self.column,
            chunks,
            nans,
        })
    }
}
