//! A SQL catalog in PostgreSQL.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use url::Url;

use crate::storage::StoreSettings;

/// Parameters of an address that are understood. Others are refused, since a slip of the pen may hold a secret that the
/// driver would write to the log.
const PARAMETERS: [&str; 14] = [
    "user",
    "password",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "application_name",
    "options",
    "statement-cache-capacity",
];

/// Parameters of other drivers that change nothing here.
const WITHOUT_MEANING: [&str; 2] = ["connect_timeout", "ssl"];

/// A PostgreSQL server, and how it is reached.
#[derive(Clone)]
pub(crate) struct PostgresServer {
    options: PgConnectOptions,
    /// The address as it may be shown.
    shown: String,
    /// For a connection.
    connect_timeout: Duration,
    /// For a statement and its answer.
    pub(super) statement_timeout: Duration,
}

impl fmt::Debug for PostgresServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresServer").field(&self.shown).finish()
    }
}

impl PostgresServer {
    /// The server of `postgresql://user:password@host:port/database`, also with SQLAlchemy's driver
    /// (`postgresql+psycopg2://`) or JDBC's prefix (`jdbc:postgresql://`). `None` for another kind of address.
    pub(crate) fn of_uri(
        uri: &str,
        properties: &BTreeMap<String, String>,
        settings: &StoreSettings,
    ) -> Option<Result<Self, String>> {
        let uri = uri.strip_prefix("jdbc:").unwrap_or(uri);
        let (scheme, rest) = uri.split_once("://")?;
        let (dialect, _driver) = scheme.split_once('+').unwrap_or((scheme, ""));
        matches!(dialect, "postgresql" | "postgres")
            .then(|| Self::parse(&format!("postgresql://{rest}"), properties, settings))
    }

    /// The reason of a failure never has the address, which may have a password.
    fn parse(
        uri: &str,
        properties: &BTreeMap<String, String>,
        settings: &StoreSettings,
    ) -> Result<Self, String> {
        let invalid =
            |reason: String| format!("the address of the PostgreSQL server is not valid: {reason}");
        let mut url = Url::parse(uri).map_err(|error| invalid(error.to_string()))?;
        let parameters: Vec<(String, String)> = url
            .query_pairs()
            .map(|(key, value)| (key.into_owned(), value.into_owned()))
            .filter(|(key, _)| !WITHOUT_MEANING.contains(&key.as_str()))
            .collect();
        let known = |key: &str| PARAMETERS.contains(&key) || key.starts_with("options[");
        if let Some((key, _)) = parameters.iter().find(|(key, _)| !known(key)) {
            return Err(invalid(format!("its parameter '{key}' is not known")));
        }
        url.set_query(None);
        if !parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(&parameters);
        }
        let mut options = PgConnectOptions::from_str(url.as_str())
            .map_err(|error| invalid(crate::storage::root_cause(&error)))?
            .disable_statement_logging();
        let property = |keys: [&str; 2]| keys.iter().find_map(|key| properties.get(*key));
        if let Some(user) = property(["user", "jdbc.user"]) {
            options = options.username(user);
        }
        if let Some(password) = property(["password", "jdbc.password"]) {
            options = options.password(password);
        }
        if options.get_application_name().is_none() {
            options = options.application_name("tarn");
        }
        let shown = format!(
            "postgresql://{}@{}:{}/{}",
            options.get_username(),
            options.get_host(),
            options.get_port(),
            options.get_database().unwrap_or(options.get_username())
        );
        Ok(Self {
            options,
            shown,
            connect_timeout: settings.connect_timeout,
            statement_timeout: settings.request_timeout,
        })
    }

    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    pub(super) async fn open(&self) -> Result<PgPool, sqlx::Error> {
        // A pool that cannot connect says only that it waited; a connection says why.
        let connected = tokio::time::timeout(self.connect_timeout, self.options.connect());
        let connection = connected.await.map_err(|_| sqlx::Error::PoolTimedOut)??;
        sqlx::Connection::close(connection).await?;
        let pool = PgPoolOptions::new()
            .max_connections(8)
            .acquire_timeout(self.statement_timeout)
            .idle_timeout(Duration::from_secs(300));
        Ok(pool.connect_lazy_with(self.options.clone()))
    }

    pub(super) fn waited(&self) -> Duration {
        self.connect_timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(uri: &str, properties: &[(&str, &str)]) -> Option<Result<PostgresServer, String>> {
        let properties = properties
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        PostgresServer::of_uri(uri, &properties, &StoreSettings::default())
    }

    #[test]
    fn addresses_of_every_engine_are_read() {
        for (uri, properties, shown) in [
            (
                "postgresql://me:p%40w@db.example:5433/lake",
                vec![],
                "postgresql://me@db.example:5433/lake",
            ),
            (
                "postgres://me@db/lake",
                vec![("password", "pw")],
                "postgresql://me@db:5432/lake",
            ),
            (
                "postgresql+psycopg2://me:pw@db/lake",
                vec![],
                "postgresql://me@db:5432/lake",
            ),
            (
                "jdbc:postgresql://db:5432/lake",
                vec![("jdbc.user", "me"), ("jdbc.password", "pw")],
                "postgresql://me@db:5432/lake",
            ),
            (
                "jdbc:postgresql://db/lake?user=me&password=pw&connect_timeout=3",
                vec![],
                "postgresql://me@db:5432/lake",
            ),
        ] {
            let server = parsed(uri, &properties).unwrap().unwrap();
            assert_eq!(server.shown, shown, "{uri}");
            assert!(!format!("{server:?}").contains("pw"), "{server:?}");
        }
        assert!(parsed("mysql://db/lake", &[]).is_none());
        assert!(parsed("sqlite:/a", &[]).is_none());
    }

    #[test]
    fn what_is_wrong_with_an_address_is_said_without_its_password() {
        for (uri, reason) in [
            ("postgresql://me:hush/x@db:5432/lake", "invalid port"),
            ("postgresql://me:hush@db:port/lake", "invalid port"),
            (
                "postgresql://db/lake?user=me&pasword=hush",
                "parameter 'pasword' is not known",
            ),
            ("postgresql://me:hush@db/lake?sslmode=maybe", "ssl_mode"),
        ] {
            let error = parsed(uri, &[]).unwrap().unwrap_err();
            assert!(
                error.contains(reason) && !error.contains("hush"),
                "{uri}: {error}"
            );
        }
    }
}
