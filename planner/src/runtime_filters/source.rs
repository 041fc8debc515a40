//! The end of a runtime filter at which keys are seen.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
};
use datafusion_distributed::DistributedTaskContext;
use futures::{StreamExt, stream};
use parking_lot::Mutex;

use super::FilterEnd;
use super::link::RuntimeFilterLink;
use super::summary::KeySummary;
use crate::pass_through::{filters_go_to_input, partitioned_as_input, sized_as_input};

/// Hands its rows on, and what it saw of their keys to the filter's other end once they are all there.
#[derive(Debug)]
pub(crate) struct RuntimeFilterSource {
    pub(super) end: FilterEnd,
    /// Bytes of hashes.
    pub(super) bloom_bytes: u32,
    /// The join above reads its partitions as they are, and needs nothing of one that it drops: neither do the rows that it
    /// would have been joined with.
    pub(super) in_place: bool,
    input: Arc<dyn ExecutionPlan>,
    gathered: Arc<Mutex<Gathered>>,
}

/// What the partitions of a task have in common.
#[derive(Debug)]
struct Gathered {
    /// Partitions that have not ended.
    open: usize,
    whole: KeySummary,
}

impl RuntimeFilterSource {
    pub(super) fn new(
        end: FilterEnd,
        bloom_bytes: u32,
        in_place: bool,
        input: Arc<dyn ExecutionPlan>,
    ) -> Self {
        let whole = KeySummary::new(bloom_bytes as usize, end.keys.len());
        let open = input.output_partitioning().partition_count();
        Self {
            end,
            bloom_bytes,
            in_place,
            input,
            gathered: Arc::new(Mutex::new(Gathered { open, whole })),
        }
    }
}

impl DisplayAs for RuntimeFilterSource {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "RuntimeFilterSource: {}", self.end)
    }
}

impl ExecutionPlan for RuntimeFilterSource {
    fn name(&self) -> &str {
        "RuntimeFilterSource"
    }

    partitioned_as_input!(input);
    sized_as_input!(input);
    filters_go_to_input!();

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match <[Arc<dyn ExecutionPlan>; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(Self::new(
                self.end.clone(),
                self.bloom_bytes,
                self.in_place,
                input,
            ))),
            Err(children) => internal_err!("a source has one input, not {}", children.len()),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let Some(link) = context
            .session_config()
            .get_extension::<RuntimeFilterLink>()
        else {
            return Ok(input);
        };
        let schema = input.schema();
        let seen = Seen {
            link,
            task: DistributedTaskContext::from_ctx(&context),
            end: self.end.clone(),
            part: Some(KeySummary::new(
                self.bloom_bytes as usize,
                self.end.keys.len(),
            )),
            in_place: self.in_place,
            gathered: Arc::clone(&self.gathered),
        };
        let rows = stream::unfold((input, seen), |(mut input, mut seen)| async move {
            let batch = match input.next().await {
                Some(Ok(batch)) => seen.see(&batch).map(|()| batch),
                Some(Err(error)) => Err(error),
                None => {
                    seen.end();
                    return None;
                }
            };
            Some((batch, (input, seen)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// What one partition has seen.
struct Seen {
    link: Arc<RuntimeFilterLink>,
    task: Arc<DistributedTaskContext>,
    end: FilterEnd,
    /// `None` once it is handed in.
    part: Option<KeySummary>,
    in_place: bool,
    gathered: Arc<Mutex<Gathered>>,
}

impl Drop for Seen {
    fn drop(&mut self) {
        if self.in_place {
            self.end();
        }
    }
}

impl Seen {
    fn see(&mut self, batch: &RecordBatch) -> Result<()> {
        match &mut self.part {
            Some(part) => part.see(&evaluated(&self.end.keys, batch)?),
            None => Ok(()),
        }
    }

    /// No more rows are wanted. A stream that fails or is dropped before its end hands nothing in, unless it is in place.
    fn end(&mut self) {
        let Some(part) = self.part.take() else {
            return;
        };
        let mut gathered = self.gathered.lock();
        if let Err(error) = gathered.whole.add(part) {
            tracing::warn!(%error, "the keys of two partitions cannot be put together");
            return;
        }
        gathered.open = gathered.open.saturating_sub(1);
        if gathered.open == 0 {
            let DistributedTaskContext {
                task_index,
                task_count,
            } = *self.task;
            self.link
                .publish(self.end.id, task_index, task_count, &gathered.whole);
        }
    }
}

/// The keys of a batch's rows.
pub(super) fn evaluated(
    keys: &[PhysicalExprRef],
    batch: &RecordBatch,
) -> Result<Vec<datafusion::arrow::array::ArrayRef>> {
    keys.iter()
        .map(|key| key.evaluate(batch)?.into_array(batch.num_rows()))
        .collect()
}
