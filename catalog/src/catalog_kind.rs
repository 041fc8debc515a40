//! From a catalog's properties to the catalog.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::backend::Backend;
use crate::catalog::Catalog;
use crate::error::{CatalogError, Result};
use crate::metadata_cache::MetadataCache;
use crate::rest::{RestBackend, RestConfig};
use crate::secrets::shown_value;
use crate::sqlite::{SqliteBackend, SqliteConfig};
use crate::storage::Stores;

/// A kind of catalog, and what it needs to be opened.
#[derive(Debug)]
pub(crate) enum Kind {
    Sqlite(SqliteConfig),
    Rest(RestConfig),
}

/// The types of catalogs, for errors.
const KNOWN: &str = "'rest' and 'sql' are known";

/// Tells what the properties describe. Nothing is contacted.
pub(crate) fn parse(name: &str, properties: &BTreeMap<String, String>) -> Result<Kind> {
    let invalid = |reason: String| CatalogError::InvalidCatalog {
        catalog: name.to_string(),
        reason,
    };
    let uri = properties
        .get("uri")
        .map(|uri| uri.trim())
        .filter(|uri| !uri.is_empty());
    let told = properties.get("type").map(|kind| kind.to_ascii_lowercase());
    let kind = match (told, uri) {
        (Some(kind), _) => kind,
        (None, Some(uri)) => kind_of_uri(uri)
            .map(str::to_string)
            .ok_or_else(|| invalid(format!("property 'type' is missing; {KNOWN}")))?,
        (None, None) => {
            return Err(invalid(format!(
                "properties 'type' and 'uri' are missing; of the types, {KNOWN}"
            )));
        }
    };
    let needed = || uri.ok_or_else(|| invalid("property 'uri' is missing".to_string()));
    match kind.as_str() {
        "rest" => Ok(Kind::Rest(RestConfig::new(name, needed()?, properties)?)),
        "sql" | "sqlite" => {
            let uri = needed()?;
            let file = sqlite_file(uri).ok_or_else(|| {
                let shown = shown_value("uri", uri);
                invalid(format!(
                    "a SQL catalog is a SQLite file here ('sqlite:///path/to/file'), not '{shown}'"
                ))
            })?;
            Ok(Kind::Sqlite(SqliteConfig {
                catalog: name.to_string(),
                catalog_in_file: properties
                    .get("catalog-name")
                    .cloned()
                    .unwrap_or_else(|| name.to_string()),
                file,
                warehouse: properties.get("warehouse").cloned(),
                create: uri
                    .split_once('?')
                    .is_some_and(|(_, query)| query.split('&').any(|part| part == "mode=rwc")),
                own: false,
                properties: properties.clone(),
            }))
        }
        other => Err(invalid(format!(
            "catalogs of type '{other}' are not supported; {KNOWN}"
        ))),
    }
}

/// The type that a URI tells by its scheme.
fn kind_of_uri(uri: &str) -> Option<&'static str> {
    let (scheme, _) = uri.split_once(':')?;
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => Some("rest"),
        "sqlite" => Some("sql"),
        _ => None,
    }
}

/// The file of `sqlite:///a/b`, `sqlite:////a/b` (as SQLAlchemy writes absolute paths) or `sqlite:a/b`.
fn sqlite_file(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("sqlite:")?;
    let rest = rest.split_once('?').map_or(rest, |(path, _)| path);
    let path = if rest.starts_with("//") {
        format!("/{}", rest.trim_start_matches('/'))
    } else {
        rest.to_string()
    };
    (path.len() > 1).then(|| PathBuf::from(path))
}

/// Makes the catalog. Nothing is contacted.
pub(crate) fn open(
    name: &str,
    properties: BTreeMap<String, String>,
    kind: Kind,
    stores: &Arc<Stores>,
    cache: &Arc<MetadataCache>,
) -> Catalog {
    // A catalog that is dropped and made again may lead elsewhere, so the name alone would not do.
    let scope: Arc<str> = format!("{name}#{}", uuid::Uuid::new_v4()).into();
    let backend: Box<dyn Backend> = match kind {
        Kind::Sqlite(config) => Box::new(SqliteBackend::new(
            config,
            stores.clone(),
            cache.clone(),
            scope.clone(),
        )),
        Kind::Rest(config) => Box::new(RestBackend::new(config, stores.clone())),
    };
    Catalog::new(
        name.to_string(),
        properties,
        backend,
        stores.clone(),
        cache.clone(),
        scope,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(pairs: &[(&str, &str)]) -> Result<Kind> {
        parse(
            "c",
            &pairs
                .iter()
                .map(|(k, v)| (k.to_string(), v.to_string()))
                .collect(),
        )
    }

    #[test]
    fn the_kind_is_told_from_type_or_uri() {
        assert!(matches!(
            parsed(&[("uri", "http://localhost:8181")]),
            Ok(Kind::Rest(_))
        ));
        assert!(matches!(
            parsed(&[("type", "REST"), ("uri", "https://x/api")]),
            Ok(Kind::Rest(_))
        ));
        for (uri, file) in [
            ("sqlite:///a/b.db", "/a/b.db"),
            ("sqlite:////a/b.db", "/a/b.db"),
            ("sqlite:b.db?mode=rwc", "b.db"),
        ] {
            match parsed(&[("type", "sql"), ("uri", uri)]) {
                Ok(Kind::Sqlite(config)) => assert_eq!(config.file, PathBuf::from(file)),
                other => panic!("{uri}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        for (pairs, reason) in [
            (vec![("type", "rest")], "property 'uri' is missing"),
            (
                vec![("type", "nessie")],
                "catalogs of type 'nessie' are not supported; 'rest' and 'sql' are known",
            ),
            (vec![], "'rest' and 'sql' are known"),
            (
                vec![("uri", "thrift://h:9083")],
                "property 'type' is missing",
            ),
            (
                vec![("type", "hive"), ("uri", "thrift://h:9083")],
                "type 'hive'",
            ),
            (
                vec![("type", "sql"), ("uri", "postgresql://u:secret@h/db")],
                "a SQL catalog is a SQLite file here",
            ),
            (vec![("type", "rest"), ("uri", "localhost:8181")], "uri"),
        ] {
            let error = parsed(&pairs).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
