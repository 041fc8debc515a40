//! Whole numbers that overflow and decimals that lose digits: where DataFusion's operators would wrap around or cut off,
//! functions that do not.
//!
//! | written | becomes | unless |
//! |---|---|---|
//! | `a + b`, `a - b`, `a * b` of BIGINTs | `checked_add(a, b)`, … | the types of what they are made of rule an overflow out |
//! | `a / b` of decimals | `decimal_divide(a, b)` | |
//! | `CAST(d AS DECIMAL(p, s))`, `CAST(d AS BIGINT)` | `decimal_round(d, p, s)` | no digit can be lost |
//! | `-a` of a BIGINT | `checked_subtract(0, a)` | the same |
//! | `CAST(f AS BIGINT)` of a DOUBLE | `nearest_whole(f)` first: it is not cut off | |
//! | `CAST(i AS DATE)`, `CAST(i AS DATETIME)` | `date(i)`, `timestamp(i)`: 20240131 is its digits, not days since 1970 | |
//! | `AVG(d)` of decimals | `decimal_divide(SUM(d), COUNT(d))` ([`DecimalAverages`]) | |

mod decimal_averages;
mod ranges;

pub(crate) use decimal_averages::DecimalAverages;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, cast, lit,
};
use datafusion::optimizer::AnalyzerRule;

use crate::comparisons::change_expressions;
use crate::functions::{checked, divided, moment_of_digits, nearest_whole, rounded};
use ranges::fits;

/// Goes over a plan whose types were made alike.
#[derive(Debug)]
pub(crate) struct ExactArithmetic;

impl AnalyzerRule for ExactArithmetic {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        change_expressions(plan, exact)
    }

    fn name(&self) -> &str {
        "exact_arithmetic"
    }
}

fn exact(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let changed = match &expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            match (*op, left.get_type(schema), right.get_type(schema)) {
                (Operator::Divide, Ok(DataType::Decimal128(..)), Ok(DataType::Decimal128(..))) => {
                    Some(divided(left.as_ref().clone(), right.as_ref().clone()))
                }
                (op, Ok(DataType::Int64), Ok(DataType::Int64))
                    if !fits(left, op, right, schema) =>
                {
                    checked(left.as_ref().clone(), op, right.as_ref().clone())
                }
                (op, Ok(DataType::UInt64), Ok(DataType::UInt64)) => {
                    checked(left.as_ref().clone(), op, right.as_ref().clone())
                }
                _ => None,
            }
        }
        Expr::Negative(expr) if matches!(expr.get_type(schema), Ok(DataType::Int64)) => {
            let zero = lit(0_i64);
            match fits(&zero, Operator::Minus, expr, schema) {
                true => None,
                false => checked(zero, Operator::Minus, expr.as_ref().clone()),
            }
        }
        Expr::Cast(Cast { expr, field }) => match (expr.get_type(schema), field.data_type()) {
            (Ok(DataType::Decimal128(_, scale)), DataType::Decimal128(precision, kept))
                if *kept < scale =>
            {
                Some(rounded(expr.as_ref().clone(), *precision, *kept))
            }
            (Ok(DataType::Decimal128(precision, scale @ 1..)), to) if to.is_integer() => {
                // One digit more: 9.9 is 10.
                let whole = precision.saturating_sub(scale.unsigned_abs()) + 1;
                let whole = rounded(
                    expr.as_ref().clone(),
                    whole.min(DECIMAL128_MAX_PRECISION),
                    0,
                );
                Some(cast(whole, to.clone()))
            }
            (Ok(DataType::Float32 | DataType::Float64), to) if to.is_integer() => {
                Some(cast(nearest_whole(expr.as_ref().clone()), to.clone()))
            }
            (Ok(from), to @ (DataType::Date32 | DataType::Timestamp(..))) if from.is_integer() => {
                let moment = moment_of_digits(expr.as_ref().clone(), to);
                Some(match moment.get_type(schema) {
                    Ok(of) if of == *to => moment,
                    _ => cast(moment, to.clone()),
                })
            }
            _ => None,
        },
        _ => None,
    };
    Ok(match changed {
        Some(changed) => Transformed::yes(changed),
        None => Transformed::no(expr),
    })
}
