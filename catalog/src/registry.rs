//! All catalogs of one Tarn, by name.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;

use crate::catalog::Catalog;
use crate::catalog_kind::{self, Kind};
use crate::error::{CatalogError, Result};
use crate::metadata_cache::MetadataCache;
use crate::name::{DEFAULT_CATALOG, DEFAULT_DATABASE};
use crate::near_names::near_names;
use crate::pinned::PinnedTable;
use crate::properties::unknown_property;
use crate::registry_file::RegistryFile;
use crate::secrets::Masked;
use crate::settings::CatalogSettings;
use crate::sql::{SqlConfig, SqlPlace, SqliteFile};
use crate::storage::{StoreSettings, Stores, overlaid};
use crate::table_location::{TableLocation, pin_at};

/// Names that SQL needs for something else.
const RESERVED: [&str; 2] = ["tarn", "information_schema"];

/// All catalogs: the embedded one (`lake`), those of the configuration file, and those made by SQL.
pub struct Catalogs {
    catalogs: RwLock<BTreeMap<String, Entry>>,
    file: RegistryFile,
    /// Held while the file and the map change together.
    changing: tokio::sync::Mutex<()>,
    stores: Arc<Stores>,
    cache: Arc<MetadataCache>,
    /// Storage properties of tables that no catalog holds.
    storage: BTreeMap<String, String>,
}

impl fmt::Debug for Catalogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalogs")
            .field("catalogs", &self.catalogs)
            .field("storage", &Masked(&self.storage))
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
struct Entry {
    catalog: Arc<Catalog>,
    origin: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Embedded,
    Configuration,
    Sql,
}

impl Catalogs {
    /// Opens the data directory and the catalogs made by SQL. No catalog's server is contacted.
    pub async fn open(settings: CatalogSettings) -> Result<Arc<Self>> {
        let data_dir = absolute(&settings.data_dir)?;
        let warehouse = data_dir.join("warehouse");
        tokio::fs::create_dir_all(&warehouse)
            .await
            .map_err(|e| local_error("cannot make the directory", &warehouse, &e))?;

        let file = RegistryFile::new(data_dir.join("catalogs.json"));
        let catalogs = Self {
            catalogs: RwLock::default(),
            stores: Arc::new(Stores::new(settings.store.clone())),
            cache: Arc::new(MetadataCache::new(
                settings.metadata_cache_bytes,
                settings.freshness,
            )),
            changing: tokio::sync::Mutex::default(),
            storage: settings.storage,
            file,
        };

        for (name, properties) in catalogs.file.read().await? {
            match catalogs.build(&name, properties) {
                Ok(catalog) => catalogs.insert(catalog, Origin::Sql),
                // A catalog that an older or newer Tarn understood must not keep this one from starting.
                Err(error) => {
                    tracing::warn!(catalog = name, %error, "a saved catalog cannot be used")
                }
            }
        }
        for (name, properties) in &settings.catalogs {
            check_catalog_name(name)?;
            let catalog = catalogs.build(name, properties.clone())?;
            check_properties(name, properties)?;
            catalogs.insert(catalog, Origin::Configuration);
        }
        if !settings.catalogs.contains_key(DEFAULT_CATALOG) {
            let embedded = catalogs.embedded(&data_dir, &warehouse);
            embedded
                .create_database(DEFAULT_DATABASE, Default::default(), true)
                .await?;
            catalogs.insert(embedded, Origin::Embedded);
        }
        Ok(Arc::new(catalogs))
    }

    fn embedded(&self, data_dir: &Path, warehouse: &Path) -> Catalog {
        let file = data_dir.join("catalog.db");
        let warehouse = format!("file://{}", warehouse.display());
        let properties: BTreeMap<String, String> = [
            ("type".to_string(), "sql".to_string()),
            ("uri".to_string(), format!("sqlite://{}", file.display())),
            ("warehouse".to_string(), warehouse.clone()),
        ]
        .into();
        let config = SqlConfig {
            catalog: DEFAULT_CATALOG.to_string(),
            catalog_in_database: DEFAULT_CATALOG.to_string(),
            place: SqlPlace::Sqlite(SqliteFile {
                file,
                create: true,
                own: true,
            }),
            warehouse: Some(warehouse),
            properties: properties.clone(),
        };
        catalog_kind::open(
            DEFAULT_CATALOG,
            properties,
            Kind::Sql(Box::new(config)),
            &self.stores,
            &self.cache,
        )
    }

    fn build(&self, name: &str, properties: BTreeMap<String, String>) -> Result<Catalog> {
        let kind = catalog_kind::parse(name, &properties, self.stores.settings())?;
        Ok(catalog_kind::open(
            name,
            properties,
            kind,
            &self.stores,
            &self.cache,
        ))
    }

    fn insert(&self, catalog: Catalog, origin: Origin) {
        let entry = Entry {
            catalog: Arc::new(catalog),
            origin,
        };
        self.catalogs
            .write()
            .insert(entry.catalog.name().to_string(), entry);
    }

    /// The names of all catalogs, sorted.
    pub fn names(&self) -> Vec<String> {
        self.catalogs.read().keys().cloned().collect()
    }

    /// The catalog of that name; the error suggests near ones.
    pub fn get(&self, name: &str) -> Result<Arc<Catalog>> {
        let catalogs = self.catalogs.read();
        catalogs
            .get(name)
            .map(|entry| entry.catalog.clone())
            .ok_or_else(|| CatalogError::NoSuchCatalog {
                catalog: name.to_string(),
                similar: near_names(name, catalogs.keys().map(String::as_str)),
            })
    }

    /// Adds a catalog and remembers it in the data directory. Its server is not contacted.
    ///
    /// Properties are those of [`PROPERTIES`](crate::PROPERTIES).
    pub async fn create_catalog(
        &self,
        name: &str,
        properties: BTreeMap<String, String>,
        if_not_exists: bool,
    ) -> Result<()> {
        check_catalog_name(name)?;
        let _changing = self.changing.lock().await;
        if self.catalogs.read().contains_key(name) {
            return if if_not_exists {
                Ok(())
            } else {
                Err(CatalogError::CatalogExists {
                    catalog: name.to_string(),
                })
            };
        }
        let catalog = self.build(name, properties.clone())?;
        check_properties(name, &properties)?;
        let mut saved = self.file.read().await?;
        saved.insert(name.to_string(), properties);
        self.file.write(&saved).await?;
        self.insert(catalog, Origin::Sql);
        Ok(())
    }

    /// Pins the table at a location, which no catalog need know.
    pub async fn table_at(&self, table: &TableLocation) -> Result<PinnedTable> {
        let properties = match &table.catalog {
            Some(catalog) => overlaid(self.get(catalog)?.properties(), &table.properties),
            None => overlaid(&self.storage, &table.properties),
        };
        pin_at(table, &properties, &self.stores, &self.cache).await
    }

    /// Forgets a catalog made by SQL. What is in it stays as it is.
    pub async fn drop_catalog(&self, name: &str, if_exists: bool) -> Result<()> {
        let _changing = self.changing.lock().await;
        let origin = self.catalogs.read().get(name).map(|entry| entry.origin);
        let fixed = |reason: &str| CatalogError::CatalogFixed {
            catalog: name.to_string(),
            reason: reason.to_string(),
        };
        match origin {
            None if if_exists => return Ok(()),
            None => return self.get(name).map(|_| ()),
            Some(Origin::Embedded) => return Err(fixed("it is built in")),
            Some(Origin::Configuration) => {
                return Err(fixed("it comes from the configuration file"));
            }
            Some(Origin::Sql) => {}
        }
        let mut saved = self.file.read().await?;
        saved.remove(name);
        self.file.write(&saved).await?;
        self.catalogs.write().remove(name);
        Ok(())
    }
}

/// Whether a catalog can be opened with these properties, as far as they tell: nothing is contacted. A property that means
/// nothing is most likely a slip of the pen.
///
/// # Errors
/// [`CatalogError::InvalidCatalog`]: a property is unknown, missing, or has a bad value.
pub fn check_properties(catalog: &str, properties: &BTreeMap<String, String>) -> Result<()> {
    match unknown_property(properties) {
        Some(reason) => Err(CatalogError::InvalidCatalog {
            catalog: catalog.to_string(),
            reason,
        }),
        None => catalog_kind::parse(catalog, properties, &StoreSettings::default()).map(|_| ()),
    }
}

fn check_catalog_name(name: &str) -> Result<()> {
    let invalid = |reason: &str| CatalogError::InvalidName {
        kind: "catalog",
        name: name.to_string(),
        reason: reason.to_string(),
    };
    if RESERVED.contains(&name) {
        return Err(invalid("it is reserved"));
    }
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 128 || !name.chars().all(plain) {
        return Err(invalid("1 to 128 letters, digits, '_' and '-' make a name"));
    }
    Ok(())
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|e| local_error("cannot use the directory", path, &e))
}

pub(crate) fn local_error(
    action: &'static str,
    path: &Path,
    error: &std::io::Error,
) -> CatalogError {
    CatalogError::LocalFile {
        action,
        path: path.display().to_string(),
        reason: error.to_string(),
    }
}
