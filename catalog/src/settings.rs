//! Settings of the catalogs, filled in by the configuration of the process.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::secrets::Masked;
use crate::storage::StoreSettings;

/// Where the catalogs are, and how much of their metadata is kept in memory.
#[derive(Clone)]
pub struct CatalogSettings {
    /// The data directory: `catalog.db`, `warehouse/` and `catalogs.json` live here. Made if it is not there.
    pub data_dir: PathBuf,
    /// Memory for parsed table metadata, manifest lists and manifests, in bytes.
    pub metadata_cache_bytes: u64,
    /// How long parsed metadata is used before its file is read again. Metadata files never change in place, so this
    /// only limits how long a file that somebody replaced by hand goes unnoticed. Which metadata file is a table's
    /// current one is asked of the catalog on every use, whatever this says.
    pub freshness: Duration,
    /// Catalogs of the configuration file: name to properties. They win over catalogs made by SQL.
    pub catalogs: BTreeMap<String, BTreeMap<String, String>>,
    /// Storage properties of tables that no catalog holds.
    pub storage: BTreeMap<String, String>,
    /// Time limits and retries of stores and catalog servers.
    pub store: StoreSettings,
}

impl fmt::Debug for CatalogSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let catalogs: BTreeMap<&str, Masked<'_>> = self
            .catalogs
            .iter()
            .map(|(name, properties)| (name.as_str(), Masked(properties)))
            .collect();
        f.debug_struct("CatalogSettings")
            .field("data_dir", &self.data_dir)
            .field("metadata_cache_bytes", &self.metadata_cache_bytes)
            .field("freshness", &self.freshness)
            .field("catalogs", &catalogs)
            .field("storage", &Masked(&self.storage))
            .field("store", &self.store)
            .finish()
    }
}

impl CatalogSettings {
    /// Defaults over a data directory: 256 MiB of metadata, 10 minutes.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            metadata_cache_bytes: 256 * 1024 * 1024,
            freshness: Duration::from_secs(600),
            catalogs: BTreeMap::new(),
            storage: BTreeMap::new(),
            store: StoreSettings::default(),
        }
    }
}
