//! Iceberg's values as Arrow's.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::scalar::ScalarValue;
use iceberg::spec::{Datum, PrimitiveLiteral, PrimitiveType};

/// The value as one of `target`, the type that scans give the column. `None` if it is not of a type that `target` was
/// promoted from, or if its order says nothing (NaN).
pub(crate) fn scalar(
    literal: &PrimitiveLiteral,
    of: &PrimitiveType,
    target: &DataType,
) -> Option<ScalarValue> {
    use PrimitiveLiteral as L;
    use PrimitiveType as P;
    if literal.is_nan() {
        return None;
    }
    let value = match (literal, of, target) {
        (L::Boolean(v), P::Boolean, DataType::Boolean) => ScalarValue::Boolean(Some(*v)),
        (L::Int(v), P::Int, DataType::Int32) => ScalarValue::Int32(Some(*v)),
        (L::Int(v), P::Int | P::Long, DataType::Int64) => ScalarValue::Int64(Some(i64::from(*v))),
        (L::Long(v), P::Long, DataType::Int64) => ScalarValue::Int64(Some(*v)),
        (L::Float(v), P::Float, DataType::Float32) => ScalarValue::Float32(Some(v.0)),
        (L::Float(v), P::Float | P::Double, DataType::Float64) => {
            ScalarValue::Float64(Some(f64::from(v.0)))
        }
        (L::Double(v), P::Double, DataType::Float64) => ScalarValue::Float64(Some(v.0)),
        (L::Int(v), P::Date, DataType::Date32) => ScalarValue::Date32(Some(*v)),
        (L::Long(v), P::Time, DataType::Time64(TimeUnit::Microsecond)) => {
            ScalarValue::Time64Microsecond(Some(*v))
        }
        (
            L::Long(v),
            P::Timestamp | P::Timestamptz,
            DataType::Timestamp(TimeUnit::Microsecond, zone),
        ) => ScalarValue::TimestampMicrosecond(Some(*v), zone.clone()),
        (
            L::Long(v),
            P::TimestampNs | P::TimestamptzNs,
            DataType::Timestamp(TimeUnit::Nanosecond, zone),
        ) => ScalarValue::TimestampNanosecond(Some(*v), zone.clone()),
        (L::String(v), P::String, DataType::Utf8View) => ScalarValue::Utf8View(Some(v.clone())),
        (L::Binary(v), P::Binary, DataType::BinaryView) => ScalarValue::BinaryView(Some(v.clone())),
        // Inside nested types.
        (L::String(v), P::String, DataType::Utf8) => ScalarValue::Utf8(Some(v.clone())),
        (L::Binary(v), P::Binary, DataType::Binary) => ScalarValue::Binary(Some(v.clone())),
        (L::Binary(v), P::Fixed(_), DataType::FixedSizeBinary(width))
            if v.len() == *width as usize =>
        {
            ScalarValue::FixedSizeBinary(*width, Some(v.clone()))
        }
        (L::UInt128(v), P::Uuid, DataType::FixedSizeBinary(16)) => {
            ScalarValue::FixedSizeBinary(16, Some(v.to_be_bytes().to_vec()))
        }
        // A wider precision keeps the digits.
        (L::Int128(v), P::Decimal { scale, .. }, DataType::Decimal128(precision, to))
            if i64::from(*scale) == i64::from(*to) =>
        {
            ScalarValue::Decimal128(Some(*v), *precision, *to)
        }
        _ => return None,
    };
    Some(value)
}

/// A value that a query compares with as Iceberg's, to be hashed as Iceberg does. `None` if it is null or of another
/// type than the column.
pub(crate) fn datum(value: &ScalarValue, of: &PrimitiveType) -> Option<Datum> {
    use PrimitiveType as P;
    use ScalarValue as S;
    Some(match (value, of) {
        (S::Int32(Some(v)), P::Int) => Datum::int(*v),
        (S::Int64(Some(v)), P::Int) => Datum::int(i32::try_from(*v).ok()?),
        (S::Int64(Some(v)), P::Long) => Datum::long(*v),
        (S::Int32(Some(v)), P::Long) => Datum::long(*v),
        (S::Date32(Some(v)), P::Date) => Datum::date(*v),
        (S::Time64Microsecond(Some(v)), P::Time) => Datum::time_micros(*v).ok()?,
        (S::TimestampMicrosecond(Some(v), _), P::Timestamp) => Datum::timestamp_micros(*v),
        (S::TimestampMicrosecond(Some(v), _), P::Timestamptz) => Datum::timestamptz_micros(*v),
        (S::TimestampNanosecond(Some(v), _), P::TimestampNs) => Datum::timestamp_nanos(*v),
        (S::TimestampNanosecond(Some(v), _), P::TimestamptzNs) => Datum::timestamptz_nanos(*v),
        (S::Utf8(Some(v)) | S::Utf8View(Some(v)) | S::LargeUtf8(Some(v)), P::String) => {
            Datum::string(v)
        }
        (S::Binary(Some(v)) | S::BinaryView(Some(v)) | S::LargeBinary(Some(v)), P::Binary) => {
            Datum::binary(v.iter().copied())
        }
        (S::FixedSizeBinary(_, Some(v)), P::Fixed(_)) => Datum::fixed(v.iter().copied()),
        (S::FixedSizeBinary(16, Some(v)), P::Uuid) => Datum::uuid(uuid::Uuid::from_slice(v).ok()?),
        (S::Decimal128(Some(v), _, s), P::Decimal { scale, .. })
            if i64::from(*s) == i64::from(*scale) =>
        {
            Datum::try_from_bytes(&v.to_be_bytes(), of.clone()).ok()?
        }
        _ => return None,
    })
}

/// A lower bound that holds for both zeros: Arrow orders -0.0 before 0.0, and writers keep either as a bound.
pub(crate) fn below_zeros(value: ScalarValue) -> ScalarValue {
    match value {
        ScalarValue::Float32(v) => ScalarValue::Float32(v.map(|v| if v == 0.0 { -0.0 } else { v })),
        ScalarValue::Float64(v) => ScalarValue::Float64(v.map(|v| if v == 0.0 { -0.0 } else { v })),
        other => other,
    }
}

/// An upper bound that holds for both zeros.
pub(crate) fn above_zeros(value: ScalarValue) -> ScalarValue {
    match value {
        ScalarValue::Float32(v) => ScalarValue::Float32(v.map(|v| if v == 0.0 { 0.0 } else { v })),
        ScalarValue::Float64(v) => ScalarValue::Float64(v.map(|v| if v == 0.0 { 0.0 } else { v })),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(datum: Datum, target: DataType) -> Option<ScalarValue> {
        scalar(datum.literal(), datum.data_type(), &target)
    }

    #[test]
    fn promoted_columns_compare_with_old_bounds() {
        assert_eq!(
            of(Datum::int(7), DataType::Int64),
            Some(ScalarValue::Int64(Some(7)))
        );
        assert_eq!(
            of(Datum::float(1.5f32), DataType::Float64),
            Some(ScalarValue::Float64(Some(1.5)))
        );
        // 12.34 as decimal(9,2), now decimal(18,2).
        let old = PrimitiveType::Decimal {
            precision: 9,
            scale: 2,
        };
        assert_eq!(
            scalar(
                &PrimitiveLiteral::Int128(1234),
                &old,
                &DataType::Decimal128(18, 2)
            ),
            Some(ScalarValue::Decimal128(Some(1234), 18, 2))
        );
    }

    #[test]
    fn what_is_not_comparable_is_unknown() {
        assert_eq!(of(Datum::double(f64::NAN), DataType::Float64), None);
        assert_eq!(of(Datum::long(7i64), DataType::Int32), None);
        assert_eq!(of(Datum::string("7"), DataType::Int32), None);
        let other_scale = PrimitiveType::Decimal {
            precision: 9,
            scale: 3,
        };
        assert_eq!(
            scalar(
                &PrimitiveLiteral::Int128(1),
                &other_scale,
                &DataType::Decimal128(18, 2)
            ),
            None
        );
    }

    #[test]
    fn zero_bounds_hold_for_both_zeros() {
        // `==` on floats does not tell the zeros apart, their signs do.
        let sign = |value: ScalarValue| match value {
            ScalarValue::Float64(Some(v)) => v.is_sign_negative(),
            other => panic!("{other}"),
        };
        for zero in [0.0, -0.0] {
            assert!(sign(below_zeros(ScalarValue::Float64(Some(zero)))));
            assert!(!sign(above_zeros(ScalarValue::Float64(Some(zero)))));
        }
    }
}
