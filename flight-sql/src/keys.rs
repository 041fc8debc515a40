//! Primary and foreign keys: Iceberg tables have none, so the answers are empty, in the shape that the
//! protocol asks for.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema};

/// The empty answer to `CommandGetPrimaryKeys`.
pub(crate) fn primary_keys() -> RecordBatch {
    empty(vec![
        text("catalog_name", true),
        text("db_schema_name", true),
        text("table_name", false),
        text("column_name", false),
        text("key_name", true),
        Field::new("key_sequence", DataType::Int32, false),
    ])
}

/// The empty answer to `CommandGetImportedKeys`, `CommandGetExportedKeys` and
/// `CommandGetCrossReference`, which have the same columns.
pub(crate) fn foreign_keys() -> RecordBatch {
    empty(vec![
        text("pk_catalog_name", true),
        text("pk_db_schema_name", true),
        text("pk_table_name", false),
        text("pk_column_name", false),
        text("fk_catalog_name", true),
        text("fk_db_schema_name", true),
        text("fk_table_name", false),
        text("fk_column_name", false),
        Field::new("key_sequence", DataType::Int32, false),
        text("fk_key_name", true),
        text("pk_key_name", true),
        Field::new("update_rule", DataType::UInt8, false),
        Field::new("delete_rule", DataType::UInt8, false),
    ])
}

fn text(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::Utf8, nullable)
}

fn empty(fields: Vec<Field>) -> RecordBatch {
    RecordBatch::new_empty(Arc::new(Schema::new(fields)))
}
