//! What catalogs have in common that keep a pointer to each table's current metadata file: a commit writes a new file, and
//! moves the pointer to it by a compare-and-swap.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use iceberg::spec::{MAIN_BRANCH, Snapshot, SnapshotReference, SnapshotRetention, TableMetadata};
use iceberg::{TableRequirement, TableUpdate};

use crate::backend::{CommitError, StagedTable};
use crate::create::{NewTable, first_metadata};
use crate::error::{CatalogError, Result};
use crate::metadata_cache::MetadataCache;
use crate::metadata_file::metadata_text;
use crate::metadata_location::{first_metadata_location, next_metadata_location};
use crate::name::TableName;
use crate::pinned::PinnedTable;
use crate::storage::{StorageDescriptor, Stores, TableStorage, write_new_file};

/// Writes the metadata files of one catalog's tables.
pub(crate) struct MetadataFiles {
    stores: Arc<Stores>,
    cache: Arc<MetadataCache>,
    scope: Arc<str>,
}

impl fmt::Debug for MetadataFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetadataFiles")
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

impl MetadataFiles {
    pub(crate) fn new(stores: Arc<Stores>, cache: Arc<MetadataCache>, scope: Arc<str>) -> Self {
        Self {
            stores,
            cache,
            scope,
        }
    }

    /// A table that nobody sees yet; `properties` are the catalog's.
    pub(crate) fn stage<'a>(
        &self,
        table: &TableName,
        spec: NewTable,
        location: String,
        properties: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Result<StagedTable> {
        let descriptor = StorageDescriptor::from_properties(properties, &location)?;
        let storage = self.stores.storage(descriptor)?;
        let metadata = first_metadata(table, spec, location)?;
        Ok(StagedTable {
            name: table.clone(),
            metadata: Arc::new(metadata),
            storage,
        })
    }

    /// Writes the first metadata file of a staged table. The caller deletes it if no pointer could be made to it.
    pub(crate) async fn write_first(
        &self,
        staged: &StagedTable,
        snapshot: Option<Snapshot>,
    ) -> Result<(String, Arc<TableMetadata>)> {
        let metadata = with_snapshot(&staged.metadata, snapshot)?;
        self.write(&staged.storage, metadata, |suffix| {
            first_metadata_location(staged.metadata.location(), suffix)
        })
        .await
    }

    /// Writes what the table becomes by `updates`. The caller deletes the new one if
    /// the pointer could not be moved to it.
    pub(crate) async fn write_next(
        &self,
        base: &PinnedTable,
        requirements: &[TableRequirement],
        updates: Vec<TableUpdate>,
    ) -> Result<(String, Arc<TableMetadata>), CommitError> {
        for requirement in requirements {
            requirement
                .check(Some(base.metadata()))
                .map_err(|e| CommitError::Conflict(e.message().to_string()))?;
        }
        let current = base.pointer()?;
        let metadata = updated(base.name(), base.metadata(), Some(current), updates)?;
        let written = self
            .write(base.storage(), metadata, |suffix| {
                next_metadata_location(base.metadata().location(), current, suffix)
            })
            .await?;
        Ok(written)
    }

    async fn write(
        &self,
        storage: &TableStorage,
        metadata: TableMetadata,
        location: impl FnOnce(&str) -> String,
    ) -> Result<(String, Arc<TableMetadata>)> {
        let (text, suffix) = metadata_text(&metadata)?;
        let location = location(suffix);
        let bytes = text.len() as u64;
        write_new_file(&*storage.store, &location, text).await?;
        let metadata = Arc::new(metadata);
        self.cache
            .insert_metadata(&self.scope, &location, Arc::clone(&metadata), bytes)
            .await;
        Ok((location, metadata))
    }
}

/// Where a new table goes: where it is told to, else to a fresh place below its database's location, else below the
/// warehouse.
pub(crate) fn new_location(
    table: &TableName,
    spec: &NewTable,
    database: &HashMap<String, String>,
    warehouse: Option<&str>,
) -> Result<String> {
    if let Some(location) = &spec.location {
        return Ok(location.trim_end_matches('/').to_string());
    }
    let parent = match (database.get("location"), warehouse) {
        (Some(location), _) => location.trim_end_matches('/').to_string(),
        (None, Some(warehouse)) => {
            let levels: Vec<String> = table.database.split('.').map(directory_name).collect();
            format!("{}/{}", warehouse.trim_end_matches('/'), levels.join("/"))
        }
        (None, None) => {
            return Err(CatalogError::InvalidTable {
                table: table.to_string(),
                reason: format!(
                    "it needs a location, since catalog '{}' has no property 'warehouse' and the database has no property \
                     'location'",
                    table.catalog
                ),
            });
        }
    };
    // A table dropped without purge leaves its files; one of the same name must not share their place.
    let id = uuid::Uuid::new_v4().simple().to_string();
    Ok(format!(
        "{parent}/{}-{}",
        directory_name(&table.table),
        &id[..8]
    ))
}

/// A name as a part of a location: characters that some reader would take for part of a URL's syntax are replaced, and
/// it is short enough for every file system. It need not be unique.
fn directory_name(name: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
            c
        } else {
            '_'
        }
    };
    name.chars().take(100).map(safe).collect()
}

/// The metadata after `updates`.
fn updated(
    table: &TableName,
    metadata: &TableMetadata,
    location: Option<&str>,
    updates: Vec<TableUpdate>,
) -> Result<TableMetadata> {
    let invalid = |error: iceberg::Error| CatalogError::InvalidTable {
        table: table.to_string(),
        reason: error.message().to_string(),
    };
    let mut builder = metadata.clone().into_builder(location.map(str::to_string));
    for update in updates {
        builder = update.apply(builder).map_err(invalid)?;
    }
    Ok(builder.build().map_err(invalid)?.metadata)
}

fn with_snapshot(metadata: &TableMetadata, snapshot: Option<Snapshot>) -> Result<TableMetadata> {
    let Some(snapshot) = snapshot else {
        return Ok(metadata.clone());
    };
    let table = TableName::new("", "", "");
    let reference = SnapshotReference::new(
        snapshot.snapshot_id(),
        SnapshotRetention::branch(None, None, None),
    );
    let updates = vec![
        TableUpdate::AddSnapshot { snapshot },
        TableUpdate::SetSnapshotRef {
            ref_name: MAIN_BRANCH.to_string(),
            reference,
        },
    ];
    updated(&table, metadata, None, updates)
}
