//! Columns of metadata tables, put together from the values of their rows.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array,
    Float64Array, Int32Array, Int64Array, LargeBinaryArray, ListArray, MapArray, StringArray,
    StructArray, Time64MicrosecondArray, TimestampMicrosecondArray, TimestampNanosecondArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::error::Result;
use iceberg::spec::PrimitiveLiteral as L;

use crate::error::PlannerError;

/// What does not fit its column: metadata that contradicts itself.
fn misfit(value: &L, of: &DataType) -> PlannerError {
    PlannerError::MetadataValue(format!(
        "the value {value:?} is not one of a column of type {of}"
    ))
}

/// Values of a primitive column. Those of a type that the column was promoted from are widened, as the spec's schema
/// evolution has it.
pub(super) fn primitives<'a>(
    of: &DataType,
    values: impl ExactSizeIterator<Item = Option<&'a L>> + Clone,
) -> Result<ArrayRef> {
    macro_rules! collect {
        ($array:ty, $($pattern:pat => $value:expr),+) => {
            values
                .map(|value| match value {
                    None => Ok(None),
                    $(Some($pattern) => Ok(Some($value)),)+
                    Some(other) => Err(misfit(other, of)),
                })
                .collect::<std::result::Result<$array, PlannerError>>()?
        };
    }
    Ok(match of {
        DataType::Boolean => Arc::new(collect!(BooleanArray, L::Boolean(v) => *v)),
        DataType::Int32 => Arc::new(collect!(Int32Array, L::Int(v) => *v)),
        DataType::Int64 => {
            Arc::new(collect!(Int64Array, L::Long(v) => *v, L::Int(v) => i64::from(*v)))
        }
        DataType::Float32 => Arc::new(collect!(Float32Array, L::Float(v) => v.0)),
        DataType::Float64 => {
            Arc::new(collect!(Float64Array, L::Double(v) => v.0, L::Float(v) => f64::from(v.0)))
        }
        DataType::Date32 => Arc::new(collect!(Date32Array, L::Int(v) => *v)),
        DataType::Time64(TimeUnit::Microsecond) => {
            Arc::new(collect!(Time64MicrosecondArray, L::Long(v) => *v))
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => Arc::new(
            collect!(TimestampMicrosecondArray, L::Long(v) => *v).with_timezone_opt(zone.clone()),
        ),
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => Arc::new(
            collect!(TimestampNanosecondArray, L::Long(v) => *v).with_timezone_opt(zone.clone()),
        ),
        DataType::Utf8 => Arc::new(collect!(StringArray, L::String(v) => v.as_str())),
        DataType::LargeBinary => Arc::new(collect!(LargeBinaryArray, L::Binary(v) => v.as_slice())),
        DataType::FixedSizeBinary(width) => {
            let bytes = values
                .map(|value| match value {
                    None => Ok(None),
                    Some(L::Binary(v)) if v.len() == *width as usize => Ok(Some(v.clone())),
                    Some(L::UInt128(v)) if *width == 16 => Ok(Some(v.to_be_bytes().to_vec())),
                    Some(other) => Err(misfit(other, of)),
                })
                .collect::<std::result::Result<Vec<_>, PlannerError>>()?;
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                bytes.into_iter(),
                *width,
            )?)
        }
        DataType::Decimal128(precision, scale) => Arc::new(
            collect!(Decimal128Array, L::Int128(v) => *v)
                .with_precision_and_scale(*precision, *scale)?,
        ),
        other => {
            let nulls = values.len();
            if let Some(value) = values.flatten().next() {
                return Err(misfit(value, other).into());
            }
            arrow::array::new_null_array(other, nulls)
        }
    })
}

/// A column of structs, none of which is null.
pub(super) fn structs(of: &DataType, rows: usize, children: Vec<ArrayRef>) -> Result<ArrayRef> {
    let DataType::Struct(fields) = of else {
        return Err(wrong_type(of));
    };
    if fields.is_empty() {
        return Ok(Arc::new(StructArray::new_empty_fields(rows, None)));
    }
    Ok(Arc::new(StructArray::try_new(
        fields.clone(),
        children,
        None,
    )?))
}

/// A column of lists: how long each is, `None` for null, and the elements of all.
pub(super) fn lists(
    of: &DataType,
    lengths: &[Option<usize>],
    elements: ArrayRef,
) -> Result<ArrayRef> {
    let DataType::List(element) = of else {
        return Err(wrong_type(of));
    };
    Ok(Arc::new(ListArray::try_new(
        element.clone(),
        offsets(lengths),
        elements,
        nulls(lengths),
    )?))
}

/// A column of maps: how long each is, `None` for null, and the keys and values of all.
pub(super) fn maps(
    of: &DataType,
    lengths: &[Option<usize>],
    keys: ArrayRef,
    values: ArrayRef,
) -> Result<ArrayRef> {
    let DataType::Map(entries, sorted) = of else {
        return Err(wrong_type(of));
    };
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(wrong_type(of));
    };
    let pairs = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
    Ok(Arc::new(MapArray::try_new(
        entries.clone(),
        offsets(lengths),
        pairs,
        nulls(lengths),
        *sorted,
    )?))
}

fn offsets(lengths: &[Option<usize>]) -> OffsetBuffer<i32> {
    OffsetBuffer::from_lengths(lengths.iter().map(|length| length.unwrap_or(0)))
}

fn nulls(lengths: &[Option<usize>]) -> Option<NullBuffer> {
    lengths
        .iter()
        .any(Option::is_none)
        .then(|| lengths.iter().map(Option::is_some).collect())
}

fn wrong_type(of: &DataType) -> datafusion::error::DataFusionError {
    PlannerError::MetadataValue(format!("a column of type {of} is none of a metadata table")).into()
}
