//! The types that columns may have (`CommandGetXdbcTypeInfo`).

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
    ];
    // The protocol wants the rows in this order.
    rows.sort_by_key(|row| (row.data_type as i32, row.type_name.clone()));
    for row in rows {
        builder.append(row);
    }
    builder.build().map_err(internal)
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
