//! `$files` and its kin, `$entries` and `$all_entries`: a row for each file, manifest after manifest.
//!
//! ```text
//!   manifest list(s) ─► manifests ─► a few are read ahead ─► entries ─► batches
//! ```
//! What is in memory is what a few manifests hold, however many there are.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Int32Array, Int64Array};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use futures::{Stream, StreamExt, TryStreamExt};
use iceberg::spec::{ManifestContentType, ManifestEntry, ManifestFile, ManifestStatus, StructType};
use tarn_catalog::{CatalogError, PinnedTable};

use super::MetadataTable;
use super::file_columns::{FileRow, FilesOfTable};
use super::table::batch;
use crate::error::catalog_error;

/// Manifests that are read at the same time.
const MANIFESTS_AT_ONCE: usize = 4;
/// Rows of a batch.
const BATCH_ROWS: usize = 4096;

/// The rows of one of these tables. `schema` has the columns that are asked for.
pub(super) fn file_rows(
    kind: MetadataTable,
    table: PinnedTable,
    partition: StructType,
    schema: SchemaRef,
) -> impl Stream<Item = Result<RecordBatch>> + Send + 'static {
    let files = Arc::new(FilesOfTable::new(&table, partition));
    let of_manifest = {
        let table = table.clone();
        move |manifest: ManifestFile| {
            let (table, files, schema) = (table.clone(), Arc::clone(&files), Arc::clone(&schema));
            async move {
                let entries = entries(kind, &table, &manifest)
                    .await
                    .map_err(catalog_error)?;
                let batches = batches(kind, &files, &manifest, &entries, &schema)?;
                Ok::<_, datafusion::error::DataFusionError>(futures::stream::iter(
                    batches.into_iter().map(Ok),
                ))
            }
        }
    };
    futures::stream::once(async move { manifests(kind, &table).await.map_err(catalog_error) })
        .map_ok(move |manifests| {
            futures::stream::iter(manifests)
                .map(of_manifest.clone())
                .buffered(MANIFESTS_AT_ONCE)
                .try_flatten()
        })
        .try_flatten()
}

/// The manifests that have the rows, each once.
pub(super) async fn manifests(
    kind: MetadataTable,
    table: &PinnedTable,
) -> Result<Vec<ManifestFile>, CatalogError> {
    let content = match kind {
        MetadataTable::DataFiles | MetadataTable::AllDataFiles => Some(ManifestContentType::Data),
        MetadataTable::DeleteFiles | MetadataTable::AllDeleteFiles => {
            Some(ManifestContentType::Deletes)
        }
        _ => None,
    };
    let wanted = |manifest: &&ManifestFile| content.is_none_or(|of| manifest.content == of);
    if !kind.is_of_all_snapshots() {
        let manifests = table.manifests().await?;
        return Ok(manifests.iter().filter(wanted).cloned().collect());
    }
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for snapshot in super::static_tables::snapshots_in_order(table) {
        for manifest in table.manifests_of(&snapshot).await?.iter().filter(wanted) {
            if seen.insert(manifest.manifest_path.clone()) {
                found.push(manifest.clone());
            }
        }
    }
    Ok(found)
}

async fn entries(
    kind: MetadataTable,
    table: &PinnedTable,
    manifest: &ManifestFile,
) -> Result<Vec<Arc<ManifestEntry>>, CatalogError> {
    if kind.is_of_entries() {
        let entries = table.all_entries(manifest).await?;
        return Ok(entries.into_iter().map(Arc::new).collect());
    }
    Ok(table.manifest(manifest).await?.entries.clone())
}

fn batches(
    kind: MetadataTable,
    files: &FilesOfTable,
    manifest: &ManifestFile,
    entries: &[Arc<ManifestEntry>],
    schema: &SchemaRef,
) -> Result<Vec<RecordBatch>> {
    let rows = rows(manifest, entries);
    entries
        .chunks(BATCH_ROWS)
        .zip(rows.chunks(BATCH_ROWS))
        .map(|(entries, rows)| {
            batch(schema, rows.len(), |field| {
                let of = field.data_type();
                let longs = |value: fn(&ManifestEntry) -> Option<i64>| {
                    Arc::new(entries.iter().map(|e| value(e)).collect::<Int64Array>())
                };
                match field.name().as_str() {
                    name if !kind.is_of_entries() => files.column(name, of, rows),
                    "status" => Ok(Arc::new(Int32Array::from_iter_values(
                        entries.iter().map(|entry| entry.status() as i32),
                    ))),
                    "snapshot_id" => Ok(longs(ManifestEntry::snapshot_id)),
                    "sequence_number" => Ok(longs(ManifestEntry::sequence_number)),
                    "file_sequence_number" => Ok(longs(|entry| entry.file_sequence_number)),
                    "data_file" => files.file_struct(of, rows),
                    name => files.column(name, of, rows),
                }
            })
        })
        .collect()
}

/// The files of a manifest. Row ids are inherited as the spec's section "First Row ID Inheritance" has it: files
/// without one get the manifest's first id and those that follow, in the order of the entries.
pub(super) fn rows<'a>(
    manifest: &ManifestFile,
    entries: &'a [Arc<ManifestEntry>],
) -> Vec<FileRow<'a>> {
    let mut next = manifest.first_row_id.and_then(|id| i64::try_from(id).ok());
    entries
        .iter()
        .map(|entry| {
            let file = entry.data_file();
            let is_deleted = entry.status() == ManifestStatus::Deleted;
            let first_row_id = match (file.first_row_id(), next) {
                (Some(own), _) => Some(own),
                (None, Some(inherited)) if !is_deleted => {
                    next = i64::try_from(file.record_count())
                        .ok()
                        .and_then(|rows| inherited.checked_add(rows));
                    Some(inherited)
                }
                _ => None,
            };
            FileRow {
                file,
                spec_id: manifest.partition_spec_id,
                first_row_id,
            }
        })
        .collect()
}
