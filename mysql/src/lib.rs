//! The MySQL front end of the coordinator: it only translates.
//!
//! [`serve`] takes each connection through its two phases. In the connection phase it greets the
//! client and checks its password (`caching_sha2_password`, `mysql_native_password`); in the command
//! phase it hands SQL to a [`tarn_coordinator::Session`] and sends back what comes out.
//!
//! - `wire/`: the protocol as bytes, pure functions of values.
//! - `rows/`: Arrow batches as MySQL rows, text and binary; the type mapping.
//! - `channel`, `connection`, `result`: the socket, the commands, the stream of rows with its
//!   backpressure.

// The future of a connection holds those of planning a query, which are nested deeper than rustc's default.
#![recursion_limit = "256"]

mod channel;
mod connection;
mod error;
mod login;
mod parameters;
mod prepared;
mod result;
mod rows;
mod server;
mod settings;
mod wildcard;
mod wire;

pub use error::MysqlError;
pub use server::serve;
pub use settings::MysqlSettings;
