//! The process list: who is connected, what runs, and how to stop it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use datafusion::execution::memory_pool::MemoryPool;
use parking_lot::{Mutex, RwLock};
use tarn_audit::ScanReport;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, ErrorKind, Result};
use crate::outcome::Refusal;
use crate::session::Protocol;
use crate::users::Users;
use crate::{QueryId, QueryProgress};

/// Where a statement is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum QueryState {
    /// Pinning tables, planning, optimising.
    Planning = 0,
    /// Waiting for a slot.
    Queued = 1,
    Running = 2,
    /// Collecting metrics, committing, writing the audit.
    Finishing = 3,
}

impl QueryState {
    /// The word that `SHOW PROCESSLIST` shows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Planning => "PLANNING",
            Self::Queued => "QUEUED",
            Self::Running => "RUNNING",
            Self::Finishing => "FINISHING",
        }
    }

    fn from_u8(value: u8) -> Self {
        match value {
            0 => Self::Planning,
            1 => Self::Queued,
            2 => Self::Running,
            _ => Self::Finishing,
        }
    }
}

/// Why a statement was stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum StopReason {
    /// `KILL`, or the client asked to cancel.
    Killed = 1,
    TimedOut = 2,
    /// The client went away.
    Disconnected = 3,
    ShuttingDown = 4,
}

/// One statement from its arrival until its last row is delivered.
#[derive(Debug)]
pub struct RunningStatement {
    pub id: QueryId,
    pub connection: u32,
    pub protocol: Protocol,
    pub user: String,
    pub client: String,
    pub catalog: String,
    pub database: String,
    pub kind: &'static str,
    /// What the client sent, cut as the audit cuts it.
    pub text: String,
    pub started: SystemTime,
    pub started_at: Instant,
    /// Splits, rows and bytes that scans in this process report.
    pub progress: Arc<QueryProgress>,
    /// Cancelled to stop the statement; [`RunningStatement::stop`] says why first.
    pub token: CancellationToken,
    /// What the variables gave as the longest time it may take.
    pub timeout: Option<Duration>,
    state: AtomicU8,
    stop_reason: AtomicU8,
    execution_started: OnceLock<Instant>,
    memory: Mutex<Option<Arc<dyn MemoryPool>>>,
    pub(crate) rows: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) rows_affected: AtomicU64,
    pub(crate) retries: AtomicU32,
    pub(crate) workers: AtomicU32,
    pub(crate) scans: Mutex<Vec<ScanReport>>,
    pub(crate) recorded: AtomicBool,
    pub(crate) refusal: Refusal,
}

/// What a new statement is told about itself.
#[derive(Debug)]
pub(crate) struct NewStatement {
    pub connection: u32,
    pub protocol: Protocol,
    pub user: String,
    pub client: String,
    pub catalog: String,
    pub database: String,
    pub kind: &'static str,
    pub text: String,
    pub timeout: Option<Duration>,
    /// The session's own token: closing the session stops the statement.
    pub session: CancellationToken,
}

impl RunningStatement {
    pub(crate) fn new(new: NewStatement) -> Arc<Self> {
        Arc::new(Self {
            id: QueryId::new(),
            connection: new.connection,
            protocol: new.protocol,
            user: new.user,
            client: new.client,
            catalog: new.catalog,
            database: new.database,
            kind: new.kind,
            text: new.text,
            started: SystemTime::now(),
            started_at: Instant::now(),
            progress: Arc::new(QueryProgress::default()),
            token: new.session.child_token(),
            timeout: new.timeout,
            state: AtomicU8::new(QueryState::Planning as u8),
            stop_reason: AtomicU8::new(0),
            execution_started: OnceLock::new(),
            memory: Mutex::new(None),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            rows_affected: AtomicU64::new(0),
            retries: AtomicU32::new(0),
            workers: AtomicU32::new(0),
            scans: Mutex::new(Vec::new()),
            recorded: AtomicBool::new(false),
            refusal: Refusal::default(),
        })
    }

    /// Where the statement is in its life.
    pub fn state(&self) -> QueryState {
        QueryState::from_u8(self.state.load(Ordering::Relaxed))
    }

    pub(crate) fn set_state(&self, state: QueryState) {
        if state == QueryState::Running {
            let _ = self.execution_started.set(Instant::now());
        }
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// When its planning was over, if it is.
    pub(crate) fn execution_started(&self) -> Option<Instant> {
        self.execution_started.get().copied()
    }

    /// Stops it everywhere. The first reason is the one the client is told.
    pub fn stop(&self, reason: StopReason) {
        let _ = self.stop_reason.compare_exchange(
            0,
            reason as u8,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        self.token.cancel();
    }

    /// Why it was stopped, if it was.
    pub fn stop_reason(&self) -> Option<StopReason> {
        match self.stop_reason.load(Ordering::Relaxed) {
            1 => Some(StopReason::Killed),
            2 => Some(StopReason::TimedOut),
            3 => Some(StopReason::Disconnected),
            4 => Some(StopReason::ShuttingDown),
            // The session's own token was cancelled: the client hung up.
            _ if self.token.is_cancelled() => Some(StopReason::Disconnected),
            _ => None,
        }
    }

    /// The error of a statement that was stopped.
    pub(crate) fn stop_error(&self) -> Error {
        match self.stop_reason() {
            Some(StopReason::TimedOut) => {
                let seconds = self.timeout.unwrap_or_default().as_secs_f64();
                Error::new(
                    ErrorKind::TimedOut,
                    format!(
                        "Query execution was interrupted, maximum statement execution time exceeded: it ran longer than {seconds} s (see query_timeout)"
                    ),
                )
            }
            Some(StopReason::ShuttingDown) => {
                Error::new(ErrorKind::ShuttingDown, "Server shutdown in progress")
            }
            _ => Error::new(ErrorKind::Killed, "Query execution was interrupted"),
        }
    }

    pub(crate) fn set_memory(&self, pool: Arc<dyn MemoryPool>) {
        *self.memory.lock() = Some(pool);
    }

    pub(crate) fn release_memory(&self) {
        *self.memory.lock() = None;
    }

    /// Memory that its operators hold in this process, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let pool = self.memory.lock().clone();
        pool.map_or(0, |pool| pool.reserved() as u64)
    }

    /// How long it has been here.
    pub fn elapsed(&self) -> Duration {
        self.started_at.elapsed()
    }

    /// Milliseconds since the Unix epoch when it came.
    pub fn start_ms(&self) -> i64 {
        self.started
            .duration_since(UNIX_EPOCH)
            .ok()
            .and_then(|since| i64::try_from(since.as_millis()).ok())
            .unwrap_or(0)
    }

    /// Rows delivered to the client so far.
    pub fn rows_returned(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Arrow bytes delivered to the client so far.
    pub fn bytes_returned(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// One open connection.
#[derive(Debug)]
pub struct Connection {
    pub id: u32,
    pub user: String,
    pub client: String,
    pub protocol: Protocol,
    pub connected: SystemTime,
    /// Cancelled to close the connection.
    pub token: CancellationToken,
    place: Mutex<(String, String)>,
    idle_since: Mutex<Instant>,
    statements: Mutex<Vec<Weak<RunningStatement>>>,
}

impl Connection {
    pub(crate) fn new(
        id: u32,
        user: String,
        client: String,
        protocol: Protocol,
        place: (String, String),
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            user,
            client,
            protocol,
            connected: SystemTime::now(),
            token: CancellationToken::new(),
            place: Mutex::new(place),
            idle_since: Mutex::new(Instant::now()),
            statements: Mutex::new(Vec::new()),
        })
    }

    /// The current catalog and database.
    pub fn place(&self) -> (String, String) {
        self.place.lock().clone()
    }

    pub(crate) fn move_to(&self, catalog: String, database: String) {
        *self.place.lock() = (catalog, database);
    }

    /// What the connection runs; the newest last.
    pub fn statements(&self) -> Vec<Arc<RunningStatement>> {
        self.statements
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }

    /// How long nothing has run.
    pub fn idle(&self) -> Duration {
        self.idle_since.lock().elapsed()
    }

    fn add(&self, statement: &Arc<RunningStatement>) {
        self.statements.lock().push(Arc::downgrade(statement));
    }

    fn remove(&self, id: QueryId) {
        self.statements
            .lock()
            .retain(|other| other.upgrade().is_some_and(|other| other.id != id));
        *self.idle_since.lock() = Instant::now();
    }
}

/// Every connection and every statement that is running.
#[derive(Debug, Default)]
pub struct ProcessList {
    connections: RwLock<BTreeMap<u32, Arc<Connection>>>,
    statements: RwLock<BTreeMap<QueryId, Arc<RunningStatement>>>,
    started: AtomicU64,
}

impl ProcessList {
    pub(crate) fn open(&self, connection: Arc<Connection>) {
        self.connections.write().insert(connection.id, connection);
    }

    /// Takes a connection off the list, unless its id already is another session's: a MySQL client
    /// that resets its connection keeps the id.
    pub(crate) fn close(&self, connection: &Arc<Connection>) {
        let mut connections = self.connections.write();
        let listed = connections.get(&connection.id);
        if listed.is_some_and(|listed| Arc::ptr_eq(listed, connection)) {
            connections.remove(&connection.id);
        }
    }

    pub(crate) fn begin(&self, statement: &Arc<RunningStatement>) {
        self.started.fetch_add(1, Ordering::Relaxed);
        self.statements
            .write()
            .insert(statement.id, Arc::clone(statement));
        if let Some(connection) = self.connections.read().get(&statement.connection) {
            connection.add(statement);
        }
    }

    pub(crate) fn end(&self, statement: &RunningStatement) {
        self.statements.write().remove(&statement.id);
        if let Some(connection) = self.connections.read().get(&statement.connection) {
            connection.remove(statement.id);
        }
    }

    /// Open connections, by id.
    pub fn connections(&self) -> Vec<Arc<Connection>> {
        self.connections.read().values().cloned().collect()
    }

    /// How many connections are open.
    pub fn connection_count(&self) -> usize {
        self.connections.read().len()
    }

    /// Statements that run now, oldest first.
    pub fn statements(&self) -> Vec<Arc<RunningStatement>> {
        self.statements.read().values().cloned().collect()
    }

    /// The statement with this id.
    pub fn statement(&self, id: QueryId) -> Option<Arc<RunningStatement>> {
        self.statements.read().get(&id).cloned()
    }

    /// Statements since the start, finished ones included.
    pub fn started_count(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    /// `KILL id` and `KILL QUERY id`: a user's own connections, or any for root.
    ///
    /// # Errors
    /// There is no such connection, or it is another user's.
    pub fn kill_connection(&self, user: &str, id: u64, query_only: bool) -> Result<()> {
        let connection = u32::try_from(id)
            .ok()
            .and_then(|id| self.connections.read().get(&id).cloned())
            .ok_or_else(|| no_such_thread(id))?;
        may_kill(user, &connection.user, &id.to_string())?;
        for statement in connection.statements() {
            statement.stop(StopReason::Killed);
        }
        if !query_only {
            connection.token.cancel();
        }
        Ok(())
    }

    /// `KILL 'query id'`.
    ///
    /// # Errors
    /// Nothing with this id runs, or it is another user's.
    pub fn kill_query(&self, user: &str, id: &str) -> Result<()> {
        let statement = id
            .trim()
            .parse()
            .ok()
            .and_then(|id| self.statement(id))
            .ok_or_else(|| no_such_thread(format!("'{id}'")))?;
        may_kill(user, &statement.user, id)?;
        statement.stop(StopReason::Killed);
        Ok(())
    }

    pub(crate) fn stop_all(&self, reason: StopReason) {
        for statement in self.statements() {
            statement.stop(reason);
        }
        for connection in self.connections() {
            connection.token.cancel();
        }
    }
}

fn no_such_thread(id: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::NoSuchThread, format!("Unknown thread id: {id}"))
}

fn may_kill(user: &str, owner: &str, id: &str) -> Result<()> {
    if user == owner || user == Users::ROOT {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::NotAllowed,
        format!("You are not owner of thread {id}: only '{owner}' and root may kill it"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(list: &ProcessList, connection: &Arc<Connection>) -> Arc<RunningStatement> {
        let statement = RunningStatement::new(NewStatement {
            connection: connection.id,
            protocol: Protocol::Embedded,
            user: connection.user.clone(),
            client: String::new(),
            catalog: "lake".into(),
            database: "default".into(),
            kind: "SELECT",
            text: "SELECT 1".into(),
            timeout: None,
            session: connection.token.clone(),
        });
        list.begin(&statement);
        statement
    }

    fn connection(list: &ProcessList, id: u32, user: &str) -> Arc<Connection> {
        let connection = Connection::new(
            id,
            user.into(),
            String::new(),
            Protocol::Embedded,
            ("lake".into(), "default".into()),
        );
        list.open(Arc::clone(&connection));
        connection
    }

    #[test]
    fn kill_query_stops_the_statement_and_leaves_the_connection() {
        let list = ProcessList::default();
        let ann = connection(&list, 7, "ann");
        let running = statement(&list, &ann);
        list.kill_connection("ann", 7, true).expect("her own");
        assert_eq!(running.stop_reason(), Some(StopReason::Killed));
        assert_eq!(running.stop_error().kind, ErrorKind::Killed);
        assert!(!ann.token.is_cancelled());
        list.end(&running);
        assert!(list.statements().is_empty() && ann.statements().is_empty());
    }

    #[test]
    fn kill_closes_the_connection_and_what_it_runs() {
        let list = ProcessList::default();
        let ann = connection(&list, 7, "ann");
        let running = statement(&list, &ann);
        list.kill_connection("root", 7, false).expect("root may");
        assert!(ann.token.is_cancelled() && running.token.is_cancelled());
        assert_eq!(running.stop_error().kind, ErrorKind::Killed);
    }

    #[test]
    fn a_user_may_not_kill_what_is_not_theirs() {
        let list = ProcessList::default();
        let ann = connection(&list, 7, "ann");
        let running = statement(&list, &ann);
        let error = list.kill_connection("bob", 7, true).expect_err("not his");
        assert_eq!(error.kind, ErrorKind::NotAllowed);
        let error = list
            .kill_query("bob", &running.id.to_string())
            .expect_err("not his");
        assert_eq!(error.kind, ErrorKind::NotAllowed);
        list.kill_query("root", &running.id.to_string())
            .expect("root may");
        assert!(running.token.is_cancelled());
        let error = list.kill_query("root", "nonsense").expect_err("no id");
        assert_eq!(error.mysql_code(), 1094);
    }

    #[test]
    fn closing_the_session_is_a_disconnect() {
        let list = ProcessList::default();
        let ann = connection(&list, 7, "ann");
        let running = statement(&list, &ann);
        ann.token.cancel();
        assert_eq!(running.stop_reason(), Some(StopReason::Disconnected));
    }
}
