//! Filters in a form that bounds can be held against.
//!
//! DataFusion's pruning compares columns with literals. Some filters say something of a column in other words; here
//! they are put so. The outcome is used for pruning only: it may hold for more rows than the filter, never for fewer.

use datafusion::error::Result;
use datafusion::logical_expr::expr::Like;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, lit};
use datafusion::scalar::ScalarValue;

use super::transform_bounds::after_prefix;

const MICROS_PER_SECOND: i64 = 1_000_000;

/// The filter, with conjuncts and disjuncts put as comparisons of columns where that is possible. Only these are
/// looked into, since below a NOT "more rows" would become fewer.
pub(crate) fn prunable(expr: Expr) -> Result<Expr> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::And | Operator::Or),
            right,
        }) => Expr::BinaryExpr(BinaryExpr {
            left: Box::new(prunable(*left)?),
            op,
            right: Box::new(prunable(*right)?),
        }),
        Expr::Like(like) => prefix_range(&like).unwrap_or(Expr::Like(like)),
        Expr::BinaryExpr(comparison) => {
            let plain = truncated_time(&comparison).or_else(|| date_as_time(&comparison));
            plain.unwrap_or(Expr::BinaryExpr(comparison))
        }
        other => other,
    })
}

/// `s LIKE 'ab%'` as `s >= 'ab' AND s < 'ac'`.
fn prefix_range(like: &Like) -> Option<Expr> {
    if like.negated || like.case_insensitive || like.escape_char.is_some() {
        return None;
    }
    let Expr::Literal(pattern, _) = like.pattern.as_ref() else {
        return None;
    };
    let text = pattern.try_as_str().flatten()?;
    let prefix = &text[..text.find(['%', '_', '\\'])?];
    if prefix.is_empty() {
        return None;
    }
    let literal = |s: String| match pattern {
        ScalarValue::Utf8View(_) => lit(ScalarValue::Utf8View(Some(s))),
        ScalarValue::LargeUtf8(_) => lit(ScalarValue::LargeUtf8(Some(s))),
        _ => lit(ScalarValue::Utf8(Some(s))),
    };
    let from = like
        .expr
        .as_ref()
        .clone()
        .gt_eq(literal(prefix.to_string()));
    let to = like
        .expr
        .as_ref()
        .clone()
        .lt(literal(after_prefix(prefix)?));
    Some(from.and(to))
}

/// `date_trunc('day', ts) = t` as `ts >= t AND ts < t + 1 day`, and so for the other comparisons: what is truncated
/// is no larger than it was, and smaller by less than a unit.
fn truncated_time(comparison: &BinaryExpr) -> Option<Expr> {
    let (function, op, literal) = match (comparison.left.as_ref(), comparison.right.as_ref()) {
        (Expr::ScalarFunction(function), Expr::Literal(literal, _)) => {
            (function, comparison.op, literal)
        }
        (Expr::Literal(literal, _), Expr::ScalarFunction(function)) => {
            (function, comparison.op.swap()?, literal)
        }
        _ => return None,
    };
    let [Expr::Literal(unit, _), column @ Expr::Column(_)] = function.args.as_slice() else {
        return None;
    };
    if function.name() != "date_trunc" {
        return None;
    }
    let ScalarValue::TimestampMicrosecond(Some(at), zone) = literal else {
        return None;
    };
    // Days of a zone are not all of one length; those of UTC are, and all our timestamps are of UTC or of no zone.
    if zone
        .as_deref()
        .is_some_and(|zone| zone != "UTC" && zone != "+00:00")
    {
        return None;
    }
    let end = at.checked_add(longest_unit_micros(
        &unit.try_as_str().flatten()?.to_lowercase(),
    )?)?;
    let time = |at| lit(ScalarValue::TimestampMicrosecond(Some(at), zone.clone()));
    let column = || column.clone();
    Some(match op {
        Operator::Eq => column().gt_eq(time(*at)).and(column().lt(time(end))),
        Operator::Gt => column().gt(time(*at)),
        Operator::GtEq => column().gt_eq(time(*at)),
        Operator::Lt | Operator::LtEq => column().lt(time(end)),
        _ => return None,
    })
}

/// `CAST(d AS TIMESTAMP) < t` as a comparison of the date: each date is its midnight.
fn date_as_time(comparison: &BinaryExpr) -> Option<Expr> {
    let (side, op, literal) = match (comparison.left.as_ref(), comparison.right.as_ref()) {
        (Expr::Cast(cast), Expr::Literal(literal, _)) => (cast, comparison.op, literal),
        (Expr::Literal(literal, _), Expr::Cast(cast)) => (cast, comparison.op.swap()?, literal),
        _ => return None,
    };
    let (column @ Expr::Column(_), ScalarValue::TimestampMicrosecond(Some(at), _)) =
        (side.expr.as_ref(), literal)
    else {
        return None;
    };
    const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
    let day = i32::try_from(at.div_euclid(MICROS_PER_DAY)).ok()?;
    let midnight = at.rem_euclid(MICROS_PER_DAY) == 0;
    let date = lit(ScalarValue::Date32(Some(day)));
    let column = column.clone();
    Some(match op {
        // A time of day that is not midnight equals none; that none is kept need not be said.
        Operator::Eq => column.eq(date),
        Operator::Lt if midnight => column.lt(date),
        Operator::Lt | Operator::LtEq => column.lt_eq(date),
        Operator::GtEq if midnight => column.gt_eq(date),
        Operator::GtEq | Operator::Gt => column.gt(date),
        _ => return None,
    })
}

/// The length of a unit of time; of months, quarters and years the longest there are.
fn longest_unit_micros(unit: &str) -> Option<i64> {
    let seconds = match unit {
        "second" => 1,
        "minute" => 60,
        "hour" => 3600,
        "day" => 86_400,
        "week" => 7 * 86_400,
        "month" => 31 * 86_400,
        "quarter" => 92 * 86_400,
        "year" => 366 * 86_400,
        _ => return None,
    };
    Some(seconds * MICROS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::functions::expr_fn::date_trunc;
    use datafusion::logical_expr::{col, not};

    fn put(expr: Expr) -> String {
        prunable(expr).expect("it is put so").to_string()
    }

    #[test]
    fn a_prefix_is_a_range() {
        let like = |pattern: &str| put(col("s").like(lit(pattern)));
        assert_eq!(like("ab%"), "s >= Utf8(\"ab\") AND s < Utf8(\"ac\")");
        assert_eq!(like("a_%"), "s >= Utf8(\"a\") AND s < Utf8(\"b\")");
        assert_eq!(like("a%b%"), "s >= Utf8(\"a\") AND s < Utf8(\"b\")");
        for pattern in ["%", "%b", "_a", "\\%a%", "ab"] {
            assert!(like(pattern).contains("LIKE"), "{pattern}");
        }
        assert_eq!(
            put(col("s").not_like(lit("ab%"))),
            "s NOT LIKE Utf8(\"ab%\")"
        );
        assert!(put(not(col("s").like(lit("ab%")))).contains("LIKE"));
    }

    #[test]
    fn a_date_compared_with_a_time_is_compared_with_its_day() {
        use arrow::datatypes::{DataType, TimeUnit};
        use datafusion::logical_expr::cast;
        let d = || cast(col("d"), DataType::Timestamp(TimeUnit::Microsecond, None));
        let time = |at| lit(ScalarValue::TimestampMicrosecond(Some(at), None));
        let day = lit(ScalarValue::Date32(Some(1)));
        let midnight = 86_400 * MICROS_PER_SECOND;
        let column = || col("d");
        for (expr, expected) in [
            (d().eq(time(midnight)), column().eq(day.clone())),
            (d().lt(time(midnight)), column().lt(day.clone())),
            (d().lt(time(midnight + 1)), column().lt_eq(day.clone())),
            (d().gt_eq(time(midnight)), column().gt_eq(day.clone())),
            (d().gt_eq(time(midnight + 1)), column().gt(day.clone())),
            (time(midnight).lt(d()), column().gt(day.clone())),
        ] {
            assert_eq!(put(expr), expected.to_string());
        }
        // The evening before 1970 is of the day -1.
        let before = lit(ScalarValue::Date32(Some(-1)));
        assert_eq!(put(d().gt_eq(time(-1))), column().gt(before).to_string());
    }

    #[test]
    fn truncated_times_are_ranges() {
        let day = 86_400 * MICROS_PER_SECOND;
        let time = |at| lit(ScalarValue::TimestampMicrosecond(Some(at), None));
        let truncated = || date_trunc(lit("day"), col("ts"));
        assert_eq!(
            put(truncated().eq(time(day))),
            put(col("ts").gt_eq(time(day)).and(col("ts").lt(time(2 * day))))
        );
        assert_eq!(
            put(truncated().lt_eq(time(day))),
            put(col("ts").lt(time(2 * day)))
        );
        assert_eq!(put(time(day).lt(truncated())), put(col("ts").gt(time(day))));
        assert!(put(truncated().not_eq(time(day))).contains("date_trunc"));
    }
}
