//! What the entries of a manifest say of one column, as arrays: a value for each file.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt64Array};
use arrow::compute::nullif;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use datafusion::scalar::ScalarValue;
use iceberg::spec::{Datum, Literal, PrimitiveLiteral, Transform};
use tarn_catalog::DecodedManifest;

use super::partition_layout::{PartitionColumn, TableColumn};
use super::transform_bounds;
use super::values::{above_zeros, below_zeros, scalar};
use crate::scan::is_row_lineage;

/// Bounds and null counts of one column, for each file of a manifest or each manifest of a list.
#[derive(Debug)]
pub(crate) struct ColumnBounds {
    /// No value is smaller. Null where unknown.
    pub lower: ArrayRef,
    /// No value is larger. Null where unknown.
    pub upper: ArrayRef,
    /// Null where unknown.
    pub null_counts: ArrayRef,
    /// The smallest and largest value as the file's metrics have them, before partition values narrowed them.
    pub min: ArrayRef,
    pub max: ArrayRef,
    /// `min` and `max` are values of the column, for certain: its partition values.
    pub exact: bool,
}

/// One row of [`ColumnBounds`] in the making.
#[derive(Debug, Default, Clone)]
pub(crate) struct Bounds {
    pub lower: Option<ScalarValue>,
    pub upper: Option<ScalarValue>,
    pub nulls: Option<u64>,
}

impl Bounds {
    /// Both sides know: the tighter bound holds.
    pub(crate) fn narrow(&mut self, lower: Option<ScalarValue>, upper: Option<ScalarValue>) {
        narrow_one(&mut self.lower, lower.map(below_zeros), Ordering::Greater);
        narrow_one(&mut self.upper, upper.map(above_zeros), Ordering::Less);
    }

    /// Bounds that contradict each other are none.
    pub(crate) fn drop_inverted(&mut self) {
        if let (Some(lower), Some(upper)) = (&self.lower, &self.upper)
            && !matches!(
                lower.partial_cmp(upper),
                Some(Ordering::Less | Ordering::Equal)
            )
            && !(is_zero(lower) && is_zero(upper))
        {
            self.lower = None;
            self.upper = None;
        }
    }
}

fn is_zero(value: &ScalarValue) -> bool {
    matches!(
        value,
        ScalarValue::Float32(Some(0.0)) | ScalarValue::Float64(Some(0.0))
    )
}

fn narrow_one(known: &mut Option<ScalarValue>, other: Option<ScalarValue>, tighter: Ordering) {
    let Some(other) = other else { return };
    let replace = match known {
        None => true,
        Some(known) => other.partial_cmp(known) == Some(tighter),
    };
    if replace {
        *known = Some(other);
    }
}

/// The bounds of a column in a manifest's files; derived once and kept with the decoded manifest.
pub(crate) fn column_bounds(manifest: &DecodedManifest, column: &TableColumn) -> Arc<ColumnBounds> {
    // A column that was promoted since has other arrays.
    let kind = match (&column.bucket, column.numbers) {
        (Some(bucket), _) => bucket.to_string(),
        (None, true) => "numbers".to_owned(),
        (None, false) => "bounds".to_owned(),
    };
    let key = format!("{kind}:{}:{}", column.field_id, column.arrow);
    manifest.memo(&key, |manifest| derive(manifest, column))
}

fn derive(manifest: &DecodedManifest, column: &TableColumn) -> ColumnBounds {
    if column.bucket.is_some() {
        let rows: Vec<Bounds> = manifest
            .entries
            .iter()
            .map(|entry| {
                let field = column.buckets_field(manifest.partition_spec_id);
                let file = entry.data_file();
                let value =
                    field.and_then(|f| partition_value(file.partition().fields().get(f.position)));
                bucket_bounds(value, file.record_count())
            })
            .collect();
        return ColumnBounds::of_rows(&rows, &column.arrow);
    }
    let partitions = column.partitions_of(manifest.partition_spec_id);
    // One partition may hold zeros of both signs, and several NaNs.
    let identity = column
        .identity_of(manifest.partition_spec_id)
        .filter(|_| !matches!(column.arrow, DataType::Float32 | DataType::Float64));
    let mut all = Vec::with_capacity(manifest.entries.len());
    let mut raw = Vec::with_capacity(manifest.entries.len());
    for entry in &manifest.entries {
        let file = entry.data_file();
        let id = column.field_id;
        if is_row_lineage(id) {
            all.push(Bounds::default());
            raw.push(Bounds::default());
            continue;
        }
        let mut bounds = Bounds {
            nulls: file.null_value_counts().get(&id).copied(),
            ..Bounds::default()
        };
        let nans = file.nan_value_counts().get(&id).copied();
        if column.numbers {
            bounds.nulls = bounds.nulls.and_then(|nulls| nulls.checked_add(nans?));
        }
        // NaN is no bound, yet larger than all numbers in SQL: bounds of a column that may hold it hold for less
        // than all of its values.
        let may_be_nan = matches!(column.arrow, DataType::Float32 | DataType::Float64)
            && !column.numbers
            && nans != Some(0);
        if !may_be_nan {
            let of = |datum: Option<&Datum>| {
                datum.and_then(|d| scalar(d.literal(), d.data_type(), &column.arrow))
            };
            bounds.narrow(
                of(file.lower_bounds().get(&id)),
                of(file.upper_bounds().get(&id)),
            );
        }
        bounds.drop_inverted();
        let mut known = bounds.clone();
        for field in partitions {
            let value = partition_value(file.partition().fields().get(field.position));
            let Some(value) = value else { continue };
            narrow_by_partition(&mut bounds, field, value, column, file.record_count());
            if field.transform == Transform::Identity {
                let exact = value.and_then(|v| scalar(v, &field.source, &column.arrow));
                if exact.is_some() {
                    (known.lower, known.upper) = (exact.clone(), exact);
                }
                known.nulls = known.nulls.or(bounds.nulls);
            }
        }
        bounds.drop_inverted();
        all.push(bounds);
        raw.push(known);
    }
    let null_counts: UInt64Array = raw
        .iter()
        .zip(&all)
        .map(|(raw, all)| all.nulls.or(raw.nulls))
        .collect();
    ColumnBounds {
        lower: array(all.iter().map(|b| b.lower.as_ref()), &column.arrow),
        upper: array(all.iter().map(|b| b.upper.as_ref()), &column.arrow),
        null_counts: Arc::new(null_counts),
        min: array(raw.iter().map(|b| b.lower.as_ref()), &column.arrow),
        max: array(raw.iter().map(|b| b.upper.as_ref()), &column.arrow),
        exact: identity.is_some(),
    }
}

/// What the number of a file's bucket says.
fn bucket_bounds(value: Option<Option<&PrimitiveLiteral>>, rows: u64) -> Bounds {
    match value {
        // The bucket of null is null, and that of all else is not.
        Some(None) => Bounds {
            nulls: Some(rows),
            ..Bounds::default()
        },
        Some(Some(PrimitiveLiteral::Int(number))) => {
            let number = Some(ScalarValue::Int32(Some(*number)));
            Bounds {
                lower: number.clone(),
                upper: number,
                nulls: Some(0),
            }
        }
        _ => Bounds::default(),
    }
}

/// A partition value, if it is one that can be looked at: `Some(None)` is null.
fn partition_value(value: Option<&Option<Literal>>) -> Option<Option<&PrimitiveLiteral>> {
    match value {
        Some(None) => Some(None),
        Some(Some(Literal::Primitive(value))) => Some(Some(value)),
        _ => None,
    }
}

fn narrow_by_partition(
    bounds: &mut Bounds,
    field: &PartitionColumn,
    value: Option<&PrimitiveLiteral>,
    column: &TableColumn,
    rows: u64,
) {
    let arrow = &column.arrow;
    if matches!(field.transform, Transform::Void | Transform::Unknown) {
        return;
    }
    match value {
        // Every known transform gives null for null, and for nothing else.
        None => bounds.nulls = Some(rows),
        // Other transforms than identity do not take floats.
        Some(value) if column.numbers && value.is_nan() => bounds.nulls = Some(rows),
        Some(value) => {
            bounds.nulls = Some(0);
            let of = |v: Option<PrimitiveLiteral>| v.and_then(|v| scalar(&v, &field.source, arrow));
            bounds.narrow(
                of(transform_bounds::lower(
                    &field.transform,
                    &field.source,
                    value,
                )),
                of(transform_bounds::upper(
                    &field.transform,
                    &field.source,
                    value,
                )),
            );
        }
    }
}

/// Values as an array of `data_type`, null where there is none.
pub(crate) fn array<'a>(
    values: impl Iterator<Item = Option<&'a ScalarValue>>,
    data_type: &DataType,
) -> ArrayRef {
    let values: Vec<Option<&ScalarValue>> = values.collect();
    let length = values.len();
    let null = ScalarValue::try_from(data_type).unwrap_or(ScalarValue::Null);
    ScalarValue::iter_to_array(
        values
            .into_iter()
            .map(|value| value.cloned().unwrap_or_else(|| null.clone())),
    )
    // An empty list, or a type that scalars do not have: nothing is known.
    .unwrap_or_else(|_| arrow::array::new_null_array(data_type, length))
}

impl ColumnBounds {
    /// Without buckets, from rows that are already put together.
    pub(crate) fn of_rows(rows: &[Bounds], data_type: &DataType) -> Self {
        let lower = array(rows.iter().map(|b| b.lower.as_ref()), data_type);
        let upper = array(rows.iter().map(|b| b.upper.as_ref()), data_type);
        let null_counts: UInt64Array = rows.iter().map(|b| b.nulls).collect();
        Self {
            min: Arc::clone(&lower),
            max: Arc::clone(&upper),
            lower,
            upper,
            null_counts: Arc::new(null_counts),
            exact: false,
        }
    }

    /// The same where `known` is true; nothing is known of the other files.
    pub(crate) fn only_of(&self, known: &[bool]) -> Result<Self, ArrowError> {
        let unknown = BooleanArray::from_iter(known.iter().map(|known| Some(!known)));
        let only = |array: &ArrayRef| nullif(array.as_ref(), &unknown);
        Ok(Self {
            lower: only(&self.lower)?,
            upper: only(&self.upper)?,
            null_counts: only(&self.null_counts)?,
            min: only(&self.min)?,
            max: only(&self.max)?,
            exact: self.exact,
        })
    }

    /// For each file: `false` if none of `values` is in it, null if that is unknown.
    pub(crate) fn contained(&self, values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        let outside = self.outside_bounds(values)?;
        Some(
            outside
                .into_iter()
                .map(|out| out.then_some(false))
                .collect(),
        )
    }

    /// Which files have none of the values between their bounds.
    fn outside_bounds(&self, values: &HashSet<ScalarValue>) -> Option<Vec<bool>> {
        let mut sorted: Vec<ScalarValue> = values
            .iter()
            .filter(|value| !value.is_null())
            .map(|value| value.cast_to(self.lower.data_type()).ok())
            .collect::<Option<_>>()?;
        sorted.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
        let known = |array: &ArrayRef, i| {
            ScalarValue::try_from_array(array, i)
                .ok()
                .filter(|value| !value.is_null())
        };
        let out = (0..self.lower.len()).map(|i| {
            let first = known(&self.lower, i).map_or(0, |lower| {
                sorted.partition_point(|value| value.partial_cmp(&lower) == Some(Ordering::Less))
            });
            let Some(smallest) = sorted.get(first) else {
                return true;
            };
            known(&self.upper, i)
                .is_some_and(|upper| smallest.partial_cmp(&upper) == Some(Ordering::Greater))
        });
        Some(out.collect())
    }
}

/// The bounds of several columns, by name.
pub(crate) type BoundsByName = HashMap<String, Arc<ColumnBounds>>;
