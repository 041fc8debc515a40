//! The end of a runtime filter at which rows are dropped.

use std::fmt;
use std::sync::{Arc, Once};
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::{DynamicFilterPhysicalExpr, lit};
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterDescription, ChildPushdownResult, FilterDescription, FilterPushdownPhase,
    FilterPushdownPropagation,
};
use datafusion::physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, Time,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr};
use futures::{StreamExt, stream};

use super::FilterEnd;
use super::link::{ExpectedFilter, RuntimeFilterLink};
use super::source::evaluated;
use super::summary::KeySummary;
use crate::pass_through::{partitioned_as_input, sized_as_input};

/// After so many rows it is known whether looking at each is worth it.
const TRIED_ROWS: usize = 64 * 1024;

/// Waits for the filter before it reads its input, and drops the rows that it excludes.
#[derive(Debug)]
pub(crate) struct RuntimeFilterTarget {
    pub(super) end: FilterEnd,
    /// The longest wait, in milliseconds.
    pub(super) wait_ms: u32,
    input: Arc<dyn ExecutionPlan>,
    pruning: Pruning,
    metrics: ExecutionPlanMetricsSet,
}

/// What the scans below prune by; the first partition to get the filter makes it.
#[derive(Debug, Clone)]
struct Pruning {
    filter: Arc<DynamicFilterPhysicalExpr>,
    made: Arc<Once>,
}

impl RuntimeFilterTarget {
    pub(super) fn new(end: FilterEnd, wait_ms: u32, input: Arc<dyn ExecutionPlan>) -> Self {
        let filter = DynamicFilterPhysicalExpr::new(end.keys.clone(), lit(true));
        Self {
            end,
            wait_ms,
            input,
            pruning: Pruning {
                filter: Arc::new(filter),
                made: Arc::new(Once::new()),
            },
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The filter that it hands down.
    pub(crate) fn pruning(&self) -> &Arc<DynamicFilterPhysicalExpr> {
        &self.pruning.filter
    }
}

impl DisplayAs for RuntimeFilterTarget {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "RuntimeFilterTarget: {} wait={}ms",
            self.end, self.wait_ms
        )
    }
}

impl ExecutionPlan for RuntimeFilterTarget {
    fn name(&self) -> &str {
        "RuntimeFilterTarget"
    }

    partitioned_as_input!(input);
    sized_as_input!(input);

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match <[Arc<dyn ExecutionPlan>; 1]>::try_from(children) {
            // The scan below may have the filter already.
            Ok([input]) => Ok(Arc::new(Self {
                end: self.end.clone(),
                wait_ms: self.wait_ms,
                input,
                pruning: self.pruning.clone(),
                metrics: self.metrics.clone(),
            })),
            Err(children) => internal_err!("a target has one input, not {}", children.len()),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(link) = context
            .session_config()
            .get_extension::<RuntimeFilterLink>()
        else {
            return self.input.execute(partition, context);
        };
        let most = Duration::from_millis(self.wait_ms.into());
        let waited = MetricBuilder::new(&self.metrics).subset_time("filter_wait_time", partition);
        let mut dropping = Dropping {
            expected: link.expect(self.end.id),
            arrived: None,
            end: self.end.clone(),
            pruning: self.pruning.clone(),
            schema: self.schema(),
            tried: Some((0, 0)),
            dropped: MetricBuilder::new(&self.metrics).counter("rows_dropped", partition),
            time: MetricBuilder::new(&self.metrics).subset_time("elapsed_compute", partition),
        };
        // Begun at once: whoever counts on all partitions below (a shared build) is to know of one that is dropped unread.
        let rows = self.input.execute(partition, context)?;
        let rows = stream::once(async move {
            let timer = waited.timer();
            dropping.expected.wait(most).await;
            timer.done();
            dropping.look();
            rows.map(move |batch| {
                dropping.look();
                dropping.drop_rows(batch?)
            })
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            rows.flatten().boxed(),
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn gather_filters_for_pushdown(
        &self,
        phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let mut child = ChildFilterDescription::from_child(&parent_filters, &self.input)?;
        if phase == FilterPushdownPhase::Post {
            let own = Arc::clone(&self.pruning.filter) as Arc<dyn PhysicalExpr>;
            child = child.with_self_filter(own);
        }
        Ok(FilterDescription::new().with_child(child))
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        child: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_all(child))
    }
}

/// How one partition drops rows.
struct Dropping {
    expected: ExpectedFilter,
    arrived: Option<Arc<KeySummary>>,
    end: FilterEnd,
    pruning: Pruning,
    schema: datafusion::arrow::datatypes::SchemaRef,
    /// Rows that were looked at, and those of them that stayed; `None` once it is known that it is worth it.
    tried: Option<(usize, usize)>,
    dropped: Count,
    time: Time,
}

impl Dropping {
    /// Takes the filter if it has come.
    fn look(&mut self) {
        if self.arrived.is_some() {
            return;
        }
        let Some(summary) = self.expected.now() else {
            return;
        };
        self.pruning.made.call_once(|| {
            let pruned = summary
                .predicate(&self.end.keys, &self.schema)
                .and_then(|predicate| self.pruning.filter.update(predicate));
            if let Err(error) = pruned {
                tracing::warn!(%error, "a runtime filter cannot prune files");
            }
        });
        if !summary.tells_rows_apart() {
            self.tried = Some((usize::MAX, usize::MAX));
        }
        self.arrived = Some(summary);
    }

    fn drop_rows(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let Some(summary) = &self.arrived else {
            return Ok(batch);
        };
        // More than nine of ten rows stayed: looking costs more than it saves.
        if let Some((looked_at, stayed)) = self.tried
            && looked_at >= TRIED_ROWS
        {
            if stayed / 9 >= looked_at / 10 {
                return Ok(batch);
            }
            self.tried = None;
        }
        let _timer = self.time.timer();
        let keys = evaluated(&self.end.keys, &batch)?;
        let kept = filter_record_batch(&batch, &summary.may_hold(&keys)?)?;
        if let Some((looked_at, stayed)) = &mut self.tried {
            *looked_at += batch.num_rows();
            *stayed += kept.num_rows();
        }
        self.dropped.add(batch.num_rows() - kept.num_rows());
        Ok(kept)
    }
}
