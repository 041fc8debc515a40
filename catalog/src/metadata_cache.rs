//! Parsed metadata, kept by the location of its file.
//!
//! Metadata files, manifest lists and manifests never change, so a location is all the key they need. What a table's
//! current metadata file is, is never cached: the catalog is asked.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use iceberg::spec::{ManifestFile, TableMetadata, TableMetadataRef};

use crate::error::{CatalogError, Result};
use crate::manifest::DecodedManifest;
use crate::metadata_file::{parse_manifest, parse_manifest_list, parse_metadata};
use crate::name::TableName;
use crate::storage::{TableStorage, read_file};

/// Weights are counted in KiB, since a moka weight is a `u32`.
const WEIGHT_UNIT: u64 = 1024;

/// A cache with a bound on its memory, shared by all catalogs of a process.
#[derive(Debug)]
pub(crate) struct MetadataCache {
    entries: moka::future::Cache<Key, Entry>,
}

/// Catalogs may reach different stores under the same location, so a catalog's identity is part of the key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    scope: Arc<str>,
    location: String,
}

#[derive(Debug, Clone)]
struct Entry {
    value: Value,
    weight: u32,
}

#[derive(Debug, Clone)]
enum Value {
    Metadata(TableMetadataRef),
    ManifestList(Arc<Vec<ManifestFile>>),
    Manifest(Arc<DecodedManifest>),
    Sketch(Bytes),
}

impl MetadataCache {
    pub(crate) fn new(bytes: u64, freshness: Duration) -> Self {
        let entries = moka::future::Cache::builder()
            .max_capacity((bytes / WEIGHT_UNIT).max(1))
            .weigher(|_: &Key, entry: &Entry| entry.weight)
            .time_to_live(freshness)
            .build();
        Self { entries }
    }

    /// The value at `location`, read by `read` if it is not here. Concurrent callers share one read, and its failure;
    /// failures are not kept.
    async fn get(
        &self,
        scope: &Arc<str>,
        location: &str,
        read: impl Future<Output = Result<(Value, u64)>>,
    ) -> Result<Value> {
        let key = Key {
            scope: scope.clone(),
            location: location.to_string(),
        };
        let key_bytes = (location.len() + 200) as u64;
        let read = async {
            let (value, bytes) = read.await?;
            Ok(Entry {
                value,
                weight: ((bytes + key_bytes) / WEIGHT_UNIT).clamp(1, u64::from(u32::MAX)) as u32,
            })
        };
        let entry = self.entries.try_get_with(key, read).await;
        entry
            .map(|entry| entry.value)
            .map_err(|error: Arc<CatalogError>| (*error).clone())
    }

    pub(crate) async fn metadata(
        &self,
        scope: &Arc<str>,
        table: &TableName,
        storage: &TableStorage,
        location: &str,
    ) -> Result<TableMetadataRef> {
        let read = async {
            let bytes = read_file(&*storage.store, "table metadata file", location).await?;
            let (table, file, length) = (table.clone(), location.to_string(), bytes.len() as u64);
            let metadata =
                off_thread(location, move || parse_metadata(&table, &file, &bytes)).await?;
            // Parsed JSON takes about three times its text.
            Ok((Value::Metadata(Arc::new(metadata)), length * 3))
        };
        match self.get(scope, location, read).await? {
            Value::Metadata(metadata) => Ok(metadata),
            other => Err(mixed_up(location, &other)),
        }
    }

    /// Puts metadata that was just written here, so that it need not be read back.
    pub(crate) async fn insert_metadata(
        &self,
        scope: &Arc<str>,
        location: &str,
        metadata: TableMetadataRef,
        bytes: u64,
    ) {
        let key = Key {
            scope: scope.clone(),
            location: location.to_string(),
        };
        let weight = (bytes * 3 / WEIGHT_UNIT).clamp(1, u64::from(u32::MAX)) as u32;
        self.entries
            .insert(
                key,
                Entry {
                    value: Value::Metadata(metadata),
                    weight,
                },
            )
            .await;
    }

    pub(crate) async fn manifest_list(
        &self,
        scope: &Arc<str>,
        metadata: &TableMetadata,
        storage: &TableStorage,
        location: &str,
    ) -> Result<Arc<Vec<ManifestFile>>> {
        let version = metadata.format_version();
        let read = async {
            let bytes = read_file(&*storage.store, "manifest list", location).await?;
            let file = location.to_string();
            let list = off_thread(location, move || {
                parse_manifest_list(&file, &bytes, version)
            })
            .await?;
            let size: usize = list
                .iter()
                .map(|m| {
                    size_of::<ManifestFile>()
                        + m.manifest_path.len()
                        + m.partitions.as_ref().map_or(0, |p| p.len() * 96)
                })
                .sum();
            Ok((Value::ManifestList(Arc::new(list)), size as u64))
        };
        match self.get(scope, location, read).await? {
            Value::ManifestList(list) => Ok(list),
            other => Err(mixed_up(location, &other)),
        }
    }

    /// A sketch of a statistics file, by the file and the column.
    pub(crate) async fn sketch(
        &self,
        scope: &Arc<str>,
        key: &str,
        read: impl Future<Output = Result<Bytes>>,
    ) -> Result<Bytes> {
        let read = async {
            let sketch = read.await?;
            let size = sketch.len() as u64;
            Ok((Value::Sketch(sketch), size))
        };
        match self.get(scope, key, read).await? {
            Value::Sketch(sketch) => Ok(sketch),
            other => Err(mixed_up(key, &other)),
        }
    }

    pub(crate) async fn manifest(
        &self,
        scope: &Arc<str>,
        storage: &TableStorage,
        manifest: &ManifestFile,
    ) -> Result<Arc<DecodedManifest>> {
        let location = manifest.manifest_path.as_str();
        let read = async {
            let bytes = read_file(&*storage.store, "manifest", location).await?;
            let manifest = manifest.clone();
            let decoded = off_thread(location, move || parse_manifest(&manifest, &bytes)).await?;
            let size = decoded.estimated_bytes();
            Ok((Value::Manifest(Arc::new(decoded)), size))
        };
        match self.get(scope, location, read).await? {
            Value::Manifest(manifest) => Ok(manifest),
            other => Err(mixed_up(location, &other)),
        }
    }
}

/// Metadata that names one file as two kinds of thing.
fn mixed_up(location: &str, found: &Value) -> CatalogError {
    let reason = match found {
        Value::Metadata(_) => "it is also a table metadata file",
        Value::ManifestList(_) => "it is also a manifest list",
        Value::Manifest(_) => "it is also a manifest",
        Value::Sketch(_) => "it is also a sketch",
    };
    CatalogError::Corrupt {
        what: "metadata",
        file: location.to_string(),
        reason: reason.to_string(),
    }
}

/// Parses on a thread that may block. The Avro and Iceberg crates panic on some corrupt input, which becomes an error
/// here instead of taking the query's task down.
pub(crate) async fn off_thread<T: Send + 'static>(
    location: &str,
    parse: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(parse).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => Err(CatalogError::Corrupt {
            what: "metadata",
            file: location.to_string(),
            reason: "its content makes no sense to the decoder".to_string(),
        }),
        Err(_) => Err(CatalogError::Internal(
            "the runtime is shutting down".to_string(),
        )),
    }
}
