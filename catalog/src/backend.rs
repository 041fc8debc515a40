//! What a kind of catalog must be able to do.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use async_trait::async_trait;
use iceberg::spec::{Snapshot, TableMetadataRef};
use iceberg::{TableRequirement, TableUpdate};

use crate::create::NewTable;
use crate::error::{CatalogError, Result};
use crate::name::TableName;
use crate::pinned::PinnedTable;
use crate::storage::TableStorage;

/// One kind of catalog: SQLite, REST. Names have been checked; a name that is not there is `None` or `false`, and
/// becomes an error with suggestions further up.
#[async_trait]
pub(crate) trait Backend: fmt::Debug + Send + Sync {
    async fn list_databases(&self) -> Result<Vec<String>>;

    /// The properties of a database, or `None` if there is no such database.
    async fn database(&self, database: &str) -> Result<Option<HashMap<String, String>>>;

    /// `false` if there is one of that name already.
    async fn create_database(
        &self,
        database: &str,
        properties: HashMap<String, String>,
    ) -> Result<bool>;

    /// `false` if there is none. A database that is not empty is an error.
    async fn drop_database(&self, database: &str) -> Result<bool>;

    /// The tables, or `None` if there is no such database.
    async fn list_tables(&self, database: &str) -> Result<Option<Vec<String>>>;

    /// Which metadata is the table's current one; asked of the catalog each time.
    async fn table(&self, table: &TableName) -> Result<Option<TablePointer>>;

    /// Prepares a table that is not visible yet: its location, its first metadata, its storage.
    async fn stage(&self, table: &TableName, spec: NewTable) -> Result<StagedTable>;

    /// Makes a table without rows.
    async fn create_empty(&self, table: &TableName, spec: NewTable) -> Result<(), CommitError> {
        let staged = self.stage(table, spec).await?;
        self.create(&staged, None).await
    }

    /// Makes a staged table visible, with its first snapshot if there is one, in one step.
    async fn create(
        &self,
        staged: &StagedTable,
        snapshot: Option<Snapshot>,
    ) -> Result<(), CommitError>;

    /// Applies updates to a table if it still is what `base` is, in one step.
    async fn commit(
        &self,
        base: &PinnedTable,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> Result<(), CommitError>;

    /// `false` if there is no such table. With `purge`, tells a catalog that deletes files itself to do so.
    async fn drop_table(&self, table: &TableName, purge: bool) -> Result<bool>;

    /// Whether `drop_table` with `purge` deletes the files, so that Tarn need not.
    fn purges(&self) -> bool;
}

/// A table as a catalog knows it.
#[derive(Clone)]
pub(crate) struct TablePointer {
    /// The current metadata file.
    pub(crate) metadata_location: Option<String>,
    /// The metadata itself, from catalogs that send it along.
    pub(crate) metadata: Option<TableMetadataRef>,
    /// Properties of the table's storage beyond the catalog's own: vended credentials, an endpoint.
    pub(crate) storage_properties: BTreeMap<String, String>,
}

/// A table that nobody sees yet.
#[derive(Debug, Clone)]
pub(crate) struct StagedTable {
    pub(crate) name: TableName,
    pub(crate) metadata: TableMetadataRef,
    pub(crate) storage: TableStorage,
}

/// Why a commit did not take place, or may not have.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// Another writer was first. Nothing is changed; try again on fresh metadata.
    Conflict(String),
    /// No answer tells whether it took place.
    Unknown(String),
    /// It did not take place, and trying again would not help.
    Failed(CatalogError),
}

impl From<CatalogError> for CommitError {
    fn from(error: CatalogError) -> Self {
        CommitError::Failed(error)
    }
}
