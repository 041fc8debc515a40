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
