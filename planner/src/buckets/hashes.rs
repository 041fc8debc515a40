//! The bucket hashes of a column's values.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Int32Type, Int64Type, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType,
};

use super::hash::{hash_bytes, hash_decimal, hash_long};

/// Calls `each` with row and hash of every value that is not null, until it says to stop. False, without a call, if
/// values of that type have no buckets that are used.
pub(super) fn for_each_hash(values: &ArrayRef, each: impl FnMut(usize, u32) -> bool) -> bool {
    match values.data_type() {
        DataType::Int32 => {
            let values = values.as_primitive::<Int32Type>();
            visit(values, |i| hash_long(values.value(i).into()), each);
        }
        DataType::Int64 => {
            let values = values.as_primitive::<Int64Type>();
            visit(values, |i| hash_long(values.value(i)), each);
        }
        DataType::Date32 => {
            let values = values.as_primitive::<Date32Type>();
            visit(values, |i| hash_long(values.value(i).into()), each);
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            let values = values.as_primitive::<Time64MicrosecondType>();
            visit(values, |i| hash_long(values.value(i)), each);
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let values = values.as_primitive::<TimestampMicrosecondType>();
            visit(values, |i| hash_long(values.value(i)), each);
        }
        DataType::Decimal128(..) => {
            let values = values.as_primitive::<Decimal128Type>();
            visit(values, |i| hash_decimal(values.value(i)), each);
        }
        DataType::Utf8View => {
            let values = values.as_string_view();
            visit(values, |i| hash_bytes(values.value(i).as_bytes()), each);
        }
        DataType::Utf8 => {
            let values = values.as_string::<i32>();
            visit(values, |i| hash_bytes(values.value(i).as_bytes()), each);
        }
        DataType::LargeUtf8 => {
            let values = values.as_string::<i64>();
            visit(values, |i| hash_bytes(values.value(i).as_bytes()), each);
        }
        DataType::BinaryView => {
            let values = values.as_binary_view();
            visit(values, |i| hash_bytes(values.value(i)), each);
        }
        DataType::Binary => {
            let values = values.as_binary::<i32>();
            visit(values, |i| hash_bytes(values.value(i)), each);
        }
        DataType::LargeBinary => {
            let values = values.as_binary::<i64>();
            visit(values, |i| hash_bytes(values.value(i)), each);
        }
        DataType::FixedSizeBinary(_) => {
            let values = values.as_fixed_size_binary();
            visit(values, |i| hash_bytes(values.value(i)), each);
        }
        _ => return false,
    }
    true
}

fn visit(
    values: &dyn Array,
    hash: impl Fn(usize) -> u32,
    mut each: impl FnMut(usize, u32) -> bool,
) {
    let nulls = values.nulls();
    for row in 0..values.len() {
        if nulls.is_none_or(|nulls| nulls.is_valid(row)) && !each(row, hash(row)) {
            return;
        }
    }
}
