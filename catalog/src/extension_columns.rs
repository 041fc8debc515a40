//! Arrow has no types for UUIDs and JSON: 16 bytes and text are marked with the canonical extensions `arrow.uuid` and
//! `arrow.json`.

use arrow::datatypes::{DataType, Field, Schema as ArrowSchema};
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::{PrimitiveType, Schema, Type};

const EXTENSION_NAME: &str = "ARROW:extension:name";

/// What a column is that Arrow's type of it does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extension {
    Uuid,
    Json,
}

impl Extension {
    pub const ALL: [Self; 2] = [Self::Uuid, Self::Json];

    /// That of a field which Tarn or another engine marked.
    pub fn of(field: &Field) -> Option<Self> {
        let name = field.metadata().get(EXTENSION_NAME)?;
        Self::ALL
            .into_iter()
            .find(|extension| name == extension.name() && extension.fits(field.data_type()))
    }

    /// Whether values of a type may be marked so.
    pub fn fits(self, data_type: &DataType) -> bool {
        match self {
            Self::Uuid => matches!(data_type, DataType::FixedSizeBinary(16)),
            Self::Json => data_type.is_string(),
        }
    }

    pub fn mark(self, field: Field) -> Field {
        let mut metadata = field.metadata().clone();
        metadata.insert(EXTENSION_NAME.to_owned(), self.name().to_owned());
        field.with_metadata(metadata)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Uuid => "arrow.uuid",
            Self::Json => "arrow.json",
        }
    }
}

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
    match column {
        Type::Primitive(PrimitiveType::Uuid) => Extension::Uuid.mark(field),
        _ => field,
    }
}

/// `field`, marked as JSON text.
pub fn mark_json(field: Field) -> Field {
    Extension::Json.mark(field)
}

/// Whether a field was marked by [`mark_uuid`], or is marked so by another engine.
pub fn is_uuid(field: &Field) -> bool {
    Extension::of(field) == Some(Extension::Uuid)
}
