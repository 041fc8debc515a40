//! Why a connection ends.

use std::io;
use std::time::Duration;

use thiserror::Error;

use crate::wire::packet::PacketError;
use crate::wire::parser::Malformed;

/// The server cannot listen any more.
#[derive(Debug, Error)]
pub enum MysqlError {
    #[error("cannot accept MySQL connections: {0}")]
    Accept(#[source] io::Error),
}

/// Why one connection ends. A statement that fails does not end its connection.
#[derive(Debug, Error)]
pub(crate) enum ConnectionError {
    #[error("the client has gone away")]
    ClientGone,
    #[error("the connection was killed")]
    Killed,
    /// As [`Self::Killed`], while the client was not waiting for an answer: it is told nothing, or
    /// it would take that for the answer to its next command.
    #[error("the connection was killed while it was idle")]
    KilledWhileIdle,
    #[error("the server is stopping")]
    ShuttingDown,
    #[error("no command for {} s", .0.as_secs())]
    Idle(Duration),
    #[error("the client has not logged in within {} s", .0.as_secs())]
    LoginTooSlow(Duration),
    #[error("the client took no data for {} s", .0.as_secs())]
    WriteTooSlow(Duration),
    #[error("the login was refused: {0}")]
    Refused(tarn_coordinator::Error),
    #[error(transparent)]
    Packet(#[from] PacketError),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for ConnectionError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::UnexpectedEof => Self::ClientGone,
            _ => Self::Io(error),
        }
    }
}
