//! Columns of the generated tables: their Iceberg types, and Arrow arrays built from rows.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array,
    StringBuilder, TimestampMicrosecondArray,
};
use iceberg::spec::{NestedField, PrimitiveType, Schema, Type};

use crate::error::{LakeError, Result};

/// A column's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Long,
    Int,
    Double,
    Bool,
    Text,
    Date,
    /// Microseconds, without time zone.
    Timestamp,
    /// Two places after the point.
    Decimal {
        precision: u32,
    },
}

/// A column: name, type, and whether it may be NULL.
pub(crate) type Column = (&'static str, Kind, bool);

pub(crate) fn schema(table: &str, columns: &[Column]) -> Result<Schema> {
    let fields = columns.iter().zip(1..).map(|((name, kind, nullable), id)| {
        let primitive = match kind {
            Kind::Long => PrimitiveType::Long,
            Kind::Int => PrimitiveType::Int,
            Kind::Double => PrimitiveType::Double,
            Kind::Bool => PrimitiveType::Boolean,
            Kind::Text => PrimitiveType::String,
            Kind::Date => PrimitiveType::Date,
            Kind::Timestamp => PrimitiveType::Timestamp,
            Kind::Decimal { precision } => PrimitiveType::Decimal {
                precision: *precision,
                scale: 2,
            },
        };
        let field = if *nullable {
            NestedField::optional(id, *name, Type::Primitive(primitive))
        } else {
            NestedField::required(id, *name, Type::Primitive(primitive))
        };
        Arc::new(field)
    });
    Schema::builder()
        .with_fields(fields)
        .build()
        .map_err(|source| LakeError::Schema {
            table: table.to_string(),
            source: Box::new(source),
        })
}

pub(crate) fn longs<R>(rows: &[R], value: impl Fn(&R) -> i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(rows.iter().map(value)))
}

pub(crate) fn longs_or_null<R>(rows: &[R], value: impl Fn(&R) -> Option<i64>) -> ArrayRef {
    Arc::new(rows.iter().map(value).collect::<Int64Array>())
}

pub(crate) fn ints<R>(rows: &[R], value: impl Fn(&R) -> i32) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(rows.iter().map(value)))
}

pub(crate) fn ints_or_null<R>(rows: &[R], value: impl Fn(&R) -> Option<i32>) -> ArrayRef {
    Arc::new(rows.iter().map(value).collect::<Int32Array>())
}

pub(crate) fn doubles<R>(rows: &[R], value: impl Fn(&R) -> f64) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(rows.iter().map(value)))
}

pub(crate) fn bools<R>(rows: &[R], value: impl Fn(&R) -> bool) -> ArrayRef {
    Arc::new(
        rows.iter()
            .map(|r| Some(value(r)))
            .collect::<BooleanArray>(),
    )
}

/// Days since 1970-01-01.
pub(crate) fn dates<R>(rows: &[R], value: impl Fn(&R) -> i32) -> ArrayRef {
    Arc::new(Date32Array::from_iter_values(rows.iter().map(value)))
}

/// Microseconds since 1970-01-01.
pub(crate) fn timestamps<R>(rows: &[R], value: impl Fn(&R) -> i64) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from_iter_values(
        rows.iter().map(value),
    ))
}

/// Hundredths.
pub(crate) fn decimals<R>(rows: &[R], precision: u8, value: impl Fn(&R) -> i64) -> ArrayRef {
    decimals_or_null(rows, precision, |r| Some(value(r)))
}

/// Hundredths.
pub(crate) fn decimals_or_null<R>(
    rows: &[R],
    precision: u8,
    value: impl Fn(&R) -> Option<i64>,
) -> ArrayRef {
    let values: Decimal128Array = rows.iter().map(|r| value(r).map(i128::from)).collect();
    let kind = arrow::datatypes::DataType::Decimal128(precision, 2);
    Arc::new(values.with_data_type(kind))
}

/// Texts, each written straight into the array.
pub(crate) fn texts<R, D: std::fmt::Display>(rows: &[R], value: impl Fn(&R) -> D) -> ArrayRef {
    use std::fmt::Write;
    let mut builder = StringBuilder::with_capacity(rows.len(), rows.len() * 16);
    for row in rows {
        // Writing into a StringBuilder only fails if the value's own Display does, and none of ours do.
        let _ = write!(builder, "{}", value(row));
        builder.append_value("");
    }
    Arc::new(builder.finish())
}

/// Texts that are there already as such.
pub(crate) fn strings<'a, R: 'a>(rows: &'a [R], value: impl Fn(&'a R) -> &'a str) -> ArrayRef {
    let mut builder = StringBuilder::with_capacity(rows.len(), rows.len() * 16);
    for row in rows {
        builder.append_value(value(row));
    }
    Arc::new(builder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::{DataType, Decimal128Type};

    #[test]
    fn decimals_are_hundredths() {
        let array = decimals_or_null(&[Some(1_234), None], 12, |v| *v);
        assert_eq!(array.data_type(), &DataType::Decimal128(12, 2));
        let array = array.as_primitive::<Decimal128Type>();
        assert_eq!(array.value_as_string(0), "12.34");
        assert!(array.is_null(1));
    }

    #[test]
    fn texts_are_displayed() {
        let array = texts(&[1, 22, 333], |v| v * 2);
        assert_eq!(
            array
                .as_string::<i32>()
                .iter()
                .flatten()
                .collect::<Vec<_>>(),
            ["2", "44", "666"]
        );
    }
}
