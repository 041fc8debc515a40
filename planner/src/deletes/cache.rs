//! What was read of delete files, bounded by its size in memory.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use moka::future::Cache;
use object_store::path::Path;
use roaring::RoaringTreemap;

use super::equality::KeySet;
use super::position::{LoadedPositions, bitmap_size};

/// What something that was loaded is known by. Delete files and data files never change, so a place is all it takes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum LoadedKey {
    Positions {
        store: Arc<str>,
        path: Path,
    },
    Vector {
        store: Arc<str>,
        path: Path,
        offset: u64,
    },
    /// The keys of a delete file, as columns of that [fingerprint](crate::scan::TableColumns::fingerprint).
    Keys {
        store: Arc<str>,
        path: Path,
        columns: u64,
    },
    /// The rows of a data file's row group that equality deletes match.
    Matched {
        store: Arc<str>,
        path: Path,
        row_group: usize,
        columns: u64,
        /// The paths of the delete files.
        deletes: Arc<str>,
    },
}

/// Something that was loaded. Cheap to clone.
#[derive(Clone)]
pub(crate) enum Loaded {
    Positions(Arc<LoadedPositions>),
    Bitmap(Arc<RoaringTreemap>),
    Keys(Arc<KeySet>),
}

impl Loaded {
    fn memory_size(&self) -> usize {
        match self {
            Loaded::Positions(positions) => positions.memory_size(),
            Loaded::Bitmap(bitmap) => bitmap_size(bitmap),
            Loaded::Keys(keys) => keys.memory_size(),
        }
    }
}

/// The loaded deletes of a process. Who asks for what is being loaded waits for that.
pub(crate) struct DeleteCache {
    loaded: Cache<LoadedKey, Loaded>,
}

impl DeleteCache {
    pub(crate) fn new(bytes: u64) -> Self {
        let loaded = Cache::builder()
            .max_capacity(bytes)
            .weigher(|key: &LoadedKey, loaded: &Loaded| {
                let size = loaded.memory_size() + key_size(key);
                u32::try_from(size).unwrap_or(u32::MAX)
            })
            .build();
        Self { loaded }
    }

    pub(crate) async fn get(&self, key: &LoadedKey) -> Option<Loaded> {
        self.loaded.get(key).await
    }

    pub(crate) async fn insert(&self, key: LoadedKey, loaded: Loaded) {
        self.loaded.insert(key, loaded).await;
    }

    /// What is known by the key, loaded by `load` if it is not here. A failure is everybody's who waited, and not kept.
    pub(crate) async fn get_or_load(
        &self,
        key: LoadedKey,
        load: impl Future<Output = Result<Loaded>>,
    ) -> Result<Loaded> {
        self.loaded
            .try_get_with(key, load)
            .await
            .map_err(DataFusionError::Shared)
    }
}

/// Row groups of one file share the text of its delete files, so only a part of it counts for each.
fn key_size(key: &LoadedKey) -> usize {
    let (path, more) = match key {
        LoadedKey::Positions { path, .. }
        | LoadedKey::Vector { path, .. }
        | LoadedKey::Keys { path, .. } => (path, 0),
        LoadedKey::Matched { path, deletes, .. } => (path, deletes.len() / 4),
    };
    path.as_ref().len() + more + 200
}

impl fmt::Debug for DeleteCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeleteCache")
            .field("entries", &self.loaded.entry_count())
            .field("bytes", &self.loaded.weighted_size())
            .finish()
    }
}
