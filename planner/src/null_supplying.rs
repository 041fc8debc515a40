//! The sides of outer joins whose columns are null in rows without a match.
//!
//! What is the same in all rows of such a side (`k` after `WHERE k = 7`, `flag` of `SELECT 1 AS flag`) is not so above the join. DataFusion 54
//! carries it over all the same: sorts are left out as needless, groups come several times, windows end early. So
//! where a side has such columns, a node stands above it that tells nothing of them.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::JoinType;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::pass_through::{filters_go_to_input, sized_as_input};

/// Tells the message of this node from those of others.
const MAGIC: u64 = u64::from_le_bytes(*b"tarnnull");

/// Puts a [`NullSupplyingExec`] where one is needed. It goes after the sides of joins were chosen, and before anything is
/// left out because of what is known of them.
#[derive(Debug)]
pub(crate) struct NullSupplyingSides;

impl PhysicalOptimizerRule for NullSupplyingSides {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let supplies = supplying_sides(&node);
            let children = node.children();
            let [left, right] = children.as_slice() else {
                return Ok(Transformed::no(node));
            };
            let sides: Vec<Arc<dyn ExecutionPlan>> = [left, right]
                .into_iter()
                .zip(supplies)
                .map(|(side, supplies)| match supplies && has_constants(side) {
                    true => Arc::new(NullSupplyingExec::new(Arc::clone(side))) as _,
                    false => Arc::clone(side),
                })
                .collect();
            if sides
                .iter()
                .zip(&children)
                .all(|(new, old)| Arc::ptr_eq(new, old))
            {
                return Ok(Transformed::no(node));
            }
            node.with_new_children(sides).map(Transformed::yes)
        })
        .data()
    }

    fn name(&self) -> &str {
        "null_supplying_sides"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Which sides of a join may come as nulls.
fn supplying_sides(node: &Arc<dyn ExecutionPlan>) -> [bool; 2] {
    let hash = node
        .downcast_ref::<HashJoinExec>()
        .map(|it| *it.join_type());
    let nested = node
        .downcast_ref::<NestedLoopJoinExec>()
        .map(|it| *it.join_type());
    let merge = node
        .downcast_ref::<SortMergeJoinExec>()
        .map(|it| it.join_type());
    match hash.or(nested).or(merge) {
        Some(JoinType::Left) => [false, true],
        Some(JoinType::Right) => [true, false],
        Some(JoinType::Full) => [true, true],
        _ => [false, false],
    }
}

fn has_constants(side: &Arc<dyn ExecutionPlan>) -> bool {
    !side
        .properties()
        .equivalence_properties()
        .constants()
        .is_empty()
}

/// Hands its input on, and tells of its columns nothing.
#[derive(Debug)]
pub(crate) struct NullSupplyingExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl NullSupplyingExec {
    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let nothing = EquivalenceProperties::new(input.schema());
        let properties = input.properties().as_ref().clone();
        Self {
            properties: Arc::new(properties.with_eq_properties(nothing)),
            input,
        }
    }

    /// Whether a message is of such a node.
    pub(crate) fn is_in(message: &[u8]) -> bool {
        message == MAGIC.to_le_bytes()
    }

    /// Writes the node, without its input.
    pub(crate) fn encode(buf: &mut Vec<u8>) {
        buf.extend_from_slice(&MAGIC.to_le_bytes());
    }

    /// The node over its input.
    pub(crate) fn over(children: &[Arc<dyn ExecutionPlan>]) -> Result<Arc<dyn ExecutionPlan>> {
        match children {
            [input] => Ok(Arc::new(Self::new(Arc::clone(input)))),
            _ => internal_err!(
                "a null-supplying side has one input, not {}",
                children.len()
            ),
        }
    }
}

impl DisplayAs for NullSupplyingExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "NullSupplyingExec")
    }
}

impl ExecutionPlan for NullSupplyingExec {
    fn name(&self) -> &str {
        "NullSupplyingExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    sized_as_input!(input);
    filters_go_to_input!();

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Self::over(&children)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
