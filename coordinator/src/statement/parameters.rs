//! Values for the placeholders of a prepared statement.
//!
//! A value takes its placeholder's place in the syntax tree as a literal, so `VALUES (?)`, `LIMIT ?` and pruning by
//! `WHERE day = ?` all work as if it had been written there.

use std::ops::ControlFlow;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType as AstType, ExactNumberInfo, Expr, Statement as Ast, TimezoneInfo,
    UnaryOperator, Value, VisitMut, VisitorMut,
};
use tarn_planner::statement::{Query, Statement};

use super::Prepared;
use crate::error::{Error, ErrorKind, Result};

/// The statement with `params` in the place of its placeholders.
///
/// # Errors
/// The number of values is wrong, or one cannot be its placeholder's type.
pub(crate) fn bind(prepared: &Prepared, params: Vec<ScalarValue>) -> Result<Statement> {
    let expected = prepared.parameter_types.len();
    if params.len() != expected {
        return Err(Error::new(
            ErrorKind::WrongParameterCount,
            format!(
                "Incorrect arguments to EXECUTE: the statement has {expected} parameters, {} values came",
                params.len()
            ),
        ));
    }
    let mut literals = Vec::with_capacity(params.len());
    for (index, (value, wanted)) in params
        .into_iter()
        .zip(&prepared.parameter_types)
        .enumerate()
    {
        let value = match wanted {
            Some(wanted) if is_made(&value.data_type(), wanted) && !value.is_null() => {
                value.cast_to(wanted).map_err(|error| {
                    Error::new(
                        ErrorKind::WrongValue,
                        format!(
                            "parameter {} cannot be a {wanted}: {}",
                            index + 1,
                            Error::from(error).message
                        ),
                    )
                })?
            }
            _ => value,
        };
        literals.push(literal(&value)?);
    }
    bind_literals(prepared.statement().clone(), &literals)
}

/// Whether a value is made one of its placeholder's type before it is written into the statement. Text that goes to bytes of a fixed
/// length stays: it may be a UUID. Of a placeholder that nothing gives a type, the value's own is as good.
fn is_made(from: &DataType, wanted: &DataType) -> bool {
    match wanted {
        DataType::Null => false,
        DataType::FixedSizeBinary(_) => !from.is_string() && from != wanted,
        wanted => from != wanted,
    }
}

/// The statement with NULL for every placeholder, to learn the columns of its result.
pub(super) fn bind_nulls(statement: Statement, count: usize) -> Result<Statement> {
    bind_literals(statement, &vec![Expr::value(Value::Null); count])
}

fn bind_literals(mut statement: Statement, literals: &[Expr]) -> Result<Statement> {
    if literals.is_empty() {
        return Ok(statement);
    }
    match &mut statement {
        Statement::Query(query) | Statement::Insert { source: query, .. } => {
            replace(query, literals)?;
        }
        Statement::CreateTable(create) => {
            if let Some(query) = &mut create.query {
                replace(query, literals)?;
            }
        }
        Statement::Explain {
            statement: inner, ..
        } => {
            **inner = bind_literals(inner.as_ref().clone(), literals)?;
        }
        _ => {}
    }
    Ok(statement)
}

fn replace(query: &mut Query, literals: &[Expr]) -> Result<()> {
    let mut binder = Binder { literals };
    match VisitMut::visit::<Binder<'_>>(query.ast.as_mut() as &mut Ast, &mut binder) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Binder<'a> {
    literals: &'a [Expr],
}

impl VisitorMut for Binder<'_> {
    type Break = Error;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Value(value) = expr
            && let Value::Placeholder(name) = &value.value
        {
            let literal = placeholder_index(name).and_then(|index| self.literals.get(index));
            let Some(literal) = literal else {
                return ControlFlow::Break(Error::new(
                    ErrorKind::WrongParameterCount,
                    format!("there is no value for parameter {name}"),
                ));
            };
            *expr = literal.clone();
        }
        ControlFlow::Continue(())
    }
}

/// `$3` is the parameter at index 2.
pub(super) fn placeholder_index(name: &str) -> Option<usize> {
    name.strip_prefix('$')?
        .parse::<usize>()
        .ok()?
        .checked_sub(1)
}

/// A value as it could have been written.
fn literal(value: &ScalarValue) -> Result<Expr> {
    if value.is_null() {
        return Ok(Expr::value(Value::Null));
    }
    Ok(match value {
        ScalarValue::Boolean(Some(truth)) => Expr::value(Value::Boolean(*truth)),
        ScalarValue::Int8(Some(n)) => integer(i128::from(*n)),
        ScalarValue::Int16(Some(n)) => integer(i128::from(*n)),
        ScalarValue::Int32(Some(n)) => integer(i128::from(*n)),
        ScalarValue::Int64(Some(n)) => integer(i128::from(*n)),
        ScalarValue::UInt8(Some(n)) => integer(i128::from(*n)),
        ScalarValue::UInt16(Some(n)) => integer(i128::from(*n)),
        ScalarValue::UInt32(Some(n)) => integer(i128::from(*n)),
        ScalarValue::UInt64(Some(n)) => integer(i128::from(*n)),
        ScalarValue::Float16(Some(n)) => cast(n.to_string(), double()),
        ScalarValue::Float32(Some(n)) => cast(n.to_string(), double()),
        ScalarValue::Float64(Some(n)) => cast(n.to_string(), double()),
        ScalarValue::Utf8(Some(text))
        | ScalarValue::LargeUtf8(Some(text))
        | ScalarValue::Utf8View(Some(text)) => string(text.clone()),
        ScalarValue::Binary(Some(bytes))
        | ScalarValue::LargeBinary(Some(bytes))
        | ScalarValue::BinaryView(Some(bytes))
        | ScalarValue::FixedSizeBinary(_, Some(bytes)) => Expr::value(Value::HexStringLiteral(
            bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        )),
        ScalarValue::Decimal128(_, precision, scale) => {
            let info = ExactNumberInfo::PrecisionAndScale(u64::from(*precision), i64::from(*scale));
            cast(text_of(value)?, AstType::Decimal(info))
        }
        ScalarValue::Date32(_) | ScalarValue::Date64(_) => cast(text_of(value)?, AstType::Date),
        ScalarValue::Time32Second(_)
        | ScalarValue::Time32Millisecond(_)
        | ScalarValue::Time64Microsecond(_)
        | ScalarValue::Time64Nanosecond(_) => {
            cast(text_of(value)?, AstType::Time(None, TimezoneInfo::None))
        }
        ScalarValue::TimestampSecond(_, _)
        | ScalarValue::TimestampMillisecond(_, _)
        | ScalarValue::TimestampMicrosecond(_, _)
        | ScalarValue::TimestampNanosecond(_, _) => {
            use datafusion::arrow::datatypes::{DataType, TimeUnit};
            // Without its zone the value is the same instant in UTC.
            let instant = value.cast_to(&DataType::Timestamp(TimeUnit::Microsecond, None))?;
            cast(text_of(&instant)?, AstType::Datetime(Some(6)))
        }
        ScalarValue::Dictionary(_, inner) => return literal(inner),
        other => {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("a parameter of type {} is not supported", other.data_type()),
            ));
        }
    })
}

fn integer(number: i128) -> Expr {
    let digits = Expr::value(Value::Number(number.unsigned_abs().to_string(), false));
    if number >= 0 {
        return digits;
    }
    Expr::UnaryOp {
        op: UnaryOperator::Minus,
        expr: Box::new(digits),
    }
}

fn double() -> AstType {
    AstType::Double(ExactNumberInfo::None)
}

fn string(text: String) -> Expr {
    Expr::value(Value::SingleQuotedString(text))
}

fn cast(text: String, data_type: AstType) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(string(text)),
        data_type,
        array: false,
        format: None,
    }
}

/// A value as Arrow prints it.
fn text_of(value: &ScalarValue) -> Result<String> {
    let array = value.to_array()?;
    Ok(datafusion::arrow::util::display::array_value_to_string(
        &array, 0,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_literals() {
        for (value, expected) in [
            (ScalarValue::Int64(Some(7)), "7"),
            (ScalarValue::Int64(Some(i64::MIN)), "-9223372036854775808"),
            (ScalarValue::Utf8(Some("it's".into())), "'it''s'"),
            (ScalarValue::Utf8(None), "NULL"),
            (ScalarValue::Float64(Some(1.5)), "CAST('1.5' AS DOUBLE)"),
            (
                ScalarValue::Decimal128(Some(12345), 10, 2),
                "CAST('123.45' AS DECIMAL(10,2))",
            ),
            (
                ScalarValue::Date32(Some(19_723)),
                "CAST('2024-01-01' AS DATE)",
            ),
            (
                ScalarValue::TimestampMicrosecond(Some(1_704_067_200_000_001), None),
                "CAST('2024-01-01T00:00:00.000001' AS DATETIME(6))",
            ),
            (ScalarValue::Binary(Some(vec![0, 255])), "X'00ff'"),
        ] {
            assert_eq!(literal(&value).expect("a literal").to_string(), expected);
        }
    }

    #[test]
    fn placeholders_count_from_one() {
        assert_eq!(placeholder_index("$1"), Some(0));
        assert_eq!(placeholder_index("$12"), Some(11));
        assert_eq!(placeholder_index("$0"), None);
        assert_eq!(placeholder_index("?"), None);
    }
}
