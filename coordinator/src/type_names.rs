//! What MySQL clients are told about a column's type, everywhere: `DESCRIBE`, `SHOW COLUMNS`,
//! `SHOW CREATE TABLE` and `information_schema.columns`.
//!
//! | Iceberg | MySQL |
//! |---|---|
//! | boolean | tinyint(1) |
//! | int, long | int, bigint |
//! | float, double | float, double |
//! | decimal(p, s) | decimal(p,s) |
//! | date, time | date, time(6) |
//! | timestamp, timestamptz | datetime(6), timestamp(6) |
//! | timestamp_ns, timestamptz_ns | varchar(29), since MySQL's types have no nanoseconds |
//! | string | varchar(65535) |
//! | uuid | char(36) |
//! | fixed(n), binary | binary(n), longblob |
//! | struct, list, map, variant | json |

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use iceberg::spec::{NestedField, PrimitiveType, Type};
use tarn_catalog::NewerType;

/// Characters a `varchar` column says it holds. Iceberg strings have no limit; this is the longest
/// that MySQL's own `varchar` can declare.
const VARCHAR_CHARACTERS: u64 = 65_535;

/// A column's type in MySQL's terms, with the columns of `information_schema.columns` that follow
/// from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MysqlType {
    /// The bare name: `decimal`.
    pub data_type: &'static str,
    /// The name with its arguments: `decimal(10,2)`.
    pub column_type: String,
    pub character_maximum_length: Option<u64>,
    pub character_octet_length: Option<u64>,
    pub numeric_precision: Option<u64>,
    pub numeric_scale: Option<u64>,
    pub datetime_precision: Option<u64>,
}

impl MysqlType {
    fn plain(data_type: &'static str) -> Self {
        Self::named(data_type, data_type)
    }

    fn named(data_type: &'static str, column_type: impl Into<String>) -> Self {
        Self {
            data_type,
            column_type: column_type.into(),
            character_maximum_length: None,
            character_octet_length: None,
            numeric_precision: None,
            numeric_scale: None,
            datetime_precision: None,
        }
    }

    fn integer(data_type: &'static str, column_type: &str, digits: u64) -> Self {
        Self {
            numeric_precision: Some(digits),
            numeric_scale: Some(0),
            ..Self::named(data_type, column_type)
        }
    }

    fn real(data_type: &'static str, digits: u64) -> Self {
        Self {
            numeric_precision: Some(digits),
            ..Self::plain(data_type)
        }
    }

    fn decimal(precision: u64, scale: u64) -> Self {
        Self {
            numeric_precision: Some(precision),
            numeric_scale: Some(scale),
            ..Self::named("decimal", format!("decimal({precision},{scale})"))
        }
    }

    fn text(data_type: &'static str, characters: u64) -> Self {
        Self {
            character_maximum_length: Some(characters),
            // utf8mb4: up to four bytes a character.
            character_octet_length: Some(characters.saturating_mul(4)),
            ..Self::named(data_type, format!("{data_type}({characters})"))
        }
    }

    fn bytes(data_type: &'static str, column_type: impl Into<String>, bytes: u64) -> Self {
        Self {
            character_maximum_length: Some(bytes),
            character_octet_length: Some(bytes),
            ..Self::named(data_type, column_type)
        }
    }

    fn time(data_type: &'static str) -> Self {
        Self {
            datetime_precision: Some(6),
            ..Self::named(data_type, format!("{data_type}(6)"))
        }
    }

    /// The type of a column of an Iceberg table.
    pub fn from_field(column: &NestedField) -> Self {
        match NewerType::of(column) {
            Some(NewerType::Variant) => Self::plain("json"),
            _ => Self::from_iceberg(&column.field_type),
        }
    }

    /// The type of values of an Iceberg type.
    pub fn from_iceberg(column: &Type) -> Self {
        let Type::Primitive(primitive) = column else {
            return Self::plain("json");
        };
        match primitive {
            PrimitiveType::Boolean => Self::boolean(),
            PrimitiveType::Int => Self::integer("int", "int", 10),
            PrimitiveType::Long => Self::integer("bigint", "bigint", 19),
            PrimitiveType::Float => Self::real("float", 12),
            PrimitiveType::Double => Self::real("double", 22),
            PrimitiveType::Decimal { precision, scale } => {
                Self::decimal(u64::from(*precision), u64::from(*scale))
            }
            PrimitiveType::Date => Self::plain("date"),
            PrimitiveType::Time => Self::time("time"),
            PrimitiveType::Timestamp => Self::time("datetime"),
            PrimitiveType::Timestamptz => Self::time("timestamp"),
            PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs => Self::nanoseconds(),
            PrimitiveType::String => Self::text("varchar", VARCHAR_CHARACTERS),
            PrimitiveType::Uuid => Self::text("char", 36),
            PrimitiveType::Fixed(length) => {
                Self::bytes("binary", format!("binary({length})"), *length)
            }
            PrimitiveType::Binary => Self::blob(),
        }
    }

    /// The type of a column of a query or of a system table.
    pub fn from_arrow(column: &DataType) -> Self {
        match column {
            DataType::Boolean => Self::boolean(),
            DataType::Int8 => Self::integer("tinyint", "tinyint", 3),
            DataType::Int16 => Self::integer("smallint", "smallint", 5),
            DataType::Int32 => Self::integer("int", "int", 10),
            DataType::Int64 => Self::integer("bigint", "bigint", 19),
            DataType::UInt8 => Self::integer("tinyint", "tinyint unsigned", 3),
            DataType::UInt16 => Self::integer("smallint", "smallint unsigned", 5),
            DataType::UInt32 => Self::integer("int", "int unsigned", 10),
            DataType::UInt64 => Self::integer("bigint", "bigint unsigned", 20),
            DataType::Float16 | DataType::Float32 => Self::real("float", 12),
            DataType::Float64 => Self::real("double", 22),
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => {
                Self::decimal(u64::from(*precision), u64::try_from(*scale).unwrap_or(0))
            }
            DataType::Date32 | DataType::Date64 => Self::plain("date"),
            DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Duration(_)
            | DataType::Interval(_) => Self::time("time"),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => Self::nanoseconds(),
            DataType::Timestamp(_, None) => Self::time("datetime"),
            DataType::Timestamp(_, Some(_)) => Self::time("timestamp"),
            DataType::FixedSizeBinary(length) => {
                let length = u64::try_from(*length).unwrap_or(0);
                Self::bytes("binary", format!("binary({length})"), length)
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Self::blob(),
            DataType::Dictionary(_, value) => Self::from_arrow(value),
            DataType::RunEndEncoded(_, value) => Self::from_arrow(value.data_type()),
            DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                Self::text("varchar", VARCHAR_CHARACTERS)
            }
            DataType::List(_)
            | DataType::LargeList(_)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
            | DataType::FixedSizeList(_, _)
            | DataType::Struct(_)
            | DataType::Map(_, _)
            | DataType::Union(_, _) => Self::plain("json"),
        }
    }

    /// `2020-02-29 12:34:56.123456789`
    fn nanoseconds() -> Self {
        Self::text("varchar", 29)
    }

    fn boolean() -> Self {
        Self::integer("tinyint", "tinyint(1)", 3)
    }

    fn blob() -> Self {
        Self::bytes("longblob", "longblob", u64::from(u32::MAX))
    }

    /// Whether values are characters, which have a character set and a collation.
    pub fn is_text(&self) -> bool {
        matches!(self.data_type, "varchar" | "char")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_iceberg_type_has_a_name_that_mysql_clients_know() {
        let p = Type::Primitive;
        for (iceberg, data_type, column_type) in [
            (p(PrimitiveType::Boolean), "tinyint", "tinyint(1)"),
            (p(PrimitiveType::Int), "int", "int"),
            (p(PrimitiveType::Long), "bigint", "bigint"),
            (
                p(PrimitiveType::Decimal {
                    precision: 15,
                    scale: 2,
                }),
                "decimal",
                "decimal(15,2)",
            ),
            (p(PrimitiveType::Timestamp), "datetime", "datetime(6)"),
            (p(PrimitiveType::Timestamptz), "timestamp", "timestamp(6)"),
            (p(PrimitiveType::Time), "time", "time(6)"),
            (p(PrimitiveType::String), "varchar", "varchar(65535)"),
            (p(PrimitiveType::Uuid), "char", "char(36)"),
            (p(PrimitiveType::Fixed(8)), "binary", "binary(8)"),
            (p(PrimitiveType::Binary), "longblob", "longblob"),
        ] {
            let name = MysqlType::from_iceberg(&iceberg);
            assert_eq!(
                (name.data_type, name.column_type.as_str()),
                (data_type, column_type)
            );
        }
    }

    #[test]
    fn lengths_and_precisions_follow_from_the_type() {
        let text = MysqlType::from_arrow(&DataType::Utf8View);
        assert_eq!(text.character_maximum_length, Some(65_535));
        assert_eq!(text.character_octet_length, Some(262_140));
        let decimal = MysqlType::from_arrow(&DataType::Decimal128(10, 3));
        assert_eq!(
            (decimal.numeric_precision, decimal.numeric_scale),
            (Some(10), Some(3))
        );
        let long = MysqlType::from_arrow(&DataType::UInt64);
        assert_eq!(long.column_type, "bigint unsigned");
    }
}
