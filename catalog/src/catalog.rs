//! One catalog: databases, tables, and what is done to them.

use std::collections::{BTreeMap, HashMap};

use crate::append::{AppendWriter, WriteOptions};
use crate::create::NewTable;
use crate::error::{CatalogError, Result};
use crate::pinned::PinnedTable;
use crate::secrets::shown_properties;

/// One catalog. Connecting is lazy: a catalog whose server is down costs nothing until it is used.
#[derive(Debug)]
pub struct Catalog {
    name: String,
    properties: BTreeMap<String, String>,
}

fn not_yet<T>() -> Result<T> {
    Err(CatalogError::Internal(
        "catalogs are not there yet".to_string(),
    ))
}

impl Catalog {
    /// The catalog's name in this Tarn.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its properties, secrets included.
    pub fn properties(&self) -> &BTreeMap<String, String> {
        &self.properties
    }

    /// Its properties as they may be shown: secrets masked.
    pub fn shown_properties(&self) -> BTreeMap<String, String> {
        shown_properties(&self.properties)
    }

    /// The databases, sorted; levels of nested namespaces are joined with dots.
    pub async fn list_databases(&self) -> Result<Vec<String>> {
        not_yet()
    }

    /// Whether there is such a database.
    pub async fn database_exists(&self, _database: &str) -> Result<bool> {
        not_yet()
    }

    /// Creates a database.
    pub async fn create_database(
        &self,
        _database: &str,
        _properties: HashMap<String, String>,
        _if_not_exists: bool,
    ) -> Result<()> {
        not_yet()
    }

    /// Drops a database; with `cascade`, its tables first (their files are kept).
    pub async fn drop_database(
        &self,
        _database: &str,
        _if_exists: bool,
        _cascade: bool,
    ) -> Result<()> {
        not_yet()
    }

    /// The tables of a database, sorted.
    pub async fn list_tables(&self, _database: &str) -> Result<Vec<String>> {
        not_yet()
    }

    /// Pins a table at its current snapshot. The catalog is asked each time; parsed metadata is cached.
    pub async fn table(&self, _database: &str, _table: &str) -> Result<PinnedTable> {
        not_yet()
    }

    /// Creates an empty table.
    pub async fn create_table(&self, _database: &str, _spec: NewTable) -> Result<PinnedTable> {
        not_yet()
    }

    /// Drops a table; with `purge`, deletes its files, those under its own location only.
    pub async fn drop_table(
        &self,
        _database: &str,
        _table: &str,
        _if_exists: bool,
        _purge: bool,
    ) -> Result<()> {
        not_yet()
    }

    /// Opens an append to a table.
    pub async fn append(
        &self,
        _database: &str,
        _table: &str,
        _options: WriteOptions,
    ) -> Result<AppendWriter> {
        not_yet()
    }

    /// Opens the write of a CREATE TABLE AS: the table and its first snapshot appear together at the commit.
    pub async fn create_table_as(
        &self,
        _database: &str,
        _spec: NewTable,
        _options: WriteOptions,
    ) -> Result<AppendWriter> {
        not_yet()
    }
}
