//! What whole numbers an expression can give, as far as its types and literals tell.

use std::ops::RangeInclusive;

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Operator};

/// Least and greatest. Sums and products of two 64-bit numbers stay far from the ends of 128 bits.
type Range = RangeInclusive<i128>;

/// Whether all that `left op right` can give is a BIGINT.
pub(super) fn fits(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> bool {
    let result = combined(&range(left, schema), op, &range(right, schema));
    result.is_some_and(|result| within(&result, &type_range(&DataType::Int64)))
}

fn within(inner: &Range, outer: &Range) -> bool {
    outer.contains(inner.start()) && outer.contains(inner.end())
}

fn range(expr: &Expr, schema: &DFSchema) -> Range {
    typed_range(expr, schema).0
}

/// With the type, which is found on the way: asking each operator for its type asks all below it, again and again.
fn typed_range(expr: &Expr, schema: &DFSchema) -> (Range, DataType) {
    let (found, of) = match expr {
        Expr::Alias(alias) => return typed_range(&alias.expr, schema),
        Expr::Literal(value, _) => (literal(value).map(|v| v..=v), Some(value.data_type())),
        Expr::Cast(Cast { expr, field }) => {
            let (inner, of) = typed_range(expr, schema);
            (
                of.is_integer().then_some(inner),
                Some(field.data_type().clone()),
            )
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (left, of) = typed_range(left, schema);
            let (right, other) = typed_range(right, schema);
            let found = combined(&left, *op, &right);
            let alike = found.is_some() && of == other && of.is_integer();
            (found, alike.then_some(of))
        }
        _ => (None, None),
    };
    let of = of.unwrap_or_else(|| expr.get_type(schema).unwrap_or(DataType::Int64));
    // A result beyond its type has wrapped around, so it may be any.
    let all = type_range(&of);
    (found.filter(|found| within(found, &all)).unwrap_or(all), of)
}

fn combined(left: &Range, op: Operator, right: &Range) -> Option<Range> {
    let ends = |of: fn(i128, i128) -> i128| {
        let ends = [
            of(*left.start(), *right.start()),
            of(*left.start(), *right.end()),
            of(*left.end(), *right.start()),
            of(*left.end(), *right.end()),
        ];
        Some(*ends.iter().min()?..=*ends.iter().max()?)
    };
    match op {
        Operator::Plus => ends(|left, right| left + right),
        Operator::Minus => ends(|left, right| left - right),
        Operator::Multiply => ends(|left, right| left * right),
        _ => None,
    }
}

fn literal(value: &ScalarValue) -> Option<i128> {
    Some(match value {
        ScalarValue::Int8(Some(value)) => (*value).into(),
        ScalarValue::Int16(Some(value)) => (*value).into(),
        ScalarValue::Int32(Some(value)) => (*value).into(),
        ScalarValue::Int64(Some(value)) => (*value).into(),
        ScalarValue::UInt8(Some(value)) => (*value).into(),
        ScalarValue::UInt16(Some(value)) => (*value).into(),
        ScalarValue::UInt32(Some(value)) => (*value).into(),
        ScalarValue::UInt64(Some(value)) => (*value).into(),
        _ => return None,
    })
}

fn type_range(of: &DataType) -> Range {
    match of {
        DataType::Int8 => i8::MIN.into()..=i8::MAX.into(),
        DataType::Int16 => i16::MIN.into()..=i16::MAX.into(),
        DataType::Int32 => i32::MIN.into()..=i32::MAX.into(),
        DataType::UInt8 => 0..=u8::MAX.into(),
        DataType::UInt16 => 0..=u16::MAX.into(),
        DataType::UInt32 => 0..=u32::MAX.into(),
        DataType::UInt64 => 0..=u64::MAX.into(),
        _ => i64::MIN.into()..=i64::MAX.into(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, Schema};
    use datafusion::logical_expr::{cast, col, lit};

    use super::*;

    #[test]
    fn an_overflow_is_ruled_out_by_types_and_literals() {
        let schema = Schema::new(vec![
            Field::new("small", DataType::Int32, true),
            Field::new("large", DataType::Int64, true),
        ]);
        let schema = DFSchema::try_from(schema).unwrap();
        let (small, large) = (cast(col("small"), DataType::Int64), col("large"));
        let fits = |left: &Expr, op, right: &Expr| fits(left, op, right, &schema);
        assert!(fits(&small, Operator::Plus, &lit(1i64)));
        assert!(fits(&small, Operator::Multiply, &small));
        assert!(fits(
            &(small.clone() * small.clone()),
            Operator::Plus,
            &small
        ));
        assert!(!fits(
            &(small.clone() * small.clone()),
            Operator::Multiply,
            &small
        ));
        assert!(fits(&lit(i64::MAX), Operator::Minus, &lit(1i64)));
        assert!(!fits(&lit(i64::MAX), Operator::Plus, &lit(1i64)));
        assert!(!fits(&large, Operator::Plus, &lit(1i64)));
        assert!(!fits(&large, Operator::Minus, &small));
    }
}
