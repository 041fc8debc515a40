//! Operators, casts and literals that MySQL spells in its own way.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CharacterLength, DataType, DateTimeField, ExactNumberInfo, Expr, Interval,
    UnaryOperator, Value,
};

use super::RewriteError;
use super::ast_build::{
    binary, call, case, cast, datetime_type, double_type, literal_text, nested, number, text,
};
use super::rewrite_truth::numbers_in_logic;

/// Rewrites one node whose children are done.
pub(super) fn rewrite_expression(expr: &mut Expr) -> Result<(), RewriteError> {
    numbers_in_logic(expr);
    let replacement = match expr {
        Expr::Collate { expr, .. } => Some(take(expr)),
        Expr::Prefixed { value, .. } => Some(take(value)),
        Expr::RLike {
            negated,
            expr,
            pattern,
            ..
        } => {
            let op = if *negated {
                BinaryOperator::PGRegexNotMatch
            } else {
                BinaryOperator::PGRegexMatch
            };
            Some(binary(take(expr), op, take(pattern)))
        }
        Expr::UnaryOp {
            op: op @ UnaryOperator::BangNot,
            ..
        } => {
            *op = UnaryOperator::Not;
            None
        }
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Xor,
            right,
        } => Some(binary(
            nested(take(left)),
            BinaryOperator::NotEq,
            nested(take(right)),
        )),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Arrow,
            right,
        } => Some(call("json_extract", vec![take(left), take(right)])),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::LongArrow,
            right,
        } => Some(unquoted_json(call(
            "json_extract",
            vec![take(left), take(right)],
        ))),
        Expr::BinaryOp {
            left,
            op:
                BinaryOperator::Eq
                | BinaryOperator::NotEq
                | BinaryOperator::Spaceship
                | BinaryOperator::Lt
                | BinaryOperator::LtEq
                | BinaryOperator::Gt
                | BinaryOperator::GtEq,
            right,
        } => {
            compare_json(left, std::slice::from_ref(right.as_ref()));
            compare_json(right, std::slice::from_ref(left.as_ref()));
            None
        }
        Expr::InList { expr, list, .. } => {
            compare_json(expr, list);
            None
        }
        Expr::BinaryOp {
            left,
            op: op @ (BinaryOperator::Plus | BinaryOperator::Minus),
            right,
        } => shifted_by_interval(left, op, right)?,
        Expr::Interval(interval) => {
            normalise(interval);
            None
        }
        Expr::Extract { field, expr, .. } => extract(field, expr)?,
        Expr::Convert {
            expr, data_type, ..
        } => match data_type.take() {
            Some(data_type) => Some(convert(take(expr), data_type)?),
            // CONVERT(x USING charset): text is UTF-8 throughout.
            None => Some(cast(take(expr), DataType::Varchar(None))),
        },
        Expr::Cast {
            expr,
            data_type: DataType::Binary(None),
            ..
        } => Some(take(expr)),
        Expr::Cast {
            expr, data_type, ..
        } => {
            let length = char_length(data_type);
            *data_type = cast_type(data_type)?;
            length.map(|length| cut(cast(take(expr), data_type.clone()), length))
        }
        Expr::TypedString(typed) => {
            typed.data_type = cast_type(&typed.data_type)?;
            None
        }
        Expr::Substring {
            expr,
            substring_from: Some(from),
            substring_for,
            ..
        } => substring_from_end(expr, from, substring_for.as_deref()),
        Expr::Value(value) => match &value.value {
            Value::NationalStringLiteral(string) => Some(text(string.clone())),
            Value::SingleQuotedByteStringLiteral(bits) => {
                i64::from_str_radix(bits, 2).ok().map(number)
            }
            // With an exponent it is a DOUBLE.
            Value::Number(digits, _) if digits.contains(['e', 'E']) => {
                Some(cast(text(digits.clone()), double_type()))
            }
            _ => None,
        },
        _ => None,
    };
    if let Some(replacement) = replacement {
        *expr = replacement;
    }
    Ok(())
}

fn unquoted_json(json: Expr) -> Expr {
    call("json_unquote", vec![json])
}

/// A JSON value is compared with text by what it says, and with numbers as one; here it is text, quotes and all.
fn compare_json(json: &mut Expr, others: &[Expr]) {
    let extracts = matches!(json, Expr::Function(function)
        if function.name.0.len() == 1
            && function.name.0[0].as_ident().is_some_and(|name| name.value.eq_ignore_ascii_case("json_extract")));
    if !extracts {
        return;
    }
    let is_number = |expr: &Expr| {
        whole_number(expr).is_some() && literal_text(expr).is_none()
            || matches!(expr, Expr::Value(value) if matches!(value.value, Value::Number(..)))
    };
    if others.iter().all(|other| literal_text(other).is_some()) {
        *json = unquoted_json(take(json));
    } else if others.iter().all(is_number) {
        *json = cast(unquoted_json(take(json)), double_type());
    }
}

fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::value(Value::Null))
}

/// The unit's name as the date functions take it.
pub(super) fn unit_name(field: &DateTimeField) -> Option<String> {
    Some(
        match field {
            DateTimeField::Year | DateTimeField::Years => "YEAR",
            DateTimeField::Quarter => "QUARTER",
            DateTimeField::Month | DateTimeField::Months => "MONTH",
            DateTimeField::Week(None) | DateTimeField::Weeks => "WEEK",
            DateTimeField::Day | DateTimeField::Days => "DAY",
            DateTimeField::Hour | DateTimeField::Hours => "HOUR",
            DateTimeField::Minute | DateTimeField::Minutes => "MINUTE",
            DateTimeField::Second | DateTimeField::Seconds => "SECOND",
            DateTimeField::Millisecond | DateTimeField::Milliseconds => "MILLISECOND",
            DateTimeField::Microsecond | DateTimeField::Microseconds => "MICROSECOND",
            DateTimeField::Custom(name) => return Some(name.value.to_uppercase()),
            _ => return None,
        }
        .to_owned(),
    )
}

/// `x ± INTERVAL …`. Whole days and months of a literal are left to DataFusion, whose arithmetic on dates keeps them dates. The
/// rest goes to `date_add`: a DATE and an hour make a DATETIME in MySQL but a DATE in DataFusion, and only literals are intervals
/// to DataFusion.
fn shifted_by_interval(
    left: &mut Box<Expr>,
    op: &BinaryOperator,
    right: &mut Box<Expr>,
) -> Result<Option<Expr>, RewriteError> {
    let (base, interval) = match (left.as_ref(), right.as_ref()) {
        (Expr::Interval(_), Expr::Interval(_)) => return Ok(None),
        (_, Expr::Interval(interval)) => (left.as_ref(), interval),
        (Expr::Interval(interval), _) if *op == BinaryOperator::Plus => (right.as_ref(), interval),
        _ => return Ok(None),
    };
    let Some(unit) = interval.leading_field.as_ref().and_then(unit_name) else {
        return Ok(None);
    };
    let whole_days = matches!(unit.as_str(), "YEAR" | "MONTH" | "WEEK" | "DAY");
    if whole_days && is_whole_number(&interval.value) && literal_text(base).is_none() {
        return Ok(None);
    }
    let function = if *op == BinaryOperator::Plus {
        "date_add"
    } else {
        "date_sub"
    };
    let arguments = vec![base.clone(), interval.value.as_ref().clone(), text(unit)];
    Ok(Some(call(function, arguments)))
}

pub(super) fn is_whole_number(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse::<i64>().is_ok(),
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => {
                text.trim().parse::<i64>().is_ok()
            }
            _ => false,
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr,
        }
        | Expr::Nested(expr) => is_whole_number(expr),
        _ => false,
    }
}

/// Brackets around a literal taken off, quarters as months: what DataFusion's intervals understand.
fn normalise(interval: &mut Interval) {
    while let Expr::Nested(inner) = interval.value.as_mut() {
        interval.value = std::mem::replace(inner, Box::new(Expr::value(Value::Null)));
    }
    if interval.leading_field == Some(DateTimeField::Quarter)
        && let Some(quarters) = whole_number(&interval.value)
        && let Some(months) = quarters.checked_mul(3)
    {
        *interval.value = text(months.to_string());
        interval.leading_field = Some(DateTimeField::Month);
    }
}

/// The value of a literal whole number, signed or quoted.
pub(super) fn whole_number(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse().ok(),
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => {
                text.trim().parse().ok()
            }
            _ => None,
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => whole_number(expr)?.checked_neg(),
        Expr::UnaryOp {
            op: UnaryOperator::Plus,
            expr,
        }
        | Expr::Nested(expr) => whole_number(expr),
        _ => None,
    }
}

/// `EXTRACT(unit FROM x)`: the parts MySQL has, by the functions that also read text and count weeks as MySQL does.
fn extract(field: &DateTimeField, expr: &mut Expr) -> Result<Option<Expr>, RewriteError> {
    let Some(unit) = unit_name(field) else {
        return Ok(None);
    };
    let function = match unit.as_str() {
        "YEAR" | "QUARTER" | "MONTH" | "WEEK" | "DAY" | "HOUR" | "MINUTE" | "SECOND"
        | "MICROSECOND" => unit.to_lowercase(),
        "MILLISECOND" => return Ok(None),
        "YEAR_MONTH" => {
            let year = binary(
                call("year", vec![expr.clone()]),
                BinaryOperator::Multiply,
                number(100),
            );
            return Ok(Some(binary(
                year,
                BinaryOperator::Plus,
                call("month", vec![take(expr)]),
            )));
        }
        _ if unit.contains('_') => {
            return Err(RewriteError::Unsupported(format!("EXTRACT({unit} FROM …)")));
        }
        _ => return Ok(None),
    };
    Ok(Some(call(&function, vec![take(expr)])))
}

fn convert(expr: Expr, data_type: DataType) -> Result<Expr, RewriteError> {
    Ok(match data_type {
        DataType::Binary(None) => expr,
        other => {
            let converted = cast(expr, cast_type(&other)?);
            match char_length(&other) {
                Some(length) => cut(converted, length),
                None => converted,
            }
        }
    })
}

/// The most characters that a cast to `CHAR(n)` leaves.
fn char_length(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::Char(Some(CharacterLength::IntegerLength { length, .. }))
        | DataType::Character(Some(CharacterLength::IntegerLength { length, .. }))
        | DataType::Varchar(Some(CharacterLength::IntegerLength { length, .. }))
        | DataType::Nvarchar(Some(CharacterLength::IntegerLength { length, .. })) => Some(*length),
        _ => None,
    }
}

fn cut(text: Expr, length: u64) -> Expr {
    call("left", vec![text, number(length)])
}

/// MySQL's type in a cast as one that DataFusion has.
fn cast_type(data_type: &DataType) -> Result<DataType, RewriteError> {
    Ok(match data_type {
        DataType::Signed | DataType::SignedInteger => DataType::BigInt(None),
        DataType::Unsigned | DataType::UnsignedInteger => DataType::BigIntUnsigned(None),
        DataType::Datetime(_) => datetime_type(),
        // Without a precision DataFusion takes nanoseconds, which no Iceberg column has: comparing would convert the column.
        DataType::Timestamp(None | Some(0..=6), zone) => DataType::Timestamp(Some(6), *zone),
        DataType::Decimal(ExactNumberInfo::None) | DataType::Numeric(ExactNumberInfo::None) => {
            DataType::Decimal(ExactNumberInfo::PrecisionAndScale(10, 0))
        }
        DataType::JSON
        | DataType::Text
        | DataType::Char(_)
        | DataType::Character(_)
        | DataType::Varchar(_)
        | DataType::Nvarchar(_) => DataType::Varchar(None),
        DataType::Custom(name, _) => match name.to_string().to_lowercase().as_str() {
            "string" => DataType::Varchar(None),
            "timestamptz" => DataType::Timestamp(
                Some(6),
                datafusion::sql::sqlparser::ast::TimezoneInfo::WithTimeZone,
            ),
            "year" => DataType::SmallInt(None),
            other => return Err(RewriteError::Unsupported(format!("a cast to {other}"))),
        },
        DataType::Float(ExactNumberInfo::None) => DataType::Float(ExactNumberInfo::None),
        other => other.clone(),
    })
}

/// `SUBSTRING(s, -n [, len])` counts from the end; a start before the text gives an empty text, as does 0.
pub(super) fn substring_from_end(
    subject: &Expr,
    from: &Expr,
    length: Option<&Expr>,
) -> Option<Expr> {
    let start = whole_number(from).filter(|start| *start <= 0)?;
    if start == 0 {
        return Some(text(""));
    }
    let count = number(start.unsigned_abs());
    let tail = call("right", vec![subject.clone(), count.clone()]);
    let tail = match length {
        Some(length) => call("substr", vec![tail, number(1), length.clone()]),
        None => tail,
    };
    let long_enough = binary(
        call("character_length", vec![subject.clone()]),
        BinaryOperator::GtEq,
        count,
    );
    Some(case(None, vec![(long_enough, tail)], Some(text(""))))
}
