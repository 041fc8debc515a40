//! A catalog in a SQLite file or in PostgreSQL, in the tables that other Iceberg engines' SQL catalogs use.
//!
//! A table is a row that points to its current metadata file. A commit writes a new metadata file and moves the
//! pointer with one conditional UPDATE, which is the compare-and-swap.

mod config;
mod database;
mod postgres;
mod sqlite;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use async_trait::async_trait;
use iceberg::spec::Snapshot;
use iceberg::{TableRequirement, TableUpdate};
use tokio::sync::OnceCell;

pub(crate) use self::config::{SqlConfig, SqlPlace};
pub(crate) use self::postgres::PostgresServer;
pub(crate) use self::sqlite::SqliteFile;

use self::config::Connection;
use self::database::Values;
use crate::backend::{Backend, CommitError, StagedTable, TablePointer};
use crate::create::NewTable;
use crate::error::{CatalogError, Result};
use crate::metadata_pointer::{MetadataFiles, new_location};
use crate::name::TableName;
use crate::pinned::PinnedTable;
use crate::storage::{TableStorage, delete_files};

/// The mark of a namespace without properties, the same that other engines leave.
const EXISTS_PROPERTY: &str = "exists";

/// See the module.
#[derive(Debug)]
pub(crate) struct SqlBackend {
    config: SqlConfig,
    files: MetadataFiles,
    connection: OnceCell<Connection>,
}

impl SqlBackend {
    pub(crate) fn new(config: SqlConfig, files: MetadataFiles) -> Self {
        Self {
            config,
            files,
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
            .map_err(|failed| self.config.failed(failed.error))
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

    /// How many rows a statement changed that points a table to the metadata file `location`. A file that the pointer may
    /// name, now or later, is not deleted.
    async fn point(
        &self,
        statement: &str,
        values: &[&str],
        table: &TableName,
        storage: &TableStorage,
        location: &str,
    ) -> Result<u64, CommitError> {
        let connection = self.connection().await?;
        let pointed = connection
            .database
            .execute(statement, &self.with_catalog(values))
            .await;
        let failed = match pointed {
            Ok(rows) => return Ok(rows),
            Err(failed) => failed,
        };
        let error = self.config.failed(failed.error);
        match self.table(table).await {
            Ok(Some(pointer)) if pointer.metadata_location.as_deref() == Some(location) => Ok(1),
            Ok(_) if !failed.may_have_run => {
                delete_files(&*storage.store, [location.to_string()]).await;
                Err(error.into())
            }
            _ => Err(CommitError::Unknown(error.to_string())),
        }
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
        let database = self.database(&table.database).await?.unwrap_or_default();
        let warehouse = self.config.warehouse.as_deref();
        let location = new_location(table, &spec, &database, warehouse)?;
        self.files
            .stage(table, spec, location, &self.config.properties)
    }

    async fn create(
        &self,
        staged: &StagedTable,
        snapshot: Option<Snapshot>,
    ) -> Result<(), CommitError> {
        let (location, _) = self.files.write_first(staged, snapshot).await?;
        let (column, value) = self.connection().await?.table_type();
        let (name, storage) = (&staged.name, &staged.storage);
        let inserted = self.point(
            &format!(
                "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location{column})
                 VALUES ($1, $2, $3, $4{value}) ON CONFLICT DO NOTHING"
            ),
            &[&name.database, &name.table, &location],
            name,
            storage,
            &location,
        ).await?;
        if inserted == 1 {
            return Ok(());
        }
        delete_files(&*storage.store, [location]).await;
        Err(CatalogError::TableExists {
            table: name.clone(),
        }
        .into())
    }

    async fn commit(
        &self,
        base: &PinnedTable,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> Result<(), CommitError> {
        let name = base.name();
        let current = base.pointer()?;
        let written = self.files.write_next(base, &requirements, updates);
        let (location, _) = written.await?;
        let only_tables = self.connection().await?.only_tables();
        let swapped = self.point(
            &format!(
                "UPDATE iceberg_tables SET metadata_location = $4, previous_metadata_location = $5
                 WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3 AND metadata_location = $5{only_tables}"
            ),
            &[&name.database, &name.table, &location, current],
            name,
            base.storage(),
            &location,
        ).await?;
        if swapped == 1 {
            return Ok(());
        }
        delete_files(&*base.storage().store, [location]).await;
        Err(CommitError::Conflict(
            "the table was changed meanwhile".to_string(),
        ))
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
