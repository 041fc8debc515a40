//! Several lists of one value.
//!
//! DataFusion 54 makes one list of `x IN (…) AND x IN (…)`, and of the like with `NOT IN` and `OR`. Where nothing is left of the
//! lists it says TRUE or FALSE even if `x` is NULL, and it takes columns and NULLs in them for values like others. So the lists
//! are made one here, before it sees them:
//!
//! | written | becomes |
//! |---|---|
//! | `x IN (1, 2) AND x IN (2, 3)` | `x IN (2)` |
//! | `x IN (1, 2) AND x NOT IN (2)` | `x IN (1)` |
//! | `x IN (1) AND x IN (2)` | `x IS NULL AND NULL` |
//! | `x NOT IN (1, 2) OR x NOT IN (2, 3)` | `x NOT IN (2)` |
//! | `x NOT IN (1) OR x NOT IN (2)` | `x IS NOT NULL OR NULL` |
//! | `x IN (1, y, NULL) AND x IN (…)` | `(x IN (1) OR x = y OR NULL) AND x IN (…)` |

use std::collections::{HashMap, HashSet};

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, lit};
use datafusion::optimizer::AnalyzerRule;

use super::plan_expressions::change_expressions;

/// Goes over a plan whose types were made alike.
#[derive(Debug)]
pub(crate) struct SeveralLists;

impl AnalyzerRule for SeveralLists {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        change_expressions(plan, |expr, _| Ok(with_one_list(expr)))
    }

    fn name(&self) -> &str {
        "several_lists"
    }
}

/// What a value is looked for in.
struct List {
    value: Expr,
    negated: bool,
    items: Vec<ScalarValue>,
}

fn with_one_list(expr: Expr) -> Transformed<Expr> {
    let Expr::BinaryExpr(BinaryExpr { op, .. }) = &expr else {
        return Transformed::no(expr);
    };
    let op = *op;
    if !matches!(op, Operator::And | Operator::Or) {
        return Transformed::no(expr);
    }
    let mut operands = Vec::new();
    operands_of(&expr, op, &mut operands);
    let mut lists_of: HashMap<&Expr, usize> = HashMap::new();
    for (list, _) in operands.iter().filter_map(|operand| as_list(operand)) {
        *lists_of.entry(&*list.expr).or_default() += 1;
    }
    let several = |value: &Expr| lists_of.get(value).is_some_and(|lists| *lists > 1);
    if !lists_of.values().any(|lists| *lists > 1) {
        return Transformed::no(expr);
    }
    let mut lists: Vec<List> = Vec::new();
    let mut others = Vec::new();
    for operand in &operands {
        let list = as_list(operand).filter(|(list, _)| several(&list.expr));
        match list {
            Some((list, negated)) => match literals(list, negated) {
                Ok(list) => lists.push(list),
                Err(spelled_out) => others.push(spelled_out),
            },
            None => others.push((*operand).clone()),
        }
    }
    while let Some(first) = lists.first() {
        let value = first.value.clone();
        let (of_value, rest) = lists.into_iter().partition(|list| list.value == value);
        lists = rest;
        others.push(one_of(op, value, of_value));
    }
    let joined = others
        .into_iter()
        .reduce(|left, right| binary(left, op, right));
    match joined {
        Some(joined) => Transformed::yes(joined),
        None => Transformed::no(expr),
    }
}

fn operands_of<'a>(expr: &'a Expr, op: Operator, operands: &mut Vec<&'a Expr>) {
    match expr {
        Expr::BinaryExpr(inner) if inner.op == op => {
            operands_of(&inner.left, op, operands);
            operands_of(&inner.right, op, operands);
        }
        other => operands.push(other),
    }
}

/// The list of an operand, and whether the value is not to be in it.
fn as_list(expr: &Expr) -> Option<(&InList, bool)> {
    match expr {
        Expr::InList(list) if !list.expr.is_volatile() => Some((list, list.negated)),
        Expr::Not(inner) => as_list(inner).map(|(list, negated)| (list, !negated)),
        _ => None,
    }
}

/// The list, if it has nothing but values in it; otherwise what it means, spelled out.
fn literals(list: &InList, negated: bool) -> std::result::Result<List, Expr> {
    let (mut items, mut others) = (Vec::new(), Vec::new());
    for item in &list.list {
        match literal(item) {
            Some(value) => items.push(value),
            None => others.push(item),
        }
    }
    let value = (*list.expr).clone();
    if others.is_empty() {
        return Ok(List {
            value,
            negated,
            items,
        });
    }
    let (compares, joins) = match negated {
        true => (Operator::NotEq, Operator::And),
        false => (Operator::Eq, Operator::Or),
    };
    let known = (!items.is_empty()).then(|| in_list(value.clone(), items, negated));
    let spelled_out = others.into_iter().map(|item| match item {
        Expr::Literal(null, _) if null.is_null() => lit(ScalarValue::Boolean(None)),
        item => binary(value.clone(), compares, item.clone()),
    });
    let all = known.into_iter().chain(spelled_out);
    Err(all
        .reduce(|left, right| binary(left, joins, right))
        .unwrap_or_else(|| lit(negated)))
}

/// A value other than NULL.
fn literal(expr: &Expr) -> Option<ScalarValue> {
    let value = match expr {
        Expr::Literal(value, _) => value.clone(),
        Expr::Cast(cast) => literal(&cast.expr)?.cast_to(cast.field.data_type()).ok()?,
        _ => return None,
    };
    (!value.is_null()).then_some(value)
}

/// One condition in place of several of one value.
fn one_of(op: Operator, value: Expr, lists: Vec<List>) -> Expr {
    // What narrows: with AND what it must be in, with OR what it must not.
    let narrows_negated = op == Operator::Or;
    let (narrow, wide): (Vec<List>, Vec<List>) = lists
        .into_iter()
        .partition(|list| list.negated == narrows_negated);
    let mut wide: Vec<ScalarValue> = wide.into_iter().flat_map(|list| list.items).collect();
    let mut narrow = narrow.into_iter().map(|list| list.items);
    let Some(mut kept) = narrow.next() else {
        let mut seen = HashSet::new();
        wide.retain(|item| seen.insert(item.clone()));
        return in_list(value, wide, !narrows_negated);
    };
    let wide: HashSet<ScalarValue> = wide.into_iter().collect();
    for items in narrow {
        let items: HashSet<ScalarValue> = items.into_iter().collect();
        kept.retain(|item| items.contains(item));
    }
    kept.retain(|item| !wide.contains(item));
    let unknown = lit(ScalarValue::Boolean(None));
    match (kept.is_empty(), narrows_negated) {
        (false, negated) => in_list(value, kept, negated),
        (true, false) => binary(value.is_null(), Operator::And, unknown),
        (true, true) => binary(value.is_not_null(), Operator::Or, unknown),
    }
}

fn in_list(value: Expr, items: Vec<ScalarValue>, negated: bool) -> Expr {
    value.in_list(items.into_iter().map(lit).collect(), negated)
}

fn binary(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}
