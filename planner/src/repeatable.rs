//! Expressions that may be evaluated again, at another place of a plan.

use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::Expr;

/// Whether an expression gives the same for the same row each time, and hangs on nothing but its row.
pub(crate) fn is_repeatable(expr: &Expr) -> bool {
    let hangs = expr.exists(|expr| {
        Ok(matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
        ))
    });
    // The closure never fails.
    !expr.is_volatile() && !hangs.unwrap_or(true)
}
