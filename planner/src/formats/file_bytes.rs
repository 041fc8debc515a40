//! Where the readers of this module get a file's bytes from.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

/// The bytes of one file. A scan counts what is read, and its store has the data cache in front.
#[async_trait]
pub(crate) trait FileBytes: Send + Sync {
    async fn read(&self, range: Range<u64>) -> object_store::Result<Bytes>;

    async fn read_many(&self, ranges: &[Range<u64>]) -> object_store::Result<Vec<Bytes>>;
}

/// A file of a store.
#[async_trait]
impl FileBytes for (Arc<dyn ObjectStore>, Path) {
    async fn read(&self, range: Range<u64>) -> object_store::Result<Bytes> {
        self.0.get_range(&self.1, range).await
    }

    async fn read_many(&self, ranges: &[Range<u64>]) -> object_store::Result<Vec<Bytes>> {
        self.0.get_ranges(&self.1, ranges).await
    }
}
