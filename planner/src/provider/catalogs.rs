//! The catalogs as one query sees them: each table is pinned once.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider};
use datafusion::datasource::TableProvider;
use datafusion::error::Result;
use parking_lot::Mutex;
use tarn_audit::ScanReport;
use tarn_catalog::{CatalogError, Catalogs, PinnedTable, TableLocation, TableName, TableVersion};
use tokio::sync::OnceCell;

use super::table_names::SelectedTable;
use super::{IcebergTable, VirtualSchemas};
use crate::error::catalog_error;
use crate::metadata_tables::metadata_table;
use crate::scan::ScanStores;

/// Functions that stand where a table does, `FROM range(10)`.
const TABLE_FUNCTIONS: [&str; 2] = ["generate_series", "range"];

type Slot<T> = Arc<OnceCell<T>>;
type VersionedTable = (TableName, TableVersion);

/// All catalogs, for one query.
///
/// A table is resolved when it is first named and stays at that metadata, however often and late it is named again, and
/// so are all its versions that the query reads.
pub struct QueryCatalogs {
    catalogs: Arc<Catalogs>,
    stores: Arc<ScanStores>,
    virtual_schemas: Arc<dyn VirtualSchemas>,
    pinned: Mutex<HashMap<TableName, Slot<PinnedTable>>>,
    tables: Mutex<HashMap<VersionedTable, Slot<Arc<IcebergTable>>>>,
    /// The places that the query reads tables of no catalog from.
    locations: Mutex<Vec<TableLocation>>,
    /// By the names that they are planned under.
    selected: Mutex<HashMap<TableName, SelectedTable>>,
    /// Whether the query names columns of row lineage.
    row_lineage: AtomicBool,
    this: Weak<QueryCatalogs>,
}

impl QueryCatalogs {
    /// Nothing is resolved yet.
    pub fn new(
        catalogs: Arc<Catalogs>,
        stores: Arc<ScanStores>,
        virtual_schemas: Arc<dyn VirtualSchemas>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            catalogs,
            stores,
            virtual_schemas,
            pinned: Mutex::default(),
            tables: Mutex::default(),
            locations: Mutex::default(),
            selected: Mutex::default(),
            row_lineage: AtomicBool::new(false),
            this: this.clone(),
        })
    }

    /// Gives tables that are resolved from now on the columns of
    /// [`ROW_LINEAGE_COLUMNS`](crate::ROW_LINEAGE_COLUMNS), if they have them.
    pub fn offer_row_lineage(&self) {
        self.row_lineage.store(true, Ordering::Relaxed);
    }

    /// The scans that were planned so far, table by table: with those that are in no plan because metadata answers
    /// them, such as a bare `count(*)`.
    pub fn planned_scans(&self) -> Vec<ScanReport> {
        let mut tables: Vec<_> = self
            .tables
            .lock()
            .iter()
            .filter_map(|(key, slot)| Some((key.clone(), slot.get()?.clone())))
            .collect();
        tables.sort_by(|(a, _), (b, _)| a.cmp(b));
        tables
            .iter()
            .flat_map(|(_, table)| table.planned_scans())
            .collect()
    }

    /// The table of that name as it is when the query first names it.
    pub(crate) async fn pin(&self, name: &TableName) -> Result<PinnedTable, CatalogError> {
        let slot = Arc::clone(self.pinned.lock().entry(name.clone()).or_default());
        let pinned = slot
            .get_or_try_init(|| async {
                self.catalogs
                    .get(&name.catalog)?
                    .table(&name.database, &name.table)
                    .await
            })
            .await?;
        Ok(pinned.clone())
    }

    /// The table at a location, and the name it goes by in this query.
    pub(super) async fn pin_location(
        &self,
        location: &TableLocation,
    ) -> Result<(TableName, PinnedTable), CatalogError> {
        let mut name = TableName::at(&location.location);
        // One place with other options is another table: it may be another store. The options hold secrets, so they are
        // not part of the name.
        let options = {
            let mut locations = self.locations.lock();
            let same_place = |known: &&TableLocation| known.location == location.location;
            let place = locations
                .iter()
                .filter(same_place)
                .position(|known| known == location);
            place.unwrap_or_else(|| {
                let others = locations.iter().filter(same_place).count();
                locations.push(location.clone());
                others
            })
        };
        if options > 0 {
            name.database = format!("options {}", options + 1);
        }
        let slot = Arc::clone(self.pinned.lock().entry(name.clone()).or_default());
        let pinned = slot
            .get_or_try_init(|| self.catalogs.table_at(location))
            .await?;
        Ok((name, pinned.clone()))
    }

    /// The table of that name, at one of its versions.
    pub async fn iceberg_table(
        &self,
        name: &TableName,
        version: &TableVersion,
    ) -> Result<Arc<IcebergTable>, CatalogError> {
        let key = (name.clone(), version.clone());
        let slot = Arc::clone(self.tables.lock().entry(key).or_default());
        let table = slot
            .get_or_try_init(|| async {
                let pinned = Box::pin(self.pin(name)).await?.version(version)?;
                let row_lineage = self.row_lineage.load(Ordering::Relaxed);
                IcebergTable::open(pinned, Arc::clone(&self.stores), row_lineage)
                    .await
                    .map(Arc::new)
            })
            .await?;
        Ok(Arc::clone(table))
    }

    /// Knows a table by the name it is planned under from now on.
    pub(super) fn remember(&self, selected: SelectedTable) {
        let name = TableName::new(
            selected.table.catalog.as_str(),
            selected.table.database.as_str(),
            selected.key(),
        );
        self.selected.lock().insert(name, selected);
    }

    /// Whether the database of that name is answered by the coordinator.
    pub(super) fn is_virtual(&self, name: &TableName) -> bool {
        self.virtual_schemas
            .schemas(&name.catalog)
            .iter()
            .any(|schema| schema.eq_ignore_ascii_case(&name.database))
    }

    async fn selected_table(
        &self,
        selected: &SelectedTable,
    ) -> Result<Arc<dyn TableProvider>, CatalogError> {
        match selected.metadata {
            None => Ok(self
                .iceberg_table(&selected.table, &selected.version)
                .await?),
            Some(metadata) => {
                let pinned = Box::pin(self.pin(&selected.table)).await?;
                metadata_table(metadata, pinned, &selected.version)
            }
        }
    }
}

impl fmt::Debug for QueryCatalogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryCatalogs")
            .field("pinned", &self.pinned.lock().keys())
            .finish_non_exhaustive()
    }
}

impl CatalogProviderList for QueryCatalogs {
    fn register_catalog(
        &self,
        _name: String,
        _catalog: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        let mut names = self.catalogs.names();
        names.extend(self.virtual_schemas.catalogs());
        names
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        // A name that is not known is let through: the error of resolving a table in it suggests near names.
        Some(Arc::new(QueryCatalog {
            query: self.this.upgrade()?,
            name: name.to_string(),
        }))
    }
}

/// One catalog of [`QueryCatalogs`].
#[derive(Debug)]
struct QueryCatalog {
    query: Arc<QueryCatalogs>,
    name: String,
}

impl CatalogProvider for QueryCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.query.virtual_schemas.schemas(&self.name)
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        Some(Arc::new(QuerySchema {
            query: Arc::clone(&self.query),
            catalog: self.name.clone(),
            database: name.to_string(),
        }))
    }
}

/// One database of a [`QueryCatalog`]. Catalogs are asked for single tables only; lists are the coordinator's.
#[derive(Debug)]
struct QuerySchema {
    query: Arc<QueryCatalogs>,
    catalog: String,
    database: String,
}

#[async_trait]
impl SchemaProvider for QuerySchema {
    fn table_names(&self) -> Vec<String> {
        self.query
            .virtual_schemas
            .tables(&self.catalog, &self.database)
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(table) = self
            .query
            .virtual_schemas
            .table(&self.catalog, &self.database, name)
            .await?
        {
            return Ok(Some(table));
        }
        let name = TableName::new(&self.catalog, &self.database, name);
        let selected = self.query.selected.lock().get(&name).cloned();
        if let Some(selected) = selected {
            let table = self.query.selected_table(&selected).await;
            return table.map(Some).map_err(catalog_error);
        }
        match self
            .query
            .iceberg_table(&name, &TableVersion::Current)
            .await
        {
            Ok(table) => Ok(Some(table)),
            // DataFusion asks for the name of a table function as if it were a table's; told that there is none, it goes
            // on to call the function.
            Err(CatalogError::NoSuchTable { .. })
                if TABLE_FUNCTIONS.contains(&name.table.as_str()) =>
            {
                Ok(None)
            }
            Err(error) => Err(catalog_error(error)),
        }
    }

    fn table_exist(&self, _name: &str) -> bool {
        // Whether it does is known when it is resolved, which needs I/O.
        true
    }
}
