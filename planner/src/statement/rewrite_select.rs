//! Whole SELECTs: what MySQL allows in their clauses and DataFusion does not.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Expr, GroupByExpr, GroupByWithModifier, Ident, LimitClause, Select,
    SelectItem, TableFactor, Value, Visit, VisitMut, Visitor,
};

use super::RewriteError;
use super::ast_build::{binary, call, nested, number};
use super::names_replaced::NamesReplaced;
use super::rewrite_names::is_system_table;
use super::rewrite_truth::number_as_condition;
use super::rewrite_windows::named_windows;

/// Functions that make a SELECT an aggregation; HAVING then means what DataFusion takes it to mean.
const AGGREGATES: [&str; 41] = [
    "count",
    "sum",
    "avg",
    "mean",
    "min",
    "max",
    "max_by",
    "min_by",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "variance",
    "var",
    "var_pop",
    "var_samp",
    "group_concat",
    "string_agg",
    "array_agg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "approx_distinct",
    "approx_count_distinct",
    "ndv",
    "approx_median",
    "approx_percentile_cont",
    "percentile_approx",
    "percentile_cont",
    "median",
    "first_value",
    "last_value",
    "any_value",
    "corr",
    "covar_pop",
    "covar_samp",
    "regr_slope",
    "grouping",
    "json_arrayagg",
];

/// Refuses what would change a table behind a query, and rewrites the clauses.
pub(super) fn rewrite_select(select: &mut Select) -> Result<(), RewriteError> {
    if select.into.is_some() {
        return Err(RewriteError::Unsupported("SELECT … INTO".to_owned()));
    }
    from_dual(select);
    rollup(&mut select.group_by)?;
    having_without_groups(select);
    any_value_outside_groups(select);
    named_windows(select);
    named_casts(select);
    for condition in [&mut select.selection, &mut select.having]
        .into_iter()
        .flatten()
    {
        number_as_condition(condition);
    }
    Ok(())
}

/// A cast has a name of its own. DataFusion calls it as it calls what is cast, and refuses to have both.
fn named_casts(select: &mut Select) {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr @ Expr::Cast { .. }) = item {
            let alias = Ident::with_quote('`', expr.to_string());
            *item = SelectItem::ExprWithAlias {
                expr: expr.clone(),
                alias,
            };
        }
    }
}

/// `FROM DUAL` is no table.
fn from_dual(select: &mut Select) {
    let is_dual = match select.from.as_slice() {
        [only] if only.joins.is_empty() => {
            matches!(&only.relation, TableFactor::Table { name, alias: None, .. }
            if name.0.len() == 1 && name.0[0].as_ident().is_some_and(|part| part.value.eq_ignore_ascii_case("dual")))
        }
        _ => false,
    };
    if is_dual {
        select.from.clear();
    }
}

/// `GROUP BY a, b WITH ROLLUP` is `GROUP BY ROLLUP(a, b)`; sqlparser keeps the modifier where DataFusion does not look.
fn rollup(group_by: &mut GroupByExpr) -> Result<(), RewriteError> {
    let (expressions, modifiers) = match group_by {
        GroupByExpr::Expressions(expressions, modifiers) => (expressions, modifiers),
        GroupByExpr::All(modifiers) if modifiers.is_empty() => return Ok(()),
        GroupByExpr::All(_) => {
            return Err(RewriteError::Unsupported(
                "GROUP BY ALL with a modifier".to_owned(),
            ));
        }
    };
    let sets = match modifiers.as_slice() {
        [] => return Ok(()),
        [GroupByWithModifier::Rollup] => Expr::Rollup(
            std::mem::take(expressions)
                .into_iter()
                .map(|expr| vec![expr])
                .collect(),
        ),
        [GroupByWithModifier::Cube] => Expr::Cube(
            std::mem::take(expressions)
                .into_iter()
                .map(|expr| vec![expr])
                .collect(),
        ),
        [GroupByWithModifier::GroupingSets(sets)] if expressions.is_empty() => sets.clone(),
        _ => {
            return Err(RewriteError::Unsupported(
                "this GROUP BY modifier".to_owned(),
            ));
        }
    };
    *expressions = vec![sets];
    modifiers.clear();
    Ok(())
}

/// Without groups and aggregates, HAVING is a second WHERE that also knows the select list's aliases.
fn having_without_groups(select: &mut Select) {
    let groups = match &select.group_by {
        GroupByExpr::Expressions(expressions, _) => !expressions.is_empty(),
        GroupByExpr::All(_) => true,
    };
    let Some(having) = select.having.take_if(|_| !groups) else {
        return;
    };
    let aggregates = select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            has_aggregate(expr)
        }
        _ => false,
    }) || has_aggregate(&having);
    if aggregates {
        select.having = Some(having);
        return;
    }
    let aliases: HashMap<String, Expr> = select
        .projection
        .iter()
        .filter_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } => {
                Some((alias.value.to_lowercase(), nested(expr.clone())))
            }
            _ => None,
        })
        .collect();
    let mut having = having;
    let _ = VisitMut::visit(&mut having, &mut NamesReplaced::new(aliases));
    select.selection = Some(match select.selection.take() {
        Some(selection) => binary(nested(selection), BinaryOperator::And, nested(having)),
        None => having,
    });
}

/// Over system tables, a column that is not grouped by is any of its group's values, as in MySQL before 5.7: mysqldump asks so.
fn any_value_outside_groups(select: &mut Select) {
    let GroupByExpr::Expressions(groups, _) = &select.group_by else {
        return;
    };
    let system = select.from.iter().all(|from| {
        is_system_table(&from.relation)
            && from
                .joins
                .iter()
                .all(|join| is_system_table(&join.relation))
    });
    // A group that is a position or an expression may stand for a column of the list.
    let grouped: Option<HashSet<String>> = groups
        .iter()
        .map(|group| match group {
            Expr::Identifier(name) => Some(name.value.to_lowercase()),
            _ => None,
        })
        .collect();
    let Some(grouped) = grouped.filter(|grouped| system && !grouped.is_empty()) else {
        return;
    };
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr @ Expr::Identifier(_)) = item
            && let Expr::Identifier(name) = expr
            && !grouped.contains(&name.value.to_lowercase())
        {
            let alias = Ident::with_quote('`', name.value.to_lowercase());
            *item = SelectItem::ExprWithAlias {
                expr: call("first_value", vec![expr.clone()]),
                alias,
            };
        }
    }
}

struct AggregateSearch;

impl Visitor for AggregateSearch {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &ast::Query) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function)
                if function.over.is_none()
                    && AGGREGATES.contains(&function.name.to_string().to_lowercase().as_str()) =>
            {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn has_aggregate(expr: &Expr) -> bool {
    expr.visit(&mut AggregateSearch).is_break()
}

/// LIMIT and FETCH as one LIMIT within what DataFusion counts in.
pub(super) fn rewrite_limit(query: &mut ast::Query) -> Result<(), RewriteError> {
    if let Some(fetch) = query.fetch.take() {
        if fetch.with_ties || fetch.percent {
            return Err(RewriteError::Unsupported(
                "FETCH … WITH TIES or PERCENT".to_owned(),
            ));
        }
        let limit = Some(fetch.quantity.unwrap_or_else(|| number(1)));
        query.limit_clause = Some(match query.limit_clause.take() {
            None => LimitClause::LimitOffset {
                limit,
                offset: None,
                limit_by: Vec::new(),
            },
            Some(LimitClause::LimitOffset {
                limit: None,
                offset,
                limit_by,
            }) => LimitClause::LimitOffset {
                limit,
                offset,
                limit_by,
            },
            Some(_) => {
                return Err(RewriteError::Unsupported(
                    "LIMIT together with FETCH".to_owned(),
                ));
            }
        });
    }
    if let Some(
        LimitClause::LimitOffset { limit: Some(limit), .. }
        | LimitClause::OffsetCommaLimit { limit, .. },
    ) = &mut query.limit_clause
        // MySQL's manual writes "all rows from the n-th" with the largest unsigned number.
        && let Expr::Value(value) = limit
        && let Value::Number(digits, _) = &value.value
        && digits.parse::<u64>().is_ok_and(|rows| rows > i64::MAX as u64)
    {
        *limit = number(i64::MAX);
    }
    Ok(())
}
