//! A hinted relation in the physical plan, until the rule that obeys it has seen it.

use std::fmt;
use std::sync::Arc;

use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};

use super::JoinHint;
use crate::pass_through::{filters_go_to_input, partitioned_as_input, sized_as_input};

/// Hands its input on.
#[derive(Debug)]
pub(crate) struct JoinHintExec {
    hint: JoinHint,
    input: Arc<dyn ExecutionPlan>,
}

impl JoinHintExec {
    pub(super) fn new(hint: JoinHint, input: Arc<dyn ExecutionPlan>) -> Self {
        Self { hint, input }
    }

    pub(crate) fn hint(&self) -> JoinHint {
        self.hint
    }

    pub(crate) fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }
}

impl DisplayAs for JoinHintExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "JoinHintExec: {}", self.hint)
    }
}

impl ExecutionPlan for JoinHintExec {
    fn name(&self) -> &str {
        "JoinHintExec"
    }

    partitioned_as_input!(input);
    sized_as_input!(input);
    filters_go_to_input!();

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match <[Arc<dyn ExecutionPlan>; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(Self::new(self.hint, input))),
            Err(children) => internal_err!("a hint has one input, not {}", children.len()),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
