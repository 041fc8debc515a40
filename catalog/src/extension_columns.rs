//! Arrow has no types for UUIDs and JSON: 16 bytes and text are marked with the canonical extensions `arrow.uuid` and
//! `arrow.json`.

use arrow::datatypes::{DataType, Field, Schema as ArrowSchema};
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::{PrimitiveType, Schema, Type};

const EXTENSION_NAME: &str = "ARROW:extension:name";
const UUID_EXTENSION: &str = "arrow.uuid";
const JSON_EXTENSION: &str = "arrow.json";

/// A table's schema as Arrow has it, with the field ids, and its UUIDs marked.
pub(crate) fn to_arrow_schema(schema: &Schema) -> iceberg::Result<ArrowSchema> {
    let arrow = schema_to_arrow_schema(schema)?;
    let fields = arrow.fields().iter().zip(schema.as_struct().fields());
    let marked = fields.map(|(field, column)| mark_uuid((**field).clone(), &column.field_type));
    Ok(ArrowSchema::new(marked.collect::<Vec<_>>()))
}

/// `field`, marked as a UUID if `column`, its Iceberg type, is one. Front ends show such a column as
/// text, and an INSERT takes text for it.
pub fn mark_uuid(field: Field, column: &Type) -> Field {
    if !matches!(column, Type::Primitive(PrimitiveType::Uuid)) {
        return field;
    }
    mark(field, UUID_EXTENSION)
}

/// `field`, marked as JSON text.
pub fn mark_json(field: Field) -> Field {
    mark(field, JSON_EXTENSION)
}

fn mark(field: Field, extension: &str) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(EXTENSION_NAME.to_owned(), extension.to_owned());
    field.with_metadata(metadata)
}

/// Whether a field was marked by [`mark_uuid`], or is marked so by another engine.
pub fn is_uuid(field: &Field) -> bool {
    matches!(field.data_type(), DataType::FixedSizeBinary(16))
        && field
            .metadata()
            .get(EXTENSION_NAME)
            .is_some_and(|name| name == UUID_EXTENSION)
}
