//! A parsed query made ready for DataFusion.

use datafusion::sql::sqlparser::ast;

use super::{Query, SessionValues};

/// Why a query that parses cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// MySQL 1193.
    #[error("Unknown system variable '{0}'")]
    UnknownVariable(String),
    /// MySQL 1235.
    #[error("{0} is not supported")]
    Unsupported(String),
}

/// The statement DataFusion plans for `query` in this session.
pub fn rewrite_query(
    query: &Query,
    session: &dyn SessionValues,
) -> Result<ast::Statement, RewriteError> {
    let _ = session;
    Ok(query.ast.as_ref().clone())
}
