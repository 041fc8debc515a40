//! Deleting the files of a table that was dropped.

use futures::StreamExt;
use object_store::ObjectStoreExt;

use crate::error::{CatalogError, Result};
use crate::pinned::PinnedTable;
use crate::storage::{location_to_path, store_error};

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
    let mut left = None;
    while let Some(meta) = listed.next().await {
        let meta = meta.map_err(|e| store_error("list", location, &e))?;
        match store.delete(&meta.location).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => left = Some(store_error("delete", meta.location.as_ref(), &error)),
        }
    }
    drop(listed);
    if table.storage().descriptor.is_local() {
        remove_empty_directories(path.as_ref().trim_start_matches("file")).await;
    }
    left.map_or(Ok(()), Err)
}

/// Local files leave directories behind, which object stores do not have. Those that are not empty are kept.
async fn remove_empty_directories(directory: &str) {
    let directory = std::path::PathBuf::from(directory);
    let removed = tokio::task::spawn_blocking(move || remove_empty(&directory));
    let _ = removed.await;
}

fn remove_empty(directory: &std::path::Path) {
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
