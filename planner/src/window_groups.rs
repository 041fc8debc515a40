//! Windows in the order of bytes: DataFusion has no ranges of them, and refuses the frame that a window has by itself.
//!
//! `RANGE` from the first row or to the last one, or to the current row, is what `GROUPS` is: without distances between
//! values both go by rows that are equal.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, Window, WindowFrame, WindowFrameBound, WindowFrameUnits,
};
use datafusion::optimizer::AnalyzerRule;

/// Goes before DataFusion's rules look at frames.
#[derive(Debug)]
pub(crate) struct WindowGroups;

impl AnalyzerRule for WindowGroups {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Window(of) => windows(of),
            other => Ok(Transformed::no(other)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "window_groups"
    }
}

fn windows(of: Window) -> Result<Transformed<LogicalPlan>> {
    let schema = Arc::clone(of.input.schema());
    // Names tell the frame, and stay.
    let names = NamePreserver::new_for_projection();
    let mut changed = false;
    let exprs = of.window_expr.into_iter().map(|expr| {
        let name = names.save(&expr);
        let expr = expr.transform_up(|expr| match expr {
            Expr::WindowFunction(mut window) if goes_by_bytes(&window, &schema) => {
                window.params.window_frame.units = WindowFrameUnits::Groups;
                Ok(Transformed::yes(Expr::WindowFunction(window)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        changed |= expr.transformed;
        Ok(name.restore(expr.data))
    });
    let exprs = exprs.collect::<Result<Vec<_>>>()?;
    let plan = Window::try_new(exprs, of.input)?;
    Ok(Transformed::new_transformed(
        LogicalPlan::Window(plan),
        changed,
    ))
}

fn goes_by_bytes(window: &WindowFunction, schema: &DFSchema) -> bool {
    let WindowFrame {
        units,
        start_bound,
        end_bound,
        ..
    } = &window.params.window_frame;
    *units == WindowFrameUnits::Range
        && !has_distance(start_bound)
        && !has_distance(end_bound)
        && window.params.order_by.first().is_some_and(|key| {
            let of = key.expr.get_type(schema);
            of.is_ok_and(|of| is_bytes(&of))
        })
}

fn has_distance(bound: &WindowFrameBound) -> bool {
    match bound {
        WindowFrameBound::Preceding(by) | WindowFrameBound::Following(by) => !by.is_null(),
        WindowFrameBound::CurrentRow => false,
    }
}

fn is_bytes(of: &DataType) -> bool {
    matches!(
        of,
        DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
    )
}
