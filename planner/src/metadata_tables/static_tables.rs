//! The metadata tables whose rows are all in the table's metadata file: snapshots, history, references, the log of
//! metadata files, properties.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use iceberg::spec::{Snapshot, SnapshotRef, SnapshotReference, SnapshotRetention};
use tarn_catalog::PinnedTable;

use super::MetadataTable;
use super::arrays::maps;
use super::table::batch;
use crate::error::{PlannerError, catalog_error};

/// The rows of one of these tables. `schema` has the columns that are asked for.
pub(super) fn static_rows(
    kind: MetadataTable,
    table: &PinnedTable,
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    match kind {
        MetadataTable::Snapshots => snapshots(table, schema),
        MetadataTable::History => history(table, schema),
        MetadataTable::Refs => refs(table, schema),
        MetadataTable::MetadataLogEntries => metadata_log_entries(table, schema),
        MetadataTable::Properties => properties(table, schema),
        other => Err(PlannerError::MetadataValue(format!(
            "'{}' is not in the metadata file",
            other.name()
        ))
        .into()),
    }
}

/// The snapshots that the metadata still has, oldest first.
pub(super) fn snapshots_in_order(table: &PinnedTable) -> Vec<SnapshotRef> {
    let mut snapshots: Vec<SnapshotRef> = table.metadata().snapshots().cloned().collect();
    snapshots.sort_by_key(|snapshot| {
        (
            snapshot.sequence_number(),
            snapshot.timestamp_ms(),
            snapshot.snapshot_id(),
        )
    });
    snapshots
}

fn times(millis: impl Iterator<Item = i64>) -> ArrayRef {
    let micros = millis.map(|millis| millis.checked_mul(1000));
    let times: TimestampMicrosecondArray = micros.collect();
    Arc::new(times.with_timezone("+00:00"))
}

fn longs(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.collect::<Int64Array>())
}

fn ints(values: impl Iterator<Item = Option<i32>>) -> ArrayRef {
    Arc::new(values.collect::<Int32Array>())
}

fn texts<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    // A builder wants to know how many there are.
    Arc::new(StringArray::from(values.collect::<Vec<_>>()))
}

fn no_column<T>(name: &str) -> Result<T> {
    Err(PlannerError::MetadataValue(format!("there is no column '{name}'")).into())
}

fn snapshots(table: &PinnedTable, schema: &SchemaRef) -> Result<RecordBatch> {
    let snapshots = snapshots_in_order(table);
    let each = || snapshots.iter().map(|snapshot| snapshot.as_ref());
    batch(schema, snapshots.len(), |field| {
        Ok(match field.name().as_str() {
            "committed_at" => times(each().map(Snapshot::timestamp_ms)),
            "snapshot_id" => longs(each().map(|snapshot| Some(snapshot.snapshot_id()))),
            "parent_id" => longs(each().map(Snapshot::parent_snapshot_id)),
            "operation" => texts(each().map(|snapshot| snapshot.summary().operation.as_str())),
            "manifest_list" => texts(each().map(Snapshot::manifest_list)),
            "summary" => {
                let summaries: Vec<BTreeMap<&String, &String>> = each()
                    .map(|snapshot| snapshot.summary().additional_properties.iter().collect())
                    .collect();
                let lengths: Vec<_> = summaries.iter().map(|map| Some(map.len())).collect();
                let keys = summaries.iter().flat_map(BTreeMap::keys);
                let values = summaries.iter().flat_map(BTreeMap::values);
                maps(
                    field.data_type(),
                    &lengths,
                    texts(keys.map(|text| text.as_str())),
                    texts(values.map(|text| text.as_str())),
                )?
            }
            other => return no_column(other),
        })
    })
}

fn history(table: &PinnedTable, schema: &SchemaRef) -> Result<RecordBatch> {
    let metadata = table.metadata();
    let log = metadata.history();
    let ancestors: HashSet<i64> = table
        .ancestors()
        .iter()
        .map(|snapshot| snapshot.snapshot_id())
        .collect();
    batch(schema, log.len(), |field| {
        Ok(match field.name().as_str() {
            "made_current_at" => times(log.iter().map(|entry| entry.timestamp_ms())),
            "snapshot_id" => longs(log.iter().map(|entry| Some(entry.snapshot_id))),
            "parent_id" => longs(log.iter().map(|entry| {
                let snapshot = metadata.snapshot_by_id(entry.snapshot_id)?;
                snapshot.parent_snapshot_id()
            })),
            "is_current_ancestor" => Arc::new(BooleanArray::from_iter(
                log.iter()
                    .map(|entry| Some(ancestors.contains(&entry.snapshot_id))),
            )),
            other => return no_column(other),
        })
    })
}

fn refs(table: &PinnedTable, schema: &SchemaRef) -> Result<RecordBatch> {
    let refs = table.references().map_err(catalog_error)?;
    let branch = |reference: &SnapshotReference| match &reference.retention {
        SnapshotRetention::Branch {
            min_snapshots_to_keep,
            max_snapshot_age_ms,
            ..
        } => (*min_snapshots_to_keep, *max_snapshot_age_ms),
        SnapshotRetention::Tag { .. } => (None, None),
    };
    batch(schema, refs.len(), |field| {
        Ok(match field.name().as_str() {
            "name" => texts(refs.keys().map(String::as_str)),
            "type" => texts(refs.values().map(|reference| match reference.is_branch() {
                true => "BRANCH",
                false => "TAG",
            })),
            "snapshot_id" => longs(refs.values().map(|reference| Some(reference.snapshot_id))),
            "max_reference_age_in_ms" => {
                longs(refs.values().map(|reference| match &reference.retention {
                    SnapshotRetention::Branch { max_ref_age_ms, .. }
                    | SnapshotRetention::Tag { max_ref_age_ms } => *max_ref_age_ms,
                }))
            }
            "min_snapshots_to_keep" => ints(refs.values().map(|reference| branch(reference).0)),
            "max_snapshot_age_in_ms" => longs(refs.values().map(|reference| branch(reference).1)),
            other => return no_column(other),
        })
    })
}

/// The metadata files of before, and the current one. Each with the snapshot that was current when it was written.
fn metadata_log_entries(table: &PinnedTable, schema: &SchemaRef) -> Result<RecordBatch> {
    let metadata = table.metadata();
    let mut log: Vec<(i64, &str)> = metadata
        .metadata_log()
        .iter()
        .map(|entry| (entry.timestamp_ms, entry.metadata_file.as_str()))
        .collect();
    log.extend(
        table
            .metadata_location()
            .map(|location| (metadata.last_updated_ms(), location)),
    );
    let latest: Vec<Option<i64>> = log.iter().map(|(at, _)| table.logged_at(*at)).collect();
    let snapshots = || {
        latest
            .iter()
            .map(|id| id.and_then(|id| metadata.snapshot_by_id(id)))
    };
    batch(schema, log.len(), |field| {
        Ok(match field.name().as_str() {
            "timestamp" => times(log.iter().map(|(at, _)| *at)),
            "file" => texts(log.iter().map(|(_, file)| *file)),
            "latest_snapshot_id" => longs(latest.iter().copied()),
            "latest_schema_id" => ints(snapshots().map(|snapshot| snapshot?.schema_id())),
            "latest_sequence_number" => {
                longs(snapshots().map(|snapshot| Some(snapshot?.sequence_number())))
            }
            other => return no_column(other),
        })
    })
}

fn properties(table: &PinnedTable, schema: &SchemaRef) -> Result<RecordBatch> {
    let properties: BTreeMap<&String, &String> = table.metadata().properties().iter().collect();
    batch(schema, properties.len(), |field| {
        Ok(match field.name().as_str() {
            "key" => texts(properties.keys().map(|text| text.as_str())),
            "value" => texts(properties.values().map(|text| text.as_str())),
            other => return no_column(other),
        })
    })
}
