//! Division as in MySQL: of whole numbers it has a fraction, and by zero it is NULL.
//!
//! | | DataFusion | here |
//! |---|---|---|
//! | `5 / 2` | 2 | 2.5 |
//! | `5 / 0` | an error | NULL |
//! | `5 DIV 2` | not executable | 2 |
//! | `5 % 0` | an error | NULL |
//!
//! Decimals stay decimals; two whole numbers give a DOUBLE (MySQL: a decimal of four digits after the point).

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions::core::expr_fn::nullif;
use datafusion::functions::math::expr_fn::trunc;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Plans `/`, `DIV` and `%`.
#[derive(Debug)]
pub(super) struct Division;

impl ExprPlanner for Division {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if !matches!(
            expr.op,
            BinaryOperator::Divide | BinaryOperator::MyIntegerDivide | BinaryOperator::Modulo
        ) {
            return Ok(PlannerResult::Original(expr));
        }
        // What has no type yet (a parameter) is left to DataFusion.
        let (Ok(left_type), Ok(right_type)) =
            (expr.left.get_type(schema), expr.right.get_type(schema))
        else {
            return Ok(PlannerResult::Original(expr));
        };
        if !left_type.is_numeric() || !right_type.is_numeric() {
            return Ok(PlannerResult::Original(expr));
        }
        let whole = left_type.is_integer() && right_type.is_integer();
        let divisor = not_zero(expr.right, &right_type)?;
        let planned = match expr.op {
            BinaryOperator::Modulo => binary(expr.left, Operator::Modulo, divisor),
            BinaryOperator::Divide if whole => binary(
                cast(expr.left, DataType::Float64),
                Operator::Divide,
                divisor,
            ),
            BinaryOperator::Divide => binary(expr.left, Operator::Divide, divisor),
            _ if whole => binary(expr.left, Operator::Divide, divisor),
            _ => {
                let quotient = binary(
                    cast(expr.left, DataType::Float64),
                    Operator::Divide,
                    cast(divisor, DataType::Float64),
                );
                cast(trunc(vec![quotient]), DataType::Int64)
            }
        };
        Ok(PlannerResult::Planned(planned))
    }
}

/// Plans `+`, `-` and `*` of whole numbers as BIGINTs, as MySQL does; DataFusion's are as narrow as both sides are.
#[derive(Debug)]
pub(super) struct Widening;

impl ExprPlanner for Widening {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let narrow = |side: &Expr| {
            side.get_type(schema).is_ok_and(|of| {
                of.is_integer() && !matches!(of, DataType::Int64 | DataType::UInt64)
            })
        };
        let widens = matches!(
            expr.op,
            BinaryOperator::Plus | BinaryOperator::Minus | BinaryOperator::Multiply
        ) && narrow(&expr.left)
            && narrow(&expr.right);
        if !widens {
            return Ok(PlannerResult::Original(expr));
        }
        Ok(PlannerResult::Original(RawBinaryExpr {
            left: cast(expr.left, DataType::Int64),
            right: cast(expr.right, DataType::Int64),
            op: expr.op,
        }))
    }
}

/// Plans AND and OR over numbers, which are true when they are not zero.
#[derive(Debug)]
pub(super) struct Logic;

impl ExprPlanner for Logic {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if !matches!(expr.op, BinaryOperator::And | BinaryOperator::Or) {
            return Ok(PlannerResult::Original(expr));
        }
        Ok(PlannerResult::Original(RawBinaryExpr {
            left: condition(expr.left, schema)?,
            right: condition(expr.right, schema)?,
            op: expr.op,
        }))
    }
}

fn condition(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    match expr.get_type(schema) {
        Ok(data_type) if data_type.is_numeric() => {
            let zero = ScalarValue::new_zero(&data_type)?;
            Ok(binary(expr, Operator::NotEq, Expr::Literal(zero, None)))
        }
        _ => Ok(expr),
    }
}

fn binary(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}

/// The divisor, NULL where it is zero; a literal that is not zero stays as it is.
fn not_zero(divisor: Expr, data_type: &DataType) -> Result<Expr> {
    let zero = ScalarValue::new_zero(data_type)?;
    match &divisor {
        Expr::Literal(value, _) if *value != zero => Ok(divisor),
        _ => Ok(nullif(divisor, Expr::Literal(zero, None))),
    }
}
