//! A syntax error that points at the place.

use std::fmt;

/// A place in the text that the client sent, counted from 1 in lines and characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: u64,
    pub column: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why a text could not be read as a statement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text is not a statement of ours (MySQL 1064).
    #[error("You have an error in your SQL syntax near '{near}' at {position}: {reason}")]
    Syntax {
        position: Position,
        near: String,
        reason: String,
    },
    /// The text holds no statement at all (MySQL 1065).
    #[error("Query was empty")]
    Empty,
    /// One statement was asked for, several came.
    #[error("expected one statement, found {0}")]
    Several(usize),
    /// The statement is well formed, but asks for what cannot be (a type or transform that does not exist, a column twice).
    #[error("{0}")]
    Invalid(String),
    /// Expressions or queries nested too deeply to be parsed.
    #[error("the statement is nested too deeply")]
    TooDeep,
}
