use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr_common::metrics::MetricsSet;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, Statistics,
};
use datafusion_distributed::{BroadcastExec, NetworkBoundaryExt};
use futures::{FutureExt, StreamExt};
use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Turns a panic in a fragment into an error of the query.
///
/// datafusion-distributed polls the streams of a task, and the input of a `BroadcastExec`, in tasks that close
/// their queue when they panic, as if they had come to the end: the rows so far would pass for the whole answer.
/// So the head of a fragment and the inputs of its broadcasts are wrapped in a node that catches what would get
/// lost. It has the children, metrics and properties of the node in whose place it stands: plans and metrics keep
/// their shape.
///
/// A `RepartitionExec` at the head is left alone: datafusion-distributed replaces it, and it polls its input in
/// tasks whose panics it reports.
pub(crate) fn guard_panics(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan
        .transform_up(|node| match node.downcast_ref::<BroadcastExec>() {
            Some(broadcast) => {
                let input = guarded(Arc::clone(broadcast.input()));
                Ok(Transformed::yes(node.with_new_children(vec![input])?))
            }
            None => Ok(Transformed::no(node)),
        })?
        .data;
    Ok(match plan.is::<BroadcastExec>() {
        true => plan,
        false => guarded(plan),
    })
}

fn guarded(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    // Others look for these by their type.
    let sought = plan.is::<RepartitionExec>()
        || plan.is_network_boundary()
        || plan.name() == "ChildrenIsolatorUnionExec";
    match sought {
        true => plan,
        false => Arc::new(PanicGuardExec { head: plan }),
    }
}

#[derive(Debug)]
struct PanicGuardExec {
    head: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for PanicGuardExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        self.head.fmt_as(format, f)
    }
}

impl ExecutionPlan for PanicGuardExec {
    fn name(&self) -> &str {
        self.head.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.head.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.head.children()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self {
            head: Arc::clone(&self.head).with_new_children(children)?,
        }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let stream =
            std::panic::catch_unwind(AssertUnwindSafe(|| self.head.execute(partition, context)))
                .unwrap_or_else(|panic| Err(panicked(self.head.name(), panic)))?;
        let schema = stream.schema();
        let name = self.head.name().to_string();
        let guarded = futures::stream::unfold(Some(stream), move |stream| {
            let name = name.clone();
            async move {
                let mut stream = stream?;
                match AssertUnwindSafe(stream.next()).catch_unwind().await {
                    Ok(Some(batch)) => Some((batch, Some(stream))),
                    Ok(None) => None,
                    // What panicked is in an unknown state: it is not polled again.
                    Err(panic) => Some((Err(panicked(&name, panic)), None)),
                }
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, guarded)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.head.metrics()
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        self.head.partition_statistics(partition)
    }
}

fn panicked(node: &str, panic: Box<dyn Any + Send>) -> DataFusionError {
    let what = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_string());
    tracing::error!(node, what, "a fragment panicked");
    DataFusionError::Internal(format!("a fragment under {node} panicked: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Int32Array, RecordBatch};
    use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
    use datafusion::physical_expr::EquivalenceProperties;
    use datafusion::physical_plan::Partitioning;
    use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};

    /// One batch, then a panic.
    #[derive(Debug)]
    struct Panics(SchemaRef, Arc<PlanProperties>);

    impl Panics {
        fn plan() -> Arc<dyn ExecutionPlan> {
            let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, false)]));
            let properties = PlanProperties::new(
                EquivalenceProperties::new(Arc::clone(&schema)),
                Partitioning::UnknownPartitioning(1),
                EmissionType::Incremental,
                Boundedness::Bounded,
            );
            Arc::new(Self(schema, Arc::new(properties)))
        }
    }

    impl DisplayAs for Panics {
        fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
            write!(f, "Panics")
        }
    }

    impl ExecutionPlan for Panics {
        fn name(&self) -> &str {
            "Panics"
        }
        fn properties(&self) -> &Arc<PlanProperties> {
            &self.1
        }
        fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
            vec![]
        }
        fn with_new_children(
            self: Arc<Self>,
            _: Vec<Arc<dyn ExecutionPlan>>,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            Ok(self)
        }
        fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
            let schema = Arc::clone(&self.0);
            let batches = futures::stream::iter(0..2).map(move |i| match i {
                0 => Ok(RecordBatch::try_new(
                    Arc::clone(&schema),
                    vec![Arc::new(Int32Array::from(vec![1]))],
                )?),
                _ => panic!("index out of bounds"),
            });
            Ok(Box::pin(RecordBatchStreamAdapter::new(
                Arc::clone(&self.0),
                batches,
            )))
        }
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_not_an_end() {
        for plan in [
            Panics::plan(),
            Arc::new(BroadcastExec::new(Panics::plan(), 1)),
        ] {
            let plan = guard_panics(plan).unwrap();
            ends_in_an_error(plan).await;
        }
    }

    async fn ends_in_an_error(plan: Arc<dyn ExecutionPlan>) {
        let stream = plan.execute(0, Arc::new(TaskContext::default())).unwrap();
        let batches: Vec<_> = stream.collect().await;
        assert_eq!(batches.len(), 2);
        assert_eq!(batches[0].as_ref().unwrap().num_rows(), 1);
        let error = batches[1].as_ref().unwrap_err().to_string();
        assert!(error.contains("index out of bounds"), "{error}");
    }
}
