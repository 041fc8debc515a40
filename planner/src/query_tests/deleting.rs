//! Commits that Tarn does not make itself: delete files, other schemas, another format version.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Field, Schema as ArrowSchema};
use iceberg::io::FileIO;
use iceberg::metadata_columns::{
    RESERVED_FIELD_ID_DELETE_FILE_PATH, RESERVED_FIELD_ID_DELETE_FILE_POS,
};
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, FormatVersion, MAIN_BRANCH,
    ManifestListWriter, ManifestWriterBuilder, Operation, Snapshot, Struct, Summary,
    TableMetadataBuilder, UNASSIGNED_SEQUENCE_NUMBER,
};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use tarn_catalog::{CatalogSettings, Catalogs, DEFAULT_CATALOG, DEFAULT_DATABASE, PinnedTable};

use super::lake::Lake;
use crate::deletes::vector_blob;

/// A data file of a table, as its manifest has it.
#[derive(Clone)]
pub(super) struct Listed {
    pub path: String,
    pub spec_id: i32,
    pub partition: Struct,
}

/// A column of a file that is written by a test: its field id, name and values.
pub(super) type Column<'a> = (i32, &'a str, ArrayRef);

impl Lake {
    pub(super) async fn pinned(&self, name: &str) -> PinnedTable {
        let catalog = self.catalogs.get(DEFAULT_CATALOG).expect("the catalog");
        catalog
            .table(DEFAULT_DATABASE, name)
            .await
            .expect("the table is there")
    }

    /// The live data files, in the order of their paths.
    pub(super) async fn data_files(&self, name: &str) -> Vec<Listed> {
        let pinned = self.pinned(name).await;
        let mut files = Vec::new();
        for manifest in pinned.manifests().await.expect("manifests").iter() {
            let decoded = pinned.manifest(manifest).await.expect("a manifest");
            for entry in &decoded.entries {
                let file = entry.data_file();
                if file.content_type() == DataContentType::Data {
                    files.push(Listed {
                        path: file.file_path().to_string(),
                        spec_id: decoded.partition_spec_id,
                        partition: file.partition().clone(),
                    });
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files
    }

    /// A file beside the table's: its place on disk, and as metadata spells it.
    pub(super) fn new_file(&self, name: &str) -> (PathBuf, String) {
        let path = self.folder.path().join(name);
        let location = format!("file://{}", path.display());
        (path, location)
    }

    /// Writes a Parquet file of row groups of so many rows.
    pub(super) fn write(
        &self,
        name: &str,
        columns: Vec<Column<'_>>,
        group_rows: usize,
    ) -> DataFileBuilder {
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns
            .into_iter()
            .map(|(id, name, array)| {
                let id = HashMap::from([("PARQUET:field_id".to_string(), id.to_string())]);
                let field = Field::new(name, array.data_type().clone(), true);
                (field.with_metadata(id), array)
            })
            .unzip();
        let schema = Arc::new(ArrowSchema::new(fields));
        let batch = RecordBatch::try_new(schema, arrays).expect("the columns fit");
        let (path, location) = self.new_file(name);
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(group_rows))
            .set_data_page_row_count_limit(100)
            .set_write_batch_size(100)
            .build();
        let file = File::create(&path).expect("a file");
        let mut writer =
            ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a writer");
        writer.write(&batch).expect("rows are written");
        writer.close().expect("the file is closed");
        let mut builder = DataFileBuilder::default();
        builder
            .content(DataContentType::Data)
            .file_path(location)
            .file_format(DataFileFormat::Parquet)
            .partition(Struct::empty())
            .partition_spec_id(0)
            .record_count(batch.num_rows() as u64)
            .file_size_in_bytes(path.metadata().expect("it is there").len());
        builder
    }

    /// A position delete file, in the partition of `of`.
    pub(super) fn position_deletes(
        &self,
        name: &str,
        rows: &[(&str, i64)],
        of: &Listed,
    ) -> DataFileBuilder {
        let files = StringArray::from_iter_values(rows.iter().map(|(file, _)| file));
        let positions = Int64Array::from_iter_values(rows.iter().map(|(_, position)| *position));
        let mut file = self.write(
            name,
            vec![
                (
                    RESERVED_FIELD_ID_DELETE_FILE_PATH,
                    "file_path",
                    Arc::new(files),
                ),
                (
                    RESERVED_FIELD_ID_DELETE_FILE_POS,
                    "pos",
                    Arc::new(positions),
                ),
            ],
            1000,
        );
        file.content(DataContentType::PositionDeletes)
            .partition(of.partition.clone())
            .partition_spec_id(of.spec_id);
        file
    }

    /// An equality delete file of an unpartitioned table.
    pub(super) fn equality_deletes(
        &self,
        name: &str,
        keys: &[i32],
        columns: Vec<Column<'_>>,
    ) -> DataFileBuilder {
        let mut file = self.write(name, columns, 1000);
        file.content(DataContentType::EqualityDeletes)
            .equality_ids(Some(keys.to_vec()));
        file
    }

    /// A Puffin file with a vector for each data file.
    pub(super) fn vectors(&self, name: &str, of: &[(&Listed, &[u64])]) -> Vec<DataFileBuilder> {
        let mut bytes = b"PFA1".to_vec();
        let mut places = Vec::new();
        for (_, positions) in of {
            let blob = vector_blob(positions.iter().copied());
            places.push((bytes.len() as i64, blob.len() as i64));
            bytes.extend(blob);
        }
        let (path, location) = self.new_file(name);
        std::fs::write(&path, &bytes).expect("it is written");
        of.iter()
            .zip(places)
            .map(|((file, positions), (offset, length))| {
                let mut builder = DataFileBuilder::default();
                builder
                    .content(DataContentType::PositionDeletes)
                    .file_path(location.clone())
                    .file_format(DataFileFormat::Puffin)
                    .partition(file.partition.clone())
                    .partition_spec_id(file.spec_id)
                    .record_count(positions.len() as u64)
                    .file_size_in_bytes(bytes.len() as u64)
                    .referenced_data_file(Some(file.path.clone()))
                    .content_offset(Some(offset))
                    .content_size_in_bytes(Some(length));
                builder
            })
            .collect()
    }

    /// One snapshot more, which adds those files, of whatever content and spec.
    pub(super) async fn commit(&mut self, name: &str, files: Vec<DataFileBuilder>) {
        let files: Vec<DataFile> = files
            .into_iter()
            .map(|file| file.build().expect("a file"))
            .collect();
        let pinned = self.pinned(name).await;
        let metadata = pinned.metadata();
        let (snapshot_id, sequence) = (
            metadata.last_sequence_number() + 1000,
            metadata.next_sequence_number(),
        );
        let v3 = metadata.format_version() == FormatVersion::V3;
        let io = FileIO::new_with_fs();
        let mut groups: BTreeMap<(bool, i32), Vec<DataFile>> = BTreeMap::new();
        let added: u64 = files
            .iter()
            .filter(|file| file.content_type() == DataContentType::Data)
            .map(DataFile::record_count)
            .sum();
        for file in files {
            let deletes = file.content_type() != DataContentType::Data;
            // The builder keeps it to itself, so each file's spec is told by its partition's width.
            let spec = metadata
                .partition_specs_iter()
                .filter(|spec| spec.fields().len() == file.partition().fields().len())
                .map(|spec| spec.spec_id())
                .max()
                .expect("a spec");
            groups.entry((deletes, spec)).or_default().push(file);
        }
        let mut manifests = Vec::new();
        for ((deletes, spec), files) in groups {
            let (_, location) =
                self.new_file(&format!("m-{name}-{sequence}-{deletes}-{spec}.avro"));
            let spec = metadata.partition_spec_by_id(spec).expect("a spec");
            let builder = ManifestWriterBuilder::new(
                io.new_output(&location).expect("an output"),
                Some(snapshot_id),
                metadata.current_schema().clone(),
                spec.as_ref().clone(),
            );
            let mut writer = match (deletes, v3) {
                (false, false) => builder.build_v2_data(),
                (false, true) => builder.build_v3_data(),
                (true, false) => builder.build_v2_deletes(),
                (true, true) => builder.build_v3_deletes(),
            };
            for file in files {
                writer
                    .add_file(file, UNASSIGNED_SEQUENCE_NUMBER)
                    .expect("an entry");
            }
            manifests.push(writer.write_manifest_file().await.expect("a manifest"));
        }
        let (_, list) = self.new_file(&format!("list-{name}-{sequence}.avro"));
        let parent = metadata.current_snapshot_id();
        let output = io
            .new_output(&list)
            .expect("an output")
            .writer()
            .await
            .expect("a writer");
        let mut writer = match v3 {
            false => ManifestListWriter::v2(output, snapshot_id, parent, sequence),
            true => ManifestListWriter::v3(
                output,
                snapshot_id,
                parent,
                sequence,
                Some(metadata.next_row_id()),
            ),
        };
        let existing = pinned.manifests().await.expect("manifests");
        writer
            .add_manifests(manifests.into_iter().chain(existing.iter().cloned()))
            .expect("they are added");
        writer.close().await.expect("it is closed");
        let builder = Snapshot::builder()
            .with_snapshot_id(snapshot_id)
            .with_parent_snapshot_id(parent)
            .with_sequence_number(sequence)
            .with_timestamp_ms(metadata.last_updated_ms() + 1)
            .with_manifest_list(list)
            .with_summary(Summary {
                operation: Operation::Delete,
                additional_properties: HashMap::new(),
            })
            .with_schema_id(metadata.current_schema_id());
        let snapshot = match v3 {
            false => builder.build(),
            true => builder
                .with_row_range(metadata.next_row_id(), added + 1000)
                .build(),
        };
        self.edit(name, |builder| {
            builder
                .set_branch_snapshot(snapshot, MAIN_BRANCH)
                .expect("a snapshot")
        })
        .await;
    }

    /// Changes the table's metadata file where it is, and forgets all that is cached of it.
    pub(super) async fn edit(
        &mut self,
        name: &str,
        change: impl FnOnce(TableMetadataBuilder) -> TableMetadataBuilder,
    ) {
        let pinned = self.pinned(name).await;
        let location = pinned.metadata_location().expect("a location").to_string();
        let builder = pinned
            .metadata()
            .as_ref()
            .clone()
            .into_builder(Some(location.clone()));
        let changed = change(builder).build().expect("metadata").metadata;
        let path = location.strip_prefix("file://").expect("a local file");
        let text = serde_json::to_vec(&changed).expect("JSON");
        std::fs::write(path, text).expect("it is written");
        self.catalogs = Catalogs::open(CatalogSettings::new(self.folder.path()))
            .await
            .expect("catalogs open");
    }
}
