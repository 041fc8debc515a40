//! The Arrow Flight SQL front end.
//!
//! It only translates: a call becomes SQL for a [`Session`](tarn_coordinator::Session) of the
//! coordinator or a look into its catalogs, and Arrow batches go back as they come.
//!
//! ```text
//!   GetFlightInfo(statement) ── plans it, answers with its columns and a ticket
//!   DoGet(ticket)            ── runs it; the client's pace rules the query's
//!   DoPut(update, params)    ── runs an update, binds parameters
//!   DoAction                 ── prepares, closes, cancels, sets session options
//! ```
//!
//! A statement without a result set is run by `GetFlightInfo` already: clients that send DDL as a
//! query may begin the next statement before they fetch its (single, `affected_rows`) row.

mod browse;
mod connection;
mod front;
mod keys;
mod login;
mod outgoing;
mod parameters;
mod server;
mod service;
mod session_options;
mod sessions;
mod settings;
mod sql_info;
mod statements;
mod status;
mod type_info;

pub use server::serve;
pub use settings::FlightSettings;

#[cfg(test)]
mod tests;
