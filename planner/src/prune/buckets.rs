//! Filters for values of a column, as filters for the buckets that they are in.
//!
//! `c = 7` is `c = 7 AND bucket(16, c) = 3` where a partition field has the buckets of `c`; partition values and
//! summaries then bound `bucket(16, c)` as they bound any column.

use std::collections::BTreeSet;

use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, ident, lit};
use datafusion::scalar::ScalarValue;
use iceberg::spec::{PrimitiveLiteral, PrimitiveType, Transform};
use iceberg::transform::create_transform_function;

use super::partition_layout::TableLayout;
use super::values::datum;

/// The filter, and what follows from it for buckets. Only conjunctions and disjunctions are looked into.
pub(super) fn with_buckets(expr: Expr, layout: &TableLayout) -> Result<Expr> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::And | Operator::Or),
            right,
        }) => Expr::BinaryExpr(BinaryExpr {
            left: Box::new(with_buckets(*left, layout)?),
            op,
            right: Box::new(with_buckets(*right, layout)?),
        }),
        leaf => {
            let buckets = wanted_values(&leaf).map_or(vec![], |(column, values)| {
                let fields = layout.buckets_of(column);
                fields
                    .filter_map(|(name, transform, source)| {
                        let numbers = bucket_numbers(&values, transform, source)?;
                        Some(ident(name).in_list(numbers.into_iter().map(lit).collect(), false))
                    })
                    .collect()
            });
            buckets.into_iter().fold(leaf, Expr::and)
        }
    })
}

/// The column and the values of `c = v` or `c IN (v, …)`.
fn wanted_values(expr: &Expr) -> Option<(&str, Vec<&ScalarValue>)> {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Eq,
            right,
        }) => match (left.as_ref(), right.as_ref()) {
            (Expr::Column(column), Expr::Literal(value, _))
            | (Expr::Literal(value, _), Expr::Column(column)) => Some((&column.name, vec![value])),
            _ => None,
        },
        Expr::InList(InList {
            expr,
            list,
            negated: false,
        }) => {
            let Expr::Column(column) = expr.as_ref() else {
                return None;
            };
            let values = list.iter().map(|item| match item {
                Expr::Literal(value, _) => Some(value),
                _ => None,
            });
            Some((&column.name, values.collect::<Option<_>>()?))
        }
        _ => None,
    }
}

/// The buckets of the values; null is in none, and equals nothing. `None` if the bucket of one cannot be told.
fn bucket_numbers(
    values: &[&ScalarValue],
    transform: &Transform,
    source: &PrimitiveType,
) -> Option<BTreeSet<i32>> {
    let hash = create_transform_function(transform).ok()?;
    values
        .iter()
        .filter(|value| !value.is_null())
        .map(|value| {
            let bucket = hash.transform_literal(&datum(value, source)?).ok()??;
            match bucket.literal() {
                PrimitiveLiteral::Int(number) => Some(*number),
                _ => None,
            }
        })
        .collect()
}
