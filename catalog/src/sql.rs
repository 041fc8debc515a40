//! A catalog in a SQLite file or in PostgreSQL, in the tables that other Iceberg engines' SQL catalogs use.
//!
//! A table is a row that points to its current metadata file. A commit writes a new metadata file and moves the
//! pointer with one conditional UPDATE, which is the compare-and-swap.

mod config;
mod database;
mod postgres;
mod sqlite;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use iceberg::spec::{Snapshot, SnapshotReference, SnapshotRetention, TableMetadata};
use iceberg::{TableRequirement, TableUpdate};
use tokio::sync::OnceCell;

pub(crate) use self::config::{SqlConfig, SqlPlace};
pub(crate) use self::postgres::PostgresServer;
pub(crate) use self::sqlite::SqliteFile;

use self::config::Connection;
use self::database::Values;
use crate::backend::{Backend, CommitError, StagedTable, TablePointer};
use crate::create::{NewTable, first_metadata};
use crate::error::{CatalogError, Result};
use crate::metadata_cache::MetadataCache;
use crate::metadata_file::metadata_text;
use crate::metadata_location::{first_metadata_location, next_metadata_location};
use crate::name::TableName;
use crate::pinned::PinnedTable;
use crate::storage::{StorageDescriptor, Stores, TableStorage, delete_files, write_new_file};

/// The mark of a namespace without properties, the same that other engines leave.
const EXISTS_PROPERTY: &str = "exists";

/// See the module.
#[derive(Debug)]
pub(crate) struct SqlBackend {
    config: SqlConfig,
    stores: Arc<Stores>,
    cache: Arc<MetadataCache>,
    scope: Arc<str>,
    connection: OnceCell<Connection>,
}

impl SqlBackend {
    pub(crate) fn new(
        config: SqlConfig,
        stores: Arc<Stores>,
        cache: Arc<MetadataCache>,
        scope: Arc<str>,
    ) -> Self {
        Self {
            config,
            stores,
            cache,
            scope,
            connection: OnceCell::new(),
        }
    }

    async fn connection(&self) -> Result<&Connection> {
        self.connection
            .get_or_try_init(|| Connection::open(&self.config.place))
            .await
            .map_err(|e| self.config.failed(e))
    }

    /// The rows of a SELECT whose first value is the catalog's name.
    async fn rows(&self, statement: &str, values: &[&str]) -> Result<Vec<Values>> {
        let connection = self.connection().await?;
        connection
            .database
            .rows(statement, &self.with_catalog(values))
            .await
            .map_err(|e| self.config.failed(e))
    }

    /// How many rows a statement changed whose first value is the catalog's name.
    async fn execute(&self, statement: &str, values: &[&str]) -> Result<u64> {
        let connection = self.connection().await?;
        connection
            .database
            .execute(statement, &self.with_catalog(values))
            .await
            .map_err(|e| self.config.failed(e))
    }

    fn with_catalog<'a>(&'a self, values: &[&'a str]) -> Vec<&'a str> {
        let catalog = self.config.catalog_in_database.as_str();
        std::iter::once(catalog)
            .chain(values.iter().copied())
            .collect()
    }

    async fn namespaces(&self) -> Result<BTreeSet<String>> {
        // A database that another engine wrote may have tables in a namespace without properties.
        let rows = self
            .rows(
                "SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = $1
                 UNION SELECT table_namespace FROM iceberg_tables WHERE catalog_name = $1",
                &[],
            )
            .await?;
        Ok(rows.into_iter().flatten().flatten().collect())
    }

    fn descriptor(&self, location: &str) -> Result<StorageDescriptor> {
        StorageDescriptor::from_properties(&self.config.properties, location)
    }

    /// After a statement that failed: did the pointer move to `location` all the same? A file that a pointer may name
    /// must not be deleted.
    async fn settle(
        &self,
        table: &TableName,
        storage: &TableStorage,
        location: String,
        error: CatalogError,
    ) -> Result<(), CommitError> {
        match self.table(table).await {
            Ok(Some(pointer))
                if pointer.metadata_location.as_deref() == Some(location.as_str()) =>
            {
                Ok(())
            }
            Ok(_) => {
                delete_files(&*storage.store, [location]).await;
                Err(error.into())
            }
            Err(_) => Err(CommitError::Unknown(error.to_string())),
        }
    }

    /// Writes a metadata file; the caller deletes it if the pointer could not be moved to it.
    async fn write_metadata(
        &self,
        storage: &TableStorage,
        metadata: TableMetadata,
        location: impl FnOnce(&str) -> String,
    ) -> Result<String> {
        let (text, suffix) = metadata_text(&metadata)?;
        let location = location(suffix);
        let bytes = text.len() as u64;
        write_new_file(&*storage.store, &location, text).await?;
        self.cache
            .insert_metadata(&self.scope, &location, Arc::new(metadata), bytes)
            .await;
        Ok(location)
    }
}

#[async_trait]
impl Backend for SqlBackend {
    async fn list_databases(&self) -> Result<Vec<String>> {
        Ok(self.namespaces().await?.into_iter().collect())
    }

    async fn database(&self, database: &str) -> Result<Option<HashMap<String, String>>> {
        let rows = self
            .rows(
                "SELECT property_key, property_value FROM iceberg_namespace_properties
                 WHERE catalog_name = $1 AND namespace = $2",
                &[database],
            )
            .await?;
        if rows.is_empty() {
            return Ok(self
                .namespaces()
                .await?
                .contains(database)
                .then(HashMap::new));
        }
        let mut properties = HashMap::new();
        for row in rows {
            let mut values = row.into_iter();
            let (key, value) = (values.next().flatten(), values.next().flatten());
            if let Some(key) = key.filter(|key| key != EXISTS_PROPERTY) {
                properties.insert(key, value.unwrap_or_default());
            }
        }
        Ok(Some(properties))
    }

    async fn create_database(
        &self,
        database: &str,
        mut properties: HashMap<String, String>,
    ) -> Result<bool> {
        if self.namespaces().await?.contains(database) {
            return Ok(false);
        }
        properties
            .entry(EXISTS_PROPERTY.to_string())
            .or_insert_with(|| "true".to_string());
        let rows: Vec<Vec<&str>> = properties
            .iter()
            .map(|(key, value)| self.with_catalog(&[database, key, value]))
            .collect();
        let connection = self.connection().await?;
        // A row that is there already was made just now by another process.
        connection
            .database
            .execute_all(
                "INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value)
                 VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
                &rows,
            )
            .await
            .map_err(|e| self.config.failed(e))
    }

    async fn drop_database(&self, database: &str) -> Result<bool> {
        let deleted = self
            .execute(
                "DELETE FROM iceberg_namespace_properties WHERE catalog_name = $1 AND namespace = $2
                 AND NOT EXISTS (SELECT 1 FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2)",
                &[database],
            )
            .await?;
        if deleted > 0 {
            return Ok(true);
        }
        let tables = self
            .rows(
                "SELECT table_name FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2",
                &[database],
            )
            .await?;
        match tables.len() {
            0 => Ok(false),
            tables => Err(CatalogError::DatabaseNotEmpty {
                catalog: self.config.catalog.clone(),
                database: database.to_string(),
                tables,
            }),
        }
    }

    async fn list_tables(&self, database: &str) -> Result<Option<Vec<String>>> {
        let connection = self.connection().await?;
        let rows = self
            .rows(
                &format!(
                    "SELECT table_name FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2{} ORDER BY 1",
                    connection.only_tables()
                ),
                &[database],
            )
            .await?;
        let tables: Vec<String> = rows.into_iter().flatten().flatten().collect();
        if tables.is_empty() && !self.namespaces().await?.contains(database) {
            return Ok(None);
        }
        Ok(Some(tables))
    }

    async fn table(&self, table: &TableName) -> Result<Option<TablePointer>> {
        let connection = self.connection().await?;
        let rows = self
            .rows(
                &format!(
                    "SELECT metadata_location FROM iceberg_tables
                     WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3{}",
                    connection.only_tables()
                ),
                &[&table.database, &table.table],
            )
            .await?;
        Ok(rows.into_iter().next().map(|row| TablePointer {
            metadata_location: row.into_iter().next().flatten(),
            metadata: None,
            storage_properties: BTreeMap::new(),
        }))
    }

    async fn stage(&self, table: &TableName, spec: NewTable) -> Result<StagedTable> {
        let location = match &spec.location {
            Some(location) => location.trim_end_matches('/').to_string(),
            None => {
                let properties = self.database(&table.database).await?.unwrap_or_default();
                let parent = match (properties.get("location"), &self.config.warehouse) {
                    (Some(location), _) => location.trim_end_matches('/').to_string(),
                    (None, Some(warehouse)) => {
                        let levels: Vec<String> =
                            table.database.split('.').map(directory_name).collect();
                        format!("{}/{}", warehouse.trim_end_matches('/'), levels.join("/"))
                    }
                    (None, None) => {
                        return Err(CatalogError::InvalidTable {
                            table: table.to_string(),
                            reason: format!(
                                "it needs a location, since catalog '{}' has no property 'warehouse' and the \
                                 database has no property 'location'",
                                self.config.catalog
                            ),
                        });
                    }
                };
                // A table dropped without purge leaves its files; one of the same name must not share their place.
                let id = uuid::Uuid::new_v4().simple().to_string();
                format!("{parent}/{}-{}", directory_name(&table.table), &id[..8])
            }
        };
        let storage = self.stores.storage(self.descriptor(&location)?)?;
        let metadata = first_metadata(table, spec, location)?;
        Ok(StagedTable {
            name: table.clone(),
            metadata: Arc::new(metadata),
            storage,
        })
    }

    async fn create(
        &self,
        staged: &StagedTable,
        snapshot: Option<Snapshot>,
    ) -> Result<(), CommitError> {
        let metadata = with_snapshot(&staged.metadata, snapshot)?;
        let location = self
            .write_metadata(&staged.storage, metadata, |suffix| {
                first_metadata_location(staged.metadata.location(), suffix)
            })
            .await?;
        let inserted = async {
            let (column, value) = self.connection().await?.table_type();
            self.execute(
                &format!(
                    "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location{column})
                     VALUES ($1, $2, $3, $4{value}) ON CONFLICT DO NOTHING"
                ),
                &[&staged.name.database, &staged.name.table, &location],
            )
            .await
        };
        let error = match inserted.await {
            Ok(1) => return Ok(()),
            Ok(_) => CatalogError::TableExists {
                table: staged.name.clone(),
            },
            Err(error) => {
                return self
                    .settle(&staged.name, &staged.storage, location, error)
                    .await;
            }
        };
        delete_files(&*staged.storage.store, [location]).await;
        Err(error.into())
    }

    async fn commit(
        &self,
        base: &PinnedTable,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> Result<(), CommitError> {
        let name = base.name();
        let Some(current) = base.metadata_location() else {
            return Err(
                CatalogError::Internal(format!("table '{name}' has no metadata location")).into(),
            );
        };
        for requirement in &requirements {
            requirement
                .check(Some(base.metadata()))
                .map_err(|e| CommitError::Conflict(e.message().to_string()))?;
        }
        let metadata = updated(name, base.metadata(), Some(current), updates)?;
        let location = self
            .write_metadata(base.storage(), metadata, |suffix| {
                next_metadata_location(base.metadata().location(), current, suffix)
            })
            .await?;
        let swapped = async {
            let connection = self.connection().await?;
            self.execute(
                &format!(
                    "UPDATE iceberg_tables SET metadata_location = $4, previous_metadata_location = $5
                     WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3 AND metadata_location = $5{}",
                    connection.only_tables()
                ),
                &[&name.database, &name.table, &location, current],
            )
            .await
        };
        match swapped.await {
            Ok(1) => Ok(()),
            Ok(_) => {
                delete_files(&*base.storage().store, [location]).await;
                Err(CommitError::Conflict(
                    "the table was changed meanwhile".to_string(),
                ))
            }
            Err(error) => self.settle(name, base.storage(), location, error).await,
        }
    }

    async fn drop_table(&self, table: &TableName, _purge: bool) -> Result<bool> {
        let connection = self.connection().await?;
        let deleted = self
            .execute(
                &format!(
                    "DELETE FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3{}",
                    connection.only_tables()
                ),
                &[&table.database, &table.table],
            )
            .await?;
        Ok(deleted > 0)
    }

    fn purges(&self) -> bool {
        false
    }
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
            ref_name: iceberg::spec::MAIN_BRANCH.to_string(),
            reference,
        },
    ];
    updated(&table, metadata, None, updates)
}
