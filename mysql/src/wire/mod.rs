//! The MySQL client/server protocol as bytes: no socket, no engine, no Iceberg.
//!
//! Everything here is a pure function of values, follows the chapters of the protocol's documentation
//! ("MySQL Internals: Client/Server Protocol") and is tested against bytes worked out by hand.

pub(crate) mod auth;
pub(crate) mod capabilities;
pub(crate) mod column;
pub(crate) mod command;
pub(crate) mod handshake;
pub(crate) mod lenenc;
pub(crate) mod packet;
pub(crate) mod parameter;
pub(crate) mod parser;
pub(crate) mod response;
pub(crate) mod status;
