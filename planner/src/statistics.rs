//! What the optimiser learns of the files that a scan kept.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::filter;
use arrow::datatypes::{DataType, UInt64Type};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Statistics};
use datafusion::functions_aggregate::min_max::{MaxAccumulator, MinAccumulator};
use datafusion::logical_expr::Accumulator;
use datafusion::scalar::ScalarValue;
use iceberg::spec::DataFileFormat;
use tarn_catalog::DecodedManifest;

use crate::deletes::Applied;
use crate::distinct_values::DistinctValues;
use crate::prune::{ColumnBounds, TableColumn, TableLayout, column_bounds};

/// A column of variable width takes about this many times its compressed size in memory.
const DECODED_TO_COMPRESSED: u64 = 3;

/// The kept files of one manifest.
pub(crate) struct KeptFiles {
    pub(crate) manifest: Arc<DecodedManifest>,
    pub(crate) keep: BooleanArray,
    /// By their place in the manifest, the kept files that delete files apply to.
    pub(crate) deletes: HashMap<usize, DeletedRows>,
    /// The ids of the first rows of all the manifest's files; none are listed if they are not asked for.
    pub(crate) first_row_ids: Vec<Option<i64>>,
}

/// What is known, before they are read, of the delete files that apply to a data file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DeletedRows {
    pub(crate) files: Applied,
    /// Rows that they delete at most; `None` where equality deletes are among them.
    pub(crate) at_most: Option<u64>,
    /// A guess at how many they delete.
    pub(crate) expected: u64,
}

impl KeptFiles {
    pub(crate) fn indices(&self) -> impl Iterator<Item = usize> + '_ {
        self.keep.values().set_indices()
    }
}

/// Statistics of a scan's files for the columns of those names; of other columns nothing is said.
///
/// They are exact unless deletes apply to some file. Then they are guesses, since bounds and counts in manifests are of
/// what files hold, deleted rows included.
pub(crate) fn scan_statistics(
    kept: &[KeptFiles],
    columns: &BTreeSet<String>,
    layout: &TableLayout,
    distinct: &DistinctValues,
) -> Statistics {
    let mut statistics = Statistics::new_unknown(&layout.schema);
    let (mut rows, mut deleted, mut bytes) = (0u64, 0u64, 0u64);
    for files in kept {
        for i in files.indices() {
            let file = files.manifest.entries[i].data_file();
            rows += file.record_count();
            bytes += file.file_size_in_bytes();
            if let Some(deletes) = files.deletes.get(&i) {
                deleted += deletes.expected.min(file.record_count());
            }
        }
    }
    let with_deletes = kept
        .iter()
        .any(|files| files.indices().any(|i| files.deletes.contains_key(&i)));
    let left = rows - deleted;
    statistics.num_rows = Precision::Exact(rows as usize);
    statistics.total_byte_size = Precision::Inexact(bytes as usize);
    for (index, column) in layout.columns().iter().enumerate() {
        if !columns.contains(layout.schema.field(index).name()) || column.primitive.is_none() {
            continue;
        }
        let mut merged = MergedColumn::new(&column.arrow);
        for files in kept {
            let bounds = column_bounds(&files.manifest, column);
            merged.add(&bounds, files, column);
        }
        let known = distinct.get(column.field_id).map(|known| known.distinct);
        statistics.column_statistics[index] = merged.finish(&column.arrow, rows, known);
    }
    if with_deletes {
        statistics = statistics.to_inexact();
        statistics.num_rows = Precision::Inexact(left as usize);
        for column in &mut statistics.column_statistics {
            // As if the deleted rows had as many nulls as others.
            if let Precision::Inexact(nulls) = column.null_count {
                let part = nulls as u128 * u128::from(left) / u128::from(rows.max(1));
                column.null_count = Precision::Inexact(part as usize);
            }
        }
    }
    statistics
}

/// Statistics of one file, for the columns of those names: of all that it holds, deleted rows included. They serve to
/// leave files out and to take what is constant in one for a constant.
pub(crate) fn file_statistics(
    manifest: &DecodedManifest,
    index: usize,
    columns: &[(usize, Arc<ColumnBounds>)],
    layout: &TableLayout,
) -> Statistics {
    let file = manifest.entries[index].data_file();
    let mut statistics = Statistics::new_unknown(&layout.schema);
    statistics.num_rows = Precision::Exact(file.record_count() as usize);
    statistics.total_byte_size = Precision::Inexact(file.file_size_in_bytes() as usize);
    for (column, bounds) in columns {
        let data_type = &layout.columns()[*column].arrow;
        let value = |array| {
            ScalarValue::try_from_array(array, index)
                .ok()
                .filter(|value| !value.is_null())
                .map_or(Precision::Absent, |value| {
                    let exact = bounds.exact || has_exact_bounds(data_type, file.file_format());
                    precision(value, exact)
                })
        };
        let nulls = bounds.null_counts.as_primitive::<UInt64Type>();
        statistics.column_statistics[*column] = ColumnStatistics {
            null_count: match nulls.is_valid(index) {
                true => Precision::Exact(nulls.value(index) as usize),
                false => Precision::Absent,
            },
            min_value: value(&bounds.min),
            max_value: value(&bounds.max),
            ..ColumnStatistics::new_unknown()
        };
    }
    statistics
}

/// Whether bounds of files of that format are values of the column. Writers may cut strings and binary short, and floats
/// have values that bounds leave out. ORC knows the millisecond of a timestamp, and what is in the manifest is an end of it.
pub(crate) fn has_exact_bounds(data_type: &DataType, format: DataFileFormat) -> bool {
    match data_type {
        DataType::Boolean
        | DataType::Int32
        | DataType::Int64
        | DataType::Date32
        | DataType::Time64(_)
        | DataType::Decimal128(..) => true,
        DataType::Timestamp(..) => format != DataFileFormat::Orc,
        _ => false,
    }
}

fn precision(value: ScalarValue, exact: bool) -> Precision<ScalarValue> {
    match exact {
        true => Precision::Exact(value),
        false => Precision::Inexact(value),
    }
}

/// One column over all kept files.
struct MergedColumn {
    /// `None` if values of its type cannot be compared.
    min: Option<MinAccumulator>,
    max: Option<MaxAccumulator>,
    exact: bool,
    nulls: u64,
    nulls_unknown: bool,
    compressed_bytes: u64,
}

impl MergedColumn {
    fn new(data_type: &DataType) -> Self {
        Self {
            min: MinAccumulator::try_new(data_type).ok(),
            max: MaxAccumulator::try_new(data_type).ok(),
            exact: true,
            nulls: 0,
            nulls_unknown: false,
            compressed_bytes: 0,
        }
    }

    fn add(&mut self, bounds: &ColumnBounds, files: &KeptFiles, column: &TableColumn) {
        let nulls = bounds.null_counts.as_primitive::<UInt64Type>();
        for i in files.indices() {
            let file = files.manifest.entries[i].data_file();
            self.exact &= bounds.exact || has_exact_bounds(&column.arrow, file.file_format());
            self.compressed_bytes += file
                .column_sizes()
                .get(&column.field_id)
                .copied()
                .unwrap_or(0);
            if nulls.is_valid(i) {
                self.nulls += nulls.value(i);
            } else {
                self.nulls_unknown = true;
            }
            // A file that has values and no bounds leaves the whole without.
            if !(nulls.is_valid(i) && nulls.value(i) >= file.record_count()) {
                if bounds.min.is_null(i) {
                    self.min = None;
                }
                if bounds.max.is_null(i) {
                    self.max = None;
                }
            }
        }
        self.min = self
            .min
            .take()
            .and_then(|min| merge(min, &bounds.min, &files.keep));
        self.max = self
            .max
            .take()
            .and_then(|max| merge(max, &bounds.max, &files.keep));
    }

    fn finish(self, data_type: &DataType, rows: u64, distinct: Option<u64>) -> ColumnStatistics {
        let values = rows.saturating_sub(self.nulls);
        let byte_size = match data_type.primitive_width() {
            Some(width) => Precision::Inexact(rows as usize * width),
            // A view is 16 bytes beside the text.
            None if self.compressed_bytes > 0 => Precision::Inexact(
                (rows * 16 + self.compressed_bytes * DECODED_TO_COMPRESSED) as usize,
            ),
            None => Precision::Absent,
        };
        let mut min_value = value(self.min, self.exact);
        let mut max_value = value(self.max, self.exact);
        if is_whole_range(&min_value, &max_value) {
            (min_value, max_value) = (Precision::Absent, Precision::Absent);
        }
        ColumnStatistics {
            null_count: if self.nulls_unknown {
                Precision::Absent
            } else {
                Precision::Exact(self.nulls as usize)
            },
            min_value,
            max_value,
            byte_size,
            distinct_count: match (distinct, data_type.primitive_width()) {
                (Some(distinct), _) => Precision::Inexact(distinct.min(values.max(1)) as usize),
                (None, None) if self.compressed_bytes > 0 => {
                    Precision::Inexact(distinct_by_size(self.compressed_bytes, values) as usize)
                }
                _ => Precision::Absent,
            },
            ..ColumnStatistics::new_unknown()
        }
    }
}

/// A guess at the distinct values of a column that tells nothing else of them: a dictionary of `n` entries takes `log2(n)`
/// bits a row, so a column of so many bits has no more than that many values. Sorted values take next to nothing, few
/// or many; they are taken to be some.
fn distinct_by_size(compressed_bytes: u64, values: u64) -> u64 {
    const SOME: f64 = 10.0;
    let values = values.max(1) as f64;
    let bits = 8.0 * compressed_bytes as f64 / values;
    bits.exp2().max(SOME).min(values) as u64
}

/// Whether the bounds are the least and the greatest value of 64 bits. DataFusion counts the values between bounds in 64
/// bits, where these are one too many: it takes them for none, and fails when it divides by that.
fn is_whole_range(min: &Precision<ScalarValue>, max: &Precision<ScalarValue>) -> bool {
    let number = |value: &Precision<ScalarValue>| match value.get_value() {
        Some(ScalarValue::Int64(number))
        | Some(ScalarValue::TimestampMicrosecond(number, _))
        | Some(ScalarValue::TimestampNanosecond(number, _)) => *number,
        _ => None,
    };
    number(min) == Some(i64::MIN) && number(max) == Some(i64::MAX)
}

fn merge<A: Accumulator>(mut accumulator: A, bounds: &ArrayRef, keep: &BooleanArray) -> Option<A> {
    let kept = filter(bounds, keep).ok()?;
    accumulator.update_batch(&[kept]).ok()?;
    Some(accumulator)
}

fn value<A: Accumulator>(accumulator: Option<A>, exact: bool) -> Precision<ScalarValue> {
    match accumulator.map(|mut a| a.evaluate()) {
        Some(Ok(value)) if !value.is_null() => precision(value, exact),
        _ => Precision::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::distinct_by_size;

    #[test]
    fn the_size_of_a_column_bounds_its_distinct_values() {
        // 25 brands: 5 bits a row.
        assert_eq!(distinct_by_size(625, 1000), 32);
        assert_eq!(distinct_by_size(20_000, 1000), 1000);
        assert_eq!(distinct_by_size(3, 1000), 10);
        assert_eq!(distinct_by_size(100, 5), 5);
        assert_eq!(distinct_by_size(100, 0), 1);
    }
}
