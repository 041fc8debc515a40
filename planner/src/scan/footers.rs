//! Decoded footers of Parquet files, bounded by their size in memory.

use std::future::Future;
use std::sync::Arc;

use moka::future::Cache;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

/// What a footer is known by. Data files never change, so path and store name the bytes; the size guards against a
/// file that was replaced all the same. The names in a decoded footer are a table schema's, hence `columns`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FooterKey {
    pub store: Arc<str>,
    pub path: object_store::path::Path,
    pub size: u64,
    /// [`TableColumns::fingerprint`](super::file_columns::TableColumns::fingerprint).
    pub columns: u64,
}

/// Footers with their page indexes. Who asks for one that is being read waits for that read.
pub(crate) struct FooterCache {
    footers: Cache<FooterKey, Arc<ParquetMetaData>>,
}

impl FooterCache {
    pub(crate) fn new(bytes: u64) -> Self {
        let footers = Cache::builder()
            .max_capacity(bytes)
            .weigher(|key: &FooterKey, footer: &Arc<ParquetMetaData>| {
                let size = footer.memory_size() + key.path.as_ref().len() + 128;
                u32::try_from(size).unwrap_or(u32::MAX)
            })
            .build();
        Self { footers }
    }

    /// The footer, read by `load` if it is not known yet.
    pub(crate) async fn get_or_load(
        &self,
        key: FooterKey,
        load: impl Future<Output = Result<ParquetMetaData, ParquetError>>,
    ) -> Result<Arc<ParquetMetaData>, ParquetError> {
        self.footers
            .try_get_with(key, async move { load.await.map(Arc::new) })
            .await
            // The error is shared by all who waited, and this type of error cannot be cloned.
            .map_err(|error| ParquetError::General(error.to_string()))
    }
}
