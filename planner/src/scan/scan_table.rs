//! What a scan knows of its table: the same on the coordinator and, decoded, on a worker.

use std::sync::{Arc, OnceLock};

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use iceberg::spec::{NameMapping, NestedField, Schema as IcebergSchema, Type};
use serde::{Deserialize, Serialize};
use tarn_audit::ScanReport;
use tarn_catalog::{NewerType, StorageDescriptor, TableName};

use super::file_columns::TableColumns;
use crate::error::PlannerError;

/// The zone that Parquet's readers give to timestamps that are adjusted to UTC.
const UTC: &str = "UTC";

/// The table of one scan, and what was found when it was planned.
#[derive(Debug)]
pub(crate) struct ScanTable {
    pub(crate) name: TableName,
    pub(crate) storage: StorageDescriptor,
    pub(crate) columns: Arc<TableColumns>,
    pub(crate) report: ScanReport,
    encoded: OnceLock<Vec<u8>>,
}

#[derive(Serialize, Deserialize)]
struct Travelling {
    name: TableName,
    storage: StorageDescriptor,
    schema: IcebergSchema,
    name_mapping: Option<NameMapping>,
    report: ScanReport,
}

impl ScanTable {
    pub(crate) fn new(
        name: TableName,
        storage: StorageDescriptor,
        columns: Arc<TableColumns>,
        report: ScanReport,
    ) -> Self {
        Self {
            name,
            storage,
            columns,
            report,
            encoded: OnceLock::new(),
        }
    }

    /// The same table in another scan.
    pub(crate) fn with_report(&self, report: ScanReport) -> Self {
        Self::new(
            self.name.clone(),
            self.storage.clone(),
            Arc::clone(&self.columns),
            report,
        )
    }

    /// The table as bytes; one scan is sent to many tasks, and is encoded once for all of them.
    pub(crate) fn encode(&self) -> Result<&[u8], PlannerError> {
        if let Some(encoded) = self.encoded.get() {
            return Ok(encoded);
        }
        let travelling = Travelling {
            name: self.name.clone(),
            storage: self.storage.clone(),
            schema: self.columns.schema().clone(),
            name_mapping: self.columns.name_mapping().cloned(),
            report: self.report.clone(),
        };
        let encoded =
            serde_json::to_vec(&travelling).map_err(|e| PlannerError::Codec(e.to_string()))?;
        Ok(self.encoded.get_or_init(|| encoded))
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, PlannerError> {
        let t: Travelling =
            serde_json::from_slice(bytes).map_err(|e| PlannerError::Codec(e.to_string()))?;
        let columns = TableColumns::new(Arc::new(t.schema), t.name_mapping)
            .map_err(|e| PlannerError::Codec(e.to_string()))?;
        Ok(Self::new(t.name, t.storage, Arc::new(columns), t.report))
    }
}

/// The schema that a scan yields, from the table's own.
///
/// The types are those that the Parquet reader makes fastest: strings and binary as views, UTC by the name that
/// Parquet's readers use. Nested fields keep their ids, which their files carry too; top-level columns do without.
/// Variants are read as their JSON text.
pub(crate) fn scan_schema(schema: &IcebergSchema) -> iceberg::Result<SchemaRef> {
    let arrow = iceberg::arrow::schema_to_arrow_schema(schema)?;
    let fields: Fields = arrow
        .fields()
        .iter()
        .zip(schema.as_struct().fields())
        .map(|(field, column)| {
            let data_type = match yielded_type(field.data_type(), column) {
                DataType::Utf8 => DataType::Utf8View,
                DataType::Binary => DataType::BinaryView,
                other => other,
            };
            let yielded = Field::new(field.name(), data_type, field.is_nullable());
            Arc::new(marked(yielded, column))
        })
        .collect();
    Ok(Arc::new(Schema::new(fields)))
}

/// The type that a field of the table has in a scan. Inside of others, strings are no views.
fn yielded_type(data_type: &DataType, column: &NestedField) -> DataType {
    let inside = |field: &FieldRef, column: &NestedField| {
        let data_type = yielded_type(field.data_type(), column);
        Arc::new(marked(
            field.as_ref().clone().with_data_type(data_type),
            column,
        ))
    };
    if NewerType::of(column) == Some(NewerType::Variant) {
        return DataType::Utf8;
    }
    match (data_type, column.field_type.as_ref()) {
        (DataType::Timestamp(unit, Some(_)), _) => DataType::Timestamp(*unit, Some(UTC.into())),
        (DataType::LargeBinary, _) => DataType::Binary,
        (DataType::LargeUtf8, _) => DataType::Utf8,
        (DataType::Struct(fields), Type::Struct(columns)) => DataType::Struct(
            fields
                .iter()
                .zip(columns.fields())
                .map(|(field, column)| inside(field, column))
                .collect(),
        ),
        (DataType::List(element), Type::List(list)) => {
            DataType::List(inside(element, &list.element_field))
        }
        (DataType::Map(entries, sorted), Type::Map(map)) => {
            let data_type = match entries.data_type() {
                DataType::Struct(fields) => DataType::Struct(
                    fields
                        .iter()
                        .zip([&map.key_field, &map.value_field])
                        .map(|(field, column)| inside(field, column))
                        .collect(),
                ),
                other => other.clone(),
            };
            let entries = entries.as_ref().clone().with_data_type(data_type);
            DataType::Map(Arc::new(entries), *sorted)
        }
        (other, _) => other.clone(),
    }
}

/// What Arrow's types alone do not tell is marked by the names of Arrow's extensions.
fn marked(field: Field, column: &NestedField) -> Field {
    match NewerType::of(column) {
        Some(NewerType::Variant) => tarn_catalog::mark_json(field),
        _ => tarn_catalog::mark_uuid(field, &column.field_type),
    }
}
