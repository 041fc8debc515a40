//! Single values: from the type that a file has them in to the table's.
//!
//! What is allowed is what schema evolution allows (the specification's "Schema Evolution", "type promotion"), and what
//! the formats write a type as when they have no such type of their own.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, FixedSizeBinaryArray, PrimitiveArray, new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Int32Type, Int64Type,
    Time32MillisecondType, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType,
};

use super::error::FormatError;

const MICROS_A_MILLI: i64 = 1_000;
const MICROS_A_DAY: i64 = 86_400_000_000;
const NANOS_A_DAY: i64 = 86_400_000_000_000;

/// The values of `array` as `target`, or an error that names the column and both types.
pub(crate) fn to_table_type(
    column: &str,
    array: &ArrayRef,
    target: &DataType,
) -> Result<ArrayRef, FormatError> {
    use DataType::*;
    let strict = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let cast = |array: &ArrayRef, to: &DataType| {
        cast_with_options(array.as_ref(), to, &strict)
            .map_err(|e| FormatError::column(column, format!("holds a bad value: {e}")))
    };
    let from = array.data_type();
    Ok(match (from, target) {
        (from, to) if from == to => Arc::clone(array),
        (Null, to) => new_null_array(to, array.len()),
        (Int32, Int64) | (Float32, Float64) => cast(array, target)?,
        (Utf8 | Utf8View, Utf8 | Utf8View) => cast(array, target)?,
        (Binary | BinaryView, Binary | BinaryView) => cast(array, target)?,
        (Binary, Utf8 | Utf8View) => cast(&cast(array, &Utf8)?, target)?,
        (Utf8 | Utf8View, Binary | BinaryView) => cast(array, target)?,
        // An enum of Avro.
        (Dictionary(..), Utf8 | Utf8View) => cast(array, target)?,
        (FixedSizeBinary(_), Binary | BinaryView) => cast(&cast(array, &Binary)?, target)?,
        (Binary, FixedSizeBinary(width)) => Arc::new(fixed(column, array.as_binary(), *width)?),
        (Decimal128(p, s), Decimal128(to, scale)) if p <= to && s == scale => Arc::new(
            array
                .as_primitive::<Decimal128Type>()
                .clone()
                .with_precision_and_scale(*to, *scale)?,
        ),
        // ORC has no time of day, and writes it as a long.
        (Int64, Time64(TimeUnit::Microsecond)) => Arc::new(
            array
                .as_primitive::<Int64Type>()
                .reinterpret_cast::<Time64MicrosecondType>(),
        ),
        (Time32(TimeUnit::Millisecond), Time64(TimeUnit::Microsecond)) => {
            Arc::new(scaled::<Time32MillisecondType, Time64MicrosecondType>(
                column,
                array,
                MICROS_A_MILLI,
            )?)
        }
        // Both are kept in UTC. Whether that is a zone or none is the table's to say.
        (Timestamp(TimeUnit::Microsecond, _), Timestamp(TimeUnit::Microsecond, zone)) => Arc::new(
            array
                .as_primitive::<TimestampMicrosecondType>()
                .clone()
                .with_timezone_opt(zone.clone()),
        ),
        (Timestamp(TimeUnit::Nanosecond, _), Timestamp(TimeUnit::Nanosecond, zone)) => Arc::new(
            array
                .as_primitive::<TimestampNanosecondType>()
                .clone()
                .with_timezone_opt(zone.clone()),
        ),
        (Timestamp(TimeUnit::Millisecond, _), Timestamp(TimeUnit::Microsecond, zone)) => Arc::new(
            scaled::<TimestampMillisecondType, TimestampMicrosecondType>(
                column,
                array,
                MICROS_A_MILLI,
            )?
            .with_timezone_opt(zone.clone()),
        ),
        (Int32, Date32) => Arc::new(
            array
                .as_primitive::<Int32Type>()
                .reinterpret_cast::<Date32Type>(),
        ),
        // Format version 3 lets a date become a timestamp.
        (Date32, Timestamp(TimeUnit::Microsecond, None)) => {
            Arc::new(scaled::<Date32Type, TimestampMicrosecondType>(
                column,
                array,
                MICROS_A_DAY,
            )?)
        }
        (Date32, Timestamp(TimeUnit::Nanosecond, None)) => Arc::new(scaled::<
            Date32Type,
            TimestampNanosecondType,
        >(
            column, array, NANOS_A_DAY
        )?),
        (from, to) => {
            return Err(FormatError::column(
                column,
                format!("is of type {from} in the file, which cannot be read as the table's {to}"),
            ));
        }
    })
}

fn scaled<F, T>(
    column: &str,
    array: &ArrayRef,
    factor: i64,
) -> Result<PrimitiveArray<T>, FormatError>
where
    F: ArrowPrimitiveType,
    F::Native: Into<i64>,
    T: ArrowPrimitiveType<Native = i64>,
{
    array.as_primitive::<F>().try_unary(|value| {
        let value: i64 = value.into();
        value.checked_mul(factor).ok_or_else(|| {
            FormatError::column(column, format!("holds {value}, which is out of range"))
        })
    })
}

/// Formats without a type of fixed length write plain binary.
fn fixed(
    column: &str,
    array: &BinaryArray,
    width: i32,
) -> Result<FixedSizeBinaryArray, FormatError> {
    let wrong = |length: usize| {
        FormatError::column(
            column,
            format!("holds a value of {length} bytes, where the table has {width}"),
        )
    };
    let size = usize::try_from(width).map_err(|_| wrong(0))?;
    let mut bytes = Vec::with_capacity(array.len().saturating_mul(size));
    for value in array {
        match value {
            Some(value) if value.len() != size => return Err(wrong(value.len())),
            Some(value) => bytes.extend_from_slice(value),
            None => bytes.resize(bytes.len() + size, 0),
        }
    }
    Ok(FixedSizeBinaryArray::try_new(
        width,
        bytes.into(),
        array.nulls().cloned(),
    )?)
}
