//! Which predicates drop rows that an outer join filled with nulls.

use datafusion::common::Column;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use crate::functions::is_null_for_null;

/// Whether a predicate is not true where all those columns are null, whatever others hold. `false` where that is not sure.
pub(super) fn rejects_null(predicate: &Expr, columns: &dyn Fn(&Column) -> bool) -> bool {
    match predicate {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::And,
            right,
        }) => rejects_null(left, columns) || rejects_null(right, columns),
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Or,
            right,
        }) => rejects_null(left, columns) && rejects_null(right, columns),
        Expr::IsNotNull(expr) => is_null(expr, columns),
        expr => is_null(expr, columns),
    }
}

/// Whether an expression is null where all those columns are.
pub(super) fn is_null(expr: &Expr, columns: &dyn Fn(&Column) -> bool) -> bool {
    match expr {
        Expr::Column(column) => columns(column),
        Expr::Alias(alias) => is_null(&alias.expr, columns),
        Expr::Cast(cast) => is_null(&cast.expr, columns),
        Expr::Negative(expr) | Expr::Not(expr) => is_null(expr, columns),
        Expr::Between(between) => is_null(&between.expr, columns),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            use Operator::*;
            let strict = matches!(
                op,
                Eq | NotEq | Lt | LtEq | Gt | GtEq | Plus | Minus | Multiply | Divide | Modulo
            );
            strict && (is_null(left, columns) || is_null(right, columns))
        }
        Expr::ScalarFunction(call) => {
            is_null_for_null(&call.func) && call.args.iter().any(|arg| is_null(arg, columns))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{coalesce, col, lit};

    use super::*;
    use crate::functions::normal_float;

    #[test]
    fn only_what_is_null_or_false_for_nulls_rejects_them() {
        let rejects = |expr: &Expr| rejects_null(expr, &|column| column.name == "a");
        for expr in [
            col("a").eq(col("b")),
            col("b").gt(lit(2) * normal_float(col("a"))),
            col("a").is_not_null(),
            col("b").is_null().and(col("a").lt(lit(1))),
            col("a").lt(lit(1)).or(col("a").gt(col("b"))),
            (!col("a").eq(lit(1))).and(col("b").eq(lit(1))),
            col("a").between(lit(1), lit(2)),
        ] {
            assert!(rejects(&expr), "{expr}");
        }
        for expr in [
            col("b").eq(lit(1)),
            col("a").is_null(),
            col("a").lt(lit(1)).or(col("b").gt(lit(1))),
            coalesce(vec![col("a"), lit(0)]).eq(lit(0)),
            lit(1).between(col("a"), col("b")),
            // False for one null, but true for another.
            (!col("a").is_not_null()).or(col("b").eq(lit(1))),
        ] {
            assert!(!rejects(&expr), "{expr}");
        }
    }
}
