//! Names without a table, replaced by what they mean.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, Expr, Ident, VisitorMut};

/// Puts what names mean in their place. What is put there is not walked into: it may name a column like the name itself.
pub(super) struct NamesReplaced {
    /// By name, in lower case.
    meanings: HashMap<String, Expr>,
    /// Depth of subqueries, whose names are their own.
    inside: usize,
}

impl NamesReplaced {
    pub(super) fn new(meanings: HashMap<String, Expr>) -> Self {
        Self {
            meanings,
            inside: 0,
        }
    }

    pub(super) fn meaning(&self, name: &Ident) -> Option<&Expr> {
        self.meanings.get(&name.value.to_lowercase())
    }
}

impl VisitorMut for NamesReplaced {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<()> {
        self.inside += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<()> {
        self.inside -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.inside == 0
            && let Expr::Identifier(name) = expr
            && let Some(meaning) = self.meaning(name)
        {
            *expr = meaning.clone();
        }
        ControlFlow::Continue(())
    }
}
