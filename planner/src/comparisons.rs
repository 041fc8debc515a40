//! What numbers of different kinds, and times and texts, are compared as.
//!
//! | one side | the other | both become | DataFusion's own choice |
//! |---|---|---|---|
//! | FLOAT, DOUBLE | DECIMAL, as `1.5` is | DOUBLE, as in MySQL | DECIMAL(30, 15), which holds no 1e16 and no 1e-16 |
//! | TIMESTAMP | a text | the TIMESTAMP's type | nanoseconds, which end in 2262 |
//! | TIMESTAMP | DATE | the TIMESTAMP's type | the same |
//! | TIME of a column | TIME, as `TIME '12:00:00'` is | the column's type | an error |
//! | UUID | a text | UUID | an error |
//!
//! What becomes one value of either (branches of CASE, columns of a UNION) is made alike as the first and the third.
//!
//! The last three are made alike as early as SQL is planned, since DataFusion looks at the types of operators then
//! ([`AlikeOperators`]); in lists, which it looks at later, by a rule ([`AlikeLists`]). Zeros of both signs are one
//! ([`EqualZeros`], [`EqualFloats`]), and several lists of one value one list ([`SeveralLists`]).
//! Texts of times are MySQL's ([`TimeTexts`]).

mod alike;
mod counted_rows;
mod equal_floats;
mod plan_expressions;
mod several_lists;
mod time_texts;
mod zeros;

pub(crate) use alike::{AlikeLists, AlikeOperators};
pub(crate) use counted_rows::CountedRows;
pub(crate) use equal_floats::EqualFloats;
pub(crate) use plan_expressions::change_expressions;
pub(crate) use several_lists::SeveralLists;
pub(crate) use time_texts::TimeTexts;
pub use time_texts::time_in_full;
pub(crate) use zeros::EqualZeros;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Operator};

/// Gives both sides of a comparison, and of arithmetic, one type before DataFusion does. See the [module](self).
#[derive(Debug)]
pub(crate) struct Comparisons;

impl FunctionRewrite for Comparisons {
    fn name(&self) -> &str {
        "comparisons"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right })
                if is_comparison(op) || op.is_numerical_operators() =>
            {
                let mut sides = vec![*left, *right];
                let changed = unify(&mut sides, schema, is_comparison(op));
                let right = Box::new(take(&mut sides));
                let left = Box::new(take(&mut sides));
                let expr = Expr::BinaryExpr(BinaryExpr { left, op, right });
                Ok(Transformed::new_transformed(expr, changed))
            }
            Expr::Between(between) => {
                let mut parts = vec![*between.expr, *between.low, *between.high];
                let changed = unify(&mut parts, schema, true);
                let high = Box::new(take(&mut parts));
                let low = Box::new(take(&mut parts));
                let expr = Box::new(take(&mut parts));
                let expr = Expr::Between(Between {
                    expr,
                    negated: between.negated,
                    low,
                    high,
                });
                Ok(Transformed::new_transformed(expr, changed))
            }
            Expr::InList(in_list) => {
                let mut parts = in_list.list;
                parts.insert(0, *in_list.expr);
                let changed = unify(&mut parts, schema, true);
                let expr = Box::new(parts.remove(0));
                let expr = Expr::InList(InList {
                    expr,
                    list: parts,
                    negated: in_list.negated,
                });
                Ok(Transformed::new_transformed(expr, changed))
            }
            // A date or a time is like a pattern if its text is.
            Expr::Like(mut like)
                if like
                    .expr
                    .get_type(schema)
                    .is_ok_and(|of| of == DataType::Date32 || is_timestamp(&of)) =>
            {
                *like.expr = cast(std::mem::take(&mut *like.expr), &DataType::Utf8);
                Ok(Transformed::yes(Expr::Like(like)))
            }
            expr => Ok(Transformed::no(expr)),
        }
    }
}

fn take(parts: &mut Vec<Expr>) -> Expr {
    parts.pop().unwrap_or_default()
}

/// Casts those parts that have to become another type; whether there were any.
fn unify(parts: &mut [Expr], schema: &DFSchema, compared: bool) -> bool {
    // A type that cannot be told is an error that DataFusion's own coercion words.
    let types: Vec<Option<DataType>> = parts
        .iter()
        .map(|part| part.get_type(schema).ok())
        .collect();
    let has = |of: fn(&DataType) -> bool| types.iter().flatten().any(of);
    let (from, to): (fn(&DataType) -> bool, DataType) =
        if has(DataType::is_floating) && has(DataType::is_decimal) {
            (DataType::is_decimal, DataType::Float64)
        } else if compared && has(is_timestamp) && has(DataType::is_string) {
            let Some(timestamp) = types.iter().flatten().find(|of| is_timestamp(of)) else {
                return false;
            };
            (DataType::is_string, timestamp.clone())
        } else {
            return false;
        };
    let mut changed = false;
    for (part, of) in parts.iter_mut().zip(&types) {
        if of.as_ref().is_some_and(from) {
            let expr = std::mem::take(part);
            *part = cast(expr, &to);
            changed = true;
        }
    }
    changed
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(
        op,
        Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom
    )
}

fn is_timestamp(of: &DataType) -> bool {
    matches!(of, DataType::Timestamp(..))
}

fn cast(expr: Expr, to: &DataType) -> Expr {
    match expr {
        // Decimals only: a text that is no time is to fail when the query runs, as a column of texts does.
        Expr::Literal(value, metadata) if value.data_type().is_decimal() => {
            match value.cast_to(to) {
                Ok(value) => Expr::Literal(value, metadata),
                Err(_) => Expr::Cast(Cast::new(
                    Box::new(Expr::Literal(value, metadata)),
                    to.clone(),
                )),
            }
        }
        expr => Expr::Cast(Cast::new(Box::new(expr), to.clone())),
    }
}
