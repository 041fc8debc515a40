//! The MySQL column of each Arrow type.

use arrow::datatypes::{DataType, Field, TimeUnit};

use super::nanoseconds::NANOSECOND_CHARACTERS;
use super::temporal::decimals;
use super::value::{ValueError, is_json, is_uuid};
use crate::wire::column::{BINARY, ColumnDefinition, ColumnType, DECIMALS_VARY, UTF8MB4, flags};

/// Bytes that a string of no known length may take, as a column is told: VARCHAR(65535) in utf8mb4.
/// Longer values are sent all the same.
const TEXT_LENGTH: u32 = 65_535 * 4;

/// How a client is told of a result's column.
pub(crate) fn column_definition(field: &Field) -> Result<ColumnDefinition, ValueError> {
    let kind = Kind::of(field)?;
    let mut flags = kind.flags;
    if !field.is_nullable() {
        flags |= flags::NOT_NULL;
    }
    Ok(ColumnDefinition {
        schema: String::new(),
        table: String::new(),
        name: field.name().clone(),
        charset: kind.charset,
        length: kind.length,
        column_type: kind.column_type,
        flags,
        decimals: kind.decimals,
    })
}

struct Kind {
    column_type: ColumnType,
    charset: u16,
    length: u32,
    flags: u16,
    decimals: u8,
}

impl Kind {
    fn number(column_type: ColumnType, length: u32) -> Self {
        Self {
            column_type,
            charset: BINARY,
            length,
            flags: 0,
            decimals: 0,
        }
    }

    /// What is neither a number nor text. Numbers go without this flag, as those of a table's
    /// columns do: Connector/J takes a flagged TINYINT(1) for bytes.
    fn binary(column_type: ColumnType, length: u32) -> Self {
        Self {
            flags: flags::BINARY,
            ..Self::number(column_type, length)
        }
    }

    fn unsigned(column_type: ColumnType, length: u32) -> Self {
        let number = Self::number(column_type, length);
        Self {
            flags: number.flags | flags::UNSIGNED,
            ..number
        }
    }

    fn text(length: u32) -> Self {
        Self {
            column_type: ColumnType::VarString,
            charset: UTF8MB4,
            length,
            flags: 0,
            decimals: 0,
        }
    }

    fn with_decimals(self, decimals: u8) -> Self {
        Self { decimals, ..self }
    }

    /// A type with a fraction of a second, whose text without it takes `length` bytes.
    fn with_fraction(column_type: ColumnType, length: u32, decimals: u8) -> Self {
        let point = u32::from(decimals > 0);
        Self::binary(column_type, length + point + u32::from(decimals)).with_decimals(decimals)
    }

    fn decimal(precision: u8, scale: i8) -> Self {
        let zeros = u32::from(scale.min(0).unsigned_abs());
        let point = u32::from(scale > 0);
        Self::number(
            ColumnType::NewDecimal,
            u32::from(precision) + zeros + 1 + point,
        )
        .with_decimals(scale.max(0).unsigned_abs())
    }

    fn of(field: &Field) -> Result<Self, ValueError> {
        use ColumnType as C;
        use DataType as D;
        Ok(match field.data_type() {
            D::Null => Self::binary(C::Null, 0),
            D::Boolean => Self::number(C::Tiny, 1),
            D::Int8 => Self::number(C::Tiny, 4),
            D::Int16 => Self::number(C::Short, 6),
            D::Int32 => Self::number(C::Long, 11),
            D::Int64 => Self::number(C::LongLong, 20),
            D::UInt8 => Self::unsigned(C::Tiny, 3),
            D::UInt16 => Self::unsigned(C::Short, 5),
            D::UInt32 => Self::unsigned(C::Long, 10),
            D::UInt64 => Self::unsigned(C::LongLong, 20),
            D::Float16 | D::Float32 => Self::number(C::Float, 12).with_decimals(DECIMALS_VARY),
            D::Float64 => Self::number(C::Double, 22).with_decimals(DECIMALS_VARY),
            D::Decimal32(precision, scale)
            | D::Decimal64(precision, scale)
            | D::Decimal128(precision, scale)
            | D::Decimal256(precision, scale) => Self::decimal(*precision, *scale),
            D::Date32 | D::Date64 => Self::binary(C::Date, 10),
            D::Timestamp(TimeUnit::Nanosecond, _) => Self::text(NANOSECOND_CHARACTERS * 4),
            D::Timestamp(unit, None) => Self::with_fraction(C::DateTime, 19, decimals(*unit)),
            D::Timestamp(unit, Some(_)) => Self::with_fraction(C::Timestamp, 19, decimals(*unit)),
            D::Time32(unit) | D::Time64(unit) => Self::with_fraction(C::Time, 10, decimals(*unit)),
            D::Duration(_) | D::Interval(_) => Self::text(255 * 4),
            D::Utf8 | D::Utf8View if is_json(field) => Self {
                column_type: C::Json,
                ..Self::text(u32::MAX)
            },
            D::Utf8 | D::LargeUtf8 | D::Utf8View => Self::text(TEXT_LENGTH),
            D::Binary | D::LargeBinary | D::BinaryView => Self {
                flags: flags::BINARY | flags::BLOB,
                ..Self::number(C::Blob, u32::MAX)
            },
            D::FixedSizeBinary(_) if is_uuid(field) => Self {
                column_type: C::String,
                ..Self::text(36 * 4)
            },
            D::FixedSizeBinary(length) => Self::binary(C::String, length.unsigned_abs()),
            D::List(_)
            | D::LargeList(_)
            | D::ListView(_)
            | D::LargeListView(_)
            | D::FixedSizeList(_, _)
            | D::Struct(_)
            | D::Map(_, _) => Self {
                column_type: C::Json,
                ..Self::text(u32::MAX)
            },
            D::Dictionary(_, value_type) => {
                let metadata = field.metadata().clone();
                let values = Field::new(field.name(), value_type.as_ref().clone(), true);
                return Self::of(&values.with_metadata(metadata));
            }
            D::RunEndEncoded(_, values) => return Self::of(values),
            D::Union(_, _) => {
                return Err(ValueError::NoMysqlType(field.data_type().to_string()));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::Fields;
    use std::sync::Arc;

    #[test]
    fn each_type() {
        use ColumnType as C;
        let item = Arc::new(Field::new("item", DataType::Int32, true));
        let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let utc = Some("UTC".into());
        let cases = [
            (DataType::Boolean, C::Tiny, BINARY, 1, 0),
            (DataType::Int64, C::LongLong, BINARY, 20, 0),
            (DataType::Float64, C::Double, BINARY, 22, 31),
            (DataType::Decimal128(15, 2), C::NewDecimal, BINARY, 17, 2),
            (DataType::Decimal128(38, 0), C::NewDecimal, BINARY, 39, 0),
            (DataType::Decimal256(76, -2), C::NewDecimal, BINARY, 79, 0),
            (DataType::Date32, C::Date, BINARY, 10, 0),
            (
                DataType::Timestamp(TimeUnit::Microsecond, None),
                C::DateTime,
                BINARY,
                26,
                6,
            ),
            (
                DataType::Timestamp(TimeUnit::Nanosecond, utc),
                C::VarString,
                UTF8MB4,
                116,
                0,
            ),
            (
                DataType::Timestamp(TimeUnit::Second, None),
                C::DateTime,
                BINARY,
                19,
                0,
            ),
            (
                DataType::Time64(TimeUnit::Microsecond),
                C::Time,
                BINARY,
                17,
                6,
            ),
            (DataType::Utf8View, C::VarString, UTF8MB4, 262_140, 0),
            (DataType::Binary, C::Blob, BINARY, u32::MAX, 0),
            (DataType::FixedSizeBinary(4), C::String, BINARY, 4, 0),
            (DataType::List(item), C::Json, UTF8MB4, u32::MAX, 0),
            (
                DataType::Struct(Fields::empty()),
                C::Json,
                UTF8MB4,
                u32::MAX,
                0,
            ),
            (dictionary, C::VarString, UTF8MB4, 262_140, 0),
            (DataType::Null, C::Null, BINARY, 0, 0),
        ];
        for (data_type, column_type, charset, length, decimals) in cases {
            let column = column_definition(&Field::new("c", data_type.clone(), true)).unwrap();
            assert_eq!(
                (
                    column.column_type,
                    column.charset,
                    column.length,
                    column.decimals
                ),
                (column_type, charset, length, decimals),
                "{data_type}"
            );
        }
    }

    #[test]
    fn flags_and_uuids() {
        let column = column_definition(&Field::new("c", DataType::UInt32, false)).unwrap();
        assert_eq!(column.flags, flags::NOT_NULL | flags::UNSIGNED);
        let uuid = Field::new("u", DataType::FixedSizeBinary(16), true)
            .with_metadata([("ARROW:extension:name".into(), "arrow.uuid".into())].into());
        let column = column_definition(&uuid).unwrap();
        assert_eq!(
            (column.column_type, column.length),
            (ColumnType::String, 144)
        );
    }
}
