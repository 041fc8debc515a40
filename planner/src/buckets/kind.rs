//! Which types share a bucket hash.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, TimeUnit};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};

/// Types whose equal values have equal bucket hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BucketKind {
    /// `int` and `long`.
    Integer,
    Date,
    Time,
    /// `timestamp` and `timestamptz`, in microseconds.
    Timestamp,
    /// Of that scale: the hash is of the unscaled value.
    Decimal(i8),
    Text,
    Binary,
    /// `fixed` and `uuid`.
    Fixed,
}

impl BucketKind {
    /// The kind of a type; `None` for types that have no buckets, or whose buckets are not used.
    pub(crate) fn of(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Int32 | DataType::Int64 => Self::Integer,
            DataType::Date32 => Self::Date,
            DataType::Time64(TimeUnit::Microsecond) => Self::Time,
            DataType::Timestamp(TimeUnit::Microsecond, _) => Self::Timestamp,
            DataType::Decimal128(_, scale) => Self::Decimal(*scale),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::Text,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Self::Binary,
            DataType::FixedSizeBinary(_) => Self::Fixed,
            _ => return None,
        })
    }
}

/// The column whose values an expression has: the column itself, or one that is cast to a type that holds all its values
/// and hashes them alike.
pub(crate) fn column_of(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<usize> {
    if let Some(column) = expr.downcast_ref::<Column>() {
        return Some(column.index());
    }
    let cast = expr.downcast_ref::<CastExpr>()?;
    let column = column_of(cast.expr(), schema)?;
    let from = cast.expr().data_type(schema).ok()?;
    keeps_values(&from, cast.cast_type()).then_some(column)
}

/// Whether a cast gives each value one of the same bucket, and gives no two values the same one.
fn keeps_values(from: &DataType, to: &DataType) -> bool {
    if BucketKind::of(from).is_none() || BucketKind::of(from) != BucketKind::of(to) {
        return false;
    }
    match (from, to) {
        (DataType::Int64, DataType::Int32) => false,
        (DataType::Decimal128(from, _), DataType::Decimal128(to, _)) => from <= to,
        // Between zones that are not UTC, values are moved.
        (DataType::Timestamp(_, from), DataType::Timestamp(_, to)) => {
            from == to || [from, to].iter().all(|zone| is_utc(zone.as_deref()))
        }
        (DataType::FixedSizeBinary(from), DataType::FixedSizeBinary(to)) => from == to,
        _ => true,
    }
}

fn is_utc(zone: Option<&str>) -> bool {
    zone.is_none_or(|zone| zone == "UTC" || zone == "+00:00")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_casts_that_keep_all_values_keep_buckets() {
        use DataType::*;
        let cases = [
            (Int32, Int64, true),
            (Int64, Int32, false),
            (Int64, Float64, false),
            (Int32, Decimal128(20, 0), false),
            (Decimal128(9, 2), Decimal128(12, 2), true),
            (Decimal128(12, 2), Decimal128(9, 2), false),
            (Decimal128(9, 2), Decimal128(12, 3), false),
            (Utf8View, Utf8, true),
            (Utf8, BinaryView, false),
            (Date32, Timestamp(TimeUnit::Microsecond, None), false),
            (
                Timestamp(TimeUnit::Microsecond, None),
                Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
                true,
            ),
            (
                Timestamp(TimeUnit::Microsecond, None),
                Timestamp(TimeUnit::Microsecond, Some("Asia/Tokyo".into())),
                false,
            ),
            (
                Timestamp(TimeUnit::Microsecond, None),
                Timestamp(TimeUnit::Second, None),
                false,
            ),
            (FixedSizeBinary(16), FixedSizeBinary(8), false),
        ];
        for (from, to, keeps) in cases {
            assert_eq!(keeps_values(&from, &to), keeps, "{from} to {to}");
        }
    }
}
