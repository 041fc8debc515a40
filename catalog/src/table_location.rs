//! A table that no catalog holds: a metadata file, or the folder of a table.
//!
//! A folder's current metadata file is told as Hadoop's tables tell it: `metadata/version-hint.text` says a version, from
//! which a reader goes on for as long as there is a next one, since the hint is written after the metadata. Without a hint
//! the file of the highest version is the current one.
//!
//! ```text
//!   …/metadata/version-hint.text   7
//!   …/metadata/v7.metadata.json    v7 ─► v8 ─► v8 is the last: current
//!   …/metadata/v8.metadata.json
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use object_store::{ObjectStore, ObjectStoreExt};

use crate::error::{CatalogError, Result};
use crate::metadata_cache::MetadataCache;
use crate::metadata_location::version;
use crate::name::TableName;
use crate::pinned::PinnedTable;
use crate::secrets::Masked;
use crate::storage::{
    StorageDescriptor, Stores, TableStorage, location_to_path, read_file, root_cause, store_error,
};

/// The file in a table's `metadata` folder that says which version is the current one.
const VERSION_HINT: &str = "version-hint.text";

/// How far a hint may be behind before it is taken for broken.
const MAX_VERSIONS_BEHIND: u64 = 10_000;

/// Where a table is, and how to reach it.
#[derive(Clone, PartialEq, Eq)]
pub struct TableLocation {
    /// A metadata file, or a table's folder.
    pub location: String,
    /// The catalog whose storage properties hold; those of `[storage]` if there is none.
    pub catalog: Option<String>,
    /// Storage properties that go before those.
    pub properties: BTreeMap<String, String>,
    /// Whether the table was moved as a whole: files that its metadata names below the place where it was are read where
    /// it is now.
    pub moved: bool,
}

impl fmt::Debug for TableLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableLocation")
            .field("location", &self.location)
            .field("catalog", &self.catalog)
            .field("properties", &Masked(&self.properties))
            .field("moved", &self.moved)
            .finish()
    }
}

/// Pins the table at a location.
pub(crate) async fn pin_at(
    table: &TableLocation,
    properties: &BTreeMap<String, String>,
    stores: &Stores,
    cache: &Arc<MetadataCache>,
) -> Result<PinnedTable> {
    let location = absolute(table.location.trim())?;
    let storage_at =
        |location: &str| stores.storage(StorageDescriptor::from_properties(properties, location)?);
    let storage = storage_at(&location)?;
    let scope: Arc<str> = format!("location {}", storage.descriptor.url()).into();
    let file = metadata_file(&*storage.store, &location).await?;
    let name = TableName::at(&location);
    // Unlike a catalog's, these files are replaced at times: a table that was made anew begins with version 1 again.
    let identity = identity(&storage, &file).await?;
    let metadata = cache
        .metadata(
            &format!("{scope} {identity}").into(),
            &name,
            &storage,
            &file,
        )
        .await?;
    let (storage, scope) = match table.moved {
        false => (storage_at(metadata.location())?, scope),
        true => {
            let moved = storage
                .descriptor
                .with_moved(metadata.location(), folder_of(&file))?;
            let scope = format!("location {}", moved.url());
            (stores.storage(moved)?, scope.into())
        }
    };
    PinnedTable::new(name, metadata, Some(file), storage, cache.clone(), scope)
}

/// The table's folder, which has its metadata files in the folder `metadata`.
fn folder_of(metadata_file: &str) -> &str {
    let metadata = metadata_file
        .rsplit_once('/')
        .map_or("", |(folder, _)| folder);
    metadata.strip_suffix("/metadata").unwrap_or(metadata)
}

/// A path that is not absolute is below the working directory of this process.
fn absolute(location: &str) -> Result<String> {
    if location.is_empty() || location.starts_with('/') || location.contains(':') {
        return Ok(location.to_string());
    }
    let path = std::path::absolute(location).map_err(|error| CatalogError::InvalidLocation {
        location: location.to_string(),
        reason: error.to_string(),
    })?;
    Ok(path.display().to_string())
}

/// What changes with a file's content.
async fn identity(storage: &TableStorage, file: &str) -> Result<String> {
    match storage.store.head(&location_to_path(file)?).await {
        Ok(found) => Ok(match found.e_tag {
            Some(tag) => tag,
            None => format!("{} {}", found.last_modified.timestamp_micros(), found.size),
        }),
        Err(object_store::Error::NotFound { .. }) => Err(CatalogError::MissingFile {
            what: "table metadata file",
            file: file.to_string(),
        }),
        Err(error) => Err(store_error("read", file, &error)),
    }
}

/// The metadata file at a location that is one, or a table's folder.
async fn metadata_file(store: &dyn ObjectStore, location: &str) -> Result<String> {
    if is_metadata_file(location) {
        return Ok(location.to_string());
    }
    let table = location.trim_end_matches('/');
    let hint = match read_file(
        store,
        "version hint",
        &format!("{table}/metadata/{VERSION_HINT}"),
    )
    .await
    {
        Ok(bytes) => Some(hint(table, &bytes)?),
        Err(CatalogError::MissingFile { .. }) => None,
        Err(error) => return Err(error),
    };
    match hint {
        Some(Hint::File(name)) => Ok(format!("{table}/metadata/{name}")),
        Some(Hint::Version(version)) => hinted(store, table, version).await,
        None => newest(store, table).await,
    }
}

fn is_metadata_file(location: &str) -> bool {
    location.ends_with(".json") || location.ends_with(".json.gz")
}

/// What a hint says.
#[derive(Debug, PartialEq)]
enum Hint {
    Version(u64),
    File(String),
}

fn hint(table: &str, bytes: &[u8]) -> Result<Hint> {
    let corrupt = |reason: String| CatalogError::Corrupt {
        what: "version hint",
        file: format!("{table}/metadata/{VERSION_HINT}"),
        reason,
    };
    let text = std::str::from_utf8(bytes).map_err(|error| corrupt(error.to_string()))?;
    let text = text.trim();
    let shown: String = text.chars().take(60).collect();
    if let Ok(version) = text.parse() {
        return Ok(Hint::Version(version));
    }
    // Some writers name the file, or the file less its ending.
    let plain = !text.is_empty()
        && text.len() <= 255
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    match plain {
        true if is_metadata_file(text) => Ok(Hint::File(text.to_string())),
        true => Ok(Hint::File(format!("{text}.metadata.json"))),
        false => Err(corrupt(format!(
            "'{shown}' is neither a version nor the name of a metadata file"
        ))),
    }
}

/// The metadata file of the version of a hint, or of the last one that follows it without a gap.
async fn hinted(store: &dyn ObjectStore, table: &str, hint: u64) -> Result<String> {
    let mut current = None;
    for version in hint..hint.saturating_add(MAX_VERSIONS_BEHIND) {
        let Some(file) = numbered(store, table, version).await? else {
            break;
        };
        current = Some(file);
    }
    match current {
        Some(file) => Ok(file),
        // The file need not be called as Hadoop calls it.
        None => {
            let found = listed(store, table).await?;
            choose(
                table,
                found.into_iter().filter(|(version, _)| *version == hint),
            )
            .ok_or_else(|| CatalogError::MissingFile {
                what: "table metadata file",
                file: format!("{table}/metadata/v{hint}.metadata.json"),
            })?
        }
    }
}

/// Hadoop's name of a version's file, if that file is there.
async fn numbered(store: &dyn ObjectStore, table: &str, version: u64) -> Result<Option<String>> {
    for ending in [".metadata.json", ".gz.metadata.json", ".metadata.json.gz"] {
        let file = format!("{table}/metadata/v{version}{ending}");
        match store.head(&location_to_path(&file)?).await {
            Ok(_) => return Ok(Some(file)),
            Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(store_error("look up", &file, &error)),
        }
    }
    Ok(None)
}

/// The metadata file of the highest version.
async fn newest(store: &dyn ObjectStore, table: &str) -> Result<String> {
    let found = listed(store, table).await?;
    let highest = found.iter().map(|(version, _)| *version).max();
    let of_highest = found
        .into_iter()
        .filter(|(version, _)| Some(*version) == highest);
    choose(table, of_highest).unwrap_or_else(|| {
        Err(CatalogError::NoTableAt {
            location: table.to_string(),
            reason: "its folder 'metadata' has no metadata file".to_string(),
        })
    })
}

/// The only one. Two of one version are a commit and one that lost against it, and nothing here tells which is which.
fn choose(table: &str, found: impl Iterator<Item = (u64, String)>) -> Option<Result<String>> {
    let mut names: Vec<String> = found.map(|(_, name)| name).collect();
    names.sort();
    match names.as_slice() {
        [] => None,
        [name] => Some(Ok(format!("{table}/metadata/{name}"))),
        [first, second, ..] => Some(Err(CatalogError::NoTableAt {
            location: table.to_string(),
            reason: format!(
                "'{first}' and '{second}' in its folder 'metadata' are of the same version; name the metadata file to read"
            ),
        })),
    }
}

/// The metadata files of a table with their versions.
async fn listed(store: &dyn ObjectStore, table: &str) -> Result<Vec<(u64, String)>> {
    let folder = format!("{table}/metadata");
    let listed = store
        .list_with_delimiter(Some(&location_to_path(&folder)?))
        .await
        .map_err(|error| CatalogError::NoTableAt {
            location: table.to_string(),
            reason: format!(
                "it has no '{VERSION_HINT}', and the folder 'metadata' cannot be listed ({}); name the metadata file to read",
                root_cause(&error)
            ),
        })?;
    let names = listed
        .objects
        .iter()
        .filter_map(|object| object.location.filename());
    Ok(names
        .filter(|name| name.ends_with(".metadata.json") || name.ends_with(".metadata.json.gz"))
        .filter_map(|name| Some((version(name)?, name.to_string())))
        .collect())
}

#[cfg(test)]
mod tests {
    use object_store::PutPayload;
    use object_store::memory::InMemory;

    use super::*;

    async fn current(files: &[(&str, &str)]) -> Result<String, String> {
        let store = InMemory::new();
        for (name, text) in files {
            let path = location_to_path(&format!("s3://b/t/metadata/{name}")).unwrap();
            let payload = PutPayload::from(text.as_bytes().to_vec());
            store.put(&path, payload).await.unwrap();
        }
        let file = metadata_file(&store, "s3://b/t/").await;
        file.map(|file| file.trim_start_matches("s3://b/t/metadata/").to_string())
            .map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn the_current_file_is_told_by_the_hint_or_by_the_highest_version() {
        for (files, expected) in [
            (
                vec![("v1.metadata.json", ""), ("v2.metadata.json", "")],
                "v2.metadata.json",
            ),
            // As numbers, not as texts.
            (
                vec![("v9.metadata.json", ""), ("v10.metadata.json", "")],
                "v10.metadata.json",
            ),
            (
                vec![
                    ("00009-a.metadata.json", ""),
                    ("00010-b.gz.metadata.json", ""),
                    ("snap-99.avro", ""),
                ],
                "00010-b.gz.metadata.json",
            ),
            (
                vec![
                    ("version-hint.text", "1\n"),
                    ("v1.metadata.json", ""),
                    ("v3.metadata.json", ""),
                ],
                "v1.metadata.json",
            ),
            // The hint is behind.
            (
                vec![
                    ("version-hint.text", "1"),
                    ("v1.metadata.json", ""),
                    ("v2.gz.metadata.json", ""),
                    ("v3.metadata.json", ""),
                ],
                "v3.metadata.json",
            ),
            (
                vec![
                    ("version-hint.text", "1"),
                    ("00001-x.metadata.json", ""),
                    ("00002-y.metadata.json", ""),
                ],
                "00001-x.metadata.json",
            ),
            (
                vec![
                    ("version-hint.text", "00001-x"),
                    ("00001-x.metadata.json", ""),
                ],
                "00001-x.metadata.json",
            ),
            (
                vec![("version-hint.text", "v4.metadata.json")],
                "v4.metadata.json",
            ),
        ] {
            assert_eq!(current(&files).await.as_deref(), Ok(expected), "{files:?}");
        }
    }

    #[tokio::test]
    async fn what_tells_no_current_file_is_refused() {
        for (files, reason) in [
            (vec![], "there is no Iceberg table at 's3://b/t'"),
            (
                vec![("version-hint.text", "3")],
                "'s3://b/t/metadata/v3.metadata.json' is missing",
            ),
            (
                vec![("version-hint.text", "../../x")],
                "'s3://b/t/metadata/version-hint.text' is corrupt",
            ),
            (
                vec![("version-hint.text", "")],
                "'s3://b/t/metadata/version-hint.text' is corrupt",
            ),
            (
                vec![("00002-a.metadata.json", ""), ("00002-b.metadata.json", "")],
                "'00002-a.metadata.json' and '00002-b.metadata.json'",
            ),
        ] {
            let error = current(&files).await.unwrap_err();
            assert!(error.contains(reason), "{files:?}: {error}");
        }
    }
}
