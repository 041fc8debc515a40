//! Where a SQL catalog is, and what its database's errors mean.

use std::collections::BTreeMap;
use std::fmt;

use super::database::Database;
use super::postgres::PostgresServer;
use super::sqlite::{BUSY_TIMEOUT, CANNOT_OPEN, NOT_A_DATABASE, SqliteFile};
use crate::error::CatalogError;
use crate::secrets::Masked;

/// Where a SQL catalog is.
#[derive(Clone)]
pub(crate) struct SqlConfig {
    /// The catalog's name in Tarn.
    pub(crate) catalog: String,
    /// The catalog's name in the database, which may hold several.
    pub(crate) catalog_in_database: String,
    pub(crate) place: SqlPlace,
    pub(crate) warehouse: Option<String>,
    /// The catalog's properties, among them its storage's.
    pub(crate) properties: BTreeMap<String, String>,
}

/// The database of a SQL catalog.
#[derive(Debug, Clone)]
pub(crate) enum SqlPlace {
    Sqlite(SqliteFile),
    Postgres(Box<PostgresServer>),
}

impl fmt::Debug for SqlConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlConfig")
            .field("catalog", &self.catalog)
            .field("place", &self.place)
            .field("properties", &Masked(&self.properties))
            .finish_non_exhaustive()
    }
}

/// The database, open.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) database: Database,
    /// Whether tables are told from views.
    has_type: bool,
}

impl Connection {
    pub(super) async fn open(place: &SqlPlace) -> Result<Self, sqlx::Error> {
        let database = match place {
            SqlPlace::Sqlite(file) => Database::Sqlite(file.open().await?),
            SqlPlace::Postgres(server) => Database::Postgres {
                pool: server.open().await?,
                timeout: server.statement_timeout,
            },
        };
        database.make_tables().await?;
        let has_type = database.has_type().await?;
        Ok(Self { database, has_type })
    }

    /// The condition that leaves views out.
    pub(super) fn only_tables(&self) -> &'static str {
        if self.has_type {
            " AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)"
        } else {
            ""
        }
    }

    /// What an INSERT of a table says of its type: column and value.
    pub(super) fn table_type(&self) -> (&'static str, &'static str) {
        if self.has_type {
            (", iceberg_type", ", 'TABLE'")
        } else {
            ("", "")
        }
    }
}

impl SqlConfig {
    fn shown_place(&self) -> String {
        match &self.place {
            SqlPlace::Sqlite(file) => file.file.display().to_string(),
            SqlPlace::Postgres(server) => server.shown().to_string(),
        }
    }

    /// The database's error as ours, with the catalog's name and place.
    pub(super) fn failed(&self, error: sqlx::Error) -> CatalogError {
        let unreachable = |reason: String| CatalogError::Unreachable {
            catalog: self.catalog.clone(),
            uri: self.shown_place(),
            reason,
        };
        match (&error, &self.place) {
            (sqlx::Error::Database(database), SqlPlace::Sqlite(_)) => {
                match database.code().as_deref() {
                    Some(NOT_A_DATABASE) => CatalogError::Corrupt {
                        what: "catalog database",
                        file: self.shown_place(),
                        reason: database.message().to_string(),
                    },
                    Some(CANNOT_OPEN) => unreachable(format!(
                        "{} ('?mode=rwc' after its uri makes a new one)",
                        database.message()
                    )),
                    _ => unreachable(database.message().to_string()),
                }
            }
            (sqlx::Error::Database(database), _) => unreachable(database.message().to_string()),
            (sqlx::Error::PoolTimedOut, SqlPlace::Sqlite(_)) => unreachable(format!(
                "all connections were busy for {} s",
                BUSY_TIMEOUT.as_secs()
            )),
            (sqlx::Error::PoolTimedOut, SqlPlace::Postgres(server)) => {
                let waited = server.waited().max(server.statement_timeout);
                unreachable(format!("no answer within {} s", waited.as_secs_f64()))
            }
            (other, _) => unreachable(other.to_string()),
        }
    }
}
