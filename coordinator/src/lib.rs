//! Sessions, the one statement path, the process list, errors and dispatch.
//!
//! A protocol authenticates a client with [`Engine::users`], opens a [`Session`] and hands it SQL;
//! it gets a [`StatementOutcome`] back, rows as a stream of Arrow batches or a count. Everything
//! else a client can notice is decided here, once for all protocols: what an error is called
//! ([`ErrorKind`]), what `SHOW` and `information_schema` say, how long a query may run, and what
//! `KILL` stops.
//!
//! ```text
//!   Session ─▶ statement/ ─▶ planning ─▶ delivery ─▶ ResultRows
//!     │          (families)   (pinned)    (bounded, retried, stoppable)
//!     └─ processes ◀── every statement ──▶ finish ─▶ audit, profile
//! ```

mod batch_bytes;
mod delivery;
mod dispatch;
mod engine;
mod error;
mod error_conversion;
mod execution;
mod finish;
mod outcome;
mod planning;
mod processes;
mod profile;
mod retry;
mod rows;
mod session;
mod settings;
mod shuffle_limit;
mod statement;
mod system;
mod type_names;
mod users;
mod variables;

pub use dispatch::Dispatch;
pub use engine::{Engine, EngineParts};
pub use error::{Codes, Error, ErrorKind, Result};
pub use outcome::{Done, Refusal, ResultRows, StatementOutcome};
pub use processes::{Connection, ProcessList, QueryState, RunningStatement, StopReason};
pub use profile::{Profile, Profiles};
pub use session::{Login, Protocol, Session};
pub use settings::{EngineSettings, QuerySettings, ShownSetting};
pub use statement::Prepared;
pub use system::Progress;
pub use tarn_planner::statement::{ParsedStatement, Statement};
pub use tarn_planner::{QueryId, QueryProgress};
pub use type_names::MysqlType;
pub use users::{User, Users};
pub use variables::{SERVER_VERSION, VERSION_COMMENT};
