//! UUIDs among the partition values of a manifest.
//!
//! Avro has two forms of its `uuid`: text, and 16 bytes. Partition tuples hold the bytes, and the Iceberg crate writes the text.
//! So the crate is told `fixed[16]` for columns that are UUIDs and partition fields by themselves, and the header of what it wrote
//! is made to say UUIDs again:
//!
//! | | the file is to say | the crate is told |
//! |---|---|---|
//! | `avro.schema` | `{"type": "fixed", "size": 16, "logicalType": "uuid"}` | `{"type": "fixed", "size": 16}` |
//! | `schema` | `"uuid"` | `"fixed[16]"` |

use std::collections::{HashMap, HashSet};

use iceberg::spec::{
    DataFile, DataFileBuilder, Datum, Literal, PartitionSpec, PrimitiveLiteral, PrimitiveType,
    Schema, Struct, Transform, Type,
};
use serde_json::Value;

use crate::error::{CatalogError, Result};

/// Tells `fixed[16]` for the UUIDs among these columns, at any depth of a table schema; the ids of those it found.
pub(crate) fn tell_schema(schema: &mut Value, columns: &HashSet<i32>) -> HashSet<i32> {
    let mut told = HashSet::new();
    tell(schema, columns, &mut told);
    told
}

fn tell(value: &mut Value, columns: &HashSet<i32>, told: &mut HashSet<i32>) {
    match value {
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| tell(value, columns, told)),
        Value::Object(object) => {
            let id = object.get("id").and_then(Value::as_i64);
            let id = id.and_then(|id| i32::try_from(id).ok());
            if let Some(id) = id.filter(|id| columns.contains(id))
                && let Some(of) = object.get_mut("type")
                && of == "uuid"
            {
                *of = Value::from("fixed[16]");
                told.insert(id);
            }
            object
                .values_mut()
                .for_each(|value| tell(value, columns, told));
        }
        _ => {}
    }
}

/// A file as the crate can write it: UUIDs among its partition values as 16 bytes.
pub(crate) fn told_file(file: &DataFile, spec: &PartitionSpec) -> Result<DataFile> {
    let values = file.partition().iter().map(|value| match value {
        Some(Literal::Primitive(PrimitiveLiteral::UInt128(uuid))) => {
            Some(Literal::fixed(uuid.to_be_bytes()))
        }
        value => value.cloned(),
    });
    let (lower, upper) = (file.lower_bounds().clone(), file.upper_bounds().clone());
    rebuilt(
        file,
        spec.spec_id(),
        Struct::from_iter(values),
        lower,
        upper,
    )
}

fn rebuilt(
    file: &DataFile,
    spec_id: i32,
    partition: Struct,
    lower: HashMap<i32, Datum>,
    upper: HashMap<i32, Datum>,
) -> Result<DataFile> {
    let mut builder = DataFileBuilder::default();
    builder
        .content(file.content_type())
        .file_path(file.file_path().to_string())
        .file_format(file.file_format())
        .partition(partition)
        .partition_spec_id(spec_id)
        .record_count(file.record_count())
        .file_size_in_bytes(file.file_size_in_bytes())
        .column_sizes(file.column_sizes().clone())
        .value_counts(file.value_counts().clone())
        .null_value_counts(file.null_value_counts().clone())
        .nan_value_counts(file.nan_value_counts().clone())
        .lower_bounds(lower)
        .upper_bounds(upper)
        .key_metadata(file.key_metadata().map(<[u8]>::to_vec))
        .split_offsets(file.split_offsets().map(<[i64]>::to_vec))
        .equality_ids(file.equality_ids())
        .first_row_id(file.first_row_id())
        .referenced_data_file(file.referenced_data_file())
        .content_offset(file.content_offset())
        .content_size_in_bytes(file.content_size_in_bytes());
    if let Some(order) = file.sort_order_id() {
        builder.sort_order_id(order);
    }
    builder.build().map_err(|error| malformed(file, &error))
}

fn malformed(file: &DataFile, error: &dyn std::fmt::Display) -> CatalogError {
    CatalogError::Internal(format!(
        "the manifest entry of '{}' cannot be taken apart: {error}",
        file.file_path()
    ))
}

/// The schema that the crate is told to write a manifest with, and the partition fields (by id) that are UUIDs; none if
/// there are none.
pub(crate) fn told_for_writing(
    schema: &Schema,
    spec: &PartitionSpec,
) -> Result<Option<(Schema, HashSet<i32>)>> {
    let own = spec
        .fields()
        .iter()
        .filter(|field| matches!(field.transform, Transform::Identity | Transform::Void));
    let uuids: Vec<_> = own
        .filter(|field| {
            schema
                .field_by_id(field.source_id)
                .is_some_and(|source| *source.field_type == Type::Primitive(PrimitiveType::Uuid))
        })
        .collect();
    if uuids.is_empty() {
        return Ok(None);
    }
    let sources = uuids.iter().map(|field| field.source_id).collect();
    let fields = uuids.iter().map(|field| field.field_id).collect();
    let failed = |error: serde_json::Error| {
        CatalogError::Internal(format!("a table's schema cannot be written: {error}"))
    };
    let mut told = serde_json::to_value(schema).map_err(failed)?;
    tell_schema(&mut told, &sources);
    let told = serde_json::from_value(told).map_err(failed)?;
    Ok(Some((told, fields)))
}

/// Gives `uuid` back to the partition fields of these ids in a manifest's Avro schema.
pub(crate) fn restore_avro_schema(schema: &mut Value, fields: &HashSet<i32>) {
    match schema {
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| restore_avro_schema(value, fields)),
        Value::Object(object) => {
            let id = object.get("field-id").and_then(Value::as_i64);
            let id = id.and_then(|id| i32::try_from(id).ok());
            if id.is_some_and(|id| fields.contains(&id))
                && let Some(of) = object.get_mut("type")
            {
                name_uuid(of);
            }
            object
                .values_mut()
                .for_each(|value| restore_avro_schema(value, fields));
        }
        _ => {}
    }
}

/// Marks the 16 bytes in a field's type, which is a union with null.
fn name_uuid(of: &mut Value) {
    match of {
        Value::Array(values) => values.iter_mut().for_each(name_uuid),
        Value::Object(object) if object.get("type").is_some_and(|of| of == "fixed") => {
            object.insert("logicalType".to_string(), Value::from("uuid"));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_columns_asked_for_are_told() {
        let mut schema = json!({"type": "struct", "fields": [
            {"id": 1, "name": "u", "required": false, "type": "uuid"},
            {"id": 2, "name": "b", "required": false, "type": "uuid"},
            {"id": 4, "name": "s", "required": false, "type": "string"},
            {"id": 5, "name": "p", "required": false, "type": {"type": "struct", "fields": [
                {"id": 3, "name": "v", "required": true, "type": "uuid"}]}},
        ]});
        let columns = HashSet::from([1, 3, 4]);
        assert_eq!(tell_schema(&mut schema, &columns), HashSet::from([1, 3]));
        assert_eq!(schema["fields"][0]["type"], "fixed[16]");
        assert_eq!(schema["fields"][1]["type"], "uuid");
        assert_eq!(
            schema["fields"][3]["type"]["fields"][0]["type"],
            "fixed[16]"
        );
    }

    #[test]
    fn the_mark_of_a_uuid_comes_back() {
        let mut schema = json!({"type": "record", "name": "r102", "fields": [
            {"name": "u", "field-id": 1000, "type": ["null",
                {"type": "fixed", "name": "uuid_fixed", "size": 16}]},
            {"name": "f", "field-id": 1001, "type": ["null",
                {"type": "fixed", "name": "fixed_16", "size": 16}]},
        ]});
        restore_avro_schema(&mut schema, &HashSet::from([1000]));
        assert_eq!(schema["fields"][0]["type"][1]["logicalType"], "uuid");
        assert_eq!(schema["fields"][1]["type"][1].get("logicalType"), None);
    }
}
