//! The stores that scans read through, shared by all queries of a process.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use object_store::ObjectStore;
use parking_lot::Mutex;
use tarn_cache::DataCache;
use tarn_catalog::{StorageDescriptor, StoreSettings};
use url::Url;

use super::footers::FooterCache;
use crate::deletes::DeleteCache;
use crate::error::{PlannerError, catalog_error};
use crate::skewed_joins::SampleCache;

/// Footers of Parquet files that a process keeps decoded, in bytes.
const FOOTER_CACHE_BYTES: u64 = 256 << 20;

/// Deletes that a process keeps loaded, in bytes.
const DELETE_CACHE_BYTES: u64 = 256 << 20;

/// Samples of files' keys that a process keeps.
const SAMPLES: u64 = 100_000;

/// Opens each store once, puts the data cache in front of remote ones, and keeps decoded footers and deletes.
pub struct ScanStores {
    cache: Option<Arc<DataCache>>,
    settings: StoreSettings,
    opened: Mutex<HashMap<StorageDescriptor, Arc<dyn ObjectStore>>>,
    footers: Arc<FooterCache>,
    deletes: Arc<DeleteCache>,
    samples: SampleCache,
}

impl ScanStores {
    /// Without a `cache`, every read goes to the store.
    pub fn new(cache: Option<Arc<DataCache>>, settings: StoreSettings) -> Arc<Self> {
        Arc::new(Self {
            cache,
            settings,
            opened: Mutex::default(),
            footers: Arc::new(FooterCache::new(FOOTER_CACHE_BYTES)),
            deletes: Arc::new(DeleteCache::new(DELETE_CACHE_BYTES)),
            samples: SampleCache::new(SAMPLES),
        })
    }

    /// The data cache, if there is one.
    pub fn cache(&self) -> Option<&Arc<DataCache>> {
        self.cache.as_ref()
    }

    /// The store of a table's files.
    pub fn store(&self, descriptor: &StorageDescriptor) -> Result<Arc<dyn ObjectStore>> {
        if let Some(store) = self.opened.lock().get(descriptor) {
            return Ok(Arc::clone(store));
        }
        let mut store = descriptor.open(&self.settings).map_err(catalog_error)?;
        if let Some(cache) = self.cache.as_ref().filter(|_| !descriptor.is_local()) {
            store = cache.wrap(store, &descriptor.scope());
        }
        Ok(Arc::clone(
            self.opened
                .lock()
                .entry(descriptor.clone())
                .or_insert(store),
        ))
    }

    /// Makes the store known to a runtime, and tells by which URL.
    pub fn register(
        &self,
        descriptor: &StorageDescriptor,
        runtime: &RuntimeEnv,
    ) -> Result<ObjectStoreUrl> {
        let url = descriptor.url();
        let parsed =
            Url::parse(&url).map_err(|e| PlannerError::Codec(format!("store URL '{url}': {e}")))?;
        let store = self.store(descriptor)?;
        // Registering anew what is there would cost a lock and nothing else, but looking is as cheap.
        if runtime.object_store_registry.get_store(&parsed).is_err() {
            runtime.register_object_store(&parsed, store);
        }
        ObjectStoreUrl::parse(url)
    }

    /// What was seen of the keys in files.
    pub(crate) fn samples(&self) -> &SampleCache {
        &self.samples
    }

    pub(crate) fn footers(&self) -> &Arc<FooterCache> {
        &self.footers
    }

    pub(crate) fn deletes(&self) -> &Arc<DeleteCache> {
        &self.deletes
    }
}

impl fmt::Debug for ScanStores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanStores")
            .field("cached", &self.cache.is_some())
            .field("opened", &self.opened.lock().len())
            .finish_non_exhaustive()
    }
}
