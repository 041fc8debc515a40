//! For tests: files of the reference implementation's tables, read by the seam and nothing above it.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::{concat_batches, sort_to_indices, take_record_batch};
use arrow::util::display::array_value_to_string;
use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;
use iceberg::spec::{
    DEFAULT_SCHEMA_NAME_MAPPING, MappedField, NameMapping, NestedField, PrimitiveType, Schema,
    TableMetadata, Type,
};

use super::error::FormatError;
use super::rows::FileRows;
use super::{FileBytes, FileFormat, RowsRequest, WantedField, read_rows};
use crate::scan::scan_schema;

/// A file in memory.
#[async_trait]
impl FileBytes for Bytes {
    async fn read(&self, range: std::ops::Range<u64>) -> object_store::Result<Bytes> {
        let (start, end) = (range.start as usize, range.end as usize);
        if start > end || end > self.len() {
            let source = format!("the range {range:?} of {} bytes", self.len()).into();
            return Err(object_store::Error::Generic {
                store: "test",
                source,
            });
        }
        Ok(self.slice(start..end))
    }

    async fn read_many(&self, ranges: &[std::ops::Range<u64>]) -> object_store::Result<Vec<Bytes>> {
        let reads = ranges.iter().map(|range| self.read(range.clone()));
        futures::future::try_join_all(reads).await
    }
}

/// A table of `tests/fixtures/iceberg`.
pub(crate) struct FixtureTable {
    folder: PathBuf,
    pub(crate) schema: Arc<Schema>,
    name_mapping: Option<NameMapping>,
}

impl FixtureTable {
    /// The table as its newest metadata file has it.
    pub(crate) fn open(name: &str) -> Self {
        let folder = folder(name);
        let newest = files(&folder.join("metadata"), ".metadata.json")
            .pop()
            .expect("metadata");
        let text = std::fs::read_to_string(newest).expect("it is read");
        let metadata: TableMetadata = serde_json::from_str(&text).expect("it is metadata");
        let mapping = metadata.properties().get(DEFAULT_SCHEMA_NAME_MAPPING);
        Self {
            folder,
            schema: Arc::clone(metadata.current_schema()),
            name_mapping: mapping.map(|text| serde_json::from_str(text).expect("a name mapping")),
        }
    }

    /// A folder of files that no metadata is about.
    pub(crate) fn folder(name: &str) -> Self {
        Self {
            folder: folder(name),
            ..Self::of_columns(&[])
        }
    }

    /// A table of no files: what has no ids is mapped by the columns' names.
    pub(crate) fn of_columns(columns: &[(&str, PrimitiveType)]) -> Self {
        let mut fields = Vec::new();
        let mut mapped = Vec::new();
        for (number, (name, of)) in columns.iter().enumerate() {
            let id = number as i32 + 1;
            fields.push(NestedField::optional(id, *name, Type::Primitive(of.clone())).into());
            mapped.push(MappedField::new(Some(id), vec![name.to_string()], vec![]));
        }
        let schema = Schema::builder().with_fields(fields).build();
        Self {
            folder: PathBuf::new(),
            schema: Arc::new(schema.expect("a schema")),
            name_mapping: Some(NameMapping::new(mapped)),
        }
    }

    /// The files below the table's folder with that ending, as bytes.
    pub(crate) fn data(&self, ending: &str) -> Vec<Bytes> {
        let paths = files(&self.folder, ending);
        let data = paths.iter().map(|path| {
            let data = std::fs::read(path).expect("it is read");
            Bytes::from(data)
        });
        data.collect()
    }

    /// What is wanted of a file to read the table's columns of those names, or all.
    pub(crate) fn request(
        &self,
        bytes: Bytes,
        format: FileFormat,
        columns: &[&str],
    ) -> RowsRequest {
        let mut request = request(&self.schema, bytes, format);
        request.name_mapping = self.name_mapping.clone();
        if !columns.is_empty() {
            request
                .fields
                .retain(|field| columns.contains(&field.arrow.name().as_str()));
        }
        request
    }

    /// All rows of the table's files with that ending, by the first column.
    pub(crate) async fn rows(&self, ending: &str, format: FileFormat) -> RecordBatch {
        let mut batches = Vec::new();
        for bytes in self.data(ending) {
            for rows in read(self.request(bytes, format, &[]))
                .await
                .expect("it reads")
            {
                batches.push(rows.batch);
            }
        }
        let all = concat_batches(&batches[0].schema(), &batches).expect("of one schema");
        let order = sort_to_indices(all.column(0), None, None).expect("it sorts");
        take_record_batch(&all, &order).expect("it is ordered")
    }
}

/// What is wanted of a file to read all columns of a schema.
pub(crate) fn request(schema: &Schema, bytes: Bytes, format: FileFormat) -> RowsRequest {
    let arrow = scan_schema(schema).expect("a schema");
    let fields = schema.as_struct().fields().iter().zip(arrow.fields());
    RowsRequest {
        size: bytes.len() as u64,
        bytes: Arc::new(bytes),
        format,
        fields: fields
            .map(|(field, arrow)| WantedField {
                field: Arc::clone(field),
                arrow: Arc::clone(arrow),
                constant: None,
            })
            .collect(),
        name_mapping: None,
        range: None,
        batch_rows: 1024,
    }
}

pub(crate) async fn read(request: RowsRequest) -> Result<Vec<FileRows>, FormatError> {
    read_rows(request).try_collect().await
}

/// The values of a batch as text, row by row; null is empty.
pub(crate) fn values(batch: &RecordBatch) -> Vec<Vec<String>> {
    (0..batch.num_rows())
        .map(|row| {
            let columns = batch.columns().iter();
            columns
                .map(|column| array_value_to_string(column, row).expect("it is printed"))
                .collect()
        })
        .collect()
}

fn folder(name: &str) -> PathBuf {
    FilePath::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/fixtures/iceberg/warehouse")
        .join(name)
}

fn files(folder: &FilePath, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{} is not there: {e}", folder.display()));
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}
