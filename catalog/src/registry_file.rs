//! The file that remembers catalogs made by SQL: `catalogs.json` in the data directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{CatalogError, Result};
use crate::registry::local_error;

/// Catalogs by name, each with its properties.
pub(crate) type SavedCatalogs = BTreeMap<String, BTreeMap<String, String>>;

/// A JSON file that only its owner can read (it holds secrets) and that is never seen half written.
#[derive(Debug)]
pub(crate) struct RegistryFile {
    path: PathBuf,
}

impl RegistryFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) async fn read(&self) -> Result<SavedCatalogs> {
        let text = match tokio::fs::read(&self.path).await {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(SavedCatalogs::new());
            }
            Err(error) => return Err(local_error("cannot read", &self.path, &error)),
        };
        serde_json::from_slice(&text).map_err(|error| CatalogError::Corrupt {
            what: "list of catalogs",
            file: self.path.display().to_string(),
            reason: error.to_string(),
        })
    }

    pub(crate) async fn write(&self, catalogs: &SavedCatalogs) -> Result<()> {
        let text = serde_json::to_vec_pretty(catalogs).map_err(|e| {
            CatalogError::Internal(format!("the list of catalogs cannot be written: {e}"))
        })?;
        let path = self.path.clone();
        let written = tokio::task::spawn_blocking(move || {
            replace(&path, &text).map_err(|error| local_error("cannot write", &path, &error))
        });
        written
            .await
            .map_err(|_| CatalogError::Internal("the runtime is shutting down".to_string()))?
    }
}

/// Writes beside the file, then renames: a reader sees the old text or the new, even after a crash.
fn replace(path: &Path, text: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    let beside = path.with_extension(format!("json.{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let mut file = options.open(&beside)?;
    let written = file.write_all(text).and_then(|()| file.sync_all());
    drop(file);
    written
        .and_then(|()| std::fs::rename(&beside, path))
        .inspect_err(|_| {
            let _ = std::fs::remove_file(&beside);
        })
}
