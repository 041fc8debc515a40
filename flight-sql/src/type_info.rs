//! The types that columns may have (`CommandGetXdbcTypeInfo`), and what a column's type is called.

use arrow::datatypes::DataType;
use arrow_flight::sql::metadata::{XdbcTypeInfo, XdbcTypeInfoData, XdbcTypeInfoDataBuilder};
use arrow_flight::sql::{Nullable, Searchable, XdbcDataType, XdbcDatetimeSubcode};
use tonic::Status;

use crate::status::internal;

/// Builds the answer once for the life of the server.
pub(crate) fn type_info() -> Result<XdbcTypeInfoData, Status> {
    use XdbcDataType as X;
    let mut builder = XdbcTypeInfoDataBuilder::new();
    let mut rows = vec![
        plain("BOOLEAN", X::XdbcBit, 1),
        number("TINYINT", X::XdbcTinyint, 3),
        number("BIGINT", X::XdbcBigint, 19),
        text("BINARY", X::XdbcBinary, i32::MAX, "X'"),
        text("VARBINARY", X::XdbcVarbinary, i32::MAX, "X'"),
        XdbcTypeInfo {
            create_params: Some(vec!["precision".into(), "scale".into()]),
            fixed_prec_scale: false,
            minimum_scale: Some(0),
            maximum_scale: Some(38),
            ..number("DECIMAL", X::XdbcDecimal, 38)
        },
        number("INTEGER", X::XdbcInteger, 10),
        number("SMALLINT", X::XdbcSmallint, 5),
        XdbcTypeInfo {
            num_prec_radix: Some(2),
            ..number("FLOAT", X::XdbcReal, 24)
        },
        XdbcTypeInfo {
            num_prec_radix: Some(2),
            ..number("DOUBLE", X::XdbcDouble, 53)
        },
        XdbcTypeInfo {
            case_sensitive: true,
            ..text("VARCHAR", X::XdbcVarchar, i32::MAX, "'")
        },
        text("DATE", X::XdbcDate, 10, "'"),
        XdbcTypeInfo {
            datetime_subcode: Some(XdbcDatetimeSubcode::XdbcSubcodeTime),
            minimum_scale: Some(6),
            maximum_scale: Some(6),
            ..text("TIME", X::XdbcTime, 15, "'")
        },
        XdbcTypeInfo {
            datetime_subcode: Some(XdbcDatetimeSubcode::XdbcSubcodeTimestamp),
            minimum_scale: Some(6),
            maximum_scale: Some(6),
            ..text("TIMESTAMP", X::XdbcTimestamp, 26, "'")
        },
        XdbcTypeInfo {
            datetime_subcode: Some(XdbcDatetimeSubcode::XdbcSubcodeTimestampWithTimezone),
            minimum_scale: Some(6),
            maximum_scale: Some(6),
            ..text("TIMESTAMP WITH TIME ZONE", X::XdbcTimestamp, 32, "'")
        },
    ];
    // The protocol wants the rows in this order.
    rows.sort_by_key(|row| (row.data_type as i32, row.type_name.clone()));
    for row in rows {
        builder.append(row);
    }
    builder.build().map_err(internal)
}

/// What a column's type is called, in the words of [`type_info`] where it has one.
pub(crate) fn type_name(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "BOOLEAN",
        DataType::Int8 | DataType::UInt8 => "TINYINT",
        DataType::Int16 | DataType::UInt16 => "SMALLINT",
        DataType::Int32 | DataType::UInt32 => "INTEGER",
        DataType::Int64 | DataType::UInt64 => "BIGINT",
        DataType::Float16 | DataType::Float32 => "FLOAT",
        DataType::Float64 => "DOUBLE",
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => "DECIMAL",
        DataType::Date32 | DataType::Date64 => "DATE",
        DataType::Time32(_) | DataType::Time64(_) => "TIME",
        DataType::Timestamp(_, None) => "TIMESTAMP",
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE",
        DataType::Duration(_) | DataType::Interval(_) => "INTERVAL",
        DataType::FixedSizeBinary(_) => "BINARY",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "VARBINARY",
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR",
        DataType::Dictionary(_, value) => type_name(value),
        DataType::RunEndEncoded(_, values) => type_name(values.data_type()),
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::FixedSizeList(..) => "ARRAY",
        DataType::Struct(_) => "STRUCT",
        DataType::Map(..) => "MAP",
        DataType::Union(..) => "UNION",
    }
}

/// Decimal digits of a number in all, and after the point.
pub(crate) fn precision(data_type: &DataType) -> Option<(u8, i8)> {
    Some(match data_type {
        DataType::Int8 => (3, 0),
        DataType::Int16 => (5, 0),
        DataType::Int32 => (10, 0),
        DataType::Int64 => (19, 0),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => (*precision, *scale),
        _ => return None,
    })
}

fn plain(name: &str, data_type: XdbcDataType, size: i32) -> XdbcTypeInfo {
    XdbcTypeInfo {
        type_name: name.into(),
        data_type,
        column_size: Some(size),
        literal_prefix: None,
        literal_suffix: None,
        create_params: None,
        nullable: Nullable::NullabilityNullable,
        case_sensitive: false,
        searchable: Searchable::Full,
        unsigned_attribute: None,
        fixed_prec_scale: false,
        auto_increment: Some(false),
        local_type_name: Some(name.into()),
        minimum_scale: None,
        maximum_scale: None,
        sql_data_type: data_type,
        datetime_subcode: None,
        num_prec_radix: None,
        interval_precision: None,
    }
}

fn number(name: &str, data_type: XdbcDataType, digits: i32) -> XdbcTypeInfo {
    XdbcTypeInfo {
        unsigned_attribute: Some(false),
        minimum_scale: Some(0),
        maximum_scale: Some(0),
        num_prec_radix: Some(10),
        ..plain(name, data_type, digits)
    }
}

fn text(name: &str, data_type: XdbcDataType, size: i32, prefix: &str) -> XdbcTypeInfo {
    XdbcTypeInfo {
        literal_prefix: Some(prefix.into()),
        literal_suffix: Some("'".into()),
        ..plain(name, data_type, size)
    }
}
