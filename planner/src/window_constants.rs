//! Windows that are partitioned by a constant, made fit to travel.
//!
//! ```text
//!   WHERE kind = 'x' … OVER (PARTITION BY kind ORDER BY t)
//!
//!   BoundedWindowAggExec mode=[Sorted]                 BoundedWindowAggExec mode=[Linear]
//!     SortExec [t]            ── travels as ──▶          SortExec [t]
//!       FilterExec kind = 'x'                              NetworkShuffleExec
//! ```
//!
//! The optimiser knows from the filter that rows are in the order of `kind`, and sorts by the rest. A worker gets a piece of
//! the plan and does not see the filter below: to it the rows are in no order of `kind`, and it cannot run the window.

use std::sync::Arc;

use arrow::compute::SortOptions;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, InputOrderMode, WindowExpr,
};

/// Takes constants out of what a window's mode promises about the order of its input; where the window has no modes, puts
/// them into the sort.
#[derive(Debug)]
pub(crate) struct WindowConstants;

impl PhysicalOptimizerRule for WindowConstants {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let fit = if let Some(window) = node.downcast_ref::<BoundedWindowAggExec>() {
                without_constants(window)?
            } else if let Some(window) = node.downcast_ref::<WindowAggExec>() {
                sorted_by_constants(window)?
            } else {
                None
            };
            Ok(fit.map_or_else(|| Transformed::no(node), Transformed::yes))
        })
        .data()
    }

    fn name(&self) -> &str {
        "window_constants"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn without_constants(window: &BoundedWindowAggExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let partition_by = partition_by(window.window_expr());
    // Columns that the input is really sorted by, in the order of the sort.
    let sorted = match &window.input_order_mode {
        InputOrderMode::Linear => return Ok(None),
        InputOrderMode::PartiallySorted(columns) => columns.clone(),
        InputOrderMode::Sorted => (0..partition_by.len()).collect(),
    };
    let input = window.input();
    let is_constant = |column: &usize| {
        partition_by
            .get(*column)
            .is_some_and(|expr| constant(input, expr))
    };
    if !sorted.iter().any(is_constant) {
        return Ok(None);
    }
    let left: Vec<usize> = in_order_of(input, partition_by)
        .into_iter()
        .filter(|column| !is_constant(column))
        .collect();
    if left.len() != sorted.iter().filter(|column| !is_constant(column)).count() {
        // Something else than constants is known only here: better the error than a guess.
        return Ok(None);
    }
    let mode = if left.is_empty() {
        InputOrderMode::Linear
    } else {
        InputOrderMode::PartiallySorted(left)
    };
    Ok(Some(Arc::new(BoundedWindowAggExec::try_new(
        window.window_expr().to_vec(),
        Arc::clone(input),
        mode,
        !window.partition_keys().is_empty(),
    )?)))
}

/// A window that needs its whole partition works on sorted rows only, so the constants are sorted by as well: as the
/// first columns, which costs comparisons of equal values.
fn sorted_by_constants(window: &WindowAggExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let expressions = window.window_expr();
    let partition_by = partition_by(expressions);
    let input = window.input();
    if !partition_by.iter().any(|expr| constant(input, expr)) {
        return Ok(None);
    }
    let order_by = expressions
        .first()
        .map_or(&[][..], |window| window.order_by());
    let keys = partition_by
        .iter()
        .map(|expr| PhysicalSortExpr::new(Arc::clone(expr), SortOptions::new(false, true)))
        .chain(order_by.iter().cloned());
    let Some(keys) = LexOrdering::new(keys) else {
        return Ok(None);
    };
    // A sort for this window alone is replaced.
    let below = match input.downcast_ref::<SortExec>() {
        Some(sort) if sort.fetch().is_none() => sort.input(),
        _ => input,
    };
    let sort = SortExec::new(keys, Arc::clone(below))
        .with_preserve_partitioning(below.output_partitioning().partition_count() > 1);
    Ok(Some(Arc::new(WindowAggExec::try_new(
        expressions.to_vec(),
        Arc::new(sort),
        !window.partition_keys().is_empty(),
    )?)))
}

fn partition_by(expressions: &[Arc<dyn WindowExpr>]) -> &[Arc<dyn PhysicalExpr>] {
    expressions
        .first()
        .map_or(&[], |window| window.partition_by())
}

fn constant(input: &Arc<dyn ExecutionPlan>, expr: &Arc<dyn PhysicalExpr>) -> bool {
    input
        .equivalence_properties()
        .is_expr_constant(expr)
        .is_some()
}

/// Which of the expressions the input is sorted by before anything else, as its own ordering says.
fn in_order_of(
    input: &Arc<dyn ExecutionPlan>,
    expressions: &[Arc<dyn PhysicalExpr>],
) -> Vec<usize> {
    let Some(ordering) = input.output_ordering() else {
        return Vec::new();
    };
    ordering
        .iter()
        .map_while(|key| expressions.iter().position(|expr| expr.eq(&key.expr)))
        .collect()
}
