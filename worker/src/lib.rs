//! Executes plan fragments; owns the memory pool, the spill files and the DataCache.
//!
//! ```text
//!            gRPC (tasks)                         HTTP (health, metrics, status)
//!                 │                                          │
//!   SessionFactory: functions, codec, channels          http.rs reads
//!                 │  a session per task                      │
//!   Queries: one memory pool, one progress per query ────────┤
//!                 │                                          │
//!   RuntimeEnv (memory pool, spill dir), ScanStores ── DataCache
//!                                                            │
//!       control thread: Reporter ──heartbeat every few seconds──▶ coordinator
//! ```
//!
//! A worker is used by the coordinators that hear its heartbeats. On shutdown it drains: it says so, finishes its
//! tasks, says good-bye and leaves.

mod control;
mod error;
mod filter_transport;
mod http;
mod janitor;
mod panic_guard;
mod queries;
mod report;
mod rewrite;
mod run;
mod runtime;
mod session;
mod settings;

pub use error::WorkerError;
pub use run::{Listeners, run, serve};
pub use runtime::runtime_env;
pub use settings::WorkerSettings;
