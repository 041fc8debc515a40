//! A data file's metrics: what pruning looks at. Spec: "Column Metrics" of the manifest's `data_file`.

use std::collections::HashMap;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type};
use iceberg::spec::{Datum, PrimitiveLiteral, PrimitiveType, Schema, Type};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::statistics::Statistics;

/// The metadata key of an Arrow field's Iceberg id.
pub(crate) const FIELD_ID_KEY: &str = "PARQUET:field_id";

/// What is kept of a column's metrics. Table property `write.metadata.metrics.*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetricsMode {
    None,
    /// No bounds.
    Counts,
    /// Bounds of strings and binaries cut to so many characters or bytes.
    Truncate(usize),
    Full,
}

impl MetricsMode {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "none" => Some(Self::None),
            "counts" => Some(Self::Counts),
            "full" => Some(Self::Full),
            other => {
                let length: usize = other
                    .strip_prefix("truncate(")?
                    .strip_suffix(')')?
                    .trim()
                    .parse()
                    .ok()?;
                (length > 0).then_some(Self::Truncate(length))
            }
        }
    }
}

/// The mode of every column.
#[derive(Debug)]
pub(crate) struct MetricsModes {
    default: MetricsMode,
    by_field_id: HashMap<i32, MetricsMode>,
}

impl MetricsModes {
    pub(crate) fn new(
        properties: &HashMap<String, String>,
        schema: &Schema,
    ) -> Result<Self, String> {
        let parse = |key: &str, value: &str| {
            MetricsMode::parse(value).ok_or_else(|| format!("property '{key}' cannot be '{value}'"))
        };
        let mut modes = Self {
            default: MetricsMode::Truncate(16),
            by_field_id: HashMap::new(),
        };
        for (key, value) in properties {
            if key == "write.metadata.metrics.default" {
                modes.default = parse(key, value)?;
            } else if let Some(column) = key.strip_prefix("write.metadata.metrics.column.")
                && let Some(field) = schema.field_by_name(column)
            {
                modes.by_field_id.insert(field.id, parse(key, value)?);
            }
        }
        Ok(modes)
    }

    fn of(&self, field_id: i32) -> MetricsMode {
        self.by_field_id
            .get(&field_id)
            .copied()
            .unwrap_or(self.default)
    }
}

/// The metrics of one file, by field id.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct FileMetrics {
    pub(crate) column_sizes: HashMap<i32, u64>,
    pub(crate) value_counts: HashMap<i32, u64>,
    pub(crate) null_value_counts: HashMap<i32, u64>,
    pub(crate) nan_value_counts: HashMap<i32, u64>,
    pub(crate) lower_bounds: HashMap<i32, Datum>,
    pub(crate) upper_bounds: HashMap<i32, Datum>,
    /// Where row groups start.
    pub(crate) split_offsets: Vec<i64>,
}

/// A column's bounds over the row groups seen so far.
enum Bounds {
    /// Only nulls and NaNs so far.
    Empty,
    Known(Datum, Datum),
    /// A row group had values but no usable bounds: nothing can be said of the file.
    Unknown,
}

/// Collects the metrics of a file from its footer; NaNs, which Parquet does not count, were counted while encoding.
pub(crate) fn file_metrics(
    schema: &Schema,
    modes: &MetricsModes,
    footer: &ParquetMetaData,
    nan_value_counts: &HashMap<i32, u64>,
) -> FileMetrics {
    let mut metrics = FileMetrics::default();
    let mut bounds: HashMap<i32, Bounds> = HashMap::new();
    for row_group in footer.row_groups() {
        for column in row_group.columns() {
            let descriptor = column.column_descr();
            let info = descriptor.self_type().get_basic_info();
            if !info.has_id() {
                continue;
            }
            let id = info.id();
            *metrics.column_sizes.entry(id).or_default() += column.compressed_size() as u64;
            if modes.of(id) == MetricsMode::None {
                continue;
            }
            let values = column.num_values() as u64;
            *metrics.value_counts.entry(id).or_default() += values;
            let nulls = column.statistics().and_then(Statistics::null_count_opt);
            if let Some(nulls) = nulls {
                *metrics.null_value_counts.entry(id).or_default() += nulls;
            }
            // Of repeated values, bounds have no meaning to readers.
            if modes.of(id) == MetricsMode::Counts || descriptor.max_rep_level() > 0 {
                continue;
            }
            let Some(Type::Primitive(kind)) = schema
                .field_by_id(id)
                .map(|field| field.field_type.as_ref())
            else {
                continue;
            };
            let here = column.statistics().and_then(|s| {
                let (low, high) = (s.min_bytes_opt()?, s.max_bytes_opt()?);
                Some((datum(kind, low)?, datum(kind, high)?))
            });
            let only_nulls = nulls == Some(values);
            let so_far = bounds.entry(id).or_insert(Bounds::Empty);
            *so_far = match (std::mem::replace(so_far, Bounds::Unknown), here) {
                (Bounds::Unknown, _) => Bounds::Unknown,
                (known, None) if only_nulls => known,
                (_, None) => Bounds::Unknown,
                (Bounds::Empty, Some((low, high))) => Bounds::Known(low, high),
                (Bounds::Known(low, high), Some((other_low, other_high))) => Bounds::Known(
                    if other_low < low { other_low } else { low },
                    if other_high > high { other_high } else { high },
                ),
            };
        }
        let start = row_group.columns().first().map(|column| {
            column
                .dictionary_page_offset()
                .map_or(column.data_page_offset(), |o| {
                    o.min(column.data_page_offset())
                })
        });
        metrics.split_offsets.extend(start);
    }
    for (id, bounds) in bounds {
        let Bounds::Known(low, high) = bounds else {
            continue;
        };
        let (low, high) = match modes.of(id) {
            MetricsMode::Truncate(length) => (Some(cut_low(low, length)), cut_high(high, length)),
            _ => (Some(low), Some(high)),
        };
        metrics.lower_bounds.extend(low.map(|low| (id, low)));
        metrics.upper_bounds.extend(high.map(|high| (id, high)));
    }
    let counted = nan_value_counts
        .iter()
        .filter(|(id, _)| modes.of(**id) != MetricsMode::None);
    metrics.nan_value_counts = counted.map(|(id, count)| (*id, *count)).collect();
    metrics
}

/// A statistic of Parquet as Iceberg's value; `None` if it is not a value of that type.
fn datum(kind: &PrimitiveType, bytes: &[u8]) -> Option<Datum> {
    let int = || Some(i32::from_le_bytes(bytes.try_into().ok()?));
    let long = || Some(i64::from_le_bytes(bytes.try_into().ok()?));
    Some(match kind {
        PrimitiveType::Boolean => Datum::bool(*bytes.first()? != 0),
        PrimitiveType::Int => Datum::int(int()?),
        PrimitiveType::Date => Datum::date(int()?),
        PrimitiveType::Long => Datum::long(long()?),
        PrimitiveType::Time => Datum::time_micros(long()?).ok()?,
        PrimitiveType::Timestamp => Datum::timestamp_micros(long()?),
        PrimitiveType::Timestamptz => Datum::timestamptz_micros(long()?),
        PrimitiveType::TimestampNs => Datum::timestamp_nanos(long()?),
        PrimitiveType::TimestamptzNs => Datum::timestamptz_nanos(long()?),
        PrimitiveType::Float => {
            let value = f32::from_le_bytes(bytes.try_into().ok()?);
            (!value.is_nan()).then(|| Datum::float(value))?
        }
        PrimitiveType::Double => {
            let value = f64::from_le_bytes(bytes.try_into().ok()?);
            (!value.is_nan()).then(|| Datum::double(value))?
        }
        PrimitiveType::String => Datum::string(std::str::from_utf8(bytes).ok()?),
        PrimitiveType::Binary => Datum::binary(bytes.iter().copied()),
        PrimitiveType::Fixed(_) => Datum::fixed(bytes.iter().copied()),
        PrimitiveType::Uuid => Datum::uuid(uuid::Uuid::from_slice(bytes).ok()?),
        PrimitiveType::Decimal { precision, .. } => {
            // Parquet stores up to 9 digits as an int, up to 18 as a long, and more as big-endian bytes.
            let unscaled = match precision {
                0..=9 if bytes.len() == 4 => i128::from(int()?),
                0..=18 if bytes.len() == 8 => i128::from(long()?),
                _ => big_endian(bytes)?,
            };
            Datum::try_from_bytes(&unscaled.to_be_bytes(), kind.clone()).ok()?
        }
    })
}

fn big_endian(bytes: &[u8]) -> Option<i128> {
    if bytes.is_empty() || bytes.len() > 16 {
        return None;
    }
    let fill = if bytes[0] & 0x80 != 0 { 0xff } else { 0 };
    let mut wide = [fill; 16];
    wide[16 - bytes.len()..].copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}

/// A prefix is no greater than the whole.
fn cut_low(low: Datum, length: usize) -> Datum {
    match low.literal() {
        PrimitiveLiteral::String(text) if text.chars().count() > length => {
            Datum::string(text.chars().take(length).collect::<String>())
        }
        PrimitiveLiteral::Binary(bytes)
            if bytes.len() > length && *low.data_type() == PrimitiveType::Binary =>
        {
            Datum::binary(bytes[..length].iter().copied())
        }
        _ => low,
    }
}

/// A prefix whose last part was raised is greater than the whole; `None` if no part can be.
fn cut_high(high: Datum, length: usize) -> Option<Datum> {
    match high.literal() {
        PrimitiveLiteral::String(text) if text.chars().count() > length => {
            let mut prefix: Vec<char> = text.chars().take(length).collect();
            while let Some(last) = prefix.pop() {
                if let Some(next) = next_char(last) {
                    prefix.push(next);
                    return Some(Datum::string(prefix.into_iter().collect::<String>()));
                }
            }
            None
        }
        PrimitiveLiteral::Binary(bytes)
            if bytes.len() > length && *high.data_type() == PrimitiveType::Binary =>
        {
            let mut prefix = bytes[..length].to_vec();
            while let Some(last) = prefix.pop() {
                if last < u8::MAX {
                    prefix.push(last + 1);
                    return Some(Datum::binary(prefix));
                }
            }
            None
        }
        _ => Some(high),
    }
}

/// The next code point, over the gap of the surrogates.
fn next_char(c: char) -> Option<char> {
    match c {
        '\u{d7ff}' => Some('\u{e000}'),
        c => char::from_u32(c as u32 + 1),
    }
}

/// Adds the NaNs of a column to `counts`, by field id; looks into structs, not into lists and maps.
pub(crate) fn count_nans(field: &Field, array: &ArrayRef, counts: &mut HashMap<i32, u64>) {
    let nans = match field.data_type() {
        DataType::Float32 => array
            .as_primitive::<Float32Type>()
            .iter()
            .flatten()
            .filter(|v| v.is_nan())
            .count(),
        DataType::Float64 => array
            .as_primitive::<Float64Type>()
            .iter()
            .flatten()
            .filter(|v| v.is_nan())
            .count(),
        DataType::Struct(fields) => {
            for (child, column) in fields.iter().zip(array.as_struct().columns()) {
                count_nans(child, column, counts);
            }
            return;
        }
        _ => return,
    };
    if let Some(id) = field
        .metadata()
        .get(FIELD_ID_KEY)
        .and_then(|id| id.parse().ok())
    {
        *counts.entry(id).or_default() += nans as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_parsed() {
        for (text, mode) in [
            ("none", Some(MetricsMode::None)),
            ("Counts", Some(MetricsMode::Counts)),
            ("truncate(16)", Some(MetricsMode::Truncate(16))),
            ("full", Some(MetricsMode::Full)),
            ("truncate(0)", None),
            ("truncate", None),
            ("16", None),
        ] {
            assert_eq!(MetricsMode::parse(text), mode, "{text}");
        }
    }

    #[test]
    fn bounds_are_cut_outwards() {
        assert_eq!(cut_low(Datum::string("abcdef"), 3), Datum::string("abc"));
        assert_eq!(
            cut_high(Datum::string("abcdef"), 3),
            Some(Datum::string("abd"))
        );
        assert_eq!(
            cut_high(Datum::string("abc"), 3),
            Some(Datum::string("abc"))
        );
        assert_eq!(
            cut_high(Datum::string("a\u{10ffff}\u{10ffff}x"), 3),
            Some(Datum::string("b"))
        );
        assert_eq!(cut_high(Datum::string("\u{10ffff}\u{10ffff}x"), 2), None);
        assert_eq!(
            cut_high(Datum::string("\u{d7ff}xx"), 1),
            Some(Datum::string("\u{e000}"))
        );
        assert_eq!(
            cut_high(Datum::binary([1, 255, 9]), 2),
            Some(Datum::binary([2]))
        );
        assert_eq!(cut_high(Datum::binary([255, 255, 9]), 2), None);
        assert_eq!(cut_low(Datum::long(5), 1), Datum::long(5));
    }

    #[test]
    fn decimals_of_every_width() {
        let kind = |precision| PrimitiveType::Decimal {
            precision,
            scale: 2,
        };
        let is = |precision, value: i128| Some((kind(precision), PrimitiveLiteral::Int128(value)));
        let datum = |kind: &PrimitiveType, bytes: &[u8]| {
            datum(kind, bytes).map(|datum| (datum.data_type().clone(), datum.literal().clone()))
        };
        assert_eq!(datum(&kind(9), &(-123i32).to_le_bytes()), is(9, -123));
        assert_eq!(datum(&kind(18), &(-123i64).to_le_bytes()), is(18, -123));
        assert_eq!(datum(&kind(20), &[0xff, 0x85]), is(20, -123));
        assert_eq!(datum(&kind(20), &[0x00, 0x85]), is(20, 133));
        assert_eq!(datum(&kind(20), &[]), None);
    }
}
