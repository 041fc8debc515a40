//! Filters in a form that bounds can be held against.
//!
//! DataFusion's pruning compares columns with literals. Some filters say the same about a column in other words; here
//! they are put so. The outcome is used for pruning only, so it may say less than the filter, never more.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr::Like;
use datafusion::logical_expr::{Expr, lit};
use datafusion::scalar::ScalarValue;

use super::transform_bounds::after_prefix;

/// `s LIKE 'ab%'` as `s >= 'ab' AND s < 'ac'`.
pub(crate) fn prunable(expr: Expr) -> Result<Expr> {
    expr.transform(|expr| match &expr {
        Expr::Like(like) => Ok(prefix_range(like).map_or_else(|| Transformed::no(expr.clone()), Transformed::yes)),
        _ => Ok(Transformed::no(expr)),
    })
    .data()
}

fn prefix_range(like: &Like) -> Option<Expr> {
    // Inside NOT a range that is wider than the pattern would rule out too much.
    if like.negated || like.case_insensitive || like.escape_char.is_some() {
        return None;
    }
    let Expr::Literal(pattern, _) = like.pattern.as_ref() else { return None };
    let text = pattern.try_as_str().flatten()?;
    let prefix = text.strip_suffix('%')?;
    // Only then is the range the pattern's very meaning.
    if prefix.is_empty() || prefix.contains(['%', '_', '\\']) {
        return None;
    }
    let literal = |s: String| match pattern {
        ScalarValue::Utf8View(_) => lit(ScalarValue::Utf8View(Some(s))),
        ScalarValue::LargeUtf8(_) => lit(ScalarValue::LargeUtf8(Some(s))),
        _ => lit(ScalarValue::Utf8(Some(s))),
    };
    let from = like.expr.as_ref().clone().gt_eq(literal(prefix.to_string()));
    let to = like.expr.as_ref().clone().lt(literal(after_prefix(prefix)?));
    Some(from.and(to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::logical_expr::col;

    #[test]
    fn a_prefix_is_a_range() {
        let like = |pattern: &str| prunable(col("s").like(lit(pattern))).expect("it is put so").to_string();
        assert_eq!(like("ab%"), "s >= Utf8(\"ab\") AND s < Utf8(\"ac\")");
        for pattern in ["%", "%b", "a_%", "a\\%%", "ab", "a%b%"] {
            assert!(like(pattern).contains("LIKE"), "{pattern}");
        }
        let negated = prunable(col("s").not_like(lit("ab%"))).expect("it stays").to_string();
        assert_eq!(negated, "s NOT LIKE Utf8(\"ab%\")");
    }
}
