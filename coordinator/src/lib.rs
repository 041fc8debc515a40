//! Sessions, the one statement path, the process list, errors and dispatch.
//!
//! A protocol authenticates a client with [`Engine::users`], opens a [`Session`] and hands it SQL;
//! it gets a [`StatementOutcome`] back, rows as a stream of Arrow batches or a count. Everything
//! else a client can notice is decided here, once for all protocols: what an error is called
//! ([`ErrorKind`]), what `SHOW` and `information_schema` say, how long a query may run, and what
//! `KILL` stops.

mod engine;
mod error;
mod outcome;
mod session;
mod settings;
mod statement;
mod users;

pub use engine::{Engine, EngineParts};
pub use error::{Codes, Error, ErrorKind, Result};
pub use outcome::{Done, ResultRows, StatementOutcome};
pub use session::{Login, Prepared, Protocol, Session};
pub use settings::{EngineSettings, QuerySettings, ShownSetting};
pub use statement::Statement;
pub use users::{User, Users};

/// A query's id: a UUID of version 7, so ids sort by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueryId(pub uuid::Uuid);
