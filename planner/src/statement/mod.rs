//! Statements: what a client may send, parsed and classified.
//!
//! Text goes through four files in order: [`lexing`](self) (comments, tokens, one token run for
//! each statement), the dialect (sqlparser's MySQL with what DataFusion adds), the hand-written parsers
//! for statements sqlparser does not know, and [`rewrite`](self) (session values, MySQL spellings and
//! functions into what DataFusion plans). [`parse_statements`] does the first three and knows nothing of a session;
//! [`rewrite_query`] does the last, and needs one.

mod ast_build;
mod column_types;
mod cursor;
mod dialect;
mod error;
mod kinds;
mod lexing;
mod like;
mod names;
mod parse;
mod parse_create_table;
mod parse_set;
mod parse_show;
mod planning_options;
mod rewrite;
mod rewrite_expressions;
mod rewrite_functions;
mod rewrite_names;
mod rewrite_select;
mod rewrite_session;
mod select_names;
mod session_values;
mod show;

pub use error::{ParseError, Position};
pub use kinds::{
    Assignment, CreateTable, DatabaseName, ExplainMode, KillTarget, ObjectPath, ParsedStatement,
    Query, SetValue, Statement, TransactionStatement, VariableScope,
};
pub use like::like_matches;
pub use names::OutputNames;
pub use parse::{parse_statement, parse_statements};
pub use planning_options::configure_sql;
pub use rewrite::{RewriteError, rewrite_query};
pub use session_values::{SessionValue, SessionValues};
pub use show::{Show, ShowFilter};
