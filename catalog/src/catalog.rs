//! One catalog: databases, tables, and what is done to them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use iceberg::spec::TableMetadataRef;

use crate::append::{AppendWriter, WriteOptions};
use crate::backend::{Backend, CommitError, TablePointer};
use crate::create::NewTable;
use crate::error::{CatalogError, Result};
use crate::metadata_cache::MetadataCache;
use crate::name::TableName;
use crate::near_names::near_names;
use crate::pinned::PinnedTable;
use crate::purge::purge_table;
use crate::secrets::{Masked, shown_properties};
use crate::storage::{StorageDescriptor, Stores};

/// The longest name of a database or table, in characters; SQL catalogs keep names in columns of this width.
const MAX_NAME: usize = 255;

/// One catalog. Connecting is lazy: a catalog whose server is down costs nothing until it is used.
#[derive(Debug, Clone)]
pub struct Catalog {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    properties: BTreeMap<String, String>,
    backend: Box<dyn Backend>,
    stores: Arc<Stores>,
    cache: Arc<MetadataCache>,
    scope: Arc<str>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalog")
            .field("name", &self.name)
            .field("properties", &Masked(&self.properties))
            .finish_non_exhaustive()
    }
}

impl Catalog {
    pub(crate) fn new(
        name: String,
        properties: BTreeMap<String, String>,
        backend: Box<dyn Backend>,
        stores: Arc<Stores>,
        cache: Arc<MetadataCache>,
        scope: Arc<str>,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                name,
                properties,
                backend,
                stores,
                cache,
                scope,
            }),
        }
    }

    /// The catalog's name in this Tarn.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Its properties, secrets included.
    pub fn properties(&self) -> &BTreeMap<String, String> {
        &self.inner.properties
    }

    /// Its properties as they may be shown: secrets masked.
    pub fn shown_properties(&self) -> BTreeMap<String, String> {
        shown_properties(&self.inner.properties)
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.inner.backend
    }

    pub(crate) fn stores(&self) -> &Stores {
        &self.inner.stores
    }

    /// The databases, sorted; levels of nested namespaces are joined with dots.
    pub async fn list_databases(&self) -> Result<Vec<String>> {
        let mut databases = self.inner.backend.list_databases().await?;
        databases.sort();
        databases.dedup();
        Ok(databases)
    }

    /// Whether there is such a database.
    pub async fn database_exists(&self, database: &str) -> Result<bool> {
        Ok(self.inner.backend.database(database).await?.is_some())
    }

    /// Creates a database.
    pub async fn create_database(
        &self,
        database: &str,
        properties: HashMap<String, String>,
        if_not_exists: bool,
    ) -> Result<()> {
        check_name("database", database)?;
        if self
            .inner
            .backend
            .create_database(database, properties)
            .await?
            || if_not_exists
        {
            return Ok(());
        }
        Err(CatalogError::DatabaseExists {
            catalog: self.inner.name.clone(),
            database: database.to_string(),
        })
    }

    /// Drops a database; with `cascade`, its tables first (their files are kept).
    pub async fn drop_database(
        &self,
        database: &str,
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        match self.inner.backend.list_tables(database).await? {
            None if if_exists => return Ok(()),
            None => return Err(self.no_such_database(database).await),
            Some(tables) if tables.is_empty() => {}
            Some(tables) if cascade => {
                for table in tables {
                    self.drop_table(database, &table, true, false).await?;
                }
            }
            Some(tables) => {
                return Err(CatalogError::DatabaseNotEmpty {
                    catalog: self.inner.name.clone(),
                    database: database.to_string(),
                    tables: tables.len(),
                });
            }
        }
        self.inner.backend.drop_database(database).await?;
        Ok(())
    }

    /// The tables of a database, sorted.
    pub async fn list_tables(&self, database: &str) -> Result<Vec<String>> {
        match self.inner.backend.list_tables(database).await? {
            Some(mut tables) => {
                tables.sort();
                Ok(tables)
            }
            None => Err(self.no_such_database(database).await),
        }
    }

    /// Pins a table at its current snapshot. The catalog is asked each time; parsed metadata is cached.
    pub async fn table(&self, database: &str, table: &str) -> Result<PinnedTable> {
        let name = self.table_name(database, table);
        match self.inner.backend.table(&name).await? {
            Some(pointer) => self.pin(name, pointer).await,
            None => Err(self.no_such_table(name).await),
        }
    }

    /// Creates an empty table.
    pub async fn create_table(&self, database: &str, spec: NewTable) -> Result<PinnedTable> {
        let if_not_exists = spec.if_not_exists;
        let name = match self.check_new(database, &spec).await {
            Err(CatalogError::TableExists { table }) if if_not_exists => {
                return self.table(database, &table.table).await;
            }
            name => name?,
        };
        match self.inner.backend.create_empty(&name, spec).await {
            Ok(()) => {}
            Err(CommitError::Failed(CatalogError::TableExists { .. })) if if_not_exists => {}
            Err(error) => return Err(creation_error(&name, error)),
        }
        self.table(database, &name.table).await
    }

    /// Drops a table; with `purge`, deletes its files, those under its own location only.
    pub async fn drop_table(
        &self,
        database: &str,
        table: &str,
        if_exists: bool,
        purge: bool,
    ) -> Result<()> {
        let name = self.table_name(database, table);
        let pinned = if purge && !self.inner.backend.purges() {
            match self.inner.backend.table(&name).await? {
                Some(pointer) => Some(self.pin(name.clone(), pointer).await?),
                None => None,
            }
        } else {
            None
        };
        if !self.inner.backend.drop_table(&name, purge).await? {
            return if if_exists {
                Ok(())
            } else {
                Err(self.no_such_table(name).await)
            };
        }
        if let Some(pinned) = pinned {
            purge_table(&pinned).await?;
        }
        Ok(())
    }

    /// Opens an append to a table.
    pub async fn append(
        &self,
        database: &str,
        table: &str,
        options: WriteOptions,
    ) -> Result<AppendWriter> {
        let pinned = self.table(database, table).await?;
        AppendWriter::to_table(self.clone(), pinned, options)
    }

    /// Opens the write of a CREATE TABLE AS: the table and its first snapshot appear together at the commit.
    ///
    /// `if_not_exists` is not looked at: a table of that name is [`CatalogError::TableExists`], and the caller decides
    /// what to do with the rows.
    pub async fn create_table_as(
        &self,
        database: &str,
        spec: NewTable,
        options: WriteOptions,
    ) -> Result<AppendWriter> {
        let name = self.check_new(database, &spec).await?;
        let staged = self.inner.backend.stage(&name, spec).await?;
        AppendWriter::to_new_table(self.clone(), staged, options)
    }

    /// Whether a table could be made now. Another writer may still be first.
    async fn check_new(&self, database: &str, spec: &NewTable) -> Result<TableName> {
        check_name("table", &spec.name)?;
        let name = self.table_name(database, &spec.name);
        if self.inner.backend.database(database).await?.is_none() {
            return Err(self.no_such_database(database).await);
        }
        if self.inner.backend.table(&name).await?.is_some() {
            return Err(CatalogError::TableExists { table: name });
        }
        Ok(name)
    }

    async fn pin(&self, name: TableName, pointer: TablePointer) -> Result<PinnedTable> {
        let inner = &self.inner;
        // What the catalog says of the one table goes before what it says of all.
        let mut properties = inner.properties.clone();
        properties.extend(pointer.storage_properties);
        let storage_at = |location: &str| {
            let descriptor = StorageDescriptor::from_properties(&properties, location)?;
            inner.stores.storage(descriptor)
        };
        let metadata: TableMetadataRef = match (pointer.metadata, &pointer.metadata_location) {
            (Some(metadata), _) => metadata,
            (None, Some(location)) => {
                inner
                    .cache
                    .metadata(&inner.scope, &name, &storage_at(location)?, location)
                    .await?
            }
            (None, None) => {
                return Err(CatalogError::Corrupt {
                    what: "catalog entry",
                    file: name.to_string(),
                    reason: "it names no metadata file".to_string(),
                });
            }
        };
        let storage = storage_at(metadata.location())?;
        PinnedTable::new(
            name,
            metadata,
            pointer.metadata_location,
            storage,
            inner.cache.clone(),
            inner.scope.clone(),
        )
    }

    fn table_name(&self, database: &str, table: &str) -> TableName {
        TableName::new(self.inner.name.as_str(), database, table)
    }

    /// The error for a database that is not there. Suggestions are a courtesy: failing to list is no error.
    async fn no_such_database(&self, database: &str) -> CatalogError {
        let databases = self
            .inner
            .backend
            .list_databases()
            .await
            .unwrap_or_default();
        CatalogError::NoSuchDatabase {
            catalog: self.inner.name.clone(),
            database: database.to_string(),
            similar: near_names(database, databases.iter().map(String::as_str)),
        }
    }

    async fn no_such_table(&self, table: TableName) -> CatalogError {
        match self.inner.backend.list_tables(&table.database).await {
            Ok(None) => self.no_such_database(&table.database).await,
            Ok(Some(tables)) => {
                let similar = near_names(&table.table, tables.iter().map(String::as_str));
                CatalogError::NoSuchTable { table, similar }
            }
            Err(_) => CatalogError::NoSuchTable {
                table,
                similar: Vec::new(),
            },
        }
    }
}

pub(crate) fn creation_error(table: &TableName, error: CommitError) -> CatalogError {
    match error {
        CommitError::Failed(error) => error,
        CommitError::Conflict(_) => CatalogError::TableExists {
            table: table.clone(),
        },
        CommitError::Unknown(reason) => CatalogError::CommitUnknown {
            table: table.clone(),
            reason,
        },
    }
}

fn check_name(kind: &'static str, name: &str) -> Result<()> {
    let invalid = |reason: &str| CatalogError::InvalidName {
        kind,
        name: name.to_string(),
        reason: reason.to_string(),
    };
    if name.trim().is_empty() {
        return Err(invalid("it is empty"));
    }
    if name.chars().count() > MAX_NAME {
        return Err(invalid("it is longer than 255 characters"));
    }
    if name.chars().any(char::is_control) {
        return Err(invalid("it has a control character"));
    }
    if name.contains('/') || name.contains('\\') || name.split('.').any(|level| level.is_empty()) {
        return Err(invalid(
            "'/', '\\' and empty levels between dots cannot be part of it",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_catalog_could_hold() {
        for name in [
            "",
            "  ",
            "a/b",
            "a\\b",
            ".",
            "..",
            "a..b",
            "a\u{0}b",
            &"x".repeat(256),
        ] {
            assert!(check_name("table", name).is_err(), "{name:?}");
        }
        for name in ["orders", "größe", "a b", "a.b", "select", &"x".repeat(255)] {
            assert!(check_name("table", name).is_ok(), "{name:?}");
        }
    }
}
