//! One writer for each column of a batch, chosen once per batch by the column's type.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    Field, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimeUnit, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use thiserror::Error;

use super::indirect::{DictionaryWriter, RunWriter};
use super::json::JsonWriter;
use super::nanoseconds::NanosecondWriter;
use super::number::{BoolWriter, DecimalWriter, FloatWriter, IntegerWriter, WideDecimalWriter};
use super::string::{BytesWriter, DisplayWriter, JsonTextWriter, TextWriter, UuidWriter};
use super::temporal::{DateWriter, TimeWriter, TimestampWriter};
use crate::wire::lenenc;

/// A value that MySQL's protocol has no way to carry.
#[derive(Debug, Error, PartialEq, Eq, Clone)]
pub(crate) enum ValueError {
    #[error(
        "a date or time in year {year}: MySQL's types hold the years 0 to 9999; CAST it to a string to see it"
    )]
    YearOutOfRange { year: i64 },
    #[error("values of type {0} have no MySQL type; CAST them to a string")]
    NoMysqlType(String),
    #[error("a value could not be shown: {0}")]
    Display(String),
}

/// Writes values of one column of one batch. It is never asked for a NULL.
pub(crate) trait ValueWriter: Send {
    /// Appends the value's text, without a length.
    fn text(&self, row: usize, out: &mut Vec<u8>) -> Result<(), ValueError>;

    /// Appends the value as a text row holds it: its text with a length in front.
    fn text_with_length(&self, row: usize, out: &mut Vec<u8>) -> Result<(), ValueError> {
        lenenc::put_with(out, |out| self.text(row, out))
    }

    /// Appends the value as a binary row holds it; for most types that is the text with its length.
    fn binary(&self, row: usize, out: &mut Vec<u8>) -> Result<(), ValueError> {
        self.text_with_length(row, out)
    }

    /// Appends the value as JSON, inside a nested value.
    fn json(&self, row: usize, out: &mut Vec<u8>) -> Result<(), ValueError> {
        out.push(b'"');
        self.text(row, out)?;
        out.push(b'"');
        Ok(())
    }
}

/// The metadata key and value by which Arrow marks 16 bytes as a UUID.
const EXTENSION_NAME: &str = "ARROW:extension:name";
const UUID_EXTENSION: &str = "arrow.uuid";

/// The same for text that is JSON.
const JSON_EXTENSION: &str = "arrow.json";

/// Whether a field holds JSON.
pub(super) fn is_json(field: &Field) -> bool {
    matches!(field.data_type(), DataType::Utf8 | DataType::Utf8View)
        && field
            .metadata()
            .get(EXTENSION_NAME)
            .is_some_and(|name| name == JSON_EXTENSION)
}

/// Whether a field holds UUIDs.
pub(super) fn is_uuid(field: &Field) -> bool {
    matches!(field.data_type(), DataType::FixedSizeBinary(16))
        && field
            .metadata()
            .get(EXTENSION_NAME)
            .is_some_and(|name| name == UUID_EXTENSION)
}

/// The writer for an array of `field`'s type.
pub(super) fn value_writer<'a>(
    field: &Field,
    array: &'a ArrayRef,
) -> Result<Box<dyn ValueWriter + 'a>, ValueError> {
    use DataType as D;
    Ok(match array.data_type() {
        D::Null => Box::new(NullWriter),
        D::Boolean => Box::new(BoolWriter(array.as_boolean())),
        D::Int8 => Box::new(IntegerWriter(array.as_primitive::<Int8Type>())),
        D::Int16 => Box::new(IntegerWriter(array.as_primitive::<Int16Type>())),
        D::Int32 => Box::new(IntegerWriter(array.as_primitive::<Int32Type>())),
        D::Int64 => Box::new(IntegerWriter(array.as_primitive::<Int64Type>())),
        D::UInt8 => Box::new(IntegerWriter(array.as_primitive::<UInt8Type>())),
        D::UInt16 => Box::new(IntegerWriter(array.as_primitive::<UInt16Type>())),
        D::UInt32 => Box::new(IntegerWriter(array.as_primitive::<UInt32Type>())),
        D::UInt64 => Box::new(IntegerWriter(array.as_primitive::<UInt64Type>())),
        D::Float16 => Box::new(FloatWriter(array.as_primitive::<Float16Type>())),
        D::Float32 => Box::new(FloatWriter(array.as_primitive::<Float32Type>())),
        D::Float64 => Box::new(FloatWriter(array.as_primitive::<Float64Type>())),
        D::Decimal32(_, scale) => Box::new(DecimalWriter::new(
            array.as_primitive::<Decimal32Type>(),
            *scale,
        )),
        D::Decimal64(_, scale) => Box::new(DecimalWriter::new(
            array.as_primitive::<Decimal64Type>(),
            *scale,
        )),
        D::Decimal128(_, scale) => Box::new(DecimalWriter::new(
            array.as_primitive::<Decimal128Type>(),
            *scale,
        )),
        D::Decimal256(_, scale) => Box::new(WideDecimalWriter::new(
            array.as_primitive::<Decimal256Type>(),
            *scale,
        )),
        D::Date32 => Box::new(DateWriter::days(array.as_primitive::<Date32Type>())),
        D::Date64 => Box::new(DateWriter::milliseconds(array.as_primitive::<Date64Type>())),
        D::Timestamp(TimeUnit::Nanosecond, _) => Box::new(NanosecondWriter(array.as_primitive())),
        D::Timestamp(unit, _) => Box::new(TimestampWriter::new(array, *unit)?),
        D::Time32(unit) | D::Time64(unit) => Box::new(TimeWriter::new(array, *unit)?),
        D::Duration(_) | D::Interval(_) => Box::new(DisplayWriter::new(array)?),
        D::Utf8 | D::Utf8View if is_json(field) => Box::new(JsonTextWriter::new(array)),
        D::Utf8 => Box::new(TextWriter(array.as_string::<i32>())),
        D::LargeUtf8 => Box::new(TextWriter(array.as_string::<i64>())),
        D::Utf8View => Box::new(TextWriter(array.as_string_view())),
        D::Binary => Box::new(BytesWriter(array.as_binary::<i32>())),
        D::LargeBinary => Box::new(BytesWriter(array.as_binary::<i64>())),
        D::BinaryView => Box::new(BytesWriter(array.as_binary_view())),
        D::FixedSizeBinary(_) if is_uuid(field) => {
            Box::new(UuidWriter(array.as_fixed_size_binary()))
        }
        D::FixedSizeBinary(_) => Box::new(BytesWriter(array.as_fixed_size_binary())),
        D::List(_)
        | D::LargeList(_)
        | D::ListView(_)
        | D::LargeListView(_)
        | D::FixedSizeList(_, _)
        | D::Struct(_)
        | D::Map(_, _) => Box::new(JsonWriter::new(array)?),
        D::Dictionary(_, _) => Box::new(DictionaryWriter::new(field, array)?),
        D::RunEndEncoded(_, _) => Box::new(RunWriter::new(field, array)?),
        D::Union(_, _) => return Err(ValueError::NoMysqlType(array.data_type().to_string())),
    })
}

/// A column of the type of a bare `NULL`.
struct NullWriter;

impl ValueWriter for NullWriter {
    fn text(&self, _row: usize, _out: &mut Vec<u8>) -> Result<(), ValueError> {
        Ok(())
    }

    fn json(&self, _row: usize, out: &mut Vec<u8>) -> Result<(), ValueError> {
        out.extend_from_slice(b"null");
        Ok(())
    }
}
