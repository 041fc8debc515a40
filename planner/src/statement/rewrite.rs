//! A parsed query made ready for DataFusion: one walk over its tree, each kind of node handed to the file that knows it.
//!
//! | what MySQL writes | where it becomes what DataFusion plans |
//! |---|---|
//! | `@@x`, `@x`, `DATABASE()`, `USER()`, … | `rewrite_session` |
//! | `DIV`, `->`, `REGEXP`, `COLLATE`, `CAST(… AS SIGNED)`, `INTERVAL` | `rewrite_expressions` |
//! | `IF`, `CONCAT`, `DATE_ADD`, `GROUP_CONCAT`, … | `rewrite_functions` |
//! | `FROM DUAL`, `HAVING` over an alias, `WITH ROLLUP` | `rewrite_select` |
//! | `*` over `JOIN … USING` | `rewrite_using` |
//! | two columns of one name | `distinct_names` |
//! | `WITH RECURSIVE t (a, b)` | here |
//! | names in any case | `rewrite_names` |

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, Select, SelectItem, SetExpr, SetOperator, SetQuantifier, TableFactor, VisitMut,
    VisitorMut,
};

use super::distinct_names::distinct_names;
use super::hidden_columns::{leave_out_of_wildcards, names_row_lineage};
use super::join_hints::apply_hints;
use super::rewrite_expressions::rewrite_expression;
use super::rewrite_functions::rewrite_function;
use super::rewrite_names::{
    ColumnSpelling, lower_ident, rewrite_aliases, rewrite_column_names, rewrite_table,
};
use super::rewrite_select::{rewrite_limit, rewrite_select};
use super::rewrite_session::rewrite_session_value;
use super::rewrite_using::using_columns;
use super::rewrite_values::floats_of_columns;
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
    /// MySQL 1582.
    #[error("Incorrect parameter count in the call to native function '{0}'")]
    ParameterCount(String),
    /// A hint that cannot be followed.
    #[error("{0}")]
    Hint(String),
}

/// The statement DataFusion plans for `query` in this session.
pub fn rewrite_query(
    query: &Query,
    session: &dyn SessionValues,
) -> Result<ast::Statement, RewriteError> {
    let mut statement = query.ast.as_ref().clone();
    let mut rewriter = Rewriter {
        session,
        row_lineage: names_row_lineage(query),
    };
    if let ControlFlow::Break(error) = statement.visit(&mut rewriter) {
        return Err(*error);
    }
    if let ast::Statement::Query(query) = &mut statement {
        top_selects(&mut query.body, &mut distinct_names);
    }
    Ok(statement)
}

fn top_selects(body: &mut SetExpr, apply: &mut dyn FnMut(&mut Select)) {
    match body {
        SetExpr::Select(select) => apply(select),
        SetExpr::Query(query) => top_selects(&mut query.body, apply),
        SetExpr::SetOperation { left, right, .. } => {
            top_selects(left, apply);
            top_selects(right, apply);
        }
        _ => {}
    }
}

/// Gives the first `SELECT` of a recursive query the names of `WITH RECURSIVE t (a, b)`: DataFusion gives them to the whole alone,
/// and what the query reads of itself would go without.
fn name_columns(body: &mut SetExpr, columns: &[ast::TableAliasColumnDef]) {
    match body {
        SetExpr::Select(select) if select.projection.len() == columns.len() => {
            for (item, column) in select.projection.iter_mut().zip(columns) {
                if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item
                {
                    *item = SelectItem::ExprWithAlias {
                        expr: expr.clone(),
                        alias: column.name.clone(),
                    };
                }
            }
        }
        SetExpr::Query(query) => name_columns(&mut query.body, columns),
        SetExpr::SetOperation { left, .. } => name_columns(left, columns),
        _ => {}
    }
}

struct Rewriter<'a> {
    session: &'a dyn SessionValues,
    row_lineage: bool,
}

impl ColumnSpelling for Rewriter<'_> {
    fn spelling(&self, name: &str) -> Option<String> {
        self.session.column_spelling(name)
    }
}

fn flow(result: Result<(), RewriteError>) -> ControlFlow<Box<RewriteError>> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(Box::new(error)),
    }
}

impl VisitorMut for Rewriter<'_> {
    type Break = Box<RewriteError>;

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<Self::Break> {
        if let Some(with) = &mut query.with {
            for cte in &mut with.cte_tables {
                lower_ident(&mut cte.alias.name);
                cte.alias
                    .columns
                    .iter_mut()
                    .for_each(|column| lower_ident(&mut column.name));
                if with.recursive {
                    name_columns(&mut cte.query.body, &cte.alias.columns);
                }
            }
        }
        if let SetExpr::Values(values) = query.body.as_mut() {
            floats_of_columns(values);
        }
        flow(check_set_operations(&query.body).and_then(|()| rewrite_limit(query)))
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        rewrite_aliases(select, self);
        if self.row_lineage
            && let Err(error) = leave_out_of_wildcards(select)
        {
            return flow(Err(error));
        }
        flow(
            using_columns(select)
                .and_then(|()| apply_hints(select))
                .and_then(|()| rewrite_select(select)),
        )
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        if let Err(error) = check_table_factor(factor) {
            return flow(Err(error));
        }
        rewrite_table(factor);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        flow(self.expression(expr))
    }
}

/// DataFusion passes over what would leave rows of a table out.
fn check_table_factor(factor: &TableFactor) -> Result<(), RewriteError> {
    let (partitions, sample) = match factor {
        TableFactor::Table {
            partitions, sample, ..
        } => (!partitions.is_empty(), sample.is_some()),
        TableFactor::Derived { sample, .. } => (false, sample.is_some()),
        _ => (false, false),
    };
    match (partitions, sample) {
        (true, _) => Err(RewriteError::Unsupported(
            "PARTITION (…) behind a table".to_owned(),
        )),
        (_, true) => Err(RewriteError::Unsupported("TABLESAMPLE".to_owned())),
        _ => Ok(()),
    }
}

/// DataFusion joins both sides of these, and so loses how often a row occurs.
fn check_set_operations(body: &SetExpr) -> Result<(), RewriteError> {
    let SetExpr::SetOperation {
        op,
        set_quantifier,
        left,
        right,
    } = body
    else {
        return Ok(());
    };
    let counts = matches!(
        op,
        SetOperator::Intersect | SetOperator::Except | SetOperator::Minus
    );
    if counts && *set_quantifier == SetQuantifier::All {
        return Err(RewriteError::Unsupported(format!("{op} ALL")));
    }
    check_set_operations(left)?;
    check_set_operations(right)
}

impl Rewriter<'_> {
    fn expression(&self, expr: &mut Expr) -> Result<(), RewriteError> {
        if rewrite_session_value(expr, self.session)? {
            return Ok(());
        }
        rewrite_column_names(expr, self);
        rewrite_expression(expr)?;
        rewrite_function(expr)
    }
}
