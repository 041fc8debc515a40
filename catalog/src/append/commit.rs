//! The commit of an append: manifests, manifest list, snapshot, compare-and-swap.
//!
//! Manifests are written once: what they would have to know of the table's state is inherited from the manifest list.
//! Only the manifest list is written anew for each attempt.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use iceberg::io::FileIO;
use iceberg::spec::{
    DataFile, FormatVersion, MAIN_BRANCH, ManifestContentType, ManifestFile, ManifestListWriter,
    ManifestWriterBuilder, Operation, PartitionSpec, PrimitiveType, Schema, SchemaRef, Snapshot,
    SnapshotReference, SnapshotSummaryCollector, Summary, TableMetadata, Transform,
    UNASSIGNED_SEQUENCE_NUMBER, UnboundPartitionField,
};
use iceberg::{TableRequirement, TableUpdate};
use uuid::Uuid;

use crate::avro_names::{avro_name, with_uuids};
use crate::backend::{CommitError, StagedTable};
use crate::catalog::{Catalog, creation_error};
use crate::commit_retry::CommitRetry;
use crate::error::{CatalogError, Result};
use crate::name::TableName;
use crate::newer_types::newer_type_within;
use crate::pinned::PinnedTable;
use crate::refs::retention_of_main;
use crate::storage::{TableStorage, delete_files, file_io_over, root_cause};
use crate::uuid_partitions::{told_file, told_for_writing};

/// Files that one manifest names, so that a reader can skip, cache and read manifests apart.
const FILES_PER_MANIFEST: usize = 2000;

/// Where the rows go.
pub(crate) enum Target {
    Table(PinnedTable),
    New(StagedTable),
}

impl Target {
    /// The location, if the table is not there yet.
    pub(crate) fn new_table_location(&self) -> Option<String> {
        match self {
            Target::Table(_) => None,
            Target::New(staged) => Some(staged.metadata.location().to_string()),
        }
    }
}

/// Makes the files visible; gives the snapshot's id, or `None` if no snapshot was needed. If it fails, nothing of what
/// it wrote itself is left; the data files are the caller's.
pub(crate) async fn commit(
    catalog: &Catalog,
    target: Target,
    files: Vec<DataFile>,
) -> Result<Option<i64>> {
    match target {
        Target::Table(_) if files.is_empty() => Ok(None),
        Target::Table(table) => append(catalog, table, files).await.map(Some),
        Target::New(staged) => create(catalog, staged, files).await,
    }
}

async fn create(
    catalog: &Catalog,
    staged: StagedTable,
    files: Vec<DataFile>,
) -> Result<Option<i64>> {
    let mut produced = None;
    if !files.is_empty() {
        let mut producer = Producer::new(catalog, &staged.metadata, &staged.storage, files);
        let snapshot = match producer.snapshot(&staged.metadata, Vec::new(), 0).await {
            Ok(snapshot) => snapshot,
            Err(error) => {
                producer.delete_all().await;
                return Err(error);
            }
        };
        produced = Some((producer, snapshot));
    }
    let snapshot = produced.as_ref().map(|(_, snapshot)| snapshot.clone());
    let id = snapshot.as_ref().map(Snapshot::snapshot_id);
    match catalog.backend().create(&staged, snapshot).await {
        Ok(()) => Ok(id),
        Err(error) => {
            let unknown = matches!(error, CommitError::Unknown(_));
            if unknown && created(catalog, &staged, id).await {
                return Ok(id);
            }
            if !unknown && let Some((producer, _)) = produced {
                producer.delete_all().await;
            }
            Err(creation_error(&staged.name, error))
        }
    }
}

/// After a creation without an answer: is the table there, and ours?
async fn created(catalog: &Catalog, staged: &StagedTable, snapshot_id: Option<i64>) -> bool {
    match catalog
        .table(&staged.name.database, &staged.name.table)
        .await
    {
        Ok(table) => {
            table.metadata().uuid() == staged.metadata.uuid()
                && snapshot_id.is_none_or(|id| table.metadata().snapshot_by_id(id).is_some())
        }
        Err(_) => false,
    }
}

/// Refuses tables that have columns which are read but not written.
pub(super) fn check_written(table: &TableName, metadata: &TableMetadata) -> Result<()> {
    match newer_type_within(metadata.current_schema()) {
        None => Ok(()),
        Some((column, newer)) => Err(CatalogError::Unsupported {
            table: table.clone(),
            feature: format!(
                "the type '{}' of column '{column}', which is read but not written",
                newer.name()
            ),
        }),
    }
}

async fn append(catalog: &Catalog, table: PinnedTable, files: Vec<DataFile>) -> Result<i64> {
    let mut producer = Producer::new(catalog, table.metadata(), table.storage(), files);
    match attempts(catalog, table, &mut producer).await {
        Ok(()) => Ok(producer.snapshot_id),
        Err(error) => {
            if !matches!(error, CatalogError::CommitUnknown { .. }) {
                producer.delete_all().await;
            }
            Err(error)
        }
    }
}

async fn attempts(catalog: &Catalog, mut base: PinnedTable, producer: &mut Producer) -> Result<()> {
    let name = base.name().clone();
    let uuid = base.metadata().uuid();
    let mut retry = CommitRetry::of(&base);
    loop {
        // It may have been upgraded since the append began.
        check_written(&name, base.metadata())?;
        let manifests = base.manifests().await?;
        let snapshot = producer
            .snapshot(base.metadata(), manifests.to_vec(), retry.lost())
            .await?;
        let requirements = vec![
            TableRequirement::UuidMatch { uuid },
            TableRequirement::RefSnapshotIdMatch {
                r#ref: MAIN_BRANCH.to_string(),
                snapshot_id: base.metadata().current_snapshot_id(),
            },
        ];
        // What is set for the main branch stays set.
        let retention = retention_of_main(base.metadata());
        let updates = vec![
            TableUpdate::AddSnapshot {
                snapshot: snapshot.clone(),
            },
            TableUpdate::SetSnapshotRef {
                ref_name: MAIN_BRANCH.to_string(),
                reference: SnapshotReference::new(snapshot.snapshot_id(), retention),
            },
        ];
        let reason = match catalog.backend().commit(&base, requirements, updates).await {
            Ok(()) => {
                producer.delete_lists_but(snapshot.manifest_list()).await;
                return Ok(());
            }
            Err(CommitError::Failed(error)) => return Err(error),
            Err(CommitError::Unknown(reason)) => {
                return match catalog.table(&name.database, &name.table).await {
                    Ok(now)
                        if now
                            .metadata()
                            .snapshot_by_id(snapshot.snapshot_id())
                            .is_some() =>
                    {
                        Ok(())
                    }
                    _ => Err(CatalogError::CommitUnknown {
                        table: name,
                        reason,
                    }),
                };
            }
            Err(CommitError::Conflict(reason)) => reason,
        };
        base = retry.next_base(catalog, &name, reason).await?;
    }
}

/// Writes the metadata files of one snapshot.
struct Producer {
    snapshot_id: i64,
    commit_id: Uuid,
    io: FileIO,
    storage: TableStorage,
    files: Vec<DataFile>,
    /// Written by the first attempt.
    manifests: Option<Vec<ManifestFile>>,
    lists: Vec<String>,
    begun: Vec<String>,
}

impl Producer {
    fn new(
        catalog: &Catalog,
        metadata: &TableMetadata,
        storage: &TableStorage,
        mut files: Vec<DataFile>,
    ) -> Self {
        // Files of one partition next to each other, so that a manifest covers few partitions.
        files.sort_by(|a, b| a.file_path().cmp(b.file_path()));
        Self {
            snapshot_id: new_snapshot_id(metadata),
            commit_id: Uuid::new_v4(),
            io: file_io_over(storage, catalog.stores().settings()),
            storage: storage.clone(),
            files,
            manifests: None,
            lists: Vec::new(),
            begun: Vec::new(),
        }
    }

    fn metadata_file(&self, metadata: &TableMetadata, name: &str) -> String {
        let directory = match metadata.properties().get("write.metadata.path") {
            Some(path) => path.trim_end_matches('/').to_string(),
            None => format!("{}/metadata", metadata.location().trim_end_matches('/')),
        };
        format!("{directory}/{name}")
    }

    /// The snapshot that adds the files to `existing`, on top of `base`.
    async fn snapshot(
        &mut self,
        base: &TableMetadata,
        existing: Vec<ManifestFile>,
        attempt: u32,
    ) -> Result<Snapshot> {
        let manifests = match &self.manifests {
            Some(manifests) => manifests.clone(),
            None => {
                let manifests = self.write_manifests(base).await?;
                self.manifests = Some(manifests.clone());
                manifests
            }
        };
        let name = format!(
            "snap-{}-{attempt}-{}.avro",
            self.snapshot_id, self.commit_id
        );
        let list = self.metadata_file(base, &name);
        self.lists.push(list.clone());
        let parent = base.current_snapshot_id();
        let sequence_number = base.next_sequence_number();
        // New ones first, as other engines do: the newest data is what is asked for most.
        let listed: Vec<ManifestFile> = manifests.into_iter().chain(existing).collect();
        let numbered = rows_without_ids(&listed);
        let written = async {
            let output = self.io.new_output(&list)?.writer().await?;
            let mut writer = match base.format_version() {
                FormatVersion::V1 => ManifestListWriter::v1(output, self.snapshot_id, parent),
                FormatVersion::V2 => {
                    ManifestListWriter::v2(output, self.snapshot_id, parent, sequence_number)
                }
                FormatVersion::V3 => ManifestListWriter::v3(
                    output,
                    self.snapshot_id,
                    parent,
                    sequence_number,
                    Some(base.next_row_id()),
                ),
            };
            writer.add_manifests(listed.into_iter())?;
            writer.close().await
        };
        written
            .await
            .map_err(|error: iceberg::Error| write_error(&list, &error))?;

        let builder = Snapshot::builder()
            .with_snapshot_id(self.snapshot_id)
            .with_parent_snapshot_id(parent)
            .with_sequence_number(sequence_number)
            .with_timestamp_ms(now_ms().max(base.last_updated_ms()))
            .with_manifest_list(list)
            .with_summary(self.summary(base))
            .with_schema_id(base.current_schema_id());
        Ok(match base.format_version() {
            FormatVersion::V1 | FormatVersion::V2 => builder.build(),
            FormatVersion::V3 => builder.with_row_range(base.next_row_id(), numbered).build(),
        })
    }

    async fn write_manifests(&mut self, base: &TableMetadata) -> Result<Vec<ManifestFile>> {
        let spec = with_avro_names(base.default_partition_spec(), base.current_schema())?;
        let told = told_for_writing(base.current_schema(), &spec)?;
        let schema = match &told {
            Some((schema, _)) => Arc::new(schema.clone()),
            None => base.current_schema().clone(),
        };
        let mut manifests = Vec::new();
        for (number, files) in self.files.chunks(FILES_PER_MANIFEST).enumerate() {
            let location = self.metadata_file(base, &format!("{}-m{number}.avro", self.commit_id));
            self.begun.push(location.clone());
            let files = files.iter().map(|file| match &told {
                Some(_) => told_file(file, &spec),
                None => Ok(file.clone()),
            });
            let files = files.collect::<Result<Vec<_>>>()?;
            let written = async {
                let builder = ManifestWriterBuilder::new(
                    self.io.new_output(&location)?,
                    Some(self.snapshot_id),
                    Arc::clone(&schema),
                    spec.clone(),
                );
                let mut writer = match base.format_version() {
                    FormatVersion::V1 => builder.build_v1(),
                    FormatVersion::V2 => builder.build_v2_data(),
                    FormatVersion::V3 => builder.build_v3_data(),
                };
                for file in files {
                    // Unassigned: the number is inherited, and is not known before the commit.
                    writer.add_file(file, UNASSIGNED_SEQUENCE_NUMBER)?;
                }
                let mut manifest = writer.write_manifest_file().await?;
                if let Some((_, fields)) = &told {
                    let bytes = self.io.new_input(&location)?.read().await?;
                    let bytes =
                        with_uuids(&bytes, base.current_schema(), fields).ok_or_else(|| {
                            iceberg::Error::new(
                                iceberg::ErrorKind::Unexpected,
                                "the manifest that was just written is none",
                            )
                        })?;
                    manifest.manifest_length = bytes.len() as i64;
                    self.io.new_output(&location)?.write(bytes.into()).await?;
                }
                Ok(manifest)
            };
            let manifest = written
                .await
                .map_err(|error: iceberg::Error| write_error(&location, &error))?;
            manifests.push(manifest);
        }
        Ok(manifests)
    }

    fn summary(&self, base: &TableMetadata) -> Summary {
        let mut collector = SnapshotSummaryCollector::default();
        collector.set_partition_summary_limit(
            base.properties()
                .get("write.summary.partition-limit")
                .and_then(|n| n.parse().ok())
                .unwrap_or(0),
        );
        // The crate cannot name every time before 1970, so partitions by a time's own value are counted, not named.
        let named = !has_own_times(base.default_partition_spec(), base.current_schema());
        let spec = match named {
            true => base.default_partition_spec().clone(),
            false => Arc::new(PartitionSpec::unpartition_spec()),
        };
        for file in &self.files {
            collector.add_file(file, base.current_schema().clone(), spec.clone());
        }
        let mut properties = collector.build();
        if !named {
            let partitions: HashSet<_> = self.files.iter().map(DataFile::partition).collect();
            properties.retain(|name, _| !name.starts_with("partitions."));
            properties.insert(
                "changed-partition-count".to_string(),
                partitions.len().to_string(),
            );
        }
        let previous = base
            .current_snapshot()
            .map(|snapshot| &snapshot.summary().additional_properties);
        add_totals(&mut properties, previous);
        properties.insert("engine-name".to_string(), "tarn".to_string());
        properties.insert(
            "engine-version".to_string(),
            env!("CARGO_PKG_VERSION").to_string(),
        );
        Summary {
            operation: Operation::Append,
            additional_properties: properties,
        }
    }

    /// Deletes the lists of attempts that lost.
    async fn delete_lists_but(&self, kept: &str) {
        let lost: Vec<String> = self
            .lists
            .iter()
            .filter(|list| *list != kept)
            .cloned()
            .collect();
        delete_files(&*self.storage.store, lost).await;
    }

    async fn delete_all(&self) {
        let all: Vec<String> = self.begun.iter().chain(&self.lists).cloned().collect();
        delete_files(&*self.storage.store, all).await;
    }
}

/// Rows of the manifests that get the ids of their rows with this snapshot: new ones, and those from before the table was
/// of version 3. The writer of the manifest list counts them alike.
fn rows_without_ids(manifests: &[ManifestFile]) -> u64 {
    manifests
        .iter()
        .filter(|manifest| {
            manifest.content == ManifestContentType::Data && manifest.first_row_id.is_none()
        })
        .map(|manifest| {
            manifest.added_rows_count.unwrap_or(0) + manifest.existing_rows_count.unwrap_or(0)
        })
        .sum()
}

/// The spec with names that Avro takes, since manifests have a field of that name for each partition field. Readers
/// find the fields by id, and take the names from the table's metadata.
fn with_avro_names(spec: &PartitionSpec, schema: &SchemaRef) -> Result<PartitionSpec> {
    if spec
        .fields()
        .iter()
        .all(|field| avro_name(&field.name) == field.name)
    {
        return Ok(spec.clone());
    }
    let fields = spec.fields().iter().map(|field| UnboundPartitionField {
        source_id: field.source_id,
        field_id: Some(field.field_id),
        name: avro_name(&field.name),
        transform: field.transform,
    });
    let builder = PartitionSpec::builder(schema.clone())
        .with_spec_id(spec.spec_id())
        .add_unbound_fields(fields);
    builder
        .and_then(|builder| builder.build())
        .map_err(|error| {
            CatalogError::Internal(format!(
                "a partition spec cannot be written: {}",
                error.message()
            ))
        })
}

/// Whether a partition field is the very value of a `timestamptz`.
fn has_own_times(spec: &PartitionSpec, schema: &Schema) -> bool {
    spec.fields().iter().any(|field| {
        let source = schema.field_by_id(field.source_id);
        let of = source.and_then(|source| source.field_type.as_primitive_type());
        field.transform == Transform::Identity
            && matches!(
                of,
                Some(PrimitiveType::Timestamptz | PrimitiveType::TimestamptzNs)
            )
    })
}

/// The totals after an append: what they were, and what was added. A total that the previous snapshot does not tell
/// is left out, since it would be wrong.
fn add_totals(
    properties: &mut HashMap<String, String>,
    previous: Option<&HashMap<String, String>>,
) {
    for (total, added) in [
        ("total-data-files", "added-data-files"),
        ("total-records", "added-records"),
        ("total-files-size", "added-files-size"),
        ("total-delete-files", ""),
        ("total-position-deletes", ""),
        ("total-equality-deletes", ""),
    ] {
        let before = match previous {
            None => Some(0),
            Some(previous) => previous
                .get(total)
                .and_then(|text| text.parse::<u64>().ok()),
        };
        let more = properties
            .get(added)
            .and_then(|text| text.parse::<u64>().ok())
            .unwrap_or(0);
        if let Some(sum) = before.and_then(|before| before.checked_add(more)) {
            properties.insert(total.to_string(), sum.to_string());
        }
    }
}

fn write_error(location: &str, error: &iceberg::Error) -> CatalogError {
    CatalogError::Store {
        action: "write",
        location: location.to_string(),
        reason: root_cause(error),
    }
}

fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}

/// A positive number that no snapshot of the table has.
fn new_snapshot_id(metadata: &TableMetadata) -> i64 {
    loop {
        let (high, low) = Uuid::new_v4().as_u64_pair();
        let id = ((high ^ low) >> 1) as i64;
        if id > 0 && metadata.snapshot_by_id(id).is_none() {
            return id;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> HashMap<String, String> {
        pairs
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect()
    }

    #[test]
    fn totals_add_up_and_unknown_ones_stay_unknown() {
        let mut first = of(&[("added-records", "10"), ("added-data-files", "1")]);
        add_totals(&mut first, None);
        assert_eq!(first["total-records"], "10");
        assert_eq!(first["total-delete-files"], "0");

        let mut second = of(&[("added-records", "5"), ("added-data-files", "2")]);
        add_totals(&mut second, Some(&of(&[("total-records", "10")])));
        assert_eq!(second["total-records"], "15");
        assert!(!second.contains_key("total-data-files"));
    }
}
