//! The Iceberg schema of a `CREATE TABLE … AS SELECT`.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema as ArrowSchema};
use iceberg::spec::{ListType, MapType, NestedField, PrimitiveType, Schema, StructType, Type};
use tarn_catalog::is_uuid;

use crate::error::{Error, ErrorKind, Result};

/// Columns for the result of a query, all of them optional, with fresh field ids.
pub(super) fn table_schema(columns: &ArrowSchema) -> Result<Schema> {
    // Ids of the columns come first, then those inside them, as Iceberg numbers a new table.
    let mut next_id = i32::try_from(columns.fields().len()).unwrap_or(i32::MAX) + 1;
    let mut fields = Vec::new();
    for (id, column) in (1..).zip(columns.fields()) {
        if fields
            .iter()
            .any(|other: &Arc<NestedField>| other.name == *column.name())
        {
            return Err(Error::new(
                ErrorKind::DuplicateColumn,
                format!("Duplicate column name '{}'", column.name()),
            ));
        }
        let kind = iceberg_type(column, &mut next_id)?;
        fields.push(Arc::new(NestedField::optional(id, column.name(), kind)));
    }
    Schema::builder()
        .with_fields(fields)
        .build()
        .map_err(|error| Error::new(ErrorKind::InvalidArgument, error.to_string()))
}

fn iceberg_type(column: &Field, next_id: &mut i32) -> Result<Type> {
    let primitive = match column.data_type() {
        DataType::Boolean => PrimitiveType::Boolean,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => {
            PrimitiveType::Int
        }
        DataType::Int64 | DataType::UInt32 => PrimitiveType::Long,
        DataType::UInt64 => decimal(20, 0),
        DataType::Float16 | DataType::Float32 => PrimitiveType::Float,
        DataType::Float64 => PrimitiveType::Double,
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            let scale = u32::try_from(*scale).map_err(|_| unsupported(column))?;
            if *precision > 38 {
                return Err(unsupported(column));
            }
            decimal(u32::from(*precision), scale)
        }
        DataType::Date32 | DataType::Date64 => PrimitiveType::Date,
        DataType::Time32(_) | DataType::Time64(_) => PrimitiveType::Time,
        DataType::Timestamp(_, None) => PrimitiveType::Timestamp,
        DataType::Timestamp(_, Some(_)) => PrimitiveType::Timestamptz,
        // A column of NULLs alone can be given any type later only if it is a text.
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            PrimitiveType::String
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => PrimitiveType::Binary,
        DataType::FixedSizeBinary(_) if is_uuid(column) => PrimitiveType::Uuid,
        DataType::FixedSizeBinary(length) => {
            PrimitiveType::Fixed(u64::try_from(*length).map_err(|_| unsupported(column))?)
        }
        DataType::Dictionary(_, value) => {
            let value = Field::new(column.name(), value.as_ref().clone(), true);
            return iceberg_type(&value, next_id);
        }
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => {
            let id = take(next_id);
            let kind = iceberg_type(item, next_id)?;
            let element = NestedField::list_element(id, kind, false);
            return Ok(Type::List(ListType::new(Arc::new(element))));
        }
        DataType::Struct(members) => {
            let ids: Vec<i32> = members.iter().map(|_| take(next_id)).collect();
            let mut fields = Vec::new();
            for (id, member) in ids.into_iter().zip(members) {
                let kind = iceberg_type(member, next_id)?;
                fields.push(Arc::new(NestedField::optional(id, member.name(), kind)));
            }
            return Ok(Type::Struct(StructType::new(fields)));
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(members) = entries.data_type() else {
                return Err(unsupported(column));
            };
            let [key, value] = members.as_ref() else {
                return Err(unsupported(column));
            };
            let (key_id, value_id) = (take(next_id), take(next_id));
            let key = NestedField::map_key_element(key_id, iceberg_type(key, next_id)?);
            let value =
                NestedField::map_value_element(value_id, iceberg_type(value, next_id)?, false);
            return Ok(Type::Map(MapType::new(Arc::new(key), Arc::new(value))));
        }
        _ => return Err(unsupported(column)),
    };
    Ok(Type::Primitive(primitive))
}

fn decimal(precision: u32, scale: u32) -> PrimitiveType {
    PrimitiveType::Decimal { precision, scale }
}

fn take(next_id: &mut i32) -> i32 {
    let id = *next_id;
    *next_id += 1;
    id
}

fn unsupported(column: &Field) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!(
            "column '{}' has type {}, which Iceberg tables do not hold: cast it in the query",
            column.name(),
            column.data_type()
        ),
    )
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{Fields, TimeUnit};

    use super::*;

    #[test]
    fn a_query_gives_the_types_that_hold_its_values() {
        let columns = ArrowSchema::new(vec![
            Field::new("n", DataType::UInt64, false),
            Field::new("s", DataType::Utf8View, true),
            Field::new("t", DataType::Timestamp(TimeUnit::Nanosecond, None), true),
            Field::new(
                "p",
                DataType::Struct(Fields::from(vec![Field::new("x", DataType::Int16, true)])),
                true,
            ),
            Field::new("l", DataType::new_list(DataType::Utf8, true), true),
            tarn_catalog::mark_uuid(
                Field::new("u", DataType::FixedSizeBinary(16), true),
                &Type::Primitive(PrimitiveType::Uuid),
            ),
            Field::new("f", DataType::FixedSizeBinary(16), true),
        ]);
        let schema = table_schema(&columns).expect("all fit");
        let shown: Vec<String> = schema
            .as_struct()
            .fields()
            .iter()
            .map(|field| format!("{}: {} {}", field.id, field.name, field.field_type))
            .collect();
        assert_eq!(shown[0], "1: n decimal(20, 0)");
        assert_eq!(shown[1], "2: s string");
        assert_eq!(shown[2], "3: t timestamp");
        assert_eq!(shown[5..], ["6: u uuid", "7: f fixed(16)"]);
        assert!(shown[3].starts_with("4: p struct"), "{}", shown[3]);
        assert_eq!(schema.name_by_field_id(8), Some("p.x"));
        assert!(
            schema
                .as_struct()
                .fields()
                .iter()
                .all(|field| !field.required)
        );
    }

    #[test]
    fn two_columns_of_one_name_are_refused() {
        let columns = ArrowSchema::new(vec![
            Field::new("a", DataType::Int32, true),
            Field::new("a", DataType::Int32, true),
        ]);
        let error = table_schema(&columns).expect_err("twice a");
        assert_eq!(error.kind, ErrorKind::DuplicateColumn);
    }
}
