//! One table at one snapshot.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use crate::extension_columns::to_arrow_schema;
use arrow::datatypes::{Schema as ArrowSchema, SchemaRef as ArrowSchemaRef};
use bytes::Bytes;
use iceberg::spec::{
    ManifestEntry, ManifestFile, Schema, SchemaRef, Snapshot, SnapshotRef, SnapshotReference,
    TableMetadataRef,
};

use crate::error::{CatalogError, Result};
use crate::manifest::DecodedManifest;
use crate::metadata_cache::{MetadataCache, off_thread};
use crate::metadata_file::{check_snapshot, check_supported, parse_all_entries};
use crate::name::TableName;
use crate::refs::references;
use crate::storage::{TableStorage, read_file};
use crate::version::{TableVersion, logged_at, resolve};

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
        let arrow_schema = arrow_schema_of(&name, &schema)?;
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

    /// Another state of the table, as the same metadata tells it, with the schema that goes with it.
    pub fn version(&self, version: &TableVersion) -> Result<Self> {
        if *version == TableVersion::Current {
            return Ok(self.clone());
        }
        let inner = &self.inner;
        let (snapshot, schema) = resolve(&inner.name, &inner.metadata, version)?;
        if let Some(snapshot) = &snapshot {
            check_snapshot(&inner.name, snapshot)?;
        }
        let arrow_schema = arrow_schema_of(&inner.name, &schema)?;
        Ok(Self {
            inner: Arc::new(Inner {
                name: inner.name.clone(),
                metadata: inner.metadata.clone(),
                metadata_location: inner.metadata_location.clone(),
                snapshot,
                schema,
                arrow_schema: Arc::new(arrow_schema),
                storage: inner.storage.clone(),
                cache: inner.cache.clone(),
                scope: inner.scope.clone(),
            }),
        })
    }

    /// The current snapshot of the table and those it was made from, newest first.
    pub fn ancestors(&self) -> Vec<SnapshotRef> {
        let metadata = &self.inner.metadata;
        let mut ancestors: Vec<SnapshotRef> = Vec::new();
        let mut seen = HashSet::new();
        let mut next = metadata.current_snapshot();
        while let Some(snapshot) = next {
            // Metadata that goes in a circle must not keep us in it.
            if !seen.insert(snapshot.snapshot_id()) {
                break;
            }
            ancestors.push(snapshot.clone());
            next = snapshot
                .parent_snapshot_id()
                .and_then(|id| metadata.snapshot_by_id(id));
        }
        ancestors
    }

    /// Whether the current snapshot is this one, or was made from it.
    pub(crate) fn is_current_ancestor(&self, id: i64) -> bool {
        self.ancestors()
            .iter()
            .any(|ancestor| ancestor.snapshot_id() == id)
    }

    /// The snapshot that was current at that time, in milliseconds since 1970, by the snapshot log.
    pub fn logged_at(&self, millis: i64) -> Option<i64> {
        logged_at(&self.inner.metadata, millis)
    }

    /// The table's branches and tags by name.
    pub fn references(&self) -> Result<BTreeMap<String, SnapshotReference>> {
        references(&self.inner.metadata)
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

    /// The file that the catalog's pointer has to be on for a commit to this table.
    pub(crate) fn pointer(&self) -> Result<&str> {
        self.metadata_location().ok_or_else(|| {
            CatalogError::Internal(format!("table '{}' has no metadata location", self.name()))
        })
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
        match &self.inner.snapshot {
            Some(snapshot) => self.manifests_of(snapshot).await,
            None => Ok(Arc::default()),
        }
    }

    /// The manifest list of any snapshot of the table (cached).
    pub async fn manifests_of(&self, snapshot: &Snapshot) -> Result<Arc<Vec<ManifestFile>>> {
        let inner = &self.inner;
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

    /// All entries of a manifest, those of deleted files too. Not cached: only metadata tables ask for them.
    pub async fn all_entries(&self, manifest: &ManifestFile) -> Result<Vec<ManifestEntry>> {
        self.check_not_encrypted(manifest)?;
        let location = manifest.manifest_path.as_str();
        let bytes = read_file(&*self.inner.storage.store, "manifest", location).await?;
        let manifest = manifest.clone();
        off_thread(location, move || parse_all_entries(&manifest, &bytes)).await
    }

    /// A sketch that is kept under that key, read if it is not here yet.
    pub(crate) async fn cached_sketch(
        &self,
        key: &str,
        read: impl Future<Output = Result<Bytes>>,
    ) -> Result<Bytes> {
        self.inner.cache.sketch(&self.inner.scope, key, read).await
    }

    fn check_not_encrypted(&self, manifest: &ManifestFile) -> Result<()> {
        let encrypted = manifest
            .key_metadata
            .as_ref()
            .is_some_and(|key| !key.is_empty());
        match encrypted {
            true => Err(CatalogError::Unsupported {
                table: self.inner.name.clone(),
                feature: "encryption".to_string(),
            }),
            false => Ok(()),
        }
    }

    /// One manifest, decoded (cached, and read once however many ask for it at the same time).
    pub async fn manifest(&self, manifest: &ManifestFile) -> Result<Arc<DecodedManifest>> {
        self.check_not_encrypted(manifest)?;
        let inner = &self.inner;
        inner
            .cache
            .manifest(&inner.scope, &inner.storage, manifest)
            .await
    }
}

fn arrow_schema_of(table: &TableName, schema: &Schema) -> Result<ArrowSchema> {
    to_arrow_schema(schema).map_err(|error| CatalogError::Unsupported {
        table: table.clone(),
        feature: format!(
            "a column of a type that has no Arrow type ({})",
            error.message()
        ),
    })
}
