//! Conditions that are numbers and numbers that are conditions: to MySQL they are one type, to DataFusion two.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    UnaryOperator, Value,
};

use super::ast_build::cast;

/// A literal number where a condition stands: true when it is not zero.
pub(super) fn number_as_condition(condition: &mut Expr) {
    match condition {
        Expr::Nested(inner) => number_as_condition(inner),
        Expr::Value(value) => {
            if let Value::Number(digits, _) = &value.value {
                let truth = digits.parse::<f64>().is_ok_and(|number| number != 0.0);
                *condition = Expr::value(Value::Boolean(truth));
            }
        }
        _ => {}
    }
}

/// The operands of AND, OR and NOT. Columns that are numbers are known when the expression is planned, as
/// [`functions`](crate::functions) do it.
pub(super) fn numbers_in_logic(expr: &mut Expr) {
    match expr {
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And | BinaryOperator::Or | BinaryOperator::Xor,
            right,
        } => {
            number_as_condition(left);
            number_as_condition(right);
        }
        Expr::UnaryOp {
            op: UnaryOperator::Not | UnaryOperator::BangNot,
            expr,
        } => number_as_condition(expr),
        _ => {}
    }
}

/// `sum(a = 1)` counts the rows where it holds, `avg(a = 1)` is their share.
pub(super) fn conditions_as_numbers(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else {
        return;
    };
    for arg in &mut list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg
            && is_condition(expr)
        {
            *expr = cast(expr.clone(), DataType::BigInt(None));
        }
    }
}

/// Whether an expression is true, false or NULL by its form alone.
fn is_condition(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_condition(inner),
        Expr::BinaryOp { op, .. } => matches!(
            op,
            BinaryOperator::Eq
                | BinaryOperator::NotEq
                | BinaryOperator::Lt
                | BinaryOperator::LtEq
                | BinaryOperator::Gt
                | BinaryOperator::GtEq
                | BinaryOperator::Spaceship
                | BinaryOperator::And
                | BinaryOperator::Or
                | BinaryOperator::Xor
                | BinaryOperator::PGRegexMatch
                | BinaryOperator::PGRegexNotMatch
        ),
        Expr::UnaryOp { op, .. } => matches!(op, UnaryOperator::Not | UnaryOperator::BangNot),
        Expr::Value(value) => matches!(value.value, Value::Boolean(_)),
        Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::InList { .. }
        | Expr::InSubquery { .. }
        | Expr::Exists { .. }
        | Expr::Between { .. }
        | Expr::Like { .. }
        | Expr::ILike { .. }
        | Expr::RLike { .. } => true,
        _ => false,
    }
}
