//! What a long-running `tarn` process is made of: sockets, the engine, the log, signals.

mod engine;
mod error;
mod http;
mod listeners;
mod logging;
mod ready;
mod shutdown;

pub use engine::{Placement, start_engine};
pub use error::ServiceError;
pub use http::coordinator_router;
pub use listeners::{bind, bind_worker};
pub use logging::{init_logging, init_quiet_logging};
pub use ready::announce;
pub use shutdown::{shutdown_signal, with_stdin};
