//! The stores that are open in this process.

use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;

use super::{StorageDescriptor, StoreSettings, TableStorage};
use crate::error::Result;

/// Stores kept open at the same time. Credentials that a catalog hands out anew with each load make new ones.
const MAX_OPEN: u64 = 256;

/// Opens each store once, so that tables share its connections.
#[derive(Debug)]
pub(crate) struct Stores {
    settings: StoreSettings,
    open: moka::sync::Cache<StorageDescriptor, Arc<dyn ObjectStore>>,
}

impl Stores {
    pub(crate) fn new(settings: StoreSettings) -> Self {
        let open = moka::sync::Cache::builder()
            .max_capacity(MAX_OPEN)
            .time_to_idle(Duration::from_secs(900))
            .build();
        Self { settings, open }
    }

    pub(crate) fn settings(&self) -> &StoreSettings {
        &self.settings
    }

    pub(crate) fn storage(&self, descriptor: StorageDescriptor) -> Result<TableStorage> {
        let store = match self.open.get(&descriptor) {
            Some(store) => store,
            None => {
                let store = descriptor.open(&self.settings)?;
                self.open.insert(descriptor.clone(), store.clone());
                store
            }
        };
        Ok(TableStorage { descriptor, store })
    }
}
