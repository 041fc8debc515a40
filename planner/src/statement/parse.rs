//! Text to statements.

use super::{ParseError, ParsedStatement};

/// Parses every statement of a text; one that holds only white space and comments gives none.
pub fn parse_statements(sql: &str) -> Result<Vec<ParsedStatement>, ParseError> {
    let _ = sql;
    Err(ParseError::Invalid(
        "statements are not parsed yet".to_owned(),
    ))
}

/// Parses a text that must hold exactly one statement.
pub fn parse_statement(sql: &str) -> Result<ParsedStatement, ParseError> {
    let mut statements = parse_statements(sql)?;
    match (statements.pop(), statements.len()) {
        (None, _) => Err(ParseError::Empty),
        (Some(statement), 0) => Ok(statement),
        (Some(_), others) => Err(ParseError::Several(others + 1)),
    }
}
