//! Streams to arrays, a batch at a time (ORC specification, "Column Encodings").
//!
//! A column has a value for each row of its parent in which the parent is not null, and data for each of those that is
//! not null itself. Vectors grow with what is decoded and never by what a length claims.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Int64Array, ListArray, MapArray,
    PrimitiveArray, StringArray, StringViewArray, StructArray, UInt32Array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow::compute::{cast, take};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, DecimalType, Field, Fields,
    Float32Type, Float64Type, Int32Type, TimeUnit, TimestampMicrosecondType,
    TimestampNanosecondType,
};

use super::bits::{BitRuns, ByteRuns};
use super::run_length::IntegerRuns;
use super::stream::{Stream, damaged};
use super::stripe::{Part, Stripe};
use super::types::Kind;
use crate::formats::FileFormat;
use crate::formats::column_plan::{ShapePlan, StructPlan};
use crate::formats::error::FormatError;
use crate::formats::file_fields::{FileField, FileShape};

pub(super) mod timestamp;

use timestamp::TimestampReader;

/// A vector starts no larger than this; what is claimed beyond it must be there first.
const MAX_START: usize = 1 << 16;

type Result<T, E = FormatError> = std::result::Result<T, E>;

/// Reads one column of a stripe.
pub(super) struct ColumnReader {
    present: Option<BitRuns>,
    values: Values,
}

enum Values {
    Boolean(BitRuns),
    Byte(ByteRuns),
    /// Of 16 or 32 bits.
    Int(IntegerRuns, Kind),
    Long(IntegerRuns),
    Float(Stream),
    Double(Stream),
    Date(IntegerRuns),
    String(IntegerRuns, Stream),
    Dictionary(IntegerRuns, StringViewArray),
    Binary(IntegerRuns, Stream),
    Decimal {
        digits: Stream,
        scales: IntegerRuns,
        precision: u8,
        scale: i8,
    },
    Timestamp(TimestampReader),
    Struct(Vec<ColumnReader>),
    List(IntegerRuns, Box<ColumnReader>),
    Map(IntegerRuns, Box<ColumnReader>, Box<ColumnReader>),
}

/// The readers of the fields of one level that the plan reads.
pub(super) fn field_readers(
    plan: &StructPlan,
    fields: &[FileField],
    kinds: &[Kind],
    stripe: &mut Stripe,
) -> Result<Vec<ColumnReader>> {
    plan.reads
        .iter()
        .map(|read| match fields.get(read.position) {
            Some(field) => ColumnReader::new(&read.shape, field, kinds, stripe),
            None => Err(damaged("a column is not there")),
        })
        .collect()
}

impl ColumnReader {
    fn new(
        plan: &ShapePlan,
        field: &FileField,
        kinds: &[Kind],
        stripe: &mut Stripe,
    ) -> Result<Self> {
        let column = field.number;
        let kind = *kinds
            .get(column)
            .ok_or_else(|| damaged("a column has no type"))?;
        let encoding = stripe.encoding(column)?;
        let version = encoding.version;
        let present = stripe
            .optional_stream(column, Part::Present)
            .map(BitRuns::new);
        let lengths = |stripe: &mut Stripe| {
            IntegerRuns::unsigned(stripe.stream(column, Part::Length), version)
        };
        let values = match (plan, &field.shape, kind) {
            (ShapePlan::Struct(plan), FileShape::Struct(fields), _) => {
                Values::Struct(field_readers(plan, fields, kinds, stripe)?)
            }
            (ShapePlan::List(plan), FileShape::List(element), _) => Values::List(
                lengths(stripe),
                Box::new(Self::new(plan, element, kinds, stripe)?),
            ),
            (ShapePlan::Map(key, value), FileShape::Map(keys, values), _) => Values::Map(
                lengths(stripe),
                Box::new(Self::new(key, keys, kinds, stripe)?),
                Box::new(Self::new(value, values, kinds, stripe)?),
            ),
            (ShapePlan::Leaf(target), FileShape::Leaf, kind) => {
                let integers = |stripe: &mut Stripe| {
                    IntegerRuns::signed(stripe.stream(column, Part::Data), version)
                };
                match kind {
                    Kind::Boolean => {
                        Values::Boolean(BitRuns::new(stripe.stream(column, Part::Data)))
                    }
                    Kind::Byte => Values::Byte(ByteRuns::new(stripe.stream(column, Part::Data))),
                    Kind::Short | Kind::Int => Values::Int(integers(stripe), kind),
                    Kind::Long => Values::Long(integers(stripe)),
                    Kind::Date => Values::Date(integers(stripe)),
                    Kind::Float => Values::Float(stripe.stream(column, Part::Data)),
                    Kind::Double => Values::Double(stripe.stream(column, Part::Data)),
                    Kind::String => match encoding.dictionary {
                        None => Values::String(lengths(stripe), stripe.stream(column, Part::Data)),
                        Some(entries) => {
                            let mut lengths = lengths(stripe);
                            let mut bytes = stripe.stream(column, Part::Dictionary);
                            let dictionary = strings(&mut lengths, &mut bytes, entries, None)?;
                            let keys = stripe.stream(column, Part::Data);
                            Values::Dictionary(IntegerRuns::unsigned(keys, version), dictionary)
                        }
                    },
                    Kind::Binary => {
                        Values::Binary(lengths(stripe), stripe.stream(column, Part::Data))
                    }
                    Kind::Decimal { precision, scale } => Values::Decimal {
                        digits: stripe.stream(column, Part::Data),
                        scales: IntegerRuns::signed(
                            stripe.stream(column, Part::Secondary),
                            version,
                        ),
                        precision,
                        scale,
                    },
                    Kind::Timestamp | Kind::TimestampInstant => {
                        let instant = kind == Kind::TimestampInstant;
                        if matches!(target, DataType::Timestamp(_, zone) if zone.is_some() != instant)
                        {
                            let (file, table) = match instant {
                                true => ("an instant", "none"),
                                false => ("a timestamp without a zone", "an instant"),
                            };
                            return Err(FormatError::column(
                                &field.name,
                                format!("is {file} in the file, and {table} in the table"),
                            ));
                        }
                        Values::Timestamp(TimestampReader::new(
                            integers(stripe),
                            IntegerRuns::unsigned(stripe.stream(column, Part::Secondary), version),
                            (!instant).then_some(stripe.zone),
                            target,
                        ))
                    }
                    Kind::Union => {
                        return Err(FormatError::unsupported(FileFormat::Orc, "a union type"));
                    }
                    Kind::Unknown(number) => {
                        return Err(FormatError::unsupported(
                            FileFormat::Orc,
                            format!("the type of number {number}"),
                        ));
                    }
                    Kind::List | Kind::Map | Kind::Struct => {
                        return Err(damaged("a nested column has no children"));
                    }
                }
            }
            _ => return Err(damaged("a column is not of the type that was planned")),
        };
        Ok(Self { present, values })
    }

    /// The next `rows` values. `parent` tells in which rows the column's parent is null, if in any.
    pub(super) fn next(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
        let nulls = self.nulls(rows, parent)?;
        let nulls = nulls.as_ref();
        let count = rows - nulls.map_or(0, NullBuffer::null_count);
        Ok(match &mut self.values {
            Values::Boolean(bits) => {
                let values = spread(collect(count, || bits.next())?, nulls);
                Arc::new(BooleanArray::new(
                    BooleanBuffer::from(values),
                    nulls.cloned(),
                ))
            }
            Values::Byte(bytes) => primitive::<Int32Type>(count, nulls, || {
                bytes.next().map(|byte| i32::from(byte as i8))
            })?,
            Values::Int(integers, kind) => {
                let kind = *kind;
                primitive::<Int32Type>(count, nulls, || {
                    let value = integers.next()?;
                    let fits = match kind {
                        Kind::Short => i16::try_from(value).map(i32::from).ok(),
                        _ => i32::try_from(value).ok(),
                    };
                    fits.ok_or_else(|| damaged(format!("a column of type {kind:?} holds {value}")))
                })?
            }
            Values::Long(integers) => {
                let values = spread(collect(count, || integers.next())?, nulls);
                Arc::new(Int64Array::new(values.into(), nulls.cloned()))
            }
            Values::Date(integers) => primitive::<Date32Type>(count, nulls, || {
                let value = integers.next()?;
                i32::try_from(value)
                    .map_err(|_| damaged(format!("a date is {value} days off 1970")))
            })?,
            Values::Float(bytes) => primitive::<Float32Type>(count, nulls, || {
                let mut value = [0; 4];
                bytes.exact(&mut value)?;
                Ok(f32::from_le_bytes(value))
            })?,
            Values::Double(bytes) => primitive::<Float64Type>(count, nulls, || {
                let mut value = [0; 8];
                bytes.exact(&mut value)?;
                Ok(f64::from_le_bytes(value))
            })?,
            Values::String(lengths, bytes) => Arc::new(strings(lengths, bytes, count, nulls)?),
            Values::Dictionary(keys, dictionary) => {
                let entries = u32::try_from(dictionary.len()).unwrap_or(u32::MAX);
                let keys = collect(count, || {
                    let key = keys.next()?;
                    u32::try_from(key)
                        .ok()
                        .filter(|key| *key < entries)
                        .ok_or_else(|| {
                            damaged(format!("a dictionary of {entries} has no entry {key}"))
                        })
                })?;
                let keys = UInt32Array::new(spread(keys, nulls).into(), nulls.cloned());
                take(dictionary, &keys, None)?
            }
            Values::Binary(lengths, bytes) => {
                let (offsets, bytes) = byte_values(lengths, bytes, count, nulls)?;
                Arc::new(BinaryArray::try_new(offsets, bytes.into(), nulls.cloned())?)
            }
            Values::Decimal {
                digits,
                scales,
                precision,
                scale,
            } => {
                let (precision, scale) = (*precision, *scale);
                let values = collect(count, || decimal(digits, scales, precision, scale))?;
                Arc::new(
                    Decimal128Array::new(spread(values, nulls).into(), nulls.cloned())
                        .with_precision_and_scale(precision, scale)?,
                )
            }
            Values::Timestamp(reader) => match reader.unit() {
                TimeUnit::Nanosecond => {
                    primitive::<TimestampNanosecondType>(count, nulls, || reader.next())?
                }
                _ => primitive::<TimestampMicrosecondType>(count, nulls, || reader.next())?,
            },
            Values::Struct(readers) => {
                let columns = readers
                    .iter_mut()
                    .map(|reader| reader.next(rows, nulls))
                    .collect::<Result<Vec<_>>>()?;
                let fields: Fields = columns
                    .iter()
                    .enumerate()
                    .map(|(i, column)| Field::new(i.to_string(), column.data_type().clone(), true))
                    .collect();
                match columns.is_empty() {
                    true => Arc::new(StructArray::new_empty_fields(rows, nulls.cloned())),
                    false => Arc::new(StructArray::try_new(fields, columns, nulls.cloned())?),
                }
            }
            Values::List(lengths, element) => {
                let (offsets, total) = offsets(lengths, count, nulls)?;
                let values = element.next(total, None)?;
                let field = Arc::new(Field::new("element", values.data_type().clone(), true));
                Arc::new(ListArray::try_new(field, offsets, values, nulls.cloned())?)
            }
            Values::Map(lengths, key, value) => {
                let (offsets, total) = offsets(lengths, count, nulls)?;
                let (keys, values) = (key.next(total, None)?, value.next(total, None)?);
                if keys.null_count() > 0 {
                    return Err(damaged("a map has a null key"));
                }
                let fields = Fields::from(vec![
                    Field::new("key", keys.data_type().clone(), false),
                    Field::new("value", values.data_type().clone(), true),
                ]);
                let entries = Field::new("entries", DataType::Struct(fields.clone()), false);
                Arc::new(MapArray::try_new(
                    Arc::new(entries),
                    offsets,
                    StructArray::try_new(fields, vec![keys, values], None)?,
                    nulls.cloned(),
                    false,
                )?)
            }
        })
    }

    /// In which of the next rows the column is null: where its parent is, and where it says so itself.
    fn nulls(&mut self, rows: usize, parent: Option<&NullBuffer>) -> Result<Option<NullBuffer>> {
        let Some(present) = &mut self.present else {
            return Ok(parent.filter(|nulls| nulls.null_count() > 0).cloned());
        };
        let count = rows - parent.map_or(0, NullBuffer::null_count);
        let own = spread(collect(count, || present.next())?, parent);
        let nulls = NullBuffer::from(BooleanBuffer::from(own));
        Ok((nulls.null_count() > 0).then_some(nulls))
    }
}

/// So many values, as long as there are any.
fn collect<T>(count: usize, mut next: impl FnMut() -> Result<T>) -> Result<Vec<T>> {
    let mut values = Vec::with_capacity(count.min(MAX_START));
    for _ in 0..count {
        values.push(next()?);
    }
    Ok(values)
}

/// Moves values to the rows that are not null.
fn spread<T: Copy + Default>(values: Vec<T>, nulls: Option<&NullBuffer>) -> Vec<T> {
    let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else {
        return values;
    };
    let mut spread = vec![T::default(); nulls.len()];
    for (row, value) in nulls.valid_indices().zip(values) {
        spread[row] = value;
    }
    spread
}

fn primitive<T: ArrowPrimitiveType>(
    count: usize,
    nulls: Option<&NullBuffer>,
    next: impl FnMut() -> Result<T::Native>,
) -> Result<ArrayRef> {
    let values = spread(collect(count, next)?, nulls);
    Ok(Arc::new(PrimitiveArray::<T>::new(
        values.into(),
        nulls.cloned(),
    )))
}

/// Offsets by lengths, and their end.
fn offsets(
    lengths: &mut IntegerRuns,
    count: usize,
    nulls: Option<&NullBuffer>,
) -> Result<(OffsetBuffer<i32>, usize)> {
    let mut total = 0i32;
    let lengths = collect(count, || {
        let length = lengths.length()?;
        let next = i32::try_from(length)
            .ok()
            .and_then(|n| total.checked_add(n));
        total = next.ok_or_else(|| damaged("some consecutive rows hold more than 2 GiB"))?;
        Ok(length)
    })?;
    let offsets = OffsetBuffer::from_lengths(spread(lengths, nulls));
    Ok((offsets, total as usize))
}

fn byte_values(
    lengths: &mut IntegerRuns,
    bytes: &mut Stream,
    count: usize,
    nulls: Option<&NullBuffer>,
) -> Result<(OffsetBuffer<i32>, Vec<u8>)> {
    let (offsets, total) = offsets(lengths, count, nulls)?;
    let mut values = Vec::with_capacity(total.min(MAX_START));
    bytes.append(total, &mut values)?;
    Ok((offsets, values))
}

fn strings(
    lengths: &mut IntegerRuns,
    bytes: &mut Stream,
    count: usize,
    nulls: Option<&NullBuffer>,
) -> Result<StringViewArray> {
    let (offsets, bytes) = byte_values(lengths, bytes, count, nulls)?;
    let strings = StringArray::try_new(offsets, bytes.into(), nulls.cloned())
        .map_err(|e| damaged(format!("a string is not UTF-8: {e}")))?;
    let views = cast(&strings, &DataType::Utf8View)?;
    views
        .as_any()
        .downcast_ref::<StringViewArray>()
        .cloned()
        .ok_or_else(|| damaged("strings are not strings"))
}

/// Each decimal has a scale of its own, which need not be the column's.
fn decimal(
    digits: &mut Stream,
    scales: &mut IntegerRuns,
    precision: u8,
    scale: i8,
) -> Result<i128> {
    let (value, own) = (digits.wide_varint()?, scales.next()?);
    let out_of_range = || {
        damaged(format!(
            "a decimal of scale {own} is no decimal({precision}, {scale})"
        ))
    };
    let power = |exponent: i64| {
        u32::try_from(exponent)
            .ok()
            .and_then(|exponent| 10i128.checked_pow(exponent))
    };
    let shift = i64::from(scale).checked_sub(own).ok_or_else(out_of_range)?;
    let value = if shift >= 0 {
        power(shift).and_then(|factor| value.checked_mul(factor))
    } else {
        shift
            .checked_neg()
            .and_then(power)
            .filter(|divisor| value % divisor == 0)
            .map(|divisor| value / divisor)
    };
    value
        .filter(|value| {
            Decimal128Type::validate_decimal_precision(*value, precision, scale).is_ok()
        })
        .ok_or_else(out_of_range)
}
