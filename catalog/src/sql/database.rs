//! Statements to a database that is SQLite or PostgreSQL. Both take `$1` for a parameter, and all values of a catalog are
//! texts.

use std::future::Future;
use std::time::Duration;

use sqlx::postgres::PgPool;
use sqlx::sqlite::SqlitePool;
use sqlx::{Column, Row};

/// A row of an answer.
pub(super) type Values = Vec<Option<String>>;

/// Namespaces and tables, as the SQL catalogs of Iceberg Java and PyIceberg make them.
const TABLES: [&str; 2] = [
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
];

/// The connections to a catalog's database.
#[derive(Debug)]
pub(super) enum Database {
    Sqlite(SqlitePool),
    Postgres {
        pool: PgPool,
        /// For one statement and its answer. SQLite has its own.
        timeout: Duration,
    },
}

/// A statement that failed.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) error: sqlx::Error,
    /// It was sent to a server that may execute it all the same, now or later.
    pub(super) may_have_run: bool,
}

/// A statement with its values, for whichever of the two executes it.
macro_rules! query {
    ($statement:expr, $values:expr) => {{
        let mut query = sqlx::query($statement);
        for value in $values {
            query = query.bind(*value);
        }
        query
    }};
}

impl Database {
    /// The rows that a SELECT of texts gives.
    pub(super) async fn rows(
        &self,
        statement: &str,
        values: &[&str],
    ) -> Result<Vec<Values>, sqlx::Error> {
        match self {
            Self::Sqlite(pool) => {
                let rows = query!(statement, values).fetch_all(pool).await?;
                rows.iter().map(texts).collect()
            }
            Self::Postgres { pool, timeout } => {
                let rows = within(*timeout, query!(statement, values).fetch_all(pool)).await?;
                rows.iter().map(texts).collect()
            }
        }
    }

    /// How many rows a statement changed.
    pub(super) async fn execute(&self, statement: &str, values: &[&str]) -> Result<u64, Failed> {
        match self {
            Self::Sqlite(pool) => {
                let done = query!(statement, values).execute(pool).await;
                done.map(|done| done.rows_affected())
                    .map_err(|error| Failed {
                        error,
                        may_have_run: false,
                    })
            }
            Self::Postgres { pool, timeout } => {
                let connected = within(*timeout, pool.acquire()).await;
                let mut connection = connected.map_err(|error| Failed {
                    error,
                    may_have_run: false,
                })?;
                let execution = query!(statement, values).execute(&mut *connection);
                let done = within(*timeout, execution).await;
                done.map(|done| done.rows_affected())
                    .map_err(|error| Failed {
                        may_have_run: !matches!(error, sqlx::Error::Database(_)),
                        error,
                    })
            }
        }
    }

    /// Executes a statement with each of several sets of values; if one changes no row, nothing is changed, and the answer
    /// is `false`.
    pub(super) async fn execute_all(
        &self,
        statement: &str,
        values: &[Vec<&str>],
    ) -> Result<bool, sqlx::Error> {
        match self {
            Self::Sqlite(pool) => {
                // A transaction that starts with a read could not be turned into a writing one while another process
                // writes.
                let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
                for values in values {
                    let done = query!(statement, values).execute(&mut *transaction).await?;
                    if done.rows_affected() == 0 {
                        return Ok(false);
                    }
                }
                transaction.commit().await?;
            }
            Self::Postgres { pool, timeout } => {
                let all = async {
                    let mut transaction = pool.begin().await?;
                    for values in values {
                        let done = query!(statement, values).execute(&mut *transaction).await?;
                        if done.rows_affected() == 0 {
                            return Ok(false);
                        }
                    }
                    transaction.commit().await?;
                    Ok(true)
                };
                return within(*timeout, all).await;
            }
        }
        Ok(true)
    }

    /// Makes the catalog's tables if they are not there.
    ///
    /// PostgreSQL is asked first whether they are: who may only read them may not make any, not even those that are there.
    pub(super) async fn make_tables(&self) -> Result<(), sqlx::Error> {
        if let Self::Postgres { .. } = self
            && self.has_tables().await?
        {
            return Ok(());
        }
        for statement in TABLES {
            if let Err(failed) = self.execute(statement, &[]).await {
                // Somebody else made them just now.
                let made = matches!(self, Self::Postgres { .. }) && self.has_tables().await?;
                return if made { Ok(()) } else { Err(failed.error) };
            }
        }
        Ok(())
    }

    async fn has_tables(&self) -> Result<bool, sqlx::Error> {
        let found = self
            .rows(
                "SELECT 'there' WHERE to_regclass('iceberg_tables') IS NOT NULL
                 AND to_regclass('iceberg_namespace_properties') IS NOT NULL",
                &[],
            )
            .await?;
        Ok(!found.is_empty())
    }

    /// Whether the table of tables has the column `iceberg_type`, which tells tables from views. Older ones do not.
    pub(super) async fn has_type(&self) -> Result<bool, sqlx::Error> {
        let columns = match self {
            Self::Sqlite(_) => "SELECT name FROM pragma_table_info('iceberg_tables')",
            Self::Postgres { .. } => {
                "SELECT CAST(attname AS VARCHAR) FROM pg_attribute
                 WHERE attrelid = to_regclass('iceberg_tables') AND attnum > 0 AND NOT attisdropped"
            }
        };
        let columns = self.rows(columns, &[]).await?;
        Ok(columns
            .iter()
            .flatten()
            .flatten()
            .any(|name| name.eq_ignore_ascii_case("iceberg_type")))
    }
}

async fn within<T>(
    timeout: Duration,
    statement: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    match tokio::time::timeout(timeout, statement).await {
        Ok(answer) => answer,
        Err(_) => Err(sqlx::Error::PoolTimedOut),
    }
}

fn texts<'a, R>(row: &'a R) -> Result<Values, sqlx::Error>
where
    R: Row,
    usize: sqlx::ColumnIndex<R>,
    Option<String>: sqlx::Decode<'a, R::Database> + sqlx::Type<R::Database>,
{
    row.columns()
        .iter()
        .map(|column| row.try_get(column.ordinal()))
        .collect()
}
