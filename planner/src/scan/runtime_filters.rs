//! Rows that a join, or a TopK, has ruled out by now leave the scan no more.
//!
//! ```text
//! HashJoinExec ── what its build side holds ──▶ DynamicFilterPhysicalExpr
//!      ▲                                                │ evaluated on each batch, as long as that pays
//!      └────────── other operators ◀── batches ◀── RuntimeFilters ◀── Parquet, ORC or Avro reader
//! ```
//!
//! DataFusion holds such filters against statistics of files, row groups and pages only, unless the Parquet reader evaluates
//! every filter while it decodes, which costs more than it saves. A filter that keeps most rows is left alone until the
//! operator that made it knows more.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::compute::{BatchCoalescer, and};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::projection::{ProjectionExprs, update_expr};
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_expr_common::physical_expr::{
    is_dynamic_physical_expr, snapshot_generation, snapshot_physical_expr,
};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use futures::stream::{BoxStream, Stream, StreamExt};
use parking_lot::Mutex;

/// Rows after which a filter is judged.
const TRIAL_ROWS: usize = 65_536;
/// A filter that keeps a larger share of the rows than this costs more than it saves.
const MOST_KEPT: f64 = 0.6;
/// Batches that may be left out whole before others of the thread get their turn.
const BATCHES_IN_A_ROW: usize = 16;

/// The filters of one partition of a scan that change while the query runs.
pub(crate) struct RuntimeFilters {
    filters: Vec<RuntimeFilter>,
    /// Rows of a batch that is made of what was left of several.
    batch_rows: usize,
    rows_filtered: Count,
}

struct RuntimeFilter {
    /// About the columns that the scan gives.
    expr: Arc<dyn PhysicalExpr>,
    known: Mutex<Known>,
}

/// What a filter has come to be, and how it did since.
#[derive(Default)]
struct Known {
    generation: u64,
    /// The filter as it is, which to ask anew for each batch costs more than to evaluate it.
    expr: Option<Arc<dyn PhysicalExpr>>,
    trial: Trial,
}

/// Rows that a filter saw and kept.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Trial {
    seen: usize,
    kept: usize,
}

impl Trial {
    fn is_worth_it(self) -> bool {
        self.seen < TRIAL_ROWS || self.kept as f64 <= self.seen as f64 * MOST_KEPT
    }

    fn add(&mut self, seen: usize, kept: usize) {
        self.seen += seen;
        self.kept += kept;
    }
}

impl RuntimeFilter {
    /// What to hold against the next rows; `None` if that is not worth it.
    fn current(&self) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        let mut known = self.known.lock();
        // Asked first: should the filter change meanwhile, it is looked at once more.
        let generation = snapshot_generation(&self.expr);
        if known.generation != generation || known.expr.is_none() {
            *known = Known {
                generation,
                expr: Some(snapshot_physical_expr(Arc::clone(&self.expr))?),
                trial: Trial::default(),
            };
        }
        Ok(known.expr.clone().filter(|_| known.trial.is_worth_it()))
    }
}

impl RuntimeFilters {
    /// Those conjuncts of a scan's predicate, which is about the table's columns, that change and are about columns that the
    /// scan gives; `None` without one.
    pub(crate) fn of(
        predicate: Option<&Arc<dyn PhysicalExpr>>,
        projection: &ProjectionExprs,
        batch_rows: usize,
        metrics: &ExecutionPlanMetricsSet,
        partition: usize,
    ) -> Result<Option<Arc<Self>>> {
        let projected: Vec<_> = projection.iter().cloned().collect();
        let mut filters = Vec::new();
        for conjunct in predicate.into_iter().flat_map(split_conjunction) {
            if !is_dynamic_physical_expr(conjunct) {
                continue;
            }
            if let Some(expr) = update_expr(conjunct, &projected, false)? {
                filters.push(RuntimeFilter {
                    expr,
                    known: Mutex::default(),
                });
            }
        }
        Ok((!filters.is_empty()).then(|| {
            Arc::new(Self {
                filters,
                batch_rows,
                rows_filtered: MetricBuilder::new(metrics)
                    .counter("runtime_filtered_rows", partition),
            })
        }))
    }

    /// The stream without the rows that are ruled out.
    pub(crate) fn apply(
        self: &Arc<Self>,
        inner: BoxStream<'static, Result<RecordBatch>>,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        FilteredStream {
            inner,
            filters: Arc::clone(self),
            gathered: None,
            ready: VecDeque::new(),
        }
        .boxed()
    }

    /// Which rows stay; `None` if all do. NULL rules a row out.
    fn mask(&self, batch: &RecordBatch) -> Result<Option<BooleanArray>> {
        let rows = batch.num_rows();
        let mut mask: Option<BooleanArray> = None;
        for filter in &self.filters {
            let Some(expr) = filter.current()? else {
                continue;
            };
            let answer = expr.evaluate(batch)?.into_array(rows)?;
            let answer = answer.as_boolean();
            let kept = answer.true_count();
            filter.known.lock().trial.add(rows, kept);
            if kept < rows {
                mask = Some(match mask {
                    Some(mask) => and(&mask, answer)?,
                    None => answer.clone(),
                });
            }
        }
        Ok(mask)
    }
}

struct FilteredStream {
    inner: BoxStream<'static, Result<RecordBatch>>,
    filters: Arc<RuntimeFilters>,
    /// What was left of batches, until it is a whole one.
    gathered: Option<BatchCoalescer>,
    ready: VecDeque<RecordBatch>,
}

impl FilteredStream {
    fn admit(&mut self, batch: RecordBatch) -> Result<()> {
        let mask = self.filters.mask(&batch)?;
        match (mask, &mut self.gathered) {
            (None, None) => self.ready.push_back(batch),
            (None, Some(gathered)) => gathered.push_batch(batch)?,
            (Some(mask), gathered) => {
                let left_out = batch.num_rows() - mask.true_count();
                self.filters.rows_filtered.add(left_out);
                gathered
                    .get_or_insert_with(|| {
                        BatchCoalescer::new(batch.schema(), self.filters.batch_rows)
                    })
                    .push_batch_with_filter(batch, &mask)?;
            }
        }
        self.collect_ready();
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        if let Some(gathered) = &mut self.gathered {
            gathered.finish_buffered_batch()?;
        }
        self.collect_ready();
        self.gathered = None;
        Ok(())
    }

    fn collect_ready(&mut self) {
        if let Some(gathered) = &mut self.gathered {
            self.ready
                .extend(std::iter::from_fn(|| gathered.next_completed_batch()));
        }
    }
}

impl Stream for FilteredStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        for _ in 0..BATCHES_IN_A_ROW {
            if let Some(batch) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(batch)));
            }
            let step = match self.inner.poll_next_unpin(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(batch))) => self.admit(batch),
                Poll::Ready(Some(Err(error))) => Err(error),
                Poll::Ready(None) => {
                    if self.gathered.is_none() {
                        return Poll::Ready(None);
                    }
                    self.finish()
                }
            };
            if let Err(error) = step {
                return Poll::Ready(Some(Err(error)));
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{
        Column, DynamicFilterPhysicalExpr, binary, col, lit,
    };
    use futures::TryStreamExt;

    use super::*;

    const BATCH_ROWS: usize = 8192;

    fn schema() -> Arc<Schema> {
        Arc::new(Schema::new(vec![
            Field::new("a", DataType::Utf8, true),
            Field::new("k", DataType::Int64, true),
        ]))
    }

    /// `k < bound`, over the table's columns.
    fn below(bound: i64) -> Arc<dyn PhysicalExpr> {
        let schema = schema();
        let k = col("k", &schema).expect("it is there");
        binary(k, Operator::Lt, lit(bound), &schema).expect("integers compare")
    }

    fn dynamic() -> Arc<DynamicFilterPhysicalExpr> {
        let k: Arc<dyn PhysicalExpr> = Arc::new(Column::new("k", 1));
        Arc::new(DynamicFilterPhysicalExpr::new(vec![k], lit(true)))
    }

    /// Filters of a scan that gives `k` alone.
    fn filters(
        predicate: Arc<dyn PhysicalExpr>,
        projection: &[usize],
    ) -> Option<Arc<RuntimeFilters>> {
        RuntimeFilters::of(
            Some(&predicate),
            &ProjectionExprs::from_indices(projection, &schema()),
            BATCH_ROWS,
            &ExecutionPlanMetricsSet::new(),
            0,
        )
        .expect("the columns are known")
    }

    /// Batches of 8192 rows, `k` counting from 0; every tenth is NULL.
    fn batches(count: i64) -> BoxStream<'static, Result<RecordBatch>> {
        let schema = Arc::new(schema().project(&[1]).expect("two columns"));
        let rows = BATCH_ROWS as i64;
        futures::stream::iter((0..count).map(move |i| {
            let k = (i * rows..(i + 1) * rows).map(|k| (k % 10 != 9).then_some(k));
            let k = Arc::new(k.collect::<Int64Array>());
            Ok(RecordBatch::try_new(Arc::clone(&schema), vec![k])?)
        }))
        .boxed()
    }

    async fn read(filters: &Arc<RuntimeFilters>, count: i64) -> Vec<RecordBatch> {
        let stream = filters.apply(batches(count));
        stream.try_collect().await.expect("nothing fails")
    }

    fn rows(batches: &[RecordBatch]) -> usize {
        batches.iter().map(RecordBatch::num_rows).sum()
    }

    #[tokio::test]
    async fn rows_are_left_out_once_the_filter_is_known() {
        let dynamic = dynamic();
        let filters = filters(dynamic.clone(), &[1]).expect("one that changes");
        assert_eq!(rows(&read(&filters, 20).await), 20 * BATCH_ROWS);

        dynamic.update(below(25)).expect("its own columns");
        let left = read(&filters, 20).await;
        // 0 to 24 without 9 and 19, which are NULL.
        let k = left[0].column(0).as_primitive::<Int64Type>();
        let wanted: Vec<i64> = (0..25).filter(|k| k % 10 != 9).collect();
        assert_eq!((left.len(), k.values().to_vec()), (1, wanted));
        assert_eq!(filters.rows_filtered.value(), 20 * BATCH_ROWS - 23);
    }

    #[tokio::test]
    async fn what_is_left_of_many_batches_becomes_whole_batches() {
        let dynamic = dynamic();
        let schema = schema();
        let even = binary(
            binary(
                col("k", &schema).expect("it is there"),
                Operator::Modulo,
                lit(4i64),
                &schema,
            )
            .expect("integers divide"),
            Operator::Eq,
            lit(0i64),
            &schema,
        )
        .expect("integers compare");
        let filters = filters(dynamic.clone(), &[1]).expect("one that changes");
        dynamic.update(even).expect("its own columns");
        let left = read(&filters, 10).await;
        // Of 20 numbers 5 are multiples of 4, none of which ends in 9.
        assert_eq!(rows(&left), 10 * BATCH_ROWS / 4);
        let sizes: Vec<usize> = left.iter().map(RecordBatch::num_rows).collect();
        assert_eq!(sizes, [BATCH_ROWS, BATCH_ROWS, BATCH_ROWS / 2]);
    }

    #[test]
    fn a_filter_that_keeps_most_rows_rests_until_it_changes() {
        let dynamic = dynamic();
        let filters = filters(dynamic.clone(), &[1]).expect("one that changes");
        let filter = &filters.filters[0];
        let is_on = || filter.current().expect("it is known").is_some();
        let add = |seen, kept| filter.known.lock().trial.add(seen, kept);
        assert!(is_on());
        add(TRIAL_ROWS - 1, TRIAL_ROWS - 1);
        assert!(is_on());
        add(1, 1);
        assert!(!is_on());
        dynamic.update(below(25)).expect("its own columns");
        assert!(is_on());
        add(TRIAL_ROWS, TRIAL_ROWS / 2);
        assert!(is_on());
    }

    #[test]
    fn filters_that_do_not_change_or_lack_a_column_are_not_ours() {
        assert!(filters(below(5), &[1]).is_none());
        assert!(filters(dynamic(), &[0]).is_none());
        let schema = schema();
        let both = binary(below(5), Operator::And, dynamic(), &schema).expect("both are boolean");
        assert!(filters(both, &[0, 1]).is_some());
    }
}
