//! One table at one snapshot.

use std::fmt;
use std::sync::Arc;

use crate::uuid_columns::to_arrow_schema;
use arrow::datatypes::SchemaRef as ArrowSchemaRef;
use iceberg::spec::{ManifestFile, SchemaRef, SnapshotRef, TableMetadataRef};

use crate::error::{CatalogError, Result};
use crate::manifest::DecodedManifest;
use crate::metadata_cache::MetadataCache;
use crate::metadata_file::check_supported;
use crate::name::TableName;
use crate::storage::TableStorage;

/// One table at one snapshot: what a query that started now reads until it ends. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PinnedTable {
    inner: Arc<Inner>,
}

struct Inner {
    name: TableName,
    metadata: TableMetadataRef,
    metadata_location: Option<String>,
    snapshot: Option<SnapshotRef>,
    schema: SchemaRef,
    arrow_schema: ArrowSchemaRef,
    storage: TableStorage,
    cache: Arc<MetadataCache>,
    scope: Arc<str>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedTable")
            .field("name", &self.name)
            .field("metadata_location", &self.metadata_location)
            .field(
                "snapshot_id",
                &self.snapshot.as_ref().map(|s| s.snapshot_id()),
            )
            .finish_non_exhaustive()
    }
}

impl PinnedTable {
    /// Pins the current snapshot of `metadata`; refuses tables that use what is not read here.
    pub(crate) fn new(
        name: TableName,
        metadata: TableMetadataRef,
        metadata_location: Option<String>,
        storage: TableStorage,
        cache: Arc<MetadataCache>,
        scope: Arc<str>,
    ) -> Result<Self> {
        check_supported(&name, &metadata)?;
        let schema = metadata.current_schema().clone();
        let arrow_schema = to_arrow_schema(&schema).map_err(|error| CatalogError::Unsupported {
            table: name.clone(),
            feature: format!(
                "a column of a type that has no Arrow type ({})",
                error.message()
            ),
        })?;
        let snapshot = metadata.current_snapshot().cloned();
        let inner = Inner {
            name,
            metadata,
            metadata_location,
            snapshot,
            schema,
            arrow_schema: Arc::new(arrow_schema),
            storage,
            cache,
            scope,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// The table's full name.
    pub fn name(&self) -> &TableName {
        &self.inner.name
    }

    /// The table metadata that was current when the table was pinned.
    pub fn metadata(&self) -> &TableMetadataRef {
        &self.inner.metadata
    }

    /// The file of that metadata, if the catalog tells.
    pub fn metadata_location(&self) -> Option<&str> {
        self.inner.metadata_location.as_deref()
    }

    /// The pinned snapshot; `None` for a table that nothing was written to yet.
    pub fn snapshot(&self) -> Option<&SnapshotRef> {
        self.inner.snapshot.as_ref()
    }

    /// The schema to read with.
    pub fn schema(&self) -> SchemaRef {
        self.inner.schema.clone()
    }

    /// The same schema as Arrow's; every field carries its id in the metadata key `PARQUET:field_id`.
    pub fn arrow_schema(&self) -> ArrowSchemaRef {
        self.inner.arrow_schema.clone()
    }

    /// Where the table's files are.
    pub fn storage(&self) -> &TableStorage {
        &self.inner.storage
    }

    /// The manifest list of the pinned snapshot (cached); empty without a snapshot.
    pub async fn manifests(&self) -> Result<Arc<Vec<ManifestFile>>> {
        let inner = &self.inner;
        match &inner.snapshot {
            Some(snapshot) => {
                inner
                    .cache
                    .manifest_list(
                        &inner.scope,
                        &inner.metadata,
                        &inner.storage,
                        snapshot.manifest_list(),
                    )
                    .await
            }
            None => Ok(Arc::default()),
        }
    }

    /// One manifest, decoded (cached, and read once however many ask for it at the same time).
    pub async fn manifest(&self, manifest: &ManifestFile) -> Result<Arc<DecodedManifest>> {
        let inner = &self.inner;
        if manifest
            .key_metadata
            .as_ref()
            .is_some_and(|key| !key.is_empty())
        {
            return Err(CatalogError::Unsupported {
                table: inner.name.clone(),
                feature: "encryption".to_string(),
            });
        }
        inner
            .cache
            .manifest(&inner.scope, &inner.storage, manifest)
            .await
    }
}
