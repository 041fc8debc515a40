//! Where a table's bytes live and how to reach them, as a value that can travel.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::Hasher;
use std::sync::Arc;

use object_store::ObjectStore;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use super::location::{Location, Scheme, location_to_path};
use super::routing_store::RoutingStore;
use super::{StoreSettings, azure};
use crate::error::Result;
use crate::secrets::shown_value;

/// Property prefixes that tell how to reach a store. All else is the catalog's business.
const STORE_PREFIXES: [&str; 5] = ["s3.", "client.", "gcs.", "adls.", "http."];

/// How to reach the stores that a table's files are in.
///
/// It holds the storage properties of a catalog (`s3.endpoint`, `s3.access-key-id`, …; none for local files), with
/// what the catalog adds for the one table. Serialised, it travels to workers inside the scan: secrets and all, so
/// `Debug` shows them masked and it must not be logged otherwise.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Hash, Default)]
pub struct StorageDescriptor {
    /// Storage properties, by their Iceberg names.
    pub properties: BTreeMap<String, String>,
    /// Where files are now that metadata names elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<MovedFiles>,
    /// The scheme that the table's own location has, as paths begin: `file`, `s3`, `gs`, `az`, `http`, `https`.
    pub scheme: String,
}

/// Files that were moved together, by the paths of their folder.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq, Hash)]
pub struct MovedFiles {
    from: String,
    to: String,
}

impl MovedFiles {
    fn new(from: &str, to: &str) -> Result<Self> {
        Ok(Self {
            from: location_to_path(from)?.to_string(),
            to: location_to_path(to)?.to_string(),
        })
    }

    /// Where a file is now that metadata names by `path`; `None` if it is where it was.
    pub(super) fn place_of(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(self.from.as_str())?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{}{rest}", self.to))
    }
}

impl fmt::Debug for StorageDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: BTreeMap<&str, &str> = self
            .properties
            .iter()
            .map(|(k, v)| (k.as_str(), shown_value(k, v)))
            .collect();
        f.debug_struct("StorageDescriptor")
            .field("scheme", &self.scheme)
            .field("properties", &shown)
            .field("moved", &self.moved)
            .finish()
    }
}

impl StorageDescriptor {
    /// Local files.
    pub fn local() -> Self {
        Self {
            properties: BTreeMap::new(),
            moved: None,
            scheme: "file".to_string(),
        }
    }

    /// Picks the storage properties out of a catalog's, for a table at `location`.
    pub fn from_properties<'a>(
        properties: impl IntoIterator<Item = (&'a String, &'a String)>,
        location: &str,
    ) -> Result<Self> {
        let scheme = Location::parse(location)?.scheme;
        let properties = match scheme {
            // Local files need no properties, and without them all local tables share one store.
            Scheme::File => BTreeMap::new(),
            _ => properties
                .into_iter()
                .filter(|(key, _)| STORE_PREFIXES.iter().any(|prefix| key.starts_with(prefix)))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        };
        Ok(Self {
            properties,
            moved: None,
            scheme: scheme.as_str().to_string(),
        })
    }

    /// The same, with the files of the folder `from` to be found in the folder `to`.
    pub(crate) fn with_moved(self, from: &str, to: &str) -> Result<Self> {
        Ok(Self {
            moved: Some(MovedFiles::new(from, to)?),
            ..self
        })
    }

    /// The key of the store in DataFusion's object store registry: `tarn-<16 hex digits>://store/`.
    ///
    /// Equal descriptors have equal URLs in every process; the digits are a hash of all properties.
    pub fn url(&self) -> String {
        let mut hasher = XxHash64::with_seed(0);
        let mut part = |text: &str| {
            hasher.write_u64(text.len() as u64);
            hasher.write(text.as_bytes());
        };
        part(&self.scheme);
        for (key, value) in &self.properties {
            part(key);
            part(value);
        }
        if let Some(moved) = &self.moved {
            part(&moved.from);
            part(&moved.to);
        }
        format!("tarn-{:016x}://store/", hasher.finish())
    }

    /// Whether the files are on the local file system, so that a data cache would gain nothing.
    pub fn is_local(&self) -> bool {
        self.scheme == "file"
    }

    /// Tells stores apart for a cache of their bytes: kind, endpoint and region, without secrets. Credentials that
    /// differ (or are renewed) reach the same bytes.
    pub fn scope(&self) -> String {
        let part = |key: &str| self.properties.get(key).map(String::as_str).unwrap_or("");
        let (endpoint, region) = match self.scheme.as_str() {
            "s3" => (part("s3.endpoint"), part("s3.region")),
            "gs" => (part("gcs.service.host"), ""),
            // Containers that do not say their account are of this one.
            "az" => (part("adls.endpoint"), azure::account(&self.properties)),
            // A host is part of each path.
            _ => ("", ""),
        };
        let moved = self.moved.as_ref().map_or("", |moved| moved.to.as_str());
        format!("{}|{endpoint}|{region}|{moved}", self.scheme)
    }

    /// Opens the one store for everything this descriptor reaches.
    ///
    /// Its paths are `<scheme>/<bucket>/<key>`, `file/a/b` for local files, as
    /// [`location_to_path`](super::location_to_path) makes them. The stores behind it are made when a bucket is first
    /// used; options of a read, extensions included, are handed to them unchanged.
    pub fn open(&self, settings: &StoreSettings) -> Result<Arc<dyn ObjectStore>> {
        Ok(Arc::new(RoutingStore::new(self.clone(), settings.clone())))
    }
}

/// The store of one table, and what it was opened from.
#[derive(Clone)]
pub struct TableStorage {
    /// What travels to workers.
    pub descriptor: StorageDescriptor,
    /// The store, opened in this process, without a data cache.
    pub store: Arc<dyn ObjectStore>,
}

impl fmt::Debug for TableStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableStorage")
            .field("descriptor", &self.descriptor)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s3(pairs: &[(&str, &str)]) -> StorageDescriptor {
        let properties: BTreeMap<String, String> = pairs
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect();
        StorageDescriptor::from_properties(&properties, "s3://bucket/table").unwrap()
    }

    #[test]
    fn the_url_is_stable_and_tells_descriptors_apart() {
        let one = s3(&[
            ("s3.endpoint", "http://localhost:9000"),
            ("s3.access-key-id", "a"),
        ]);
        let other = s3(&[
            ("s3.endpoint", "http://localhost:9000"),
            ("s3.access-key-id", "b"),
        ]);
        assert_eq!(one.url(), one.clone().url());
        assert_ne!(one.url(), other.url());
        assert_eq!(one.scope(), other.scope());
        // The digits must never change between builds, since a coordinator and its workers may be of different ones:
        // xxHash64 of a length of 8 bytes (4, little-endian) and "file".
        assert_eq!(
            StorageDescriptor::local().url(),
            "tarn-a4f9f6ff8265695e://store/"
        );
    }

    #[test]
    fn only_storage_properties_travel() {
        let descriptor = s3(&[
            ("s3.region", "eu-1"),
            ("token", "t"),
            ("uri", "http://catalog"),
            ("client.region", "x"),
        ]);
        let keys: Vec<&str> = descriptor.properties.keys().map(String::as_str).collect();
        assert_eq!(keys, ["client.region", "s3.region"]);
    }

    #[test]
    fn moved_files_are_those_below_the_folder() {
        let moved = MovedFiles::new("s3://b/wh/t/", "/home/me/t").unwrap();
        for (path, place) in [
            ("s3/b/wh/t/data/f", Some("file/home/me/t/data/f")),
            ("s3/b/wh/t", Some("file/home/me/t")),
            ("s3/b/wh/tt/data/f", None),
            ("s3/b/wh/other", None),
        ] {
            assert_eq!(moved.place_of(path).as_deref(), place, "{path}");
        }
    }

    #[test]
    fn secrets_are_masked_in_debug_but_travel() {
        let descriptor = s3(&[
            ("s3.access-key-id", "AKIA"),
            ("s3.secret-access-key", "hush"),
            ("s3.session-token", "tok"),
        ]);
        let shown = format!("{descriptor:?}");
        assert!(
            !shown.contains("hush") && !shown.contains("tok\""),
            "{shown}"
        );
        let travelled: StorageDescriptor =
            serde_json::from_str(&serde_json::to_string(&descriptor).unwrap()).unwrap();
        assert_eq!(travelled, descriptor);
        assert_eq!(travelled.properties["s3.secret-access-key"], "hush");
    }
}
