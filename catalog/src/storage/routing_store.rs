//! One object store in front of the local file system and any number of buckets.
//!
//! ```text
//!  file/a/b      ──▶ LocalFileSystem     a/b
//!  s3/bucket/k   ──▶ AmazonS3(bucket)    k        made when first used, then kept
//! ```

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use parking_lot::Mutex;

use super::s3::open_bucket;
use super::{StorageDescriptor, StoreSettings};

/// See the module.
pub(crate) struct RoutingStore {
    descriptor: StorageDescriptor,
    settings: StoreSettings,
    local: Arc<LocalFileSystem>,
    buckets: Mutex<HashMap<String, Arc<dyn ObjectStore>>>,
}

/// Where a path leads.
struct Route {
    store: Arc<dyn ObjectStore>,
    /// What the inner store's paths lack in front: `file` or `s3/bucket`.
    prefix: String,
    path: Path,
}

impl RoutingStore {
    pub(crate) fn new(descriptor: StorageDescriptor, settings: StoreSettings) -> Self {
        Self {
            descriptor,
            settings,
            local: Arc::new(LocalFileSystem::new()),
            buckets: Mutex::default(),
        }
    }

    fn route(&self, path: &Path) -> Result<Route> {
        let raw = path.as_ref();
        let invalid = |reason: &str| object_store::Error::Generic {
            store: "tarn",
            source: format!("path '{raw}' leads to no store: {reason}").into(),
        };
        let (scheme, rest) = raw.split_once('/').unwrap_or((raw, ""));
        let (store, prefix, key): (Arc<dyn ObjectStore>, String, &str) = match scheme {
            "file" => (self.local.clone(), "file".to_string(), rest),
            "s3" => {
                let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
                if bucket.is_empty() {
                    return Err(invalid("it names no bucket"));
                }
                (self.bucket(bucket)?, format!("s3/{bucket}"), key)
            }
            _ => return Err(invalid("it must start with 'file/' or 's3/'")),
        };
        Ok(Route {
            store,
            prefix,
            path: Path::parse(key)?,
        })
    }

    fn bucket(&self, bucket: &str) -> Result<Arc<dyn ObjectStore>> {
        let mut buckets = self.buckets.lock();
        if let Some(store) = buckets.get(bucket) {
            return Ok(store.clone());
        }
        let store = open_bucket(bucket, &self.descriptor.properties, &self.settings)?;
        buckets.insert(bucket.to_string(), store.clone());
        Ok(store)
    }
}

impl Route {
    fn outer(prefix: &str, inner: &Path) -> Result<Path> {
        Ok(Path::parse(format!("{prefix}/{inner}"))?)
    }

    fn outer_meta(prefix: &str, meta: ObjectMeta) -> Result<ObjectMeta> {
        Ok(ObjectMeta {
            location: Self::outer(prefix, &meta.location)?,
            ..meta
        })
    }
}

impl fmt::Debug for RoutingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoutingStore")
            .field("descriptor", &self.descriptor)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for RoutingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RoutingStore({})", self.descriptor.scope())
    }
}

#[async_trait]
impl ObjectStore for RoutingStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        let route = self.route(location)?;
        route.store.put_opts(&route.path, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let route = self.route(location)?;
        route.store.put_multipart_opts(&route.path, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let route = self.route(location)?;
        let mut result = route.store.get_opts(&route.path, options).await?;
        result.meta.location = location.clone();
        Ok(result)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let route = self.route(location)?;
        route.store.get_ranges(&route.path, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        // Batches of one bucket would save requests, but a stream may interleave buckets; purges are rare.
        let router = Self {
            descriptor: self.descriptor.clone(),
            settings: self.settings.clone(),
            local: self.local.clone(),
            buckets: Mutex::new(self.buckets.lock().clone()),
        };
        let router = Arc::new(router);
        locations
            .map(move |location| {
                let router = router.clone();
                async move {
                    let location = location?;
                    let route = router.route(&location)?;
                    let single = stream::once(std::future::ready(Ok(route.path))).boxed();
                    route
                        .store
                        .delete_stream(single)
                        .try_collect::<Vec<_>>()
                        .await?;
                    Ok(location)
                }
            })
            .buffered(16)
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.route(prefix.unwrap_or(&Path::ROOT)) {
            Ok(route) => {
                let outer = route.prefix;
                let inner = (!route.path.is_root()).then_some(route.path);
                route
                    .store
                    .list(inner.as_ref())
                    .map(move |meta| Route::outer_meta(&outer, meta?))
                    .boxed()
            }
            Err(error) => stream::once(std::future::ready(Err(error))).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let route = self.route(prefix.unwrap_or(&Path::ROOT))?;
        let inner = (!route.path.is_root()).then_some(&route.path);
        let listed = route.store.list_with_delimiter(inner).await?;
        Ok(ListResult {
            common_prefixes: listed
                .common_prefixes
                .iter()
                .map(|path| Route::outer(&route.prefix, path))
                .collect::<Result<_>>()?,
            objects: listed
                .objects
                .into_iter()
                .map(|meta| Route::outer_meta(&route.prefix, meta))
                .collect::<Result<_>>()?,
        })
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let (source, target) = (self.route(from)?, self.route(to)?);
        if source.prefix != target.prefix {
            return Err(object_store::Error::NotSupported {
                source: format!("cannot copy '{from}' to another bucket ('{to}')").into(),
            });
        }
        source
            .store
            .copy_opts(&source.path, &target.path, options)
            .await
    }
}
