//! Names for the columns of a result that DataFusion would call the same.
//!
//! MySQL allows two columns of one name; DataFusion does not, and to it more have one name than to the eye: a cast is called like what
//! is cast, `ucase(x)` and `upper(x)` are one function, `x` and `t.x` one column. Later ones get an alias, which the client never sees
//! ([`OutputNames`](super::OutputNames) gives it the text it wrote).

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Select, SelectItem, UnaryOperator, Value, VisitMut, VisitorMut,
};

use super::ast_build::{call, text};

/// Gives an alias to each column of a rewritten select list that would have the name of an earlier one.
pub(super) fn distinct_names(select: &mut Select) {
    let wildcard = select.projection.iter().any(|item| {
        matches!(
            item,
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
        )
    });
    let keys: Vec<Option<Key>> = select.projection.iter().map(Key::of).collect();
    let mut seen: HashSet<&str> = HashSet::new();
    // What has its name by right goes first.
    let mut again: Vec<bool> = keys
        .iter()
        .map(|key| match key {
            Some(key) if key.by_right => !seen.insert(&key.name),
            _ => false,
        })
        .collect();
    for (again, key) in again.iter_mut().zip(&keys) {
        if let Some(key) = key {
            *again |= !key.by_right && !seen.insert(&key.name);
            *again |= wildcard && key.column;
        }
    }
    for (index, (item, _)) in select
        .projection
        .iter_mut()
        .zip(&again)
        .enumerate()
        .filter(|(_, (_, again))| **again)
    {
        let alias = Ident::with_quote('`', format!("__column_{index}"));
        match item {
            SelectItem::UnnamedExpr(expr) => {
                *item = SelectItem::ExprWithAlias {
                    expr: expr.clone(),
                    alias,
                };
            }
            SelectItem::ExprWithAlias { alias: old, .. } => *old = alias,
            _ => {}
        }
    }
}

/// What a column of the result is called, alike for all that DataFusion calls alike.
struct Key {
    name: String,
    /// A column or an alias, not an expression that happens to be called so.
    by_right: bool,
    /// Called like a column of a table, which `*` may bring as well.
    column: bool,
}

impl Key {
    fn of(item: &SelectItem) -> Option<Self> {
        match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(Self {
                name: alias.value.to_lowercase(),
                by_right: true,
                column: false,
            }),
            SelectItem::UnnamedExpr(expr) => {
                let mut name = expr.clone();
                let _ = VisitMut::visit(&mut name, &mut Bare);
                let column = matches!(name, Expr::Identifier(_));
                Some(Self {
                    name: match name {
                        Expr::Identifier(name) => name.value.to_lowercase(),
                        other => other.to_string().to_lowercase(),
                    },
                    by_right: matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)),
                    column,
                })
            }
            _ => None,
        }
    }
}

/// Leaves away what does not show in DataFusion's name of an expression.
struct Bare;

impl VisitorMut for Bare {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let bare = match expr {
            Expr::Cast { expr, .. }
            | Expr::Nested(expr)
            | Expr::UnaryOp {
                op: UnaryOperator::Plus,
                expr,
            } => (**expr).clone(),
            Expr::CompoundIdentifier(parts) => match parts.last() {
                Some(column) => Expr::Identifier(column.clone()),
                None => return ControlFlow::Continue(()),
            },
            Expr::BinaryOp {
                left,
                op: BinaryOperator::MyIntegerDivide,
                right,
            } => Expr::BinaryOp {
                left: left.clone(),
                op: BinaryOperator::Divide,
                right: right.clone(),
            },
            // A subquery's own columns do not tell it from another.
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => text("<subquery>"),
            Expr::TypedString(typed) => Expr::Value(typed.value.clone()),
            Expr::Substring {
                expr,
                substring_from,
                substring_for,
                ..
            } => {
                let mut args = vec![(**expr).clone()];
                args.extend(substring_from.as_deref().cloned());
                args.extend(substring_for.as_deref().cloned());
                call("substr", args)
            }
            Expr::Value(value) => match &value.value {
                Value::DoubleQuotedString(text) => {
                    Expr::value(Value::SingleQuotedString(text.clone()))
                }
                _ => return ControlFlow::Continue(()),
            },
            _ => return ControlFlow::Continue(()),
        };
        *expr = bare;
        ControlFlow::Continue(())
    }
}
