//! What a scan knows of its table: the same on the coordinator and, decoded, on a worker.

use std::sync::{Arc, OnceLock};

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use iceberg::spec::{NameMapping, Schema as IcebergSchema};
use serde::{Deserialize, Serialize};
use tarn_audit::ScanReport;
use tarn_catalog::{StorageDescriptor, TableName};

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
pub(crate) fn scan_schema(schema: &IcebergSchema) -> iceberg::Result<SchemaRef> {
    let arrow = iceberg::arrow::schema_to_arrow_schema(schema)?;
    let fields: Fields = arrow
        .fields()
        .iter()
        .zip(schema.as_struct().fields())
        .map(|(field, column)| {
            let data_type = match field.data_type() {
                DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
                DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
                other => nested_type(other),
            };
            let yielded = Field::new(field.name(), data_type, field.is_nullable());
            Arc::new(tarn_catalog::mark_uuid(yielded, &column.field_type))
        })
        .collect();
    Ok(Arc::new(Schema::new(fields)))
}

/// A type inside another one, or one that is no string.
fn nested_type(data_type: &DataType) -> DataType {
    let nested = |field: &FieldRef| {
        Arc::new(
            field
                .as_ref()
                .clone()
                .with_data_type(nested_type(field.data_type())),
        )
    };
    match data_type {
        DataType::Timestamp(unit, Some(_)) => DataType::Timestamp(*unit, Some(UTC.into())),
        DataType::LargeBinary => DataType::Binary,
        DataType::LargeUtf8 => DataType::Utf8,
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(nested).collect()),
        DataType::List(element) => DataType::List(nested(element)),
        DataType::LargeList(element) => DataType::LargeList(nested(element)),
        DataType::Map(entries, sorted) => DataType::Map(nested(entries), *sorted),
        other => other.clone(),
    }
}
