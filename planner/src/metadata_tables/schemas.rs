//! The columns of metadata tables, as Iceberg's Java library has them: names, types, field ids and order.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema as ArrowSchema, SchemaRef};
use iceberg::arrow::type_to_arrow_type;
use iceberg::spec::{
    ListType, MapType, NestedField, NestedFieldRef, PrimitiveType as P, StructType, Type,
};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use tarn_catalog::{CatalogError, PinnedTable};

use super::MetadataTable;
use super::partition_type::partition_type;
use super::readable_metrics::readable_metrics_type;

const PARTITION_ID: i32 = 102;

fn required(id: i32, name: &str, of: P) -> NestedFieldRef {
    NestedField::required(id, name, Type::Primitive(of)).into()
}

fn optional(id: i32, name: &str, of: P) -> NestedFieldRef {
    NestedField::optional(id, name, Type::Primitive(of)).into()
}

fn map(id: i32, name: &str, key: (i32, P), value: (i32, P)) -> NestedFieldRef {
    let of = Type::Map(MapType::new(
        NestedField::map_key_element(key.0, Type::Primitive(key.1)).into(),
        NestedField::map_value_element(value.0, Type::Primitive(value.1), true).into(),
    ));
    NestedField::optional(id, name, of).into()
}

fn list(id: i32, name: &str, element: i32, of: Type) -> NestedFieldRef {
    let of = Type::List(ListType::new(
        NestedField::list_element(element, of, true).into(),
    ));
    NestedField::optional(id, name, of).into()
}

fn snapshots() -> Vec<NestedFieldRef> {
    vec![
        required(1, "committed_at", P::Timestamptz),
        required(2, "snapshot_id", P::Long),
        optional(3, "parent_id", P::Long),
        optional(4, "operation", P::String),
        optional(5, "manifest_list", P::String),
        map(6, "summary", (7, P::String), (8, P::String)),
    ]
}

fn history() -> Vec<NestedFieldRef> {
    vec![
        required(1, "made_current_at", P::Timestamptz),
        required(2, "snapshot_id", P::Long),
        optional(3, "parent_id", P::Long),
        required(4, "is_current_ancestor", P::Boolean),
    ]
}

fn refs() -> Vec<NestedFieldRef> {
    vec![
        required(1, "name", P::String),
        required(2, "type", P::String),
        required(3, "snapshot_id", P::Long),
        optional(4, "max_reference_age_in_ms", P::Long),
        optional(5, "min_snapshots_to_keep", P::Int),
        optional(6, "max_snapshot_age_in_ms", P::Long),
    ]
}

fn metadata_log_entries() -> Vec<NestedFieldRef> {
    vec![
        required(1, "timestamp", P::Timestamptz),
        required(2, "file", P::String),
        optional(3, "latest_snapshot_id", P::Long),
        optional(4, "latest_schema_id", P::Int),
        optional(5, "latest_sequence_number", P::Long),
    ]
}

/// Java's library has no such table; the columns are Trino's.
fn properties() -> Vec<NestedFieldRef> {
    vec![
        required(1, "key", P::String),
        required(2, "value", P::String),
    ]
}

fn manifests() -> Vec<NestedFieldRef> {
    let summary = StructType::new(vec![
        required(10, "contains_null", P::Boolean),
        optional(11, "contains_nan", P::Boolean),
        optional(12, "lower_bound", P::String),
        optional(13, "upper_bound", P::String),
    ]);
    vec![
        required(14, "content", P::Int),
        required(1, "path", P::String),
        required(2, "length", P::Long),
        required(3, "partition_spec_id", P::Int),
        required(4, "added_snapshot_id", P::Long),
        // Old writers did not count, so these may be null.
        optional(5, "added_data_files_count", P::Int),
        optional(6, "existing_data_files_count", P::Int),
        optional(7, "deleted_data_files_count", P::Int),
        optional(15, "added_delete_files_count", P::Int),
        optional(16, "existing_delete_files_count", P::Int),
        optional(17, "deleted_delete_files_count", P::Int),
        list(8, "partition_summaries", 9, Type::Struct(summary)),
    ]
}

fn all_manifests() -> Vec<NestedFieldRef> {
    let mut fields = manifests();
    fields.push(required(18, "reference_snapshot_id", P::Long));
    fields.push(optional(19, "key_metadata", P::Binary));
    fields
}

/// A data or delete file. A table that was never partitioned has no column `partition`.
fn file(partition: &StructType) -> Vec<NestedFieldRef> {
    let counts = |id, name, key, value| map(id, name, (key, P::Int), (value, P::Long));
    let bounds = |id, name, key, value| map(id, name, (key, P::Int), (value, P::Binary));
    let mut fields = vec![
        optional(134, "content", P::Int),
        required(100, "file_path", P::String),
        required(101, "file_format", P::String),
        optional(141, "spec_id", P::Int),
    ];
    if !partition.fields().is_empty() {
        let of = Type::Struct(partition.clone());
        fields.push(NestedField::required(PARTITION_ID, "partition", of).into());
    }
    fields.extend([
        required(103, "record_count", P::Long),
        required(104, "file_size_in_bytes", P::Long),
        counts(108, "column_sizes", 117, 118),
        counts(109, "value_counts", 119, 120),
        counts(110, "null_value_counts", 121, 122),
        counts(137, "nan_value_counts", 138, 139),
        bounds(125, "lower_bounds", 126, 127),
        bounds(128, "upper_bounds", 129, 130),
        optional(131, "key_metadata", P::Binary),
        list(132, "split_offsets", 133, Type::Primitive(P::Long)),
        list(135, "equality_ids", 136, Type::Primitive(P::Int)),
        optional(140, "sort_order_id", P::Int),
        optional(142, "first_row_id", P::Long),
        optional(143, "referenced_data_file", P::String),
        optional(144, "content_offset", P::Long),
        optional(145, "content_size_in_bytes", P::Long),
    ]);
    fields
}

fn entries(partition: &StructType) -> Vec<NestedFieldRef> {
    let file = Type::Struct(StructType::new(file(partition)));
    vec![
        required(0, "status", P::Int),
        optional(1, "snapshot_id", P::Long),
        optional(3, "sequence_number", P::Long),
        optional(4, "file_sequence_number", P::Long),
        NestedField::required(2, "data_file", file).into(),
    ]
}

fn partitions(partition: &StructType) -> Vec<NestedFieldRef> {
    let mut fields = Vec::new();
    if !partition.fields().is_empty() {
        let of = Type::Struct(partition.clone());
        fields.push(NestedField::required(1, "partition", of).into());
        fields.push(required(4, "spec_id", P::Int));
    }
    fields.extend([
        required(2, "record_count", P::Long),
        required(3, "file_count", P::Int),
        required(11, "total_data_file_size_in_bytes", P::Long),
        required(5, "position_delete_record_count", P::Long),
        required(6, "position_delete_file_count", P::Int),
        required(7, "equality_delete_record_count", P::Long),
        required(8, "equality_delete_file_count", P::Int),
        optional(9, "last_updated_at", P::Timestamptz),
        optional(10, "last_updated_snapshot_id", P::Long),
    ]);
    fields
}

/// A metadata table's columns, and the type of the table's partitions.
pub(super) fn columns(
    kind: MetadataTable,
    table: &PinnedTable,
) -> Result<(SchemaRef, StructType), CatalogError> {
    let mut partition = StructType::new(vec![]);
    let of_files = kind.is_of_entries()
        || matches!(
            kind,
            MetadataTable::Files
                | MetadataTable::DataFiles
                | MetadataTable::DeleteFiles
                | MetadataTable::AllFiles
                | MetadataTable::AllDataFiles
                | MetadataTable::AllDeleteFiles
        );
    if of_files || kind == MetadataTable::Partitions {
        partition = partition_type(table)?;
    }
    let mut fields = match kind {
        MetadataTable::Snapshots => snapshots(),
        MetadataTable::History => history(),
        MetadataTable::Refs => refs(),
        MetadataTable::MetadataLogEntries => metadata_log_entries(),
        MetadataTable::Properties => properties(),
        MetadataTable::Manifests => manifests(),
        MetadataTable::AllManifests => all_manifests(),
        MetadataTable::Partitions => partitions(&partition),
        kind if kind.is_of_entries() => entries(&partition),
        _ => file(&partition),
    };
    if of_files {
        // Partition fields have ids from 1000 on, and so may columns; the metrics' come after all of them.
        let highest = partition
            .fields()
            .iter()
            .map(|field| field.id)
            .fold(1000, i32::max);
        fields.extend(readable_metrics_type(
            table.metadata().current_schema(),
            highest,
        ));
    }
    let arrow: Vec<Field> = fields
        .iter()
        .map(|field| {
            // Field by field: columns of the table whose names differ only in where the dots are would make two equal
            // names of a whole schema.
            let of = type_to_arrow_type(&field.field_type)?;
            let id = HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), field.id.to_string())]);
            Ok(Field::new(&field.name, of, !field.required).with_metadata(id))
        })
        .collect::<iceberg::Result<_>>()
        .map_err(|e| {
            CatalogError::Internal(format!(
                "the columns of '{}${}': {e}",
                table.name(),
                kind.name()
            ))
        })?;
    Ok((Arc::new(ArrowSchema::new(arrow)), partition))
}
