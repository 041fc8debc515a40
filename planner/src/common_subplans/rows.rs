//! The rows of a shared part: computed when they are first asked for, in memory while that lasts, on disk from there.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::record_batch::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::disk_manager::RefCountedTempFile;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::spill::{SpillManager, get_record_batch_memory_size};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, StreamExt};

type Collecting = Shared<BoxFuture<'static, Result<Arc<Collected>, Arc<DataFusionError>>>>;

/// What all places of one number read.
#[derive(Default)]
pub(super) struct SharedRows {
    started: Mutex<Option<Started>>,
}

/// Dropped, it ends the tasks that collect.
struct Started {
    layout: String,
    partitions: Vec<Collecting>,
}

impl fmt::Debug for SharedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedRows")
    }
}

impl SharedRows {
    /// A partition of the rows, by running `input` unless its like runs already. All partitions are collected at once, whole:
    /// nobody waits for a reader that is slower or left.
    pub(super) async fn read(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream> {
        let collecting = {
            let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
            if started.is_none() {
                *started = Some(start(input, &context, metrics)?);
            }
            started
                .as_ref()
                .filter(|started| started.layout == layout(input))
                .and_then(|started| started.partitions.get(partition).cloned())
        };
        match collecting {
            Some(collecting) => {
                let collected = collecting.await.map_err(DataFusionError::Shared)?;
                collected.read()
            }
            // A rule laid this place's rows out otherwise.
            None => input.execute(partition, context),
        }
    }
}

/// How rows are spread over partitions and ordered there.
fn layout(input: &Arc<dyn ExecutionPlan>) -> String {
    format!(
        "{:?} {:?}",
        input.output_partitioning(),
        input.output_ordering()
    )
}

fn start(
    input: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
    metrics: &ExecutionPlanMetricsSet,
) -> Result<Started> {
    let partitions = (0..input.output_partitioning().partition_count())
        .map(|partition| {
            let stream = input.execute(partition, Arc::clone(context))?;
            let spills = SpillManager::new(
                context.runtime_env(),
                SpillMetrics::new(metrics, partition),
                input.schema(),
            );
            let memory = MemoryConsumer::new(format!("SharedSubplan[{partition}]"))
                .with_can_spill(true)
                .register(context.memory_pool());
            let task = SpawnedTask::spawn(collect(stream, spills, memory));
            let collecting = async move {
                let collected = task
                    .join_unwind()
                    .await
                    .map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)));
                collected.flatten().map(Arc::new).map_err(Arc::new)
            };
            Ok(collecting.boxed().shared())
        })
        .collect::<Result<_>>()?;
    Ok(Started {
        layout: layout(input),
        partitions,
    })
}

/// One partition's rows.
struct Collected {
    spills: SpillManager,
    batches: Vec<RecordBatch>,
    /// All of the rows, instead of `batches`.
    file: Option<RefCountedTempFile>,
    _memory: MemoryReservation,
}

async fn collect(
    mut stream: SendableRecordBatchStream,
    spills: SpillManager,
    memory: MemoryReservation,
) -> Result<Collected> {
    let mut batches: Vec<RecordBatch> = Vec::new();
    let mut spilled = None;
    while let Some(batch) = stream.next().await.transpose()? {
        if spilled.is_none() {
            if memory
                .try_grow(get_record_batch_memory_size(&batch))
                .is_ok()
            {
                batches.push(batch);
                continue;
            }
            let mut file = spills.create_in_progress_file("shared subplan")?;
            for batch in batches.drain(..) {
                file.append_batch(&batch)?;
            }
            memory.free();
            spilled = Some(file);
        }
        if let Some(file) = &mut spilled {
            file.append_batch(&batch)?;
        }
    }
    let file = match &mut spilled {
        Some(file) => file.finish()?,
        None => None,
    };
    Ok(Collected {
        spills,
        batches,
        file,
        _memory: memory,
    })
}

impl Collected {
    fn read(self: Arc<Self>) -> Result<SendableRecordBatchStream> {
        if let Some(file) = &self.file {
            return self.spills.read_spill_as_stream(file.clone(), None);
        }
        let schema = Arc::clone(self.spills.schema());
        let batches = (0..self.batches.len()).map(move |i| Ok(self.batches[i].clone()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            schema,
            futures::stream::iter(batches),
        )))
    }
}
