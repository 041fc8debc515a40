//! Rows on their way into files, one lane for each partition.
//!
//! Each lane gathers rows until they make a row group. Over all lanes a bounded amount waits: when it is reached, the
//! fullest lane gives its rows to its file. Only so many files are open; when one more is needed, the one that waited
//! longest is ended. So a few partitions make a few well-filled files, however their rows are mixed, and very many
//! partitions make more and smaller files instead of taking more memory.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use iceberg::spec::DataFile;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::parquet_file::{FileKind, FinishingFile, OpenFile, RowGroup};
use super::partition::{Partition, PartitionIndex};
use super::properties::WriteOptions;
use crate::error::{CatalogError, Result};

/// Memory is shared out in pieces of this size.
const MEMORY_UNIT: u64 = 64 * 1024;

/// See the module.
pub(crate) struct Lanes {
    kind: Arc<FileKind>,
    options: WriteOptions,
    lanes: Vec<Lane>,
    /// Bytes that wait in all lanes.
    waiting_bytes: u64,
    open_files: usize,
    finishing: VecDeque<FinishingFile>,
    /// Memory for rows that are being encoded.
    memory: Arc<Semaphore>,
    memory_units: u32,
    write_id: Uuid,
    files_begun: usize,
    /// Every file begun, for whoever must delete them.
    locations: Arc<Mutex<Vec<String>>>,
    clock: u64,
}

struct Lane {
    partition: Partition,
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: u64,
    file: Option<OpenFile>,
    /// When the file last took rows.
    used: u64,
}

impl Lanes {
    pub(crate) fn new(kind: Arc<FileKind>, options: WriteOptions) -> Self {
        let memory_units =
            (options.buffer_bytes / MEMORY_UNIT).clamp(1, u64::from(u32::MAX >> 3)) as u32;
        Self {
            kind,
            options,
            lanes: Vec::new(),
            waiting_bytes: 0,
            open_files: 0,
            finishing: VecDeque::new(),
            memory: Arc::new(Semaphore::new(memory_units as usize)),
            memory_units,
            write_id: Uuid::now_v7(),
            files_begun: 0,
            locations: Arc::default(),
            clock: 0,
        }
    }

    /// Every file that was begun, kept up to date.
    pub(crate) fn locations(&self) -> Arc<Mutex<Vec<String>>> {
        self.locations.clone()
    }

    /// How many lanes there are; lane numbers are partition numbers.
    pub(crate) fn len(&self) -> usize {
        self.lanes.len()
    }

    pub(crate) fn add(&mut self, partition: Partition) {
        self.lanes.push(Lane {
            partition,
            batches: Vec::new(),
            rows: 0,
            bytes: 0,
            file: None,
            used: 0,
        });
    }

    /// Takes rows of one partition.
    pub(crate) async fn push(&mut self, index: PartitionIndex, batch: RecordBatch) -> Result<()> {
        let layout = &self.kind.layout;
        let (group_rows, group_bytes) = (layout.row_group_rows, layout.row_group_bytes);
        // A batch larger than a row group is cut; one that is larger than its rows need (a slice) counts as its rows.
        let row_bytes = (sliced_bytes(&batch) / batch.num_rows().max(1) as u64).max(1);
        let mut start = 0;
        while start < batch.num_rows() {
            let lane = &mut self.lanes[index];
            let room_rows = group_rows - lane.rows;
            let room_bytes = (group_bytes.saturating_sub(lane.bytes) / row_bytes).max(1);
            let rows = room_rows
                .min(room_bytes as usize)
                .min(batch.num_rows() - start);
            let bytes = row_bytes * rows as u64;
            lane.batches.push(batch.slice(start, rows));
            lane.rows += rows;
            lane.bytes += bytes;
            self.waiting_bytes += bytes;
            start += rows;
            if lane.rows >= group_rows || lane.bytes >= group_bytes {
                self.flush(index).await?;
            }
        }
        while self.waiting_bytes > self.options.buffer_bytes {
            let fullest = (0..self.lanes.len()).max_by_key(|lane| self.lanes[*lane].bytes);
            let Some(fullest) = fullest else { break };
            self.flush(fullest).await?;
        }
        Ok(())
    }

    /// Gives a lane's rows to its file, as one row group.
    async fn flush(&mut self, index: PartitionIndex) -> Result<()> {
        if self.lanes[index].rows == 0 {
            return Ok(());
        }
        if self.lanes[index].file.is_none() {
            self.open(index).await?;
        }
        self.clock += 1;
        let lane = &mut self.lanes[index];
        lane.used = self.clock;
        let batches = std::mem::take(&mut lane.batches);
        let bytes = std::mem::take(&mut lane.bytes);
        lane.rows = 0;
        self.waiting_bytes -= bytes;
        let units = (bytes / MEMORY_UNIT).clamp(1, u64::from(self.memory_units)) as u32;
        let memory = self.memory.clone().acquire_many_owned(units).await;
        let memory = memory
            .map_err(|_| CatalogError::Internal("memory of an append is closed".to_string()))?;

        let Some(file) = lane.file.as_mut() else {
            return Err(CatalogError::Internal("a lane has no file".to_string()));
        };
        let sent = file
            .send(
                RowGroup {
                    batches,
                    _memory: memory,
                },
                bytes,
            )
            .await;
        let full = file.arrow_bytes >= self.options.target_file_bytes
            || file.written() >= self.kind.layout.file_bytes;
        if !sent {
            return Err(self.failure(index).await);
        }
        if full {
            self.end(index).await;
        }
        Ok(())
    }

    async fn open(&mut self, index: PartitionIndex) -> Result<()> {
        if self.open_files >= self.options.max_open_files.max(1) {
            let oldest = (0..self.lanes.len())
                .filter(|lane| self.lanes[*lane].file.is_some())
                .min_by_key(|lane| self.lanes[*lane].used);
            if let Some(oldest) = oldest {
                self.end(oldest).await;
            }
        }
        let partition = &self.lanes[index].partition;
        let directory = match partition.path.as_str() {
            "" => self.kind.layout.data_location.clone(),
            path => format!("{}/{path}", self.kind.layout.data_location),
        };
        let location = format!(
            "{directory}/{:05}-{}.parquet",
            self.files_begun, self.write_id
        );
        let file = OpenFile::create(
            self.kind.clone(),
            location.clone(),
            partition.values.clone(),
        )?;
        self.locations.lock().push(location);
        self.files_begun += 1;
        self.open_files += 1;
        self.lanes[index].file = Some(file);
        Ok(())
    }

    /// Ends a lane's file; its bytes go on being uploaded.
    async fn end(&mut self, index: PartitionIndex) {
        if let Some(file) = self.lanes[index].file.take() {
            self.open_files -= 1;
            let file = file.finish().await;
            self.finishing.push_back(file);
        }
    }

    /// Why a lane's task is gone.
    async fn failure(&mut self, index: PartitionIndex) -> CatalogError {
        let Some(file) = self.lanes[index].file.take() else {
            return CatalogError::Internal("a data file failed without a reason".to_string());
        };
        self.open_files -= 1;
        let mut file = file.finish().await;
        match file.done().await {
            Err(error) => error,
            Ok(_) => CatalogError::Internal("a data file was finished early".to_string()),
        }
    }

    /// Writes out what waits and ends all files.
    pub(crate) async fn finish(&mut self) -> Result<Vec<DataFile>> {
        for index in 0..self.lanes.len() {
            self.flush(index).await?;
            self.end(index).await;
        }
        let mut files = Vec::with_capacity(self.finishing.len());
        let mut failure = None;
        // All of them, even after a failure: no task may write after the files have been deleted.
        // Each stays in the queue until it is done, for `abandon` to find if the caller goes away meanwhile.
        while let Some(file) = self.finishing.front_mut() {
            match file.done().await {
                Ok(file) => files.push(file),
                Err(error) => failure = failure.or(Some(error)),
            }
            self.finishing.pop_front();
        }
        match failure {
            Some(error) => Err(error),
            None => Ok(files),
        }
    }

    /// Stops all tasks and tells which files may be there.
    pub(crate) async fn abandon(mut self) -> Vec<String> {
        for lane in &mut self.lanes {
            if let Some(file) = lane.file.take() {
                file.abandon().await;
            }
        }
        for file in &mut self.finishing {
            // It will be deleted; whether it was finished does not matter.
            let _ = file.done().await;
        }
        std::mem::take(&mut self.locations.lock())
    }
}

/// The bytes of the rows themselves, not of the buffers that they may be slices of.
fn sliced_bytes(batch: &RecordBatch) -> u64 {
    batch
        .columns()
        .iter()
        .map(|column| {
            column
                .to_data()
                .get_slice_memory_size()
                .unwrap_or_else(|_| column.get_array_memory_size()) as u64
        })
        .sum()
}
