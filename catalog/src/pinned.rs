//! One table at one snapshot.

use std::sync::Arc;

use arrow::datatypes::SchemaRef as ArrowSchemaRef;
use iceberg::spec::{ManifestFile, SchemaRef, SnapshotRef, TableMetadataRef};

use crate::error::{CatalogError, Result};
use crate::manifest::DecodedManifest;
use crate::name::TableName;
use crate::storage::TableStorage;

/// One table at one snapshot: what a query that started now reads until it ends. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PinnedTable {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: TableName,
    metadata: TableMetadataRef,
    metadata_location: Option<String>,
    snapshot: Option<SnapshotRef>,
    schema: SchemaRef,
    arrow_schema: ArrowSchemaRef,
    storage: TableStorage,
}

impl PinnedTable {
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
        Err(CatalogError::Internal(
            "manifests are not read yet".to_string(),
        ))
    }

    /// One manifest, decoded (cached, and read once however many ask for it at the same time).
    pub async fn manifest(&self, _manifest: &ManifestFile) -> Result<Arc<DecodedManifest>> {
        Err(CatalogError::Internal(
            "manifests are not read yet".to_string(),
        ))
    }
}
