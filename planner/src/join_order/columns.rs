//! What is known, or guessed, of the values of one column.

use arrow::datatypes::DataType;
use datafusion::common::ColumnStatistics;
use datafusion::common::stats::Precision;
use datafusion::scalar::ScalarValue;

/// Bytes of a value of variable width of which nothing is known.
const UNKNOWN_WIDTH: f64 = 24.0;

/// A column of a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ColumnEstimate {
    /// Distinct values among the rows before other columns' filters: what a join finds partners in.
    pub distinct: f64,
    /// The part of the rows that is null.
    pub nulls: f64,
    /// The least and greatest value, as places on a line (see [`place`]).
    pub range: Option<(f64, f64)>,
    /// Bytes of a value.
    pub width: f64,
}

impl ColumnEstimate {
    /// Of a column of so many rows, of which nothing is known but its type.
    pub(crate) fn unknown(data_type: &DataType, rows: f64) -> Self {
        Self {
            distinct: match data_type {
                DataType::Boolean => 2.0,
                _ => rows.max(1.0),
            },
            nulls: 0.0,
            range: None,
            width: width_of(data_type),
        }
    }

    /// As statistics tell it.
    pub(crate) fn of_statistics(
        statistics: &ColumnStatistics,
        data_type: &DataType,
        rows: f64,
    ) -> Self {
        let nulls = number(&statistics.null_count).unwrap_or(0.0).min(rows);
        let values = (rows - nulls).max(1.0);
        let range = range(statistics);
        let distinct = counted_or_possible(statistics, data_type, range)
            .unwrap_or(values)
            .clamp(1.0, values);
        Self {
            distinct,
            nulls: if rows > 0.0 { nulls / rows } else { 0.0 },
            range,
            width: match data_type.primitive_width() {
                Some(width) => width as f64,
                None => number(&statistics.byte_size)
                    .filter(|_| rows > 0.0)
                    .map_or(UNKNOWN_WIDTH, |bytes| bytes / rows),
            },
        }
    }

    /// Of the same column where only a part of its values is left, evenly picked.
    pub(crate) fn with_part(self, part: f64) -> Self {
        Self {
            distinct: (self.distinct * part).max(1.0),
            ..self
        }
    }
}

/// The distinct values of a column of so many rows, if anything tells of them: a count, or bounds of a type with steps.
pub(crate) fn distinct_values(
    statistics: &ColumnStatistics,
    data_type: &DataType,
    rows: u64,
) -> Option<u64> {
    let nulls = number(&statistics.null_count).unwrap_or(0.0);
    let values = (rows as f64 - nulls).max(0.0);
    counted_or_possible(statistics, data_type, range(statistics))
        .map(|distinct| distinct.min(values).round() as u64)
}

fn number(value: &Precision<usize>) -> Option<f64> {
    value.get_value().map(|number| *number as f64)
}

fn range(statistics: &ColumnStatistics) -> Option<(f64, f64)> {
    let bound = |value: &Precision<ScalarValue>| value.get_value().and_then(place);
    bound(&statistics.min_value)
        .zip(bound(&statistics.max_value))
        .filter(|(min, max)| min <= max)
}

fn counted_or_possible(
    statistics: &ColumnStatistics,
    data_type: &DataType,
    range: Option<(f64, f64)>,
) -> Option<f64> {
    let counted = number(&statistics.distinct_count).filter(|distinct| *distinct >= 1.0);
    match (counted, possible_values(data_type, range)) {
        (Some(counted), Some(possible)) => Some(counted.min(possible)),
        (counted, possible) => counted.or(possible),
    }
}

/// Bytes of a value of that type.
pub(crate) fn width_of(data_type: &DataType) -> f64 {
    match data_type {
        DataType::Boolean => 1.0,
        _ => data_type
            .primitive_width()
            .map_or(UNKNOWN_WIDTH, |width| width as f64),
    }
}

/// How many values of a type that has steps lie between bounds.
fn possible_values(data_type: &DataType, range: Option<(f64, f64)>) -> Option<f64> {
    if *data_type == DataType::Boolean {
        return Some(2.0);
    }
    let (min, max) = range?;
    if min == max {
        return Some(1.0);
    }
    let steps = match data_type {
        data_type if data_type.is_integer() => 1.0,
        DataType::Date32 => 1.0,
        DataType::Decimal128(_, scale) => 10_f64.powi(i32::from(*scale)),
        _ => return None,
    };
    Some((max - min) * steps + 1.0)
}

/// Where a value lies among those of its type, so that differences tell how far apart values are. Texts go by their
/// first bytes.
pub(crate) fn place(value: &ScalarValue) -> Option<f64> {
    let of_text = |text: &[u8]| {
        let mut bytes = [0_u8; 8];
        for (to, from) in bytes.iter_mut().zip(text) {
            *to = *from;
        }
        u64::from_be_bytes(bytes) as f64
    };
    Some(match value {
        ScalarValue::Boolean(Some(value)) => f64::from(u8::from(*value)),
        ScalarValue::Int8(Some(value)) => f64::from(*value),
        ScalarValue::Int16(Some(value)) => f64::from(*value),
        ScalarValue::Int32(Some(value)) | ScalarValue::Date32(Some(value)) => f64::from(*value),
        ScalarValue::Int64(Some(value)) | ScalarValue::Time64Microsecond(Some(value)) => {
            *value as f64
        }
        ScalarValue::UInt8(Some(value)) => f64::from(*value),
        ScalarValue::UInt16(Some(value)) => f64::from(*value),
        ScalarValue::UInt32(Some(value)) => f64::from(*value),
        ScalarValue::UInt64(Some(value)) => *value as f64,
        ScalarValue::Float32(Some(value)) => f64::from(*value),
        ScalarValue::Float64(Some(value)) => *value,
        ScalarValue::Decimal128(Some(value), _, scale) => {
            *value as f64 / 10_f64.powi(i32::from(*scale))
        }
        // In microseconds, whatever their unit.
        ScalarValue::TimestampSecond(Some(value), _) => *value as f64 * 1e6,
        ScalarValue::TimestampMillisecond(Some(value), _) => *value as f64 * 1e3,
        ScalarValue::TimestampMicrosecond(Some(value), _) => *value as f64,
        ScalarValue::TimestampNanosecond(Some(value), _) => *value as f64 / 1e3,
        ScalarValue::Utf8(Some(text))
        | ScalarValue::LargeUtf8(Some(text))
        | ScalarValue::Utf8View(Some(text)) => of_text(text.as_bytes()),
        ScalarValue::Binary(Some(bytes)) | ScalarValue::BinaryView(Some(bytes)) => of_text(bytes),
        ScalarValue::Dictionary(_, value) => return place(value),
        _ => return None,
    })
    .filter(|place: &f64| place.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(min: ScalarValue, max: ScalarValue, rows: f64) -> ColumnEstimate {
        let data_type = min.data_type();
        let statistics = ColumnStatistics {
            min_value: Precision::Exact(min),
            max_value: Precision::Exact(max),
            null_count: Precision::Exact(0),
            ..ColumnStatistics::new_unknown()
        };
        ColumnEstimate::of_statistics(&statistics, &data_type, rows)
    }

    #[test]
    fn bounds_of_types_with_steps_bound_the_distinct_values() {
        let int = |value| ScalarValue::Int32(Some(value));
        assert_eq!(of(int(1), int(25), 1000.0).distinct, 25.0);
        assert_eq!(of(int(1), int(1_000_000), 1000.0).distinct, 1000.0);
        let date = |value| ScalarValue::Date32(Some(value));
        assert_eq!(of(date(10), date(19), 1000.0).distinct, 10.0);
        // 0.00, 0.01 … 0.10
        let decimal = |value| ScalarValue::Decimal128(Some(value), 15, 2);
        assert_eq!(of(decimal(0), decimal(10), 1000.0).distinct, 11.0);
        let double = |value| ScalarValue::Float64(Some(value));
        assert_eq!(of(double(0.0), double(1.0), 1000.0).distinct, 1000.0);
    }

    #[test]
    fn a_count_that_is_more_than_the_rows_or_none_is_not_believed() {
        let statistics = |distinct| ColumnStatistics {
            distinct_count: Precision::Inexact(distinct),
            null_count: Precision::Exact(40),
            ..ColumnStatistics::new_unknown()
        };
        let distinct = |count| {
            ColumnEstimate::of_statistics(&statistics(count), &DataType::Utf8, 100.0).distinct
        };
        assert_eq!(distinct(7), 7.0);
        assert_eq!(distinct(5000), 60.0);
        assert_eq!(distinct(0), 60.0);
    }

    #[test]
    fn texts_lie_in_their_order() {
        let text = |text: &str| place(&ScalarValue::from(text)).expect("a place");
        assert!(text("a") < text("ab"));
        assert!(text("ab") < text("b"));
        assert_eq!(place(&ScalarValue::Utf8(None)), None);
    }
}
