//! The Parquet schema of a table's data files.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::Schema as ArrowSchema;
use iceberg::spec::{PrimitiveType, Schema, Type};
use parquet::arrow::ArrowSchemaConverter;
use parquet::basic::LogicalType;
use parquet::errors::Result;
use parquet::schema::types::{Type as ParquetType, TypePtr};

/// Converts the table's schema, field ids included, and annotates UUIDs, which Arrow knows as 16 bytes only.
pub(crate) fn parquet_schema(schema: &Schema, arrow: &ArrowSchema) -> Result<TypePtr> {
    let converted = ArrowSchemaConverter::new()
        .with_coerce_types(false)
        .schema_root("table")
        .convert(arrow)?;
    let mut uuids = HashSet::new();
    for id in 1..=schema.highest_field_id() {
        if let Some(field) = schema.field_by_id(id)
            && matches!(
                field.field_type.as_ref(),
                Type::Primitive(PrimitiveType::Uuid)
            )
        {
            uuids.insert(id);
        }
    }
    let root = converted.root_schema_ptr();
    if uuids.is_empty() {
        Ok(root)
    } else {
        annotate(&root, &uuids)
    }
}

fn annotate(node: &TypePtr, uuids: &HashSet<i32>) -> Result<TypePtr> {
    let info = node.get_basic_info();
    let id = info.has_id().then(|| info.id());
    match node.as_ref() {
        ParquetType::PrimitiveType {
            physical_type,
            type_length,
            ..
        } => {
            if !id.is_some_and(|id| uuids.contains(&id)) {
                return Ok(node.clone());
            }
            let uuid = ParquetType::primitive_type_builder(info.name(), *physical_type)
                .with_repetition(info.repetition())
                .with_length(*type_length)
                .with_logical_type(Some(LogicalType::Uuid))
                .with_id(id)
                .build()?;
            Ok(Arc::new(uuid))
        }
        ParquetType::GroupType { fields, .. } => {
            let fields = fields
                .iter()
                .map(|field| annotate(field, uuids))
                .collect::<Result<Vec<_>>>()?;
            let mut builder = ParquetType::group_type_builder(info.name())
                .with_fields(fields)
                .with_converted_type(info.converted_type())
                .with_logical_type(info.logical_type_ref().cloned())
                .with_id(id);
            if info.has_repetition() {
                builder = builder.with_repetition(info.repetition());
            }
            Ok(Arc::new(builder.build()?))
        }
    }
}
