//! `$partitions`: what the live files of each partition add up to.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use futures::StreamExt;
use iceberg::spec::{DataContentType, DataFile, PrimitiveLiteral, StructType};
use tarn_catalog::PinnedTable;

use super::MetadataTable;
use super::arrays::{primitives, structs};
use super::file_columns::FilesOfTable;
use super::files::{manifests, rows};
use super::table::batch;
use crate::error::{PlannerError, catalog_error};

/// Manifests that are read at the same time.
const MANIFESTS_AT_ONCE: usize = 4;

/// How many fields the spec has, and their values.
type Key = (usize, Vec<Option<PrimitiveLiteral>>);

#[derive(Debug, Default)]
struct Partition {
    /// Of the file that was added last.
    spec_id: Option<i32>,
    /// Data, position deletes, equality deletes.
    records: [u64; 3],
    files: [u64; 3],
    data_bytes: u64,
    /// When the last file was added, in milliseconds, and by which snapshot.
    updated: Option<(i64, i64)>,
}

impl Partition {
    fn add(&mut self, file: &DataFile, spec_id: i32, added: Option<(i64, i64)>) {
        let newer = match (added, self.updated) {
            (Some((at, _)), Some((last, _))) => at > last,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if newer {
            self.updated = added;
        }
        if newer || self.spec_id.is_none() {
            self.spec_id = Some(spec_id);
        }
        let content = match file.content_type() {
            DataContentType::Data => {
                self.data_bytes = self.data_bytes.saturating_add(file.file_size_in_bytes());
                0
            }
            DataContentType::PositionDeletes => 1,
            DataContentType::EqualityDeletes => 2,
        };
        self.records[content] = self.records[content].saturating_add(file.record_count());
        self.files[content] += 1;
    }
}

/// All rows. `schema` has the columns that are asked for.
pub(super) async fn partition_rows(
    table: PinnedTable,
    partition: StructType,
    schema: SchemaRef,
) -> Result<RecordBatch> {
    let files = FilesOfTable::new(&table, partition);
    let manifests = manifests(MetadataTable::Partitions, &table)
        .await
        .map_err(catalog_error)?;
    let mut reads = futures::stream::iter(manifests)
        .map(|manifest| {
            let table = table.clone();
            async move {
                let decoded = table.manifest(&manifest).await;
                (manifest, decoded)
            }
        })
        .buffered(MANIFESTS_AT_ONCE);
    let mut places: HashMap<Key, usize> = HashMap::new();
    let mut found: Vec<(Key, Partition)> = Vec::new();
    while let Some((manifest, decoded)) = reads.next().await {
        let decoded = decoded.map_err(catalog_error)?;
        for (row, entry) in rows(&manifest, &decoded.entries)
            .into_iter()
            .zip(&decoded.entries)
        {
            let added = entry
                .snapshot_id()
                .and_then(|id| table.metadata().snapshot_by_id(id))
                .map(|snapshot| (snapshot.timestamp_ms(), snapshot.snapshot_id()));
            let key = files.partition_key(row);
            let place = *places.entry(key.clone()).or_insert_with(|| {
                found.push((key, Partition::default()));
                found.len() - 1
            });
            if let Some((_, partition)) = found.get_mut(place) {
                partition.add(row.file, row.spec_id, added);
            }
        }
    }
    columns(&found, &schema)
}

fn columns(found: &[(Key, Partition)], schema: &SchemaRef) -> Result<RecordBatch> {
    let longs = |value: &dyn Fn(&Partition) -> Option<i64>| -> ArrayRef {
        Arc::new(
            found
                .iter()
                .map(|(_, partition)| value(partition))
                .collect::<Int64Array>(),
        )
    };
    let sum = |value: u64| Some(i64::try_from(value).unwrap_or(i64::MAX));
    let ints = |value: &dyn Fn(&Partition) -> Option<i32>| -> ArrayRef {
        Arc::new(
            found
                .iter()
                .map(|(_, partition)| value(partition))
                .collect::<Int32Array>(),
        )
    };
    let count = |value: u64| Some(i32::try_from(value).unwrap_or(i32::MAX));
    batch(schema, found.len(), |field| {
        Ok(match field.name().as_str() {
            "partition" => {
                let DataType::Struct(fields) = field.data_type() else {
                    return structs(field.data_type(), found.len(), vec![]);
                };
                let children = fields
                    .iter()
                    .enumerate()
                    .map(|(index, field)| {
                        let values = found
                            .iter()
                            .map(|((_, values), _)| values.get(index).and_then(Option::as_ref));
                        primitives(field.data_type(), values)
                    })
                    .collect::<Result<Vec<_>>>()?;
                structs(field.data_type(), found.len(), children)?
            }
            "spec_id" => ints(&|partition| partition.spec_id),
            "record_count" => longs(&|partition| sum(partition.records[0])),
            "file_count" => ints(&|partition| count(partition.files[0])),
            "total_data_file_size_in_bytes" => longs(&|partition| sum(partition.data_bytes)),
            "position_delete_record_count" => longs(&|partition| sum(partition.records[1])),
            "position_delete_file_count" => ints(&|partition| count(partition.files[1])),
            "equality_delete_record_count" => longs(&|partition| sum(partition.records[2])),
            "equality_delete_file_count" => ints(&|partition| count(partition.files[2])),
            "last_updated_at" => {
                let times = found
                    .iter()
                    .map(|(_, partition)| partition.updated?.0.checked_mul(1000));
                let times: TimestampMicrosecondArray = times.collect();
                Arc::new(times.with_timezone("+00:00"))
            }
            "last_updated_snapshot_id" => {
                longs(&|partition| partition.updated.map(|(_, snapshot)| snapshot))
            }
            other => {
                return Err(PlannerError::MetadataValue(format!(
                    "partitions have no column '{other}'"
                ))
                .into());
            }
        })
    })
}
