//! Which part of the rows a predicate keeps: values are taken to be spread evenly, and columns to have nothing to do
//! with each other.

use std::collections::BTreeMap;

use datafusion::common::Column;
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList, Like};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, Operator};
use datafusion::scalar::ScalarValue;

use super::columns::{ColumnEstimate, place};
use super::estimate::PlanEstimate;

/// A comparison by `<` and its like of which nothing else is known, as System R has it.
pub(crate) const RANGE: f64 = 1.0 / 3.0;
/// Equality with something whose distinct values are not known.
const EQUAL: f64 = 0.1;
/// A predicate of an unknown kind.
const UNKNOWN: f64 = 0.25;
/// `LIKE 'abc%'` and `LIKE '%abc%'`.
const LIKE_PREFIX: f64 = 0.05;
const LIKE_INSIDE: f64 = 0.1;
/// No predicate is taken to keep less.
const LEAST: f64 = 1e-9;

/// The part of the rows that predicates keep together, and the part of its values that each column has left.
pub(crate) fn kept(predicates: &[&Expr], input: &PlanEstimate) -> Kept {
    let mut kept = Kept {
        rows: 1.0,
        columns: BTreeMap::new(),
    };
    // Both ends of a range count once.
    let mut ranges: BTreeMap<&Column, (f64, f64)> = BTreeMap::new();
    for predicate in predicates.iter().flat_map(|p| split_conjunction(p)) {
        if let Some((column, low, high)) = range_of(predicate)
            && let Some(known) = input.column(column).and_then(|column| column.range)
        {
            let (lower, upper) = ranges.entry(column).or_insert(known);
            *lower = lower.max(low);
            *upper = upper.min(high);
            continue;
        }
        let part = selectivity(predicate, input);
        kept.rows *= part;
        if let Some(column) = only_column(predicate) {
            *kept.columns.entry(column.clone()).or_insert(1.0) *= part;
        }
    }
    for (column, (low, high)) in ranges {
        let Some(estimate) = input.column(column) else {
            continue;
        };
        let part = part_between(estimate, low, high);
        kept.rows *= part;
        *kept.columns.entry(column.clone()).or_insert(1.0) *= part;
    }
    kept.rows = kept.rows.max(LEAST);
    kept
}

/// What predicates leave.
pub(crate) struct Kept {
    pub rows: f64,
    /// Of each column that a predicate is about, the part of its values.
    pub columns: BTreeMap<Column, f64>,
}

/// The part of the rows that one predicate keeps.
pub(crate) fn selectivity(predicate: &Expr, input: &PlanEstimate) -> f64 {
    let part = match predicate {
        Expr::Literal(value, _) => match value {
            ScalarValue::Boolean(Some(true)) => 1.0,
            _ => 0.0,
        },
        Expr::Alias(alias) => selectivity(&alias.expr, input),
        Expr::Not(inner) => 1.0 - selectivity(inner, input),
        Expr::IsNull(inner) => nulls(inner, input),
        Expr::IsNotNull(inner) => 1.0 - nulls(inner, input),
        Expr::IsTrue(inner) | Expr::IsNotFalse(inner) => selectivity(inner, input),
        Expr::IsFalse(inner) | Expr::IsNotTrue(inner) => 1.0 - selectivity(inner, input),
        Expr::Between(between) => negated(between.negated, self::between(between, input)),
        Expr::InList(list) => negated(list.negated, in_list(list, input)),
        Expr::Like(like) => negated(like.negated, self::like(like, input)),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And => kept(&[predicate], input).rows,
            Operator::Or => {
                let (a, b) = (selectivity(left, input), selectivity(right, input));
                a + b - a * b
            }
            _ => comparison(left, *op, right, input),
        },
        // A column of truth values.
        Expr::Column(_) => 0.5,
        _ => UNKNOWN,
    };
    part.clamp(LEAST, 1.0)
}

fn negated(negated: bool, part: f64) -> f64 {
    match negated {
        true => 1.0 - part,
        false => part,
    }
}

fn comparison(left: &Expr, op: Operator, right: &Expr, input: &PlanEstimate) -> f64 {
    match op {
        Operator::Eq | Operator::IsNotDistinctFrom => equality(left, right, input),
        Operator::NotEq | Operator::IsDistinctFrom => 1.0 - equality(left, right, input),
        Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => {
            let sides = range_of_sides(left, op, right)
                .and_then(|(column, low, high)| Some((input.column(column)?, low, high)));
            match sides {
                Some((column, low, high)) if column.range.is_some() => {
                    part_between(column, low, high)
                }
                _ => RANGE,
            }
        }
        _ => UNKNOWN,
    }
}

fn equality(left: &Expr, right: &Expr, input: &PlanEstimate) -> f64 {
    let (left, right) = (bare(left), bare(right));
    let (column, value) = match (left, right) {
        (Expr::Literal(value, _), other) | (other, Expr::Literal(value, _)) => (other, Some(value)),
        _ => (left, None),
    };
    if let (Expr::Column(column), Some(value)) = (column, value)
        && let Some(estimate) = input.column(column)
        && let (Some((min, max)), Some(value)) = (estimate.range, place(value))
        && (value < min || value > max)
    {
        return LEAST;
    }
    let distinct = match value {
        Some(_) => input.distinct_of(column),
        None => match (input.distinct_of(left), input.distinct_of(right)) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        },
    };
    distinct.map_or(EQUAL, |distinct| 1.0 / distinct.max(1.0))
}

fn nulls(inner: &Expr, input: &PlanEstimate) -> f64 {
    match bare(inner) {
        Expr::Column(column) => input.column(column).map_or(EQUAL, |column| column.nulls),
        _ => EQUAL,
    }
}

fn between(between: &Between, input: &PlanEstimate) -> f64 {
    let known = range_of_between(between)
        .and_then(|(column, low, high)| Some((input.column(column)?, low, high)))
        .filter(|(column, ..)| column.range.is_some());
    match known {
        Some((column, low, high)) => part_between(column, low, high),
        None => RANGE * RANGE,
    }
}

fn in_list(list: &InList, input: &PlanEstimate) -> f64 {
    let one = input
        .distinct_of(bare(&list.expr))
        .map_or(EQUAL, |distinct| 1.0 / distinct.max(1.0));
    (list.list.len() as f64 * one).min(1.0)
}

fn like(like: &Like, input: &PlanEstimate) -> f64 {
    let pattern = match bare(&like.pattern) {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    };
    match pattern {
        Some(pattern) if !pattern.contains(['%', '_']) => input
            .distinct_of(bare(&like.expr))
            .map_or(EQUAL, |distinct| 1.0 / distinct.max(1.0)),
        Some(pattern) if pattern.starts_with(['%', '_']) => LIKE_INSIDE,
        Some(_) => LIKE_PREFIX,
        None => LIKE_INSIDE,
    }
}

/// The part of a column's rows between two places.
fn part_between(column: &ColumnEstimate, low: f64, high: f64) -> f64 {
    let Some((min, max)) = column.range else {
        return RANGE;
    };
    let (low, high) = (low.max(min), high.min(max));
    if low > high {
        return LEAST;
    }
    let part = match max > min {
        // At least one of the values.
        true => ((high - low) / (max - min)).max(1.0 / column.distinct.max(1.0)),
        false => 1.0,
    };
    (part * (1.0 - column.nulls)).clamp(LEAST, 1.0)
}

/// The column that a predicate bounds by literals, and its bounds.
fn range_of(predicate: &Expr) -> Option<(&Column, f64, f64)> {
    match predicate {
        Expr::Between(between) if !between.negated => range_of_between(between),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => range_of_sides(left, *op, right),
        _ => None,
    }
}

fn range_of_between(between: &Between) -> Option<(&Column, f64, f64)> {
    let Expr::Column(column) = bare(&between.expr) else {
        return None;
    };
    Some((column, literal(&between.low)?, literal(&between.high)?))
}

fn range_of_sides<'a>(
    left: &'a Expr,
    op: Operator,
    right: &'a Expr,
) -> Option<(&'a Column, f64, f64)> {
    let (column, op, value) = match (bare(left), bare(right)) {
        (Expr::Column(column), _) => (column, op, literal(right)?),
        (_, Expr::Column(column)) => (column, op.swap()?, literal(left)?),
        _ => return None,
    };
    match op {
        Operator::Lt | Operator::LtEq => Some((column, f64::NEG_INFINITY, value)),
        Operator::Gt | Operator::GtEq => Some((column, value, f64::INFINITY)),
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<f64> {
    match bare(expr) {
        Expr::Literal(value, _) => place(value),
        _ => None,
    }
}

/// An expression without what does not change how its values are spread.
pub(crate) fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => bare(&alias.expr),
        Expr::Cast(cast) => bare(&cast.expr),
        Expr::TryCast(cast) => bare(&cast.expr),
        other => other,
    }
}

/// The column of a predicate about one column's own values.
fn only_column(predicate: &Expr) -> Option<&Column> {
    match predicate {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let is_values = matches!(
                op,
                Operator::Eq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq
            );
            match (bare(left), bare(right)) {
                (Expr::Column(column), Expr::Literal(..))
                | (Expr::Literal(..), Expr::Column(column))
                    if is_values =>
                {
                    Some(column)
                }
                _ => None,
            }
        }
        Expr::InList(list) if !list.negated => match bare(&list.expr) {
            Expr::Column(column) => Some(column),
            _ => None,
        },
        Expr::Between(between) => match bare(&between.expr) {
            Expr::Column(column) => Some(column),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::{col, lit};

    /// 1000 rows: `k` from 0 to 99, a tenth of it null; `name` of 50 texts without bounds.
    fn input() -> PlanEstimate {
        let column = |distinct, nulls, range| ColumnEstimate {
            distinct,
            nulls,
            range,
            width: 8.0,
        };
        PlanEstimate::new(
            1000.0,
            [
                (
                    Column::from_name("k"),
                    column(100.0, 0.1, Some((0.0, 100.0))),
                ),
                (Column::from_name("name"), column(50.0, 0.0, None)),
            ],
        )
    }

    fn assert_kept(predicate: Expr, part: f64) {
        let kept = kept(&[&predicate], &input()).rows;
        assert!(
            (kept - part).abs() < 1e-6,
            "{predicate}: {kept}, not {part}"
        );
    }

    #[test]
    fn values_are_taken_to_be_spread_evenly() {
        assert_kept(col("k").eq(lit(7_i64)), 0.01);
        assert_kept(col("k").not_eq(lit(7_i64)), 0.99);
        assert_kept(col("name").eq(lit("x")), 0.02);
        // A quarter of the range, of the nine tenths that are not null.
        assert_kept(col("k").lt(lit(25_i64)), 0.225);
        assert_kept(lit(75_i64).lt(col("k")), 0.225);
        assert_kept(col("k").between(lit(10_i64), lit(30_i64)), 0.18);
        // Both ends of one range.
        assert_kept(
            col("k").gt_eq(lit(10_i64)).and(col("k").lt_eq(lit(30_i64))),
            0.18,
        );
        assert_kept(col("k").in_list(vec![lit(1_i64), lit(2_i64)], false), 0.02);
        assert_kept(col("k").is_null(), 0.1);
        assert_kept(col("k").is_not_null(), 0.9);
        assert_kept(col("k").eq(lit(1_i64)).or(col("k").eq(lit(2_i64))), 0.0199);
        assert_kept(col("name").like(lit("x")), 0.02);
        assert_kept(col("name").like(lit("x%")), LIKE_PREFIX);
        assert_kept(col("name").like(lit("%x%")), LIKE_INSIDE);
        assert_kept(lit(true), 1.0);
    }

    #[test]
    fn what_lies_outside_of_the_bounds_keeps_next_to_nothing() {
        assert_kept(col("k").eq(lit(500_i64)), 0.0);
        assert_kept(col("k").gt(lit(500_i64)), 0.0);
        assert_kept(col("k").lt(lit(500_i64)), 0.9);
    }
}
