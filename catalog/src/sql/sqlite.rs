//! A SQL catalog in a SQLite file.

use std::path::PathBuf;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

/// How long a statement waits for another process that writes.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// SQLite's result codes.
pub(super) const CANNOT_OPEN: &str = "14";
pub(super) const NOT_A_DATABASE: &str = "26";

/// A SQLite file, and how it is opened.
#[derive(Debug, Clone)]
pub(crate) struct SqliteFile {
    pub(crate) file: PathBuf,
    /// Whether to make the file if it is not there.
    pub(crate) create: bool,
    /// Whether to keep a write-ahead log beside it. Only for a file that is Tarn's own.
    pub(crate) own: bool,
}

impl SqliteFile {
    /// The file of `sqlite:///a/b`, `sqlite:////a/b` (as SQLAlchemy writes absolute paths) or `sqlite:a/b`.
    pub(crate) fn of_uri(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix("sqlite:")?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path = if path.starts_with("//") {
            format!("/{}", path.trim_start_matches('/'))
        } else {
            path.to_string()
        };
        (path.len() > 1).then(|| Self {
            file: PathBuf::from(path),
            create: query.split('&').any(|part| part == "mode=rwc"),
            own: false,
        })
    }

    pub(super) async fn open(&self) -> Result<SqlitePool, sqlx::Error> {
        let mut options = SqliteConnectOptions::new()
            .filename(&self.file)
            .create_if_missing(self.create)
            .busy_timeout(BUSY_TIMEOUT);
        if self.own {
            options = options
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full);
        }
        SqlitePoolOptions::new()
            .max_connections(8)
            .acquire_timeout(BUSY_TIMEOUT)
            .connect_with(options)
            .await
    }
}
