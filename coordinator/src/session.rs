//! One client's connection.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::outcome::StatementOutcome;
use crate::statement::Statement;

/// How a client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    Mysql,
    FlightSql,
    /// The engine runs inside the client, as in `tarn sql` without `--host`.
    Embedded,
}

/// Who opens a session; the protocol has already checked the password.
#[derive(Debug, Clone)]
pub struct Login {
    pub user: String,
    /// The client's address, empty for an embedded engine.
    pub client: String,
    pub protocol: Protocol,
    /// `database` or `catalog.database`.
    pub database: Option<String>,
}

/// One client's connection: its current database, variables and running statement.
///
/// Share it in an `Arc`. It runs one statement at a time, as a MySQL connection does; a second one
/// may start while the rows of the first are still being read.
#[derive(Debug)]
pub struct Session {
    id: u32,
    engine: Arc<Engine>,
    closed: CancellationToken,
}

/// A statement with placeholders, planned once.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub sql: String,
    /// One per placeholder, in order; `None` where the type could not be inferred.
    pub parameter_types: Vec<Option<DataType>>,
    /// The result's columns; `None` for a statement without a result set.
    pub schema: Option<SchemaRef>,
}

impl Session {
    pub(crate) fn new(id: u32, engine: Arc<Engine>) -> Self {
        Self { id, engine, closed: CancellationToken::new() }
    }
    /// The connection's id, as `CONNECTION_ID()` and `SHOW PROCESSLIST` give it.
    pub fn id(&self) -> u32 {
        self.id
    }
    /// The engine that runs this session's statements.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }
    /// The user that logged in.
    pub fn user(&self) -> &str {
        "root"
    }
    /// Name of the current catalog.
    pub fn current_catalog(&self) -> String {
        "lake".into()
    }
    /// Name of the current database.
    pub fn current_database(&self) -> String {
        "default".into()
    }
    /// A variable's value as text, e.g. `max_allowed_packet`.
    pub fn variable(&self, _name: &str) -> Option<String> {
        None
    }
    /// Whether `autocommit` is on (a status flag of MySQL's OK packet).
    pub fn autocommit(&self) -> bool {
        true
    }
    /// Parses a text of one or more statements.
    ///
    /// # Errors
    /// A syntax error that points at the place.
    pub fn parse(&self, _sql: &str) -> Result<Vec<Statement>> {
        Err(not_yet())
    }
    /// Runs one statement; `text` is what the client sent, for the process list and the audit.
    ///
    /// # Errors
    /// Whatever stopped the statement before its first row.
    pub async fn execute(&self, _statement: Statement, _text: &str) -> Result<StatementOutcome> {
        Err(not_yet())
    }
    /// Parses and runs exactly one statement.
    ///
    /// # Errors
    /// As [`Session::execute`], and when the text holds more than one statement.
    pub async fn execute_sql(&self, _sql: &str) -> Result<StatementOutcome> {
        Err(not_yet())
    }
    /// Plans a statement that may hold `?` placeholders.
    ///
    /// # Errors
    /// As for running it.
    pub async fn prepare(&self, _sql: &str) -> Result<Prepared> {
        Err(not_yet())
    }
    /// Runs a prepared statement with a value for each placeholder.
    ///
    /// # Errors
    /// As [`Session::execute`], and when the number of values is wrong.
    pub async fn execute_prepared(
        &self,
        _prepared: &Prepared,
        _params: Vec<ScalarValue>,
    ) -> Result<StatementOutcome> {
        Err(not_yet())
    }
    /// Makes `database` or `catalog.database` the current one.
    ///
    /// # Errors
    /// There is no such database.
    pub async fn use_database(&self, _name: &str) -> Result<()> {
        Err(not_yet())
    }
    /// Stops the statement that is running, as `KILL QUERY` does.
    pub fn cancel_running(&self) {}
    /// Ends the session and what it runs.
    pub fn close(&self) {
        self.closed.cancel();
    }
    /// Cancelled when the session is closed, e.g. by `KILL`: the server then hangs up.
    pub fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }
}

fn not_yet() -> Error {
    Error::new(ErrorKind::Unsupported, "statements cannot be run yet")
}
