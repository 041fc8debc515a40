//! The connection to a SQLite file, and the tables in it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use sqlx::Row;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use crate::error::CatalogError;
use crate::secrets::Masked;

/// How long a statement waits for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// SQLite's result codes.
const CANNOT_OPEN: &str = "14";
const NOT_A_DATABASE: &str = "26";

/// Where a SQLite catalog is.
#[derive(Clone)]
pub(crate) struct SqliteConfig {
    /// The catalog's name in Tarn.
    pub(crate) catalog: String,
    /// The catalog's name in the file, which may hold several.
    pub(crate) catalog_in_file: String,
    pub(crate) file: PathBuf,
    pub(crate) warehouse: Option<String>,
    /// Whether to make the file if it is not there.
    pub(crate) create: bool,
    /// Whether to keep a write-ahead log beside it. Only for a file that is Tarn's own.
    pub(crate) own: bool,
    /// The catalog's properties, among them its storage's.
    pub(crate) properties: BTreeMap<String, String>,
}

impl fmt::Debug for SqliteConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteConfig")
            .field("catalog", &self.catalog)
            .field("file", &self.file)
            .field("properties", &Masked(&self.properties))
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) pool: SqlitePool,
    /// Older files have no column `iceberg_type`, which tells tables from views.
    pub(crate) has_type: bool,
}

impl Connection {
    /// The condition that leaves views out.
    pub(crate) fn only_tables(&self) -> &'static str {
        if self.has_type {
            " AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)"
        } else {
            ""
        }
    }

    pub(crate) async fn open(config: &SqliteConfig) -> Result<Self, sqlx::Error> {
        let mut options = SqliteConnectOptions::new()
            .filename(&config.file)
            .create_if_missing(config.create)
            .busy_timeout(BUSY_TIMEOUT);
        if config.own {
            options = options
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full);
        }
        let pool = SqlitePoolOptions::new()
            .max_connections(8)
            .acquire_timeout(BUSY_TIMEOUT)
            .connect_with(options)
            .await?;
        for statement in [
            "CREATE TABLE IF NOT EXISTS iceberg_tables (
                catalog_name VARCHAR(255) NOT NULL,
                table_namespace VARCHAR(255) NOT NULL,
                table_name VARCHAR(255) NOT NULL,
                metadata_location VARCHAR(1000),
                previous_metadata_location VARCHAR(1000),
                iceberg_type VARCHAR(5),
                PRIMARY KEY (catalog_name, table_namespace, table_name))",
            "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (
                catalog_name VARCHAR(255) NOT NULL,
                namespace VARCHAR(255) NOT NULL,
                property_key VARCHAR(255) NOT NULL,
                property_value VARCHAR(1000),
                PRIMARY KEY (catalog_name, namespace, property_key))",
        ] {
            sqlx::query(statement).execute(&pool).await?;
        }
        let columns = sqlx::query("SELECT name FROM pragma_table_info('iceberg_tables')")
            .fetch_all(&pool)
            .await?;
        let mut has_type = false;
        for column in columns {
            has_type |= column
                .try_get::<String, _>(0)?
                .eq_ignore_ascii_case("iceberg_type");
        }
        Ok(Connection { pool, has_type })
    }
}

impl SqliteConfig {
    /// SQLite's error as ours, with the catalog's name and file.
    pub(crate) fn failed(&self, error: sqlx::Error) -> CatalogError {
        let (catalog, uri) = (self.catalog.clone(), self.file.display().to_string());
        match &error {
            sqlx::Error::Database(database)
                if database.code().as_deref() == Some(NOT_A_DATABASE) =>
            {
                CatalogError::Corrupt {
                    what: "catalog database",
                    file: uri,
                    reason: database.message().to_string(),
                }
            }
            sqlx::Error::Database(database) if database.code().as_deref() == Some(CANNOT_OPEN) => {
                CatalogError::Unreachable {
                    catalog,
                    uri,
                    reason: format!(
                        "{} ('?mode=rwc' after its uri makes a new one)",
                        database.message()
                    ),
                }
            }
            sqlx::Error::Database(database) => CatalogError::Unreachable {
                catalog,
                uri,
                reason: database.message().to_string(),
            },
            sqlx::Error::PoolTimedOut => CatalogError::Unreachable {
                catalog,
                uri,
                reason: format!("all connections were busy for {} s", BUSY_TIMEOUT.as_secs()),
            },
            other => CatalogError::Unreachable {
                catalog,
                uri,
                reason: other.to_string(),
            },
        }
    }
}
