use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use datafusion::common::ScalarValue;
use parking_lot::Mutex;
use tarn_coordinator::{Done, Prepared, ResultRows};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::Status;
use uuid::Uuid;

/// Prepared statements of one session.
const PREPARED_LIMIT: usize = 1024;
/// Tickets of one session that nobody has fetched yet; the oldest gives way.
const TICKET_LIMIT: usize = 256;

/// An opaque name for a prepared statement or a ticket, good in the session that made it.
pub(crate) type Handle = Bytes;

/// The prepared statements, tickets and running queries of one session.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    prepared: Mutex<HashMap<Handle, PreparedStatement>>,
    tickets: Mutex<VecDeque<(Handle, Ticket)>>,
    running: Arc<Mutex<HashMap<Handle, CancellationToken>>>,
}

/// A prepared statement and the values that are bound to it, row by row.
#[derive(Debug, Clone)]
pub(crate) struct PreparedStatement {
    pub prepared: Arc<Prepared>,
    pub rows: Arc<Vec<Vec<ScalarValue>>>,
}

/// What a `DoGet` will give.
#[derive(Debug)]
pub(crate) enum Ticket {
    /// A query that runs when it is fetched.
    Query {
        prepared: Arc<Prepared>,
        values: Vec<ScalarValue>,
    },
    /// Rows of a statement that runs already.
    Rows(ResultRows),
    /// The outcome of a statement without rows.
    Done(Done),
}

impl Ticket {
    /// The result's columns, as the engine has them.
    pub fn schema(&self) -> Option<SchemaRef> {
        match self {
            Self::Query { prepared, .. } => prepared.schema.clone(),
            Self::Rows(rows) => Some(Arc::clone(&rows.schema)),
            Self::Done(_) => None,
        }
    }
}

/// A query that runs under a handle. Dropping it takes the query off the list.
#[derive(Debug)]
pub(crate) struct Running {
    pub token: CancellationToken,
    handle: Handle,
    list: Arc<Mutex<HashMap<Handle, CancellationToken>>>,
    _guard: DropGuard,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.list.lock().remove(&self.handle);
    }
}

impl Statements {
    pub fn add_prepared(&self, prepared: Prepared) -> Result<Handle, Status> {
        let mut all = self.prepared.lock();
        if all.len() >= PREPARED_LIMIT {
            return Err(Status::resource_exhausted(format!(
                "the session has {PREPARED_LIMIT} prepared statements; close some"
            )));
        }
        let handle = new_handle();
        let statement = PreparedStatement {
            prepared: Arc::new(prepared),
            rows: Arc::default(),
        };
        all.insert(handle.clone(), statement);
        Ok(handle)
    }

    pub fn prepared(&self, handle: &Handle) -> Result<PreparedStatement, Status> {
        self.prepared
            .lock()
            .get(handle)
            .cloned()
            .ok_or_else(|| Status::not_found("the prepared statement is not known in this session"))
    }

    pub fn bind(&self, handle: &Handle, rows: Vec<Vec<ScalarValue>>) -> Result<(), Status> {
        match self.prepared.lock().get_mut(handle) {
            Some(statement) => {
                statement.rows = Arc::new(rows);
                Ok(())
            }
            None => Err(Status::not_found(
                "the prepared statement is not known in this session",
            )),
        }
    }

    pub fn close_prepared(&self, handle: &Handle) {
        self.prepared.lock().remove(handle);
    }

    /// Keeps what a `DoGet` will give under a new handle.
    pub fn add_ticket(&self, ticket: Ticket) -> Handle {
        let handle = new_handle();
        let mut tickets = self.tickets.lock();
        let dropped = if tickets.len() >= TICKET_LIMIT {
            tickets.pop_front()
        } else {
            None
        };
        tickets.push_back((handle.clone(), ticket));
        drop(tickets);
        drop(dropped);
        handle
    }

    /// Takes what a handle stands for: a ticket is good for one fetch.
    pub fn take_ticket(&self, handle: &Handle) -> Result<Ticket, Status> {
        let mut tickets = self.tickets.lock();
        let found = tickets.iter().position(|(other, _)| other == handle);
        found
            .and_then(|at| tickets.remove(at))
            .map(|(_, ticket)| ticket)
            .ok_or_else(|| {
                Status::not_found(
                    "the ticket is not known in this session: it was used before, or is too old",
                )
            })
    }

    /// A query begins to run under `handle`.
    pub fn run(&self, handle: Handle) -> Running {
        let token = CancellationToken::new();
        self.running.lock().insert(handle.clone(), token.clone());
        Running {
            _guard: token.clone().drop_guard(),
            token,
            handle,
            list: Arc::clone(&self.running),
        }
    }

    /// Cancels the query of a handle, whether it runs or waits to be fetched. False if there is none.
    pub fn cancel(&self, handle: &Handle) -> bool {
        let running = self.running.lock().get(handle).cloned();
        if let Some(token) = running {
            token.cancel();
            return true;
        }
        self.take_ticket(handle).is_ok()
    }

    pub fn is_running(&self) -> bool {
        !self.running.lock().is_empty()
    }
}

fn new_handle() -> Handle {
    Bytes::copy_from_slice(Uuid::new_v4().as_bytes())
}
