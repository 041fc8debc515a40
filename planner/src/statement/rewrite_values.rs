//! `VALUES` in which floats are beside decimals: one such column is of DOUBLEs.
//!
//! DataFusion would make decimals of the floats, which hold no infinity and few digits.

use datafusion::sql::sqlparser::ast::{DataType, Expr, UnaryOperator, Value, Values};

use super::ast_build::{cast, double_type, null};

/// Makes doubles of the decimal literals in columns that have a float.
pub(super) fn floats_of_columns(values: &mut Values) {
    let width = values.rows.first().map_or(0, |row| row.content.len());
    for column in 0..width {
        let cells = || values.rows.iter().filter_map(|row| row.content.get(column));
        if !cells().any(is_float) || !cells().any(is_decimal) {
            continue;
        }
        for row in &mut values.rows {
            if let Some(cell) = row.content.get_mut(column)
                && is_decimal(cell)
            {
                let literal = std::mem::replace(cell, null());
                *cell = cast(literal, double_type());
            }
        }
    }
}

fn is_float(expr: &Expr) -> bool {
    match expr {
        Expr::Cast { data_type, .. } => matches!(
            data_type,
            DataType::Float(_)
                | DataType::Float32
                | DataType::Float64
                | DataType::Real
                | DataType::Double(_)
                | DataType::DoublePrecision
        ),
        expr => number(expr).is_some_and(|digits| digits.contains(['e', 'E'])),
    }
}

/// A number with a fraction and no exponent.
fn is_decimal(expr: &Expr) -> bool {
    number(expr).is_some_and(|digits| digits.contains('.') && !digits.contains(['e', 'E']))
}

fn number(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => Some(digits),
            _ => None,
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr,
        } => number(expr),
        Expr::Nested(inner) => number(inner),
        _ => None,
    }
}
