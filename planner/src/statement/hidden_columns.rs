//! Columns that a table has for who names them, and that `*` leaves out: those of row lineage.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ExcludeSelectItem, Expr, Ident, Select, SelectItem, TableFactor, Visit, Visitor,
};

use super::{Query, RewriteError};
use crate::scan::ROW_LINEAGE_COLUMNS;

/// Whether a query names a column of row lineage.
pub fn names_row_lineage(query: &Query) -> bool {
    query.ast.visit(&mut Names).is_break()
}

struct Names;

impl Visitor for Names {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let name = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(names) => names.last(),
            _ => None,
        };
        match name.is_some_and(is_row_lineage) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

fn is_row_lineage(name: &Ident) -> bool {
    ROW_LINEAGE_COLUMNS
        .iter()
        .any(|column| name.value.eq_ignore_ascii_case(column))
}

/// In a query that names columns of row lineage, `*` is all columns but those. That can be said of one table only.
pub(super) fn leave_out_of_wildcards(select: &mut Select) -> Result<(), RewriteError> {
    let one_table = match select.from.as_slice() {
        [only] => only.joins.is_empty() && matches!(only.relation, TableFactor::Table { .. }),
        _ => false,
    };
    for item in &mut select.projection {
        let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) = item
        else {
            continue;
        };
        if !one_table || options.opt_exclude.is_some() || options.opt_except.is_some() {
            return Err(RewriteError::Unsupported(
                "'*' of more than one table in a query that names columns of row lineage"
                    .to_owned(),
            ));
        }
        let names = ROW_LINEAGE_COLUMNS.map(|name| Ident::with_quote('`', name).into());
        options.opt_exclude = Some(ExcludeSelectItem::Multiple(names.into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::rewrite_query;
    use crate::statement::sql_session::{TestSession, query};

    fn rewritten(sql: &str) -> Result<String, RewriteError> {
        rewrite_query(&query(sql), &TestSession::default()).map(|statement| statement.to_string())
    }

    #[test]
    fn columns_of_row_lineage_are_there_for_who_names_them() {
        for (sql, named) in [
            ("SELECT _row_id FROM t", true),
            ("SELECT a FROM t WHERE t._ROW_ID > 1", true),
            ("SELECT `_last_updated_sequence_number` FROM t", true),
            ("SELECT * FROM t", false),
            ("SELECT '_row_id' FROM t", false),
        ] {
            assert_eq!(names_row_lineage(&query(sql)), named, "{sql}");
        }
    }

    #[test]
    fn a_wildcard_leaves_them_out() {
        let sql = rewritten("SELECT *, _row_id FROM t").expect("one table");
        assert!(
            sql.contains("EXCLUDE (`_row_id`, `_last_updated_sequence_number`)"),
            "{sql}"
        );
        let plain = rewritten("SELECT * FROM t").expect("a plain query");
        assert!(!plain.contains("EXCLUDE"), "{plain}");
        let error =
            rewritten("SELECT *, _row_id FROM t JOIN u ON t.a = u.a").expect_err("two tables");
        assert!(error.to_string().contains("more than one table"), "{error}");
    }
}
