//! One client's connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use datafusion::common::ScalarValue;
use parking_lot::Mutex;
use tarn_audit::AuditRecord;
use tarn_catalog::{DEFAULT_CATALOG, DEFAULT_DATABASE};
use tarn_planner::statement::{
    ParsedStatement, SessionValue, Statement, masked, parse_statement, parse_statements,
};
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::finish::StatementGuard;
use crate::outcome::StatementOutcome;
use crate::planning::StatementContext;
use crate::processes::{Connection, NewStatement, RunningStatement, StopReason};
use crate::statement::{self, Prepared};
use crate::variables::Variables;

/// How a client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    Mysql,
    FlightSql,
    /// The engine runs inside the client, as in `tarn sql` without `--host`.
    Embedded,
}

impl Protocol {
    /// The name that the audit uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mysql => "mysql",
            Self::FlightSql => "flight_sql",
            Self::Embedded => "embedded",
        }
    }
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
/// Share it in an `Arc`. Statements may overlap: a second one may start while the rows of the
/// first are still being read. Dropping the last reference closes the session.
#[derive(Debug)]
pub struct Session {
    shared: Arc<SessionShared>,
    engine: Arc<Engine>,
}

/// What a session's statements share with it.
#[derive(Debug)]
pub(crate) struct SessionShared {
    pub connection: Arc<Connection>,
    pub state: Mutex<SessionState>,
}

/// What statements of a session may change.
#[derive(Debug)]
pub(crate) struct SessionState {
    pub variables: Arc<Variables>,
    pub user_variables: Arc<HashMap<String, SessionValue>>,
    /// The error of the last statement, for `SHOW WARNINGS` and `SHOW ERRORS`.
    pub last_error: Option<Error>,
}

impl Session {
    pub(crate) fn open(id: u32, engine: Arc<Engine>, login: Login) -> Self {
        let place = match login
            .database
            .as_deref()
            .and_then(|name| name.split_once('.'))
        {
            Some((catalog, database)) => (catalog.to_owned(), database.to_owned()),
            None => (
                DEFAULT_CATALOG.to_owned(),
                login
                    .database
                    .unwrap_or_else(|| DEFAULT_DATABASE.to_owned()),
            ),
        };
        let connection = Connection::new(id, login.user, login.client, login.protocol, place);
        engine.processes().open(Arc::clone(&connection));
        Self {
            shared: Arc::new(SessionShared {
                connection,
                state: Mutex::new(SessionState {
                    variables: engine.globals(),
                    user_variables: Arc::default(),
                    last_error: None,
                }),
            }),
            engine,
        }
    }

    /// The connection's id, as `CONNECTION_ID()` and `SHOW PROCESSLIST` give it.
    pub fn id(&self) -> u32 {
        self.shared.connection.id
    }

    /// The engine that runs this session's statements.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The user that logged in.
    pub fn user(&self) -> &str {
        &self.shared.connection.user
    }

    /// Name of the current catalog.
    pub fn current_catalog(&self) -> String {
        self.shared.connection.place().0
    }

    /// Name of the current database.
    pub fn current_database(&self) -> String {
        self.shared.connection.place().1
    }

    /// A variable's value as text, e.g. `max_allowed_packet`; `None` for NULL or no such variable.
    pub fn variable(&self, name: &str) -> Option<String> {
        let state = self.shared.state.lock();
        state
            .variables
            .text(&name.to_ascii_lowercase())
            .map(str::to_owned)
    }

    /// Whether `autocommit` is on (a status flag of MySQL's OK packet).
    pub fn autocommit(&self) -> bool {
        self.shared.state.lock().variables.is_on("autocommit")
    }

    /// What the session runs now, newest last: for progress bars.
    pub fn running(&self) -> Vec<Arc<RunningStatement>> {
        self.shared.connection.statements()
    }

    /// Parses a text of one or more statements. Texts that do not parse are audited here.
    ///
    /// # Errors
    /// A syntax error that points at the place.
    pub fn parse(&self, sql: &str) -> Result<Vec<ParsedStatement>> {
        parse_statements(sql).map_err(|error| self.invalid(sql, error.into()))
    }

    /// Runs one statement; `text` is what the client sent, for the process list and the audit.
    ///
    /// # Errors
    /// Whatever stopped the statement before its first row. Failures after that are the last item
    /// of the stream.
    pub async fn execute(&self, statement: Statement, text: &str) -> Result<StatementOutcome> {
        let (context, guard) = self.begin(statement.kind(), text, timeout_applies(&statement));
        let remembers = !matches!(
            statement,
            Statement::Show(
                tarn_planner::statement::Show::Warnings { .. }
                    | tarn_planner::statement::Show::Errors { .. }
            )
        );
        let result = statement::execute(context, statement, guard).await;
        if remembers {
            self.shared.state.lock().last_error = result.as_ref().err().cloned();
        }
        result
    }

    /// Parses and runs exactly one statement.
    ///
    /// # Errors
    /// As [`Session::execute`], and when the text does not hold exactly one statement.
    pub async fn execute_sql(&self, sql: &str) -> Result<StatementOutcome> {
        let parsed = parse_statement(sql).map_err(|error| self.invalid(sql, error.into()))?;
        self.execute(parsed.statement, &parsed.text).await
    }

    /// Parses and plans a statement that may hold `?` placeholders.
    ///
    /// # Errors
    /// As for running it: syntax, names and types are checked.
    pub async fn prepare(&self, sql: &str) -> Result<Prepared> {
        let parsed = parse_statement(sql).map_err(|error| self.invalid(sql, error.into()))?;
        let (context, guard) = self.begin(parsed.statement.kind(), sql, true);
        // The audit has a line per statement that ran: a statement that cannot even be prepared, and each execution.
        statement::prepare(&context, parsed)
            .await
            .inspect(|_| guard.forget())
            .inspect_err(|error| guard.finish(Err(error)))
    }

    /// Runs a prepared statement with a value for each placeholder.
    ///
    /// # Errors
    /// As [`Session::execute`], and when the number of values is wrong or a value does not fit the
    /// placeholder's type.
    pub async fn execute_prepared(
        &self,
        prepared: &Prepared,
        params: Vec<ScalarValue>,
    ) -> Result<StatementOutcome> {
        match statement::bind(prepared, params) {
            Ok(statement) => self.execute(statement, prepared.sql()).await,
            Err(error) => Err(self.failed(prepared.kind(), prepared.sql(), error)),
        }
    }

    /// Makes `database` or `catalog.database` the current one.
    ///
    /// # Errors
    /// There is no such database.
    pub async fn use_database(&self, name: &str) -> Result<()> {
        let (context, guard) = self.begin("USE", name, true);
        let result = statement::use_named(&context, name).await;
        guard.finish(result.as_ref().map(|_| ()));
        result
    }

    /// Stops the statements that are running, as `KILL QUERY` does.
    pub fn cancel_running(&self) {
        for statement in self.running() {
            statement.stop(StopReason::Killed);
        }
    }

    /// Ends the session and what it runs.
    pub fn close(&self) {
        self.shared.connection.token.cancel();
        self.engine.processes().close(&self.shared.connection);
    }

    /// Cancelled when the session is closed, e.g. by `KILL`: the server then hangs up.
    pub fn closed(&self) -> CancellationToken {
        self.shared.connection.token.clone()
    }

    /// Puts a statement into the process list.
    fn begin(
        &self,
        kind: &'static str,
        text: &str,
        timeout_applies: bool,
    ) -> (StatementContext, StatementGuard) {
        let connection = &self.shared.connection;
        let (variables, user_variables) = {
            let state = self.shared.state.lock();
            (
                Arc::clone(&state.variables),
                Arc::clone(&state.user_variables),
            )
        };
        let (catalog, database) = connection.place();
        let running = RunningStatement::new(NewStatement {
            connection: connection.id,
            protocol: connection.protocol,
            user: connection.user.clone(),
            client: connection.client.clone(),
            catalog: catalog.clone(),
            database: database.clone(),
            kind,
            text: AuditRecord::cut_statement(&masked(text)),
            timeout: timeout_applies.then(|| timeout(&variables, kind)).flatten(),
            session: connection.token.clone(),
        });
        let guard = StatementGuard::begin(Arc::clone(&self.engine), Arc::clone(&running));
        let context = StatementContext {
            engine: Arc::clone(&self.engine),
            session: Arc::clone(&self.shared),
            running,
            variables,
            user_variables,
            catalog,
            database,
        };
        (context, guard)
    }

    fn invalid(&self, sql: &str, error: Error) -> Error {
        self.failed("INVALID", sql, error)
    }

    /// Records a statement that failed before it could begin.
    fn failed(&self, kind: &'static str, sql: &str, error: Error) -> Error {
        let (_, guard) = self.begin(kind, sql, false);
        guard.finish(Err(&error));
        self.shared.state.lock().last_error = Some(error.clone());
        error
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

/// Statements about the session itself are never cut short by `query_timeout`.
fn timeout_applies(statement: &Statement) -> bool {
    !matches!(
        statement,
        Statement::Set(_) | Statement::Kill { .. } | Statement::Transaction(_)
    )
}

/// The shorter of `query_timeout` and, for a SELECT, MySQL's `max_execution_time`.
fn timeout(variables: &Variables, kind: &str) -> Option<Duration> {
    let limits = [
        Duration::from_secs(variables.number("query_timeout")),
        match kind {
            "SELECT" => Duration::from_millis(variables.number("max_execution_time")),
            _ => Duration::ZERO,
        },
    ];
    limits.into_iter().filter(|limit| !limit.is_zero()).min()
}
