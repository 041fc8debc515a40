//! Filters that no NaN passes.
//!
//! NaN is no bound, yet larger than all numbers in SQL: what bounds say of a column of floats holds for its numbers only.
//! A conjunction that bounds a column from above keeps no NaN, so within it the column may be taken for one that has
//! null in place of NaN, and of that all bounds hold:
//!
//! `d >= 1 AND d <= 2` is `numbers(d) >= 1 AND numbers(d) <= 2`; `d >= 1` alone is as it is.

use std::collections::HashSet;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::scalar::ScalarValue;

use super::partition_layout::{TableLayout, numbers_name};

/// The filter over the numbers of columns, where that is the same.
pub(super) fn with_numbers(expr: Expr, layout: &TableLayout) -> Result<Expr> {
    if let Expr::BinaryExpr(BinaryExpr {
        left,
        op: Operator::Or,
        right,
    }) = expr
    {
        return Ok(Expr::BinaryExpr(BinaryExpr {
            left: Box::new(with_numbers(*left, layout)?),
            op: Operator::Or,
            right: Box::new(with_numbers(*right, layout)?),
        }));
    }
    let conjuncts = split_conjunction_owned(expr);
    let without_nan: HashSet<String> = conjuncts
        .iter()
        .filter_map(column_without_nan)
        .filter(|name| layout.column(&numbers_name(name)).is_some())
        .map(str::to_owned)
        .collect();
    let several = conjuncts.len() > 1;
    let changed = conjuncts.into_iter().map(|conjunct| {
        let numbers = conjunct.transform_up(|expr| {
            Ok(match &expr {
                Expr::Column(column) if without_nan.contains(&column.name) => Transformed::yes(
                    Expr::Column(Column::new_unqualified(numbers_name(&column.name))),
                ),
                _ => Transformed::no(expr),
            })
        });
        let numbers = numbers.data()?;
        match several {
            true => with_numbers(numbers, layout),
            false => Ok(numbers),
        }
    });
    let changed: Vec<Expr> = changed.collect::<Result<_>>()?;
    Ok(conjunction(changed).unwrap_or_else(|| datafusion::logical_expr::lit(true)))
}

/// The column that is a number wherever the filter is true.
fn column_without_nan(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (column, op, literal) = match (left.as_ref(), right.as_ref()) {
                (Expr::Column(column), literal) => (column, *op, literal),
                (literal, Expr::Column(column)) => (column, op.swap()?, literal),
                _ => return None,
            };
            let bounded = matches!(op, Operator::Lt | Operator::LtEq | Operator::Eq);
            (bounded && is_number(literal)).then_some(column.name.as_str())
        }
        Expr::Between(between) if !between.negated && is_number(&between.high) => {
            column_name(&between.expr)
        }
        Expr::InList(list) if !list.negated && list.list.iter().all(is_number) => {
            column_name(&list.expr)
        }
        _ => None,
    }
}

fn column_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Column(column) => Some(&column.name),
        _ => None,
    }
}

fn is_number(literal: &Expr) -> bool {
    match literal {
        Expr::Literal(ScalarValue::Float32(Some(value)), _) => !value.is_nan(),
        Expr::Literal(ScalarValue::Float64(Some(value)), _) => !value.is_nan(),
        _ => false,
    }
}
