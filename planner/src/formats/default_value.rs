//! The value that a column has in files that were written before it was added (format version 3, "Default values").

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::scalar::ScalarValue;
use iceberg::spec::{Literal, NestedField, PrimitiveLiteral};

use super::error::FormatError;

/// The value of `field` for the rows of a file that lacks it, in the type that a scan gives it: its initial default,
/// or null. An error if it can be neither.
pub(crate) fn missing_value(
    field: &NestedField,
    target: &DataType,
) -> Result<ScalarValue, FormatError> {
    match &field.initial_default {
        Some(Literal::Primitive(literal)) => primitive(literal, target).ok_or_else(|| {
            FormatError::column(
                &field.name,
                format!("has an initial default that is not of its type {target}"),
            )
        }),
        Some(_) => Err(FormatError::column(
            &field.name,
            "has an initial default of a nested type, which is not supported",
        )),
        None if field.required => Err(FormatError::column(
            &field.name,
            "is required by the table, but the file does not have it",
        )),
        None => Ok(ScalarValue::try_from(target)?),
    }
}

/// The value that an INSERT gives a column which it leaves out, in the type of the table's Arrow schema: the column's
/// write default, or null. `None` if the default cannot be written.
pub fn write_default(field: &NestedField, target: &DataType) -> Option<ScalarValue> {
    match &field.write_default {
        Some(Literal::Primitive(literal)) => primitive(literal, target),
        Some(_) => None,
        None => ScalarValue::try_from(target).ok(),
    }
}

fn primitive(literal: &PrimitiveLiteral, target: &DataType) -> Option<ScalarValue> {
    use PrimitiveLiteral as L;
    use ScalarValue as S;
    Some(match (literal, target) {
        (L::Boolean(v), DataType::Boolean) => S::Boolean(Some(*v)),
        (L::Int(v), DataType::Int32) => S::Int32(Some(*v)),
        (L::Int(v), DataType::Int64) => S::Int64(Some(i64::from(*v))),
        (L::Int(v), DataType::Date32) => S::Date32(Some(*v)),
        (L::Long(v), DataType::Int64) => S::Int64(Some(*v)),
        (L::Long(v), DataType::Time64(TimeUnit::Microsecond)) => S::Time64Microsecond(Some(*v)),
        (L::Long(v), DataType::Timestamp(TimeUnit::Microsecond, zone)) => {
            S::TimestampMicrosecond(Some(*v), zone.clone())
        }
        (L::Long(v), DataType::Timestamp(TimeUnit::Nanosecond, zone)) => {
            S::TimestampNanosecond(Some(*v), zone.clone())
        }
        (L::Float(v), DataType::Float32) => S::Float32(Some(v.0)),
        (L::Float(v), DataType::Float64) => S::Float64(Some(f64::from(v.0))),
        (L::Double(v), DataType::Float64) => S::Float64(Some(v.0)),
        (L::String(v), DataType::Utf8) => S::Utf8(Some(v.clone())),
        (L::String(v), DataType::Utf8View) => S::Utf8View(Some(v.clone())),
        (L::String(v), DataType::LargeUtf8) => S::LargeUtf8(Some(v.clone())),
        (L::Binary(v), DataType::LargeBinary) => S::LargeBinary(Some(v.clone())),
        (L::Binary(v), DataType::Binary) => S::Binary(Some(v.clone())),
        (L::Binary(v), DataType::BinaryView) => S::BinaryView(Some(v.clone())),
        (L::Binary(v), DataType::FixedSizeBinary(width))
            if usize::try_from(*width).is_ok_and(|width| width == v.len()) =>
        {
            S::FixedSizeBinary(*width, Some(v.clone()))
        }
        (L::UInt128(v), DataType::FixedSizeBinary(16)) => {
            S::FixedSizeBinary(16, Some(v.to_be_bytes().to_vec()))
        }
        (L::Int128(v), DataType::Decimal128(precision, scale)) => {
            S::Decimal128(Some(*v), *precision, *scale)
        }
        _ => return None,
    })
}
