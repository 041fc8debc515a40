//! One object store in front of the local file system and any number of buckets.
//!
//! ```text
//!  file/a/b      ──▶ LocalFileSystem     a/b
//!  s3/bucket/k   ──▶ AmazonS3(bucket)    k        made when first used, then kept; so are those of gs, az, http
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

use super::location::Scheme;
use super::{StorageDescriptor, StoreSettings, azure, gcs, http, s3};

/// See the module.
pub(crate) struct RoutingStore {
    descriptor: StorageDescriptor,
    settings: StoreSettings,
    local: Arc<LocalFileSystem>,
    /// By scheme and bucket.
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
        let moved = &self.descriptor.moved;
        let moved = moved
            .as_ref()
            .and_then(|moved| moved.place_of(path.as_ref()));
        let raw = moved.as_deref().unwrap_or(path.as_ref());
        let invalid = |reason: &str| object_store::Error::Generic {
            store: "tarn",
            source: format!("path '{raw}' leads to no store: {reason}").into(),
        };
        let (first, rest) = raw.split_once('/').unwrap_or((raw, ""));
        let scheme = Scheme::of_path(first)
            .ok_or_else(|| invalid("it does not start with the scheme of a store"))?;
        let (store, prefix, key): (Arc<dyn ObjectStore>, String, &str) = match scheme {
            Scheme::File => (self.local.clone(), first.to_string(), rest),
            _ => {
                let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
                if bucket.is_empty() {
                    return Err(invalid("it names no bucket"));
                }
                let prefix = format!("{first}/{bucket}");
                (self.bucket(scheme, bucket, &prefix)?, prefix, key)
            }
        };
        Ok(Route {
            store,
            prefix,
            path: Path::parse(key)?,
        })
    }

    fn bucket(&self, scheme: Scheme, bucket: &str, prefix: &str) -> Result<Arc<dyn ObjectStore>> {
        let mut buckets = self.buckets.lock();
        if let Some(store) = buckets.get(prefix) {
            return Ok(store.clone());
        }
        let (properties, settings) = (&self.descriptor.properties, &self.settings);
        let store = match scheme {
            Scheme::File => self.local.clone(),
            Scheme::S3 => s3::open_bucket(bucket, properties, settings)?,
            Scheme::Gcs => gcs::open_bucket(bucket, properties, settings)?,
            Scheme::Azure => azure::open_container(bucket, properties, settings)?,
            Scheme::Http | Scheme::Https => {
                http::open_host(scheme.as_str(), bucket, properties, settings)?
            }
        };
        buckets.insert(prefix.to_string(), store.clone());
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
