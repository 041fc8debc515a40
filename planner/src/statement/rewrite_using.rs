//! `SELECT *` over `JOIN … USING (…)`, as MySQL and the standard have it: first the columns that are joined by, once each,
//! then what is left of each table in turn.
//!
//! ```text
//!   SELECT * FROM b LEFT JOIN a USING (id)   ──►   SELECT b.id AS id, b.* EXCEPT (id), a.* EXCEPT (id) FROM …
//! ```
//!
//! DataFusion keeps the column of the table whose name comes first in the alphabet, which an outer join may have filled
//! with nulls. A column that an outer join may leave null on the side where names without a table are looked for (the
//! left) is taken from the right, or from whichever has it.

use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::{
    ExceptSelectItem, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, Select, SelectItem,
    SelectItemQualifiedWildcardKind, TableFactor, TableWithJoins, VisitMut,
    WildcardAdditionalOptions,
};

use super::RewriteError;
use super::ast_build::call;
use super::names_replaced::NamesReplaced;
use super::rewrite_names::lower_ident;

/// Rewrites a SELECT whose names are spelled already.
pub(super) fn using_columns(select: &mut Select) -> Result<(), RewriteError> {
    if !select.from.iter().any(has_merging_join) {
        return Ok(());
    }
    let mut items = Vec::new();
    let mut meanings = HashMap::new();
    let mut known = true;
    for from in &select.from {
        match Merged::of(from)? {
            Some(merged) => {
                meanings.extend(merged.meanings());
                items.extend(merged.items());
            }
            None => known = false,
        }
    }
    let wildcards = select
        .projection
        .iter()
        .any(|item| matches!(item, SelectItem::Wildcard(_)));
    if !known {
        return match wildcards && select.from.iter().any(has_outer_merging_join) {
            true => Err(RewriteError::Unsupported(
                "'*' over an outer join with USING of tables that have no names, or of which it is not plain which one \
                 has the column; ON instead of USING, and"
                    .to_owned(),
            )),
            false => Ok(()),
        };
    }
    if !meanings.is_empty() {
        let mut names = NamesReplaced::new(meanings);
        for item in &mut select.projection {
            // The column keeps its name.
            if let SelectItem::UnnamedExpr(Expr::Identifier(name)) = item
                && let Some(meaning) = names.meaning(name)
            {
                let expr = meaning.clone();
                let mut alias = name.clone();
                lower_ident(&mut alias);
                *item = SelectItem::ExprWithAlias { expr, alias };
                continue;
            }
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                let _ = VisitMut::visit(expr, &mut names);
            }
        }
        for condition in [&mut select.selection, &mut select.having]
            .into_iter()
            .flatten()
        {
            let _ = VisitMut::visit(condition, &mut names);
        }
        let _ = VisitMut::visit(&mut select.group_by, &mut names);
    }
    select.projection = std::mem::take(&mut select.projection)
        .into_iter()
        .flat_map(|item| match item {
            SelectItem::Wildcard(options) if is_plain(&options) => items.clone(),
            other => vec![other],
        })
        .collect();
    Ok(())
}

fn is_plain(options: &WildcardAdditionalOptions) -> bool {
    *options
        == WildcardAdditionalOptions {
            wildcard_token: options.wildcard_token.clone(),
            ..WildcardAdditionalOptions::default()
        }
}

fn has_merging_join(from: &TableWithJoins) -> bool {
    from.joins.iter().any(|join| {
        matches!(
            constraint(&join.join_operator),
            Some((_, JoinConstraint::Using(_) | JoinConstraint::Natural))
        )
    })
}

fn has_outer_merging_join(from: &TableWithJoins) -> bool {
    from.joins.iter().any(|join| {
        matches!(
            constraint(&join.join_operator),
            Some((kind, JoinConstraint::Using(_) | JoinConstraint::Natural)) if kind != Kind::Inner
        )
    })
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Inner,
    Left,
    Right,
    Full,
}

fn constraint(operator: &JoinOperator) -> Option<(Kind, &JoinConstraint)> {
    Some(match operator {
        JoinOperator::Join(on) | JoinOperator::Inner(on) | JoinOperator::CrossJoin(on) => {
            (Kind::Inner, on)
        }
        JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => (Kind::Left, on),
        JoinOperator::Right(on) | JoinOperator::RightOuter(on) => (Kind::Right, on),
        JoinOperator::FullOuter(on) => (Kind::Full, on),
        _ => return None,
    })
}

/// One item of FROM: its tables, and the columns that joins made one of two.
struct Merged {
    tables: Vec<Table>,
    /// In the order in which `*` shows them.
    columns: Vec<Column>,
}

struct Table {
    name: Ident,
    /// Columns that are shown before the tables' own.
    merged: Vec<Ident>,
}

struct Column {
    name: Ident,
    value: Expr,
    /// Whether its name alone would mean another value.
    ambiguous: bool,
}

impl Merged {
    /// None if the tables or their columns cannot be told by their names alone.
    fn of(from: &TableWithJoins) -> Result<Option<Merged>, RewriteError> {
        let Some(first) = table_name(&from.relation) else {
            return Ok(None);
        };
        let mut merged = Merged {
            tables: vec![Table {
                name: first,
                merged: Vec::new(),
            }],
            columns: Vec::new(),
        };
        for join in &from.joins {
            let Some(name) = table_name(&join.relation) else {
                return Ok(None);
            };
            let Some((kind, on)) = constraint(&join.join_operator) else {
                return Ok(None);
            };
            let mut table = Table {
                name,
                merged: Vec::new(),
            };
            match on {
                JoinConstraint::Natural if kind != Kind::Inner => {
                    return Err(RewriteError::Unsupported(
                        "NATURAL with LEFT, RIGHT or FULL JOIN; USING names the columns, and"
                            .to_owned(),
                    ));
                }
                JoinConstraint::Natural => return Ok(None),
                JoinConstraint::Using(columns) => {
                    let mut joined = Vec::new();
                    for column in columns {
                        match merged.join(kind, column, &mut table) {
                            Some(column) => joined.push(column),
                            None => return Ok(None),
                        }
                    }
                    joined.append(&mut merged.columns);
                    merged.columns = joined;
                }
                _ => {}
            }
            merged.tables.push(table);
        }
        Ok(Some(merged))
    }

    /// A column that the tables so far and the next one are joined by.
    fn join(&mut self, kind: Kind, column: &ObjectName, table: &mut Table) -> Option<Column> {
        let [part] = column.0.as_slice() else {
            return None;
        };
        let name = part.as_ident()?.clone();
        let known = self
            .columns
            .iter()
            .position(|known| known.name.value == name.value);
        let (left, ambiguous) = match known {
            Some(known) => {
                let known = self.columns.remove(known);
                (known.value, known.ambiguous)
            }
            None => match self.tables.as_mut_slice() {
                [only] => {
                    only.merged.push(name.clone());
                    (qualified(&only.name, &name), false)
                }
                _ => return None,
            },
        };
        let right = qualified(&table.name, &name);
        table.merged.push(name.clone());
        let (value, ambiguous) = match kind {
            Kind::Inner | Kind::Left => (left, ambiguous),
            Kind::Right => (right, true),
            Kind::Full => (call("coalesce", vec![left, right]), true),
        };
        Some(Column {
            name,
            value,
            ambiguous,
        })
    }

    /// What `*` stands for.
    fn items(&self) -> Vec<SelectItem> {
        let columns = self.columns.iter().map(|column| SelectItem::ExprWithAlias {
            expr: column.value.clone(),
            alias: column.name.clone(),
        });
        let tables = self.tables.iter().map(|table| {
            let mut merged = table.merged.iter().cloned();
            let opt_except = merged.next().map(|first_element| ExceptSelectItem {
                first_element,
                additional_elements: merged.collect(),
            });
            SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(ObjectName::from(vec![
                    table.name.clone(),
                ])),
                WildcardAdditionalOptions {
                    opt_except,
                    ..WildcardAdditionalOptions::default()
                },
            )
        });
        columns.chain(tables).collect()
    }

    /// What names that are not the left table's column mean.
    fn meanings(&self) -> impl Iterator<Item = (String, Expr)> {
        self.columns
            .iter()
            .filter(|column| column.ambiguous)
            .map(|column| (column.name.value.to_lowercase(), column.value.clone()))
    }
}

fn qualified(table: &Ident, column: &Ident) -> Expr {
    Expr::CompoundIdentifier(vec![table.clone(), column.clone()])
}

/// The name that a table's columns are qualified by.
fn table_name(factor: &TableFactor) -> Option<Ident> {
    let mut name = match factor {
        TableFactor::Table { name, alias, .. } => match alias {
            Some(alias) => alias.name.clone(),
            None => name.0.last()?.as_ident()?.clone(),
        },
        TableFactor::Derived { alias, .. } => alias.as_ref()?.name.clone(),
        _ => return None,
    };
    lower_ident(&mut name);
    Some(name)
}
