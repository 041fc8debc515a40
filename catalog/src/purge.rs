//! Deleting the files of a table that was dropped.

use std::path::{Path, PathBuf};

use futures::StreamExt;
use object_store::ObjectStoreExt;

use crate::error::{CatalogError, Result};
use crate::pinned::PinnedTable;
use crate::storage::{TableStorage, location_to_path, store_error};

/// The fewest path segments, scheme and bucket included, that a location needs before everything below it is deleted.
const MIN_DEPTH: usize = 3;

/// Deletes everything below the table's location. Files that metadata names elsewhere (of tables that were imported,
/// or share a place) are left alone.
pub(crate) async fn purge_table(table: &PinnedTable) -> Result<()> {
    let location = table.metadata().location();
    let path = location_to_path(location)?;
    if path.parts_count() < MIN_DEPTH {
        return Err(CatalogError::InvalidLocation {
            location: location.to_string(),
            reason: "it is a whole store or bucket, and is not emptied".to_string(),
        });
    }
    let store = &table.storage().store;
    let mut listed = store.list(Some(&path));
    while let Some(meta) = listed.next().await {
        let meta = meta.map_err(|e| store_error("list", location, &e))?;
        match store.delete(&meta.location).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            // The others would fail alike, each after all its retries.
            Err(error) => return Err(store_error("delete below", location, &error)),
        }
    }
    drop(listed);
    remove_empty_directories(table.storage(), location).await;
    Ok(())
}

/// Local files leave directories behind, which object stores do not have. Those that are not empty are kept.
pub(crate) async fn remove_empty_directories(storage: &TableStorage, location: &str) {
    if !storage.descriptor.is_local() {
        return;
    }
    let Ok(path) = location_to_path(location) else {
        return;
    };
    let Some(directory) = path
        .as_ref()
        .strip_prefix("file/")
        .map(|rest| PathBuf::from(format!("/{rest}")))
    else {
        return;
    };
    // What cannot be removed harms nobody.
    let _ = tokio::task::spawn_blocking(move || remove_empty(&directory)).await;
}

fn remove_empty(directory: &Path) {
    let Ok(children) = std::fs::read_dir(directory) else {
        return;
    };
    for child in children.flatten() {
        if child.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty(&child.path());
        }
    }
    let _ = std::fs::remove_dir(directory);
}
