//! `-0.0` equals `0.0`.
//!
//! Arrow's comparisons order floats totally: `-0.0` comes before `0.0`, and NaN after all numbers. The latter is what
//! SQL engines do, the former is not. Comparing with a zero is the only comparison with a literal in which it shows, so
//! the literal becomes the zero of the sign that makes it right:
//!
//! | `x < 0` | `x <= 0` | `x > 0` | `x >= 0` | `x = 0` | `x <> 0` | `x <=> 0` |
//! |---|---|---|---|---|---|---|
//! | `x < -0.0` | `x <= 0.0` | `x > 0.0` | `x >= -0.0` | `x >= -0.0 AND x <= 0.0` | `x < -0.0 OR x > 0.0` | that of `=`, `IS TRUE` |

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, LogicalPlan, Operator, lit};
use datafusion::optimizer::AnalyzerRule;
use datafusion::scalar::ScalarValue;

use super::plan_expressions::change_expressions;

/// Goes over a plan whose types were made alike.
#[derive(Debug)]
pub(crate) struct EqualZeros;

impl AnalyzerRule for EqualZeros {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        change_expressions(plan, |expr, _| Ok(with_equal_zeros(expr)))
    }

    fn name(&self) -> &str {
        "equal_zeros"
    }
}

fn with_equal_zeros(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (zero(&left), zero(&right)) {
            (None, Some(zero)) => compared(*left, op, zero, *right),
            (Some(zero), None) => match swapped(op) {
                Some(swapped) => compared(*right, swapped, zero, *left),
                None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            },
            _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
        },
        Expr::Between(between) => {
            let low = zero(&between.low).map(|zero| Box::new(zero.negative()));
            let high = zero(&between.high).map(|zero| Box::new(zero.positive()));
            if low.is_none() && high.is_none() {
                return Transformed::no(Expr::Between(between));
            }
            Transformed::yes(Expr::Between(Between {
                low: low.unwrap_or(between.low),
                high: high.unwrap_or(between.high),
                ..between
            }))
        }
        Expr::InList(mut list) => match list.list.iter().find_map(zero) {
            Some(zero) => {
                list.list.extend([zero.negative(), zero.positive()]);
                Transformed::yes(Expr::InList(InList { ..list }))
            }
            None => Transformed::no(Expr::InList(list)),
        },
        other => Transformed::no(other),
    }
}

fn swapped(op: Operator) -> Option<Operator> {
    match op {
        Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => Some(op),
        op => op.swap(),
    }
}

/// `value op literal`, where the literal is a zero.
fn compared(value: Expr, op: Operator, zero: Zero, literal: Expr) -> Transformed<Expr> {
    let plain = |op, zero: Expr| {
        Expr::BinaryExpr(BinaryExpr {
            left: Box::new(value.clone()),
            op,
            right: Box::new(zero),
        })
    };
    let is_zero =
        || plain(Operator::GtEq, zero.negative()).and(plain(Operator::LtEq, zero.positive()));
    let changed = match op {
        Operator::Lt | Operator::GtEq => plain(op, zero.negative()),
        Operator::LtEq | Operator::Gt => plain(op, zero.positive()),
        Operator::Eq => is_zero(),
        Operator::IsNotDistinctFrom => is_zero().is_true(),
        Operator::IsDistinctFrom => is_zero().is_not_true(),
        Operator::NotEq => {
            plain(Operator::Lt, zero.negative()).or(plain(Operator::Gt, zero.positive()))
        }
        _ => return Transformed::no(plain(op, literal)),
    };
    Transformed::yes(changed)
}

/// A literal that is a zero, of one of the types of floats.
#[derive(Clone, Copy)]
enum Zero {
    Single,
    Double,
}

impl Zero {
    fn negative(self) -> Expr {
        match self {
            Zero::Single => lit(-0.0f32),
            Zero::Double => lit(-0.0f64),
        }
    }

    fn positive(self) -> Expr {
        match self {
            Zero::Single => lit(0.0f32),
            Zero::Double => lit(0.0f64),
        }
    }
}

/// Whether an expression is a literal zero, perhaps one of another type that is cast.
fn zero(expr: &Expr) -> Option<Zero> {
    let value = match expr {
        Expr::Literal(value, _) => value.clone(),
        Expr::Cast(cast) => match cast.expr.as_ref() {
            Expr::Literal(value, _) => value.cast_to(cast.field.data_type()).ok()?,
            _ => return None,
        },
        _ => return None,
    };
    match value {
        ScalarValue::Float32(Some(0.0)) => Some(Zero::Single),
        ScalarValue::Float64(Some(0.0)) => Some(Zero::Double),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::logical_expr::{cast, col};

    #[test]
    fn the_sign_of_a_zero_makes_no_difference() {
        for zero in [
            lit(0.0f64),
            lit(-0.0f64),
            cast(lit(0), arrow::datatypes::DataType::Float64),
        ] {
            let changed = |expr: Expr| with_equal_zeros(expr).data.to_string();
            let x = || col("x");
            assert_eq!(changed(x().lt(zero.clone())), "x < Float64(-0)");
            assert_eq!(changed(x().lt_eq(zero.clone())), "x <= Float64(0)");
            assert_eq!(changed(x().gt(zero.clone())), "x > Float64(0)");
            assert_eq!(changed(x().gt_eq(zero.clone())), "x >= Float64(-0)");
            assert_eq!(changed(zero.clone().gt(x())), "x < Float64(-0)");
            assert_eq!(
                changed(x().eq(zero.clone())),
                "x >= Float64(-0) AND x <= Float64(0)"
            );
            assert_eq!(
                changed(x().not_eq(zero.clone())),
                "x < Float64(-0) OR x > Float64(0)"
            );
            let same = |op| {
                let (left, right) = (Box::new(zero.clone()), Box::new(x()));
                changed(Expr::BinaryExpr(BinaryExpr { left, op, right }))
            };
            assert_eq!(
                same(Operator::IsNotDistinctFrom),
                "x >= Float64(-0) AND x <= Float64(0) IS TRUE"
            );
            assert_eq!(
                same(Operator::IsDistinctFrom),
                "x >= Float64(-0) AND x <= Float64(0) IS NOT TRUE"
            );
            assert_eq!(
                changed(x().between(lit(-1.0f64), zero.clone())),
                "x BETWEEN Float64(-1) AND Float64(0)"
            );
        }
        assert!(!with_equal_zeros(col("x").eq(lit(1.0f64))).transformed);
        assert!(!with_equal_zeros(col("x").eq(lit(0))).transformed);
    }
}
