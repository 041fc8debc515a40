//! The writer of an append: takes batches, makes files, commits once.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use iceberg::spec::{SchemaRef as IcebergSchemaRef, Struct, TableMetadata};
use tokio::sync::Semaphore;

use super::commit::{Target, check_written, commit};
use super::convert::Converter;
use super::lanes::Lanes;
use super::parquet_file::{FileKind, encoder_threads};
use super::parquet_schema::parquet_schema;
use super::partition::{Partition, Partitioner};
use super::properties::{FileLayout, WriteOptions};
use super::sort_keys::SortKeys;
use crate::backend::StagedTable;
use crate::catalog::Catalog;
use crate::error::{CatalogError, Result};
use crate::extension_columns::to_arrow_schema;
use crate::name::TableName;
use crate::pinned::PinnedTable;
use crate::purge::remove_empty_directories;
use crate::storage::{TableStorage, delete_files};

/// Rows gathered before they are split by partition, so that the parts are not tiny.
const SPLIT_ROWS: usize = 64 * 1024;

/// What an append did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendSummary {
    /// Rows added.
    pub rows: u64,
    /// Data files added.
    pub files: u64,
    /// Their bytes on disk.
    pub bytes: u64,
    /// The snapshot made; `None` if there were no rows to add, so that none was needed.
    pub snapshot_id: Option<i64>,
}

/// Writes batches into data files and makes all of them visible with one commit.
///
/// Dropped without [`commit`](Self::commit), it deletes its files in the background and leaves no visible change.
pub struct AppendWriter {
    schema: IcebergSchemaRef,
    arrow_schema: SchemaRef,
    sort_keys: Option<Arc<SortKeys>>,
    /// `None` once it was committed or aborted.
    open: Option<Open>,
    /// Set while rows are taken: if it still is when the next call comes, rows were lost to an error, or to a caller who
    /// went away in the middle, and a commit would be of a part.
    incomplete: bool,
}

struct Open {
    catalog: Catalog,
    target: Target,
    name: TableName,
    storage: TableStorage,
    converter: Converter,
    partitioner: Option<Partitioner>,
    lanes: Lanes,
    /// Rows that wait to be split by partition.
    unsplit: Vec<RecordBatch>,
    unsplit_rows: usize,
}

impl fmt::Debug for AppendWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.open.as_ref().map(|open| open.name.to_string());
        f.debug_struct("AppendWriter")
            .field("table", &table)
            .finish_non_exhaustive()
    }
}

impl AppendWriter {
    /// Appends to a table that is there.
    pub(crate) fn to_table(
        catalog: Catalog,
        table: PinnedTable,
        options: WriteOptions,
    ) -> Result<Self> {
        let name = table.name().clone();
        let storage = table.storage().clone();
        let metadata = table.metadata().clone();
        Self::new(
            catalog,
            Target::Table(table),
            name,
            storage,
            &metadata,
            options,
        )
    }

    /// Makes a table with its first rows.
    pub(crate) fn to_new_table(
        catalog: Catalog,
        staged: StagedTable,
        options: WriteOptions,
    ) -> Result<Self> {
        let (name, storage, metadata) = (
            staged.name.clone(),
            staged.storage.clone(),
            staged.metadata.clone(),
        );
        Self::new(
            catalog,
            Target::New(staged),
            name,
            storage,
            &metadata,
            options,
        )
    }

    fn new(
        catalog: Catalog,
        target: Target,
        name: TableName,
        storage: TableStorage,
        metadata: &TableMetadata,
        options: WriteOptions,
    ) -> Result<Self> {
        let invalid = |reason: String| CatalogError::InvalidTable {
            table: name.to_string(),
            reason,
        };
        check_written(&name, metadata)?;
        let schema = metadata.current_schema().clone();
        let arrow_schema = Arc::new(
            to_arrow_schema(&schema).map_err(|error| invalid(error.message().to_string()))?,
        );
        let spec = metadata.default_partition_spec().clone();
        let sort_keys = SortKeys::new(metadata, &arrow_schema).map(Arc::new);
        let order = sort_keys.as_ref().filter(|_| options.sorted);
        let kind = Arc::new(FileKind {
            layout: FileLayout::new(metadata).map_err(invalid)?,
            parquet_schema: parquet_schema(&schema, &arrow_schema)
                .map_err(|error| invalid(error.to_string()))?,
            schema: schema.clone(),
            arrow_schema: arrow_schema.clone(),
            partition_spec_id: spec.spec_id(),
            sort_order_id: order.map(|keys| keys.order_id),
            store: storage.store.clone(),
            encoders: Arc::new(Semaphore::new(encoder_threads())),
        });
        let mut lanes = Lanes::new(kind, options);
        let partitioner = if spec.is_unpartitioned() {
            // Spec fields that were dropped stay in a version 1 spec as void, and still have values.
            let values = Struct::from_iter(spec.fields().iter().map(|_| None));
            lanes.add(Partition {
                values,
                path: String::new(),
            });
            None
        } else {
            Some(Partitioner::new(&name, spec, &schema)?)
        };
        let open = Open {
            catalog,
            target,
            converter: Converter::new(name.clone(), arrow_schema.clone()),
            name,
            storage,
            partitioner,
            lanes,
            unsplit: Vec::new(),
            unsplit_rows: 0,
        };
        Ok(Self {
            schema,
            arrow_schema,
            sort_keys,
            open: Some(open),
            incomplete: false,
        })
    }

    /// The table's schema.
    pub fn schema(&self) -> &IcebergSchemaRef {
        &self.schema
    }

    /// The table's schema as Arrow's. Batches may be of types that convert to it without loss.
    pub fn arrow_schema(&self) -> SchemaRef {
        self.arrow_schema.clone()
    }

    /// By what the table wants the rows of its files sorted.
    pub fn sort_keys(&self) -> Option<Arc<SortKeys>> {
        self.sort_keys.clone()
    }

    /// Takes rows. Columns are matched by position. After an error, only [`abort`](Self::abort) makes sense.
    pub async fn write(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let schema = self.arrow_schema.clone();
        let open = self.begin()?;
        let batch = open.converter.convert(&batch)?;
        if open.partitioner.is_none() {
            open.lanes.push(0, batch).await?;
        } else {
            open.unsplit_rows += batch.num_rows();
            open.unsplit.push(batch);
            if open.unsplit_rows >= SPLIT_ROWS {
                open.split(&schema).await?;
            }
        }
        self.incomplete = false;
        Ok(())
    }

    /// Starts a step that must come to its end for the commit to be of all rows.
    fn begin(&mut self) -> Result<&mut Open> {
        match self.open.as_mut() {
            Some(open) if !self.incomplete => {
                self.incomplete = true;
                Ok(open)
            }
            Some(_) => Err(CatalogError::Internal(
                "an append went on after it had failed".to_string(),
            )),
            None => Err(CatalogError::Internal(
                "an append went on after its end".to_string(),
            )),
        }
    }

    /// Finishes the files and commits them. On an error nothing is visible and the files are deleted.
    pub async fn commit(mut self) -> Result<AppendSummary> {
        let schema = self.arrow_schema.clone();
        let open = self.begin()?;
        // Up to here a failure, or a caller who goes away, leaves the files to `drop`.
        open.split(&schema).await?;
        let files = open.lanes.finish().await?;
        let summary = AppendSummary {
            rows: files.iter().map(|file| file.record_count()).sum(),
            files: files.len() as u64,
            bytes: files.iter().map(|file| file.file_size_in_bytes()).sum(),
            snapshot_id: None,
        };
        let Some(open) = self.open.take() else {
            return Err(CatalogError::Internal(
                "an append went on after its end".to_string(),
            ));
        };
        // From here on a task of its own sees it through, so that a caller who goes away in the middle of the commit
        // neither loses files that became visible nor leaves files that did not.
        let locations = std::mem::take(&mut *open.lanes.locations().lock());
        let (catalog, target, storage) = (open.catalog, open.target, open.storage);
        let committed = tokio::spawn(async move {
            let new_table = target.new_table_location();
            let result = commit(&catalog, target, files).await;
            if let Err(error) = &result
                && !matches!(error, CatalogError::CommitUnknown { .. })
            {
                delete_files(&*storage.store, locations).await;
                remove_directories(&storage, new_table).await;
            }
            result
        });
        match committed.await {
            Ok(result) => Ok(AppendSummary {
                snapshot_id: result?,
                ..summary
            }),
            Err(error) => Err(CatalogError::Internal(format!(
                "the commit of '{}' ended early: {error}",
                open.name
            ))),
        }
    }

    /// Deletes what was written.
    pub async fn abort(mut self) {
        if let Some(open) = self.open.take() {
            open.clean_up().await;
        }
    }
}

impl Drop for AppendWriter {
    fn drop(&mut self) {
        let Some(open) = self.open.take() else { return };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn(open.clean_up());
            }
            Err(_) => {
                tracing::warn!(table = %open.name, "an append ended outside of the runtime; its files stay")
            }
        }
    }
}

impl Open {
    /// Splits the rows that wait, by partition.
    async fn split(&mut self, schema: &SchemaRef) -> Result<()> {
        let Some(partitioner) = self.partitioner.as_mut().filter(|_| self.unsplit_rows > 0) else {
            return Ok(());
        };
        let batches = std::mem::take(&mut self.unsplit);
        self.unsplit_rows = 0;
        let batch = match <[RecordBatch; 1]>::try_from(batches) {
            Ok([batch]) => batch,
            Err(batches) => concat_batches(schema, &batches).map_err(|error| {
                CatalogError::Internal(format!("rows cannot be put together: {error}"))
            })?,
        };
        for (index, part) in partitioner.split(&batch)? {
            while self.lanes.len() <= index {
                self.lanes
                    .add(partitioner.partition(self.lanes.len()).clone());
            }
            self.lanes.push(index, part).await?;
        }
        Ok(())
    }

    async fn clean_up(self) {
        let locations = self.lanes.abandon().await;
        delete_files(&*self.storage.store, locations).await;
        remove_directories(&self.storage, self.target.new_table_location()).await;
    }
}

/// The directories of a table that did not come to be.
async fn remove_directories(storage: &TableStorage, location: Option<String>) {
    if let Some(location) = location {
        remove_empty_directories(storage, &location).await;
    }
}
