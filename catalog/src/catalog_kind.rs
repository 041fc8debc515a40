//! From a catalog's properties to the catalog.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::backend::Backend;
use crate::catalog::Catalog;
use crate::error::{CatalogError, Result};
use crate::hive::{HiveBackend, HiveConfig};
use crate::metadata_cache::MetadataCache;
use crate::metadata_pointer::MetadataFiles;
use crate::rest::{RestBackend, RestConfig};
use crate::secrets::shown_value;
use crate::sql::{PostgresServer, SqlBackend, SqlConfig, SqlPlace, SqliteFile};
use crate::storage::{StoreSettings, Stores, aws_region};

/// A kind of catalog, and what it needs to be opened.
#[derive(Debug)]
pub(crate) enum Kind {
    Sql(Box<SqlConfig>),
    Rest(RestConfig),
    Hive(HiveConfig),
}

/// The types of catalogs, for errors.
const KNOWN: &str = "'rest', 'sql', 'hive' and 'glue' are known";

/// Tells what the properties describe. Nothing is contacted.
pub(crate) fn parse(
    name: &str,
    properties: &BTreeMap<String, String>,
    settings: &StoreSettings,
) -> Result<Kind> {
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
        "hive" => {
            let config = HiveConfig::new(name, needed()?, properties).map_err(invalid)?;
            Ok(Kind::Hive(config))
        }
        "glue" => {
            let (uri, properties) = glue(uri, properties).map_err(invalid)?;
            Ok(Kind::Rest(RestConfig::new(name, &uri, &properties)?))
        }
        "sql" | "jdbc" | "sqlite" | "postgresql" => {
            let uri = needed()?;
            let place = sql_place(uri, properties, settings).map_err(invalid)?;
            Ok(Kind::Sql(Box::new(SqlConfig {
                catalog: name.to_string(),
                catalog_in_database: properties
                    .get("catalog-name")
                    .cloned()
                    .unwrap_or_else(|| name.to_string()),
                place,
                warehouse: properties.get("warehouse").cloned(),
                properties: properties.clone(),
            })))
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
        "thrift" => Some("hive"),
        "sqlite" | "jdbc" | "postgresql" | "postgres" => Some("sql"),
        driver if driver.starts_with("postgresql+") => Some("sql"),
        _ => None,
    }
}

/// Glue's catalog as the REST catalog that it also is: address and properties.
fn glue(
    uri: Option<&str>,
    properties: &BTreeMap<String, String>,
) -> Result<(String, BTreeMap<String, String>), String> {
    let mut properties = properties.clone();
    let region = properties
        .get("rest.signing-region")
        .cloned()
        .or_else(|| aws_region(&properties))
        .ok_or("property 'client.region' is missing")?;
    let endpoint = properties.get("glue.endpoint").map(String::as_str);
    let uri = match (uri, endpoint) {
        (Some(uri), _) => uri.to_string(),
        (None, Some(endpoint)) => format!("{}/iceberg", endpoint.trim_end_matches('/')),
        (None, None) => format!("https://glue.{region}.amazonaws.com/iceberg"),
    };
    let mut fill = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            properties.entry(key.to_string()).or_insert(value);
        }
    };
    fill("rest.sigv4-enabled", Some("true".to_string()));
    fill("rest.signing-name", Some("glue".to_string()));
    fill("rest.signing-region", Some(region.clone()));
    // The tables are in S3 of the same region, unless said otherwise.
    fill("client.region", Some(region));
    let account = properties.get("glue.id").cloned();
    if let Some(account) = account {
        properties.entry("warehouse".to_string()).or_insert(account);
    }
    Ok((uri, properties))
}

/// The database of a SQL catalog, told by its URI.
fn sql_place(
    uri: &str,
    properties: &BTreeMap<String, String>,
    settings: &StoreSettings,
) -> Result<SqlPlace, String> {
    if let Some(server) = PostgresServer::of_uri(uri, properties, settings) {
        return server.map(|server| SqlPlace::Postgres(Box::new(server)));
    }
    let sqlite = uri.strip_prefix("jdbc:").unwrap_or(uri);
    SqliteFile::of_uri(sqlite)
        .map(SqlPlace::Sqlite)
        .ok_or_else(|| {
            let shown = shown_value("uri", uri);
            format!(
                "a SQL catalog is in SQLite ('sqlite:///path/to/file') or PostgreSQL \
                 ('postgresql://user:password@host/database'), not in '{shown}'"
            )
        })
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
    let files = || MetadataFiles::new(stores.clone(), cache.clone(), scope.clone());
    let backend: Box<dyn Backend> = match kind {
        Kind::Sql(config) => Box::new(SqlBackend::new(*config, files())),
        Kind::Hive(config) => {
            let settings = stores.settings().clone();
            Box::new(HiveBackend::new(config, settings, files()))
        }
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
    use std::path::Path;

    use super::*;

    fn parsed(pairs: &[(&str, &str)]) -> Result<Kind> {
        parse(
            "c",
            &pairs
                .iter()
                .map(|(k, v)| (k.to_string(), v.to_string()))
                .collect(),
            &StoreSettings::default(),
        )
    }

    #[test]
    fn the_kind_is_told_from_type_or_uri() {
        assert!(matches!(
            parsed(&[("uri", "http://localhost:8181")]),
            Ok(Kind::Rest(_))
        ));
        assert!(matches!(
            parsed(&[("uri", "thrift://h:9083")]),
            Ok(Kind::Hive(_))
        ));
        assert!(matches!(
            parsed(&[("type", "REST"), ("uri", "https://x/api")]),
            Ok(Kind::Rest(_))
        ));
        for (uri, file) in [
            ("sqlite:///a/b.db", "/a/b.db"),
            ("sqlite:////a/b.db", "/a/b.db"),
            ("sqlite:b.db?mode=rwc", "b.db"),
            ("jdbc:sqlite:/a/b.db", "/a/b.db"),
        ] {
            match parsed(&[("type", "sql"), ("uri", uri)]) {
                Ok(Kind::Sql(config)) => match config.place {
                    SqlPlace::Sqlite(found) => assert_eq!(found.file, Path::new(file)),
                    other => panic!("{uri}: {other:?}"),
                },
                other => panic!("{uri}: {other:?}"),
            }
        }
    }

    #[test]
    fn glue_is_a_rest_catalog_that_wants_signatures() {
        let plain = [
            ("type", "glue"),
            ("glue.region", "eu-west-1"),
            ("glue.id", "123456789012"),
        ];
        let properties = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let pairs = pairs
                .iter()
                .map(|(key, value)| (key.to_string(), value.to_string()));
            pairs.collect()
        };
        let (uri, filled) = glue(None, &properties(&plain)).unwrap();
        assert_eq!(uri, "https://glue.eu-west-1.amazonaws.com/iceberg");
        for (key, value) in [
            ("rest.sigv4-enabled", "true"),
            ("rest.signing-name", "glue"),
            ("rest.signing-region", "eu-west-1"),
            ("client.region", "eu-west-1"),
            ("warehouse", "123456789012"),
        ] {
            assert_eq!(filled[key], value, "{key}");
        }
        let own = [
            ("rest.signing-region", "r"),
            ("glue.endpoint", "http://localhost:1/"),
        ];
        assert_eq!(
            glue(None, &properties(&own)).unwrap().0,
            "http://localhost:1/iceberg"
        );
        assert!(matches!(parsed(&plain), Ok(Kind::Rest(_))));
    }

    #[test]
    fn a_sql_catalog_may_be_in_postgresql() {
        for uri in [
            "postgresql://u:secret@h/db",
            "postgresql+psycopg2://u:secret@h/db",
            "jdbc:postgresql://h/db?user=u&password=secret",
        ] {
            match parsed(&[("uri", uri)]) {
                Ok(Kind::Sql(config)) => {
                    assert!(matches!(config.place, SqlPlace::Postgres(_)), "{uri}");
                    let shown = format!("{config:?}");
                    assert!(!shown.contains("secret"), "{shown}");
                }
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
                "catalogs of type 'nessie' are not supported; 'rest', 'sql', 'hive' and 'glue' are known",
            ),
            (vec![], "'rest', 'sql', 'hive' and 'glue' are known"),
            (vec![("uri", "hdfs://h:9083")], "property 'type' is missing"),
            (
                vec![("type", "hive"), ("uri", "h:9083")],
                "the uri of a Hive Metastore",
            ),
            (
                vec![("type", "sql"), ("uri", "mysql://u:secret@h/db")],
                "a SQL catalog is in SQLite",
            ),
            (vec![("type", "rest"), ("uri", "localhost:8181")], "uri"),
        ] {
            let error = parsed(&pairs).unwrap_err().to_string();
            assert!(
                error.contains(reason) && !error.contains("secret"),
                "{error}"
            );
        }
    }
}
