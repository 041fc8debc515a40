//! Statements: what a client may send, parsed and classified.
//!
//! ```text
//! text ─► lexing ─► dialect ─► parse, parse_show, parse_set, parse_create_table ─► Statement ─► rewrite ─► DataFusion
//!         comments, MySQL and  by the first words; queries by sqlparser                         session values, names,
//!         places    more                                                                        MySQL's functions
//! ```
//!
//! [`parse_statements`] knows nothing of a session. [`rewrite_query`] needs one, makes a plain tree of a query, and touches
//! no catalog. [`OutputNames`] puts the client's column names over the result, and [`configure_sql`] sets the options
//! that DataFusion plans with.
//!
//! # What is not as in MySQL
//!
//! - Text is compared and matched (`=`, `LIKE`, `REGEXP`) byte by byte, as with `utf8mb4_bin`; COLLATE is read and means nothing.
//! - Comparing a text with a number or a date converts the literal, or the text column, strictly: what is no number is an
//!   error and not 0, and a number is no condition but for a literal (`WHERE 1`). `'5' + 1` is 6, `'5 apples' + 1` an error.
//! - `||` joins texts (MySQL's `PIPES_AS_CONCAT`).
//! - Whole numbers divide to a DOUBLE, decimals to a decimal of four more digits; by zero is NULL, as in MySQL.
//! - Sessions are in UTC: `NOW()` is, and timestamps with a zone are read as UTC by functions of dates.
//! - A date that does not exist is NULL in a function and an error in a cast or as a literal compared with a date.

mod ast_build;
mod chains;
mod column_types;
mod cursor;
mod dialect;
mod distinct_names;
mod error;
mod hidden_columns;
mod iceberg_scan;
mod join_hints;
mod kinds;
mod lexing;
mod like;
mod masking;
mod names;
mod names_replaced;
mod parse;
mod parse_analyze;
mod parse_create_table;
mod parse_refs;
mod parse_set;
mod parse_show;
mod planning_options;
mod rewrite;
mod rewrite_expressions;
mod rewrite_functions;
mod rewrite_names;
mod rewrite_select;
mod rewrite_session;
mod rewrite_truth;
mod rewrite_using;
mod rewrite_values;
mod rewrite_windows;
mod select_names;
mod session_values;
mod show;
mod time_travel;

#[cfg(test)]
mod client_statements;
#[cfg(test)]
mod query_meaning;
#[cfg(test)]
pub(crate) mod sql_session;
#[cfg(test)]
mod statement_cases;

pub use error::{ParseError, Position};
pub use hidden_columns::names_row_lineage;
pub use iceberg_scan::{ICEBERG_SCAN, WrittenScan};
pub(crate) use join_hints::HINT_QUOTE;
pub use kinds::{
    Analyze, Assignment, CallArgument, CallValue, CreateTable, DatabaseName, ExplainMode,
    KillTarget, ObjectPath, ParsedStatement, Query, SetValue, Statement, TransactionStatement,
    VariableScope,
};
pub use like::like_matches;
pub use masking::masked;
pub use names::OutputNames;
pub use parse::{parse_statement, parse_statements};
pub use planning_options::configure_sql;
pub use rewrite::{RewriteError, rewrite_query};
pub(crate) use rewrite_functions::rewritten_functions;
pub use session_values::{SessionValue, SessionValues};
pub use show::{Show, ShowFilter};
pub use time_travel::{NewName, WrittenTable, WrittenVersion, rename_tables, written_tables};
