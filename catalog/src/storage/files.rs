//! Whole files: read, write, delete, with errors that name them.

use bytes::Bytes;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions};

use super::location_to_path;
use crate::error::{CatalogError, Result};

/// The largest metadata file, manifest list or manifest that is read, in bytes, unpacked or not. They are held in
/// memory as a whole; a file past this is not what it claims to be.
pub(crate) const MAX_METADATA_FILE_BYTES: u64 = 1 << 30;

/// Reads a file that metadata names. `what` tells what it should be, such as "manifest list".
pub(crate) async fn read_file(
    store: &dyn ObjectStore,
    what: &'static str,
    location: &str,
) -> Result<Bytes> {
    let path = location_to_path(location)?;
    let failed = |error| match error {
        object_store::Error::NotFound { .. } => CatalogError::MissingFile {
            what,
            file: location.to_string(),
        },
        error => store_error("read", location, &error),
    };
    let found = store
        .get_opts(&path, GetOptions::default())
        .await
        .map_err(failed)?;
    if found.meta.size > MAX_METADATA_FILE_BYTES {
        return Err(CatalogError::Corrupt {
            what,
            file: location.to_string(),
            reason: format!(
                "it is {} bytes long, and {MAX_METADATA_FILE_BYTES} is the most that is read",
                found.meta.size
            ),
        });
    }
    found.bytes().await.map_err(failed)
}

/// Writes a file that must not be there yet.
pub(crate) async fn write_new_file(
    store: &dyn ObjectStore,
    location: &str,
    bytes: Bytes,
) -> Result<()> {
    let path = location_to_path(location)?;
    let create = PutOptions {
        mode: PutMode::Create,
        ..Default::default()
    };
    let written = match store.put_opts(&path, bytes.clone().into(), create).await {
        // Not every store knows conditional writes; names of metadata files are unique without them.
        Err(
            object_store::Error::NotImplemented { .. } | object_store::Error::NotSupported { .. },
        ) => store.put(&path, bytes.into()).await,
        result => result,
    };
    written
        .map(|_| ())
        .map_err(|error| store_error("write", location, &error))
}

/// Deletes files, going on after failures, which are logged: what is left is an orphan that harms no reader.
pub(crate) async fn delete_files(
    store: &dyn ObjectStore,
    locations: impl IntoIterator<Item = String>,
) {
    for location in locations {
        let Ok(path) = location_to_path(&location) else {
            continue;
        };
        match store.delete(&path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => tracing::warn!(
                location,
                error = root_cause(&error),
                "could not delete a file; it is an orphan now"
            ),
        }
    }
}

/// A store's error as ours.
pub(crate) fn store_error(
    action: &'static str,
    location: &str,
    error: &object_store::Error,
) -> CatalogError {
    CatalogError::Store {
        action,
        location: location.to_string(),
        reason: root_cause(error),
    }
}

/// The message of the innermost error, with the outermost kind where that says more.
pub(crate) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut messages: Vec<String> = Vec::new();
    let mut current = Some(error);
    while let Some(error) = current {
        let message = error.to_string();
        // Wrappers often repeat what they wrap.
        if !messages.iter().any(|known| known.contains(&message)) {
            messages.push(message);
        }
        current = error.source();
    }
    without_signatures(&messages.join(": "))
}

/// The message without the signatures of addresses that are signed: `…&sig=…`, `…&X-Amz-Signature=…`. object_store shows some.
fn without_signatures(message: &str) -> String {
    let mut shown = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, signature)) = ["sig=", "Signature="]
        .iter()
        .filter_map(|name| rest.find(name).map(|at| at + name.len()))
        .min()
        .map(|at| rest.split_at(at))
    {
        let ends = |c: char| c == '&' || c.is_whitespace() || "\"')".contains(c);
        let end = signature.find(ends).unwrap_or(signature.len());
        shown.push_str(before);
        shown.push_str("***");
        rest = &signature[end..];
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::without_signatures;

    #[test]
    fn signatures_are_not_shown() {
        for (message, shown) in [
            ("no signature", "no signature"),
            (
                "POST http://h/box?comp=batch&se=2026&sig=hush%3D in 3 ms (?sig=hush)",
                "POST http://h/box?comp=batch&se=2026&sig=*** in 3 ms (?sig=***)",
            ),
            ("?sig=hush&se=1", "?sig=***&se=1"),
            (
                "GET http://h/k?X-Amz-Signature=hush\nx",
                "GET http://h/k?X-Amz-Signature=***\nx",
            ),
        ] {
            assert_eq!(without_signatures(message), shown);
        }
    }
}
