//! Keeping a rule from handing things through some operators.

use std::fmt;
use std::sync::Arc;

use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::projection::{ProjectionExec, try_embed_projection};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};

use crate::pass_through::partitioned_as_input;

type Plan = Arc<dyn ExecutionPlan>;

/// The plan after the rule, for which a [`Stop`] stood on each operator that is to be stopped at.
pub(super) fn stopping_at(
    plan: Plan,
    stopped: impl Fn(&Plan) -> bool,
    rule: impl FnOnce(Plan) -> Result<Plan>,
) -> Result<Plan> {
    let with_stops = plan
        .transform_up(|node| {
            Ok(match stopped(&node) {
                true => Transformed::yes(Arc::new(Stop { input: node })),
                false => Transformed::no(node),
            })
        })
        .data()?;
    rule(with_stops)?
        .transform_up(|node| {
            Ok(match node.downcast_ref::<Stop>() {
                Some(stop) => Transformed::yes(Arc::clone(&stop.input)),
                None => Transformed::no(node),
            })
        })
        .data()
}

/// Lets no filter through, and no projection: a join takes one in, and its inputs stay as they are.
#[derive(Debug)]
struct Stop {
    input: Plan,
}

impl DisplayAs for Stop {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Stop")
    }
}

impl ExecutionPlan for Stop {
    fn name(&self) -> &str {
        "Stop"
    }

    partitioned_as_input!(input);

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        match <[Plan; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(Self { input })),
            Err(children) => internal_err!("a stop has one input, not {}", children.len()),
        }
    }

    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<Plan>> {
        if let Some(join) = self.input.downcast_ref::<HashJoinExec>()
            && !join.contains_projection()
        {
            return try_embed_projection(projection, join);
        }
        match self.input.downcast_ref::<NestedLoopJoinExec>() {
            Some(join) if !join.contains_projection() => try_embed_projection(projection, join),
            _ => Ok(None),
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
