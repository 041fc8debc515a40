//! Iceberg's file access over our store, so that metadata and data share credentials, retries and connections.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use iceberg::io::{
    FileIO, FileIOBuilder, FileMetadata, FileRead, FileWrite, InputFile, OutputFile, Storage,
    StorageConfig, StorageFactory,
};
use object_store::buffered::BufWriter;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;

use super::{StorageDescriptor, StoreSettings, TableStorage, location_to_path};

/// Bytes that a writer buffers before it starts a multipart upload.
const UPLOAD_PART_BYTES: usize = 8 * 1024 * 1024;

/// A [`FileIO`] over a store that is open already.
pub(crate) fn file_io_over(storage: &TableStorage, settings: &StoreSettings) -> FileIO {
    let store = OnceLock::new();
    let _ = store.set(storage.store.clone());
    let storage = TarnStorage {
        descriptor: storage.descriptor.clone(),
        settings: settings.clone(),
        store,
    };
    FileIOBuilder::new(Arc::new(TarnStorageFactory { storage })).build()
}

/// Iceberg wants a factory where a store would do; this one gives the store that it has.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct TarnStorageFactory {
    storage: TarnStorage,
}

#[typetag::serde(name = "tarn-storage-factory")]
impl StorageFactory for TarnStorageFactory {
    fn build(&self, _config: &StorageConfig) -> iceberg::Result<Arc<dyn Storage>> {
        Ok(Arc::new(self.storage.clone()))
    }
}

/// Iceberg's `Storage` over a [`RoutingStore`](super::routing_store::RoutingStore).
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct TarnStorage {
    descriptor: StorageDescriptor,
    settings: StoreSettings,
    #[serde(skip)]
    store: OnceLock<Arc<dyn ObjectStore>>,
}

impl fmt::Debug for TarnStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TarnStorage")
            .field("descriptor", &self.descriptor)
            .finish_non_exhaustive()
    }
}

impl TarnStorage {
    fn at(&self, location: &str) -> iceberg::Result<(Arc<dyn ObjectStore>, Path)> {
        let path = location_to_path(location).map_err(invalid)?;
        if let Some(store) = self.store.get() {
            return Ok((store.clone(), path));
        }
        let opened = self.descriptor.open(&self.settings).map_err(invalid)?;
        Ok((self.store.get_or_init(|| opened).clone(), path))
    }
}

fn invalid(error: crate::CatalogError) -> iceberg::Error {
    iceberg::Error::new(iceberg::ErrorKind::DataInvalid, error.to_string()).with_source(error)
}

/// Keeps the store's error as the source, so that a missing file is told from a store that is down.
fn failed(action: &str, location: &str, error: object_store::Error) -> iceberg::Error {
    let kind = match &error {
        object_store::Error::NotFound { .. } => iceberg::ErrorKind::DataInvalid,
        _ => iceberg::ErrorKind::Unexpected,
    };
    iceberg::Error::new(kind, format!("cannot {action} '{location}'")).with_source(error)
}

#[async_trait]
#[typetag::serde(name = "tarn-storage")]
impl Storage for TarnStorage {
    async fn exists(&self, location: &str) -> iceberg::Result<bool> {
        let (store, path) = self.at(location)?;
        match store.head(&path).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(failed("look up", location, error)),
        }
    }

    async fn metadata(&self, location: &str) -> iceberg::Result<FileMetadata> {
        let (store, path) = self.at(location)?;
        let meta = store
            .head(&path)
            .await
            .map_err(|e| failed("look up", location, e))?;
        Ok(FileMetadata { size: meta.size })
    }

    async fn read(&self, location: &str) -> iceberg::Result<Bytes> {
        let (store, path) = self.at(location)?;
        let result = store
            .get_opts(&path, GetOptions::default())
            .await
            .map_err(|e| failed("read", location, e))?;
        result
            .bytes()
            .await
            .map_err(|e| failed("read", location, e))
    }

    async fn reader(&self, location: &str) -> iceberg::Result<Box<dyn FileRead>> {
        let (store, path) = self.at(location)?;
        Ok(Box::new(Reader {
            store,
            path,
            location: location.to_string(),
        }))
    }

    async fn write(&self, location: &str, bytes: Bytes) -> iceberg::Result<()> {
        let (store, path) = self.at(location)?;
        store
            .put(&path, bytes.into())
            .await
            .map_err(|e| failed("write", location, e))?;
        Ok(())
    }

    async fn writer(&self, location: &str) -> iceberg::Result<Box<dyn FileWrite>> {
        let (store, path) = self.at(location)?;
        let upload = BufWriter::with_capacity(store, path, UPLOAD_PART_BYTES);
        Ok(Box::new(Writer {
            upload: Some(upload),
            location: location.to_string(),
        }))
    }

    async fn delete(&self, location: &str) -> iceberg::Result<()> {
        let (store, path) = self.at(location)?;
        match store.delete(&path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed("delete", location, error)),
        }
    }

    async fn delete_prefix(&self, location: &str) -> iceberg::Result<()> {
        let (store, path) = self.at(location)?;
        let mut listed = store.list(Some(&path));
        while let Some(meta) = listed.next().await {
            let meta = meta.map_err(|e| failed("list", location, e))?;
            match store.delete(&meta.location).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(failed("delete", location, error)),
            }
        }
        Ok(())
    }

    async fn delete_stream(
        &self,
        mut locations: BoxStream<'static, String>,
    ) -> iceberg::Result<()> {
        while let Some(location) = locations.next().await {
            self.delete(&location).await?;
        }
        Ok(())
    }

    fn new_input(&self, location: &str) -> iceberg::Result<InputFile> {
        Ok(InputFile::new(Arc::new(self.clone()), location.to_string()))
    }

    fn new_output(&self, location: &str) -> iceberg::Result<OutputFile> {
        Ok(OutputFile::new(
            Arc::new(self.clone()),
            location.to_string(),
        ))
    }
}

struct Reader {
    store: Arc<dyn ObjectStore>,
    path: Path,
    location: String,
}

#[async_trait]
impl FileRead for Reader {
    async fn read(&self, range: Range<u64>) -> iceberg::Result<Bytes> {
        self.store
            .get_range(&self.path, range)
            .await
            .map_err(|e| failed("read", &self.location, e))
    }
}

struct Writer {
    upload: Option<BufWriter>,
    location: String,
}

impl Writer {
    fn failed(&self, error: std::io::Error) -> iceberg::Error {
        iceberg::Error::new(
            iceberg::ErrorKind::Unexpected,
            format!("cannot write '{}'", self.location),
        )
        .with_source(error)
    }
}

#[async_trait]
impl FileWrite for Writer {
    async fn write(&mut self, bytes: Bytes) -> iceberg::Result<()> {
        let Some(upload) = self.upload.as_mut() else {
            return Err(iceberg::Error::new(
                iceberg::ErrorKind::Unexpected,
                format!("'{}' is closed", self.location),
            ));
        };
        let written = upload.put(bytes).await;
        written.map_err(|e| failed("write", &self.location, e))
    }

    async fn close(&mut self) -> iceberg::Result<()> {
        match self.upload.take() {
            Some(mut upload) => upload.shutdown().await.map_err(|e| self.failed(e)),
            None => Err(iceberg::Error::new(
                iceberg::ErrorKind::Unexpected,
                format!("'{}' is closed", self.location),
            )),
        }
    }
}
