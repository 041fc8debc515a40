//! Files behind plain HTTP, read only: any web server that answers GET, with ranges, and HEAD.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::StoreSettings;
use super::client_options::{client_options, retry_config};

/// Properties that are headers of every request.
const HEADER_PREFIX: &str = "http.header.";

/// Opens what is below `scheme://host/`.
pub(super) fn open_host(
    scheme: &str,
    host: &str,
    properties: &BTreeMap<String, String>,
    settings: &StoreSettings,
) -> Result<Arc<dyn ObjectStore>> {
    let options = client_options(settings, true).with_default_headers(headers(properties)?);
    let store = HttpBuilder::new()
        .with_url(format!("{scheme}://{host}/"))
        .with_retry(retry_config(settings))
        .with_client_options(options)
        .build()?;
    Ok(Arc::new(ReadOnly(Arc::new(store))))
}

fn headers(properties: &BTreeMap<String, String>) -> Result<HeaderMap> {
    let invalid = |key: &str| Error::Generic {
        store: "HTTP",
        source: format!("'{key}' or its value is not a header").into(),
    };
    let mut headers = HeaderMap::new();
    for (key, value) in properties {
        let Some(name) = key.strip_prefix(HEADER_PREFIX) else {
            continue;
        };
        let name = HeaderName::try_from(name).map_err(|_| invalid(key))?;
        let mut value = HeaderValue::try_from(value).map_err(|_| invalid(key))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// A store that refuses to change anything.
#[derive(Debug)]
struct ReadOnly(Arc<dyn ObjectStore>);

fn refused(path: &Path) -> Error {
    Error::NotSupported {
        source: format!("tables behind HTTP are read only ('{path}')").into(),
    }
}

impl fmt::Display for ReadOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadOnly({})", self.0)
    }
}

#[async_trait]
impl ObjectStore for ReadOnly {
    async fn put_opts(&self, path: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(refused(path))
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Err(refused(path))
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.0.get_opts(path, options).await
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.0.get_ranges(path, ranges).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        paths
            .map(|path| path.and_then(|path| Err(refused(&path))))
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        stream::once(std::future::ready(Err(no_list(prefix)))).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        Err(no_list(prefix))
    }

    async fn copy_opts(&self, _: &Path, to: &Path, _: CopyOptions) -> Result<()> {
        Err(refused(to))
    }
}

fn no_list(prefix: Option<&Path>) -> Error {
    let prefix = prefix.map(Path::as_ref).unwrap_or_default();
    Error::NotSupported {
        source: format!("folders behind HTTP cannot be listed ('{prefix}')").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::ObjectStoreExt;

    #[tokio::test]
    async fn nothing_is_written_or_listed() {
        let settings = StoreSettings::default();
        let store = open_host("http", "127.0.0.1:9", &BTreeMap::new(), &settings).unwrap();
        let path = Path::parse("t/f").unwrap();
        let put = store.put(&path, PutPayload::new()).await.unwrap_err();
        assert!(put.to_string().contains("read only"), "{put}");
        let deleted = store.delete(&path).await.unwrap_err();
        assert!(deleted.to_string().contains("read only"), "{deleted}");
        let listed = store.list_with_delimiter(Some(&path)).await.unwrap_err();
        assert!(listed.to_string().contains("cannot be listed"), "{listed}");
    }

    #[test]
    fn headers_are_taken_as_they_are() {
        let properties = |key: &str, value: &str| [(key.to_string(), value.to_string())].into();
        let found = headers(&properties("http.header.Authorization", "Bearer x")).unwrap();
        assert_eq!(found["authorization"], "Bearer x");
        let error = headers(&properties("http.header.X", "hush\n")).unwrap_err();
        assert!(!error.to_string().contains("hush"), "{error}");
    }
}
