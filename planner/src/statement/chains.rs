//! Long chains of operators, made harmless.
//!
//! `a OR b OR c …` parses into a tree as deep as it is long, and whatever walks over it afterwards recurses as deep:
//!
//! ```text
//!        OR                                     OR
//!       OR d         a chain of AND or OR      /  \
//!      OR c      ─────── is balanced ──────▶  OR    OR
//!     a  b                                   a b   c d
//! ```
//!
//! `x = 1 OR x = 2 …` becomes `x IN (1, 2, …)`. Other chains (`a + b + …`, `SELECT … UNION SELECT … UNION …`) keep their
//! shape, as it is their meaning, and have a longest length. Nothing here recurses along a chain, not even to drop it.

use std::mem;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, SetExpr, Value, Values, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::parser::ParserError;

/// The most operators in a chain that keeps its shape, and the most set operations.
const LONGEST_CHAIN: usize = 500;
/// The most common table expressions of a statement: a chain of them is as deep as it is long, once it is planned.
const MOST_CTES: usize = 500;
/// Shorter chains of AND or OR stay as they were written.
const WORTH_BALANCING: usize = 32;

/// Makes the chains of a query harmless.
///
/// # Errors
/// A chain is too long.
pub(super) fn tame_query(query: &mut Query) -> Result<(), ParserError> {
    tame(query)
}

/// Makes the chains of an expression harmless.
///
/// # Errors
/// A chain is too long.
pub(super) fn tame_expression(expression: &mut Expr) -> Result<(), ParserError> {
    tame(expression)
}

fn tame(tree: &mut impl VisitMut) -> Result<(), ParserError> {
    let mut tamer = Tamer::default();
    let _ = tree.visit(&mut tamer);
    match tamer.too_long {
        true => Err(ParserError::RecursionLimitExceeded),
        false => Ok(()),
    }
}

#[derive(Default)]
struct Tamer {
    ctes: usize,
    /// Found a chain that is too long. The visit goes on, since all chains must be taken apart before they are dropped.
    too_long: bool,
}

impl VisitorMut for Tamer {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.ctes += query.with.as_ref().map_or(0, |with| with.cte_tables.len());
        self.too_long |= self.ctes > MOST_CTES;
        if set_operations(&query.body) > LONGEST_CHAIN {
            self.take_query_apart(&mut query.body);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::BinaryOp {
            op: op @ (BinaryOperator::And | BinaryOperator::Or),
            ..
        } = expr
        {
            let op = op.clone();
            balance(expr, &op);
        } else if chain_length(expr) > LONGEST_CHAIN {
            self.take_apart(expr);
        }
        ControlFlow::Continue(())
    }
}

impl Tamer {
    fn take_apart(&mut self, expr: &mut Expr) {
        self.too_long = true;
        let mut rest = mem::replace(expr, null());
        while let Some(left) = left_child(&mut rest) {
            let next = mem::replace(left, null());
            let _ = rest.visit(self);
            rest = next;
        }
        let _ = rest.visit(self);
    }

    fn take_query_apart(&mut self, body: &mut SetExpr) {
        self.too_long = true;
        let mut rest = mem::replace(body, no_rows());
        while let SetExpr::SetOperation { left, .. } = &mut rest {
            let next = mem::replace(&mut **left, no_rows());
            let _ = rest.visit(self);
            rest = next;
        }
        let _ = rest.visit(self);
    }
}

fn null() -> Expr {
    Expr::Value(Value::Null.into())
}

fn no_rows() -> SetExpr {
    SetExpr::Values(Values {
        explicit_row: false,
        value_keyword: false,
        rows: Vec::new(),
    })
}

fn set_operations(body: &SetExpr) -> usize {
    let mut count = 0;
    let mut at = body;
    while let SetExpr::SetOperation { left, .. } = at {
        count += 1;
        at = left;
    }
    count
}

/// The operand that a chain of operators goes on in.
fn left_child(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::BinaryOp { left, .. } => Some(left),
        Expr::Cast { expr, .. }
        | Expr::Collate { expr, .. }
        | Expr::InList { expr, .. }
        | Expr::InSubquery { expr, .. }
        | Expr::Between { expr, .. }
        | Expr::Like { expr, .. }
        | Expr::ILike { expr, .. }
        | Expr::RLike { expr, .. }
        | Expr::SimilarTo { expr, .. } => Some(expr),
        Expr::AtTimeZone { timestamp, .. } => Some(timestamp),
        Expr::CompoundFieldAccess { root, .. } => Some(root),
        Expr::IsNull(expr)
        | Expr::IsNotNull(expr)
        | Expr::IsTrue(expr)
        | Expr::IsNotTrue(expr)
        | Expr::IsFalse(expr)
        | Expr::IsNotFalse(expr)
        | Expr::IsUnknown(expr)
        | Expr::IsNotUnknown(expr)
        | Expr::IsDistinctFrom(expr, _)
        | Expr::IsNotDistinctFrom(expr, _) => Some(expr),
        _ => None,
    }
}

fn chain_length(expr: &mut Expr) -> usize {
    let mut length = 0;
    let mut at = expr;
    while let Some(left) = left_child(at) {
        length += 1;
        if length > LONGEST_CHAIN {
            break;
        }
        at = left;
    }
    length
}

/// Makes a chain of AND or OR as deep as the logarithm of its length.
fn balance(expr: &mut Expr, op: &BinaryOperator) {
    let mut length = 1;
    let mut at: &Expr = expr;
    while let Expr::BinaryOp { left, op: of, .. } = at {
        if of != op {
            break;
        }
        length += 1;
        at = left;
    }
    if length < WORTH_BALANCING {
        return;
    }
    let mut operands = Vec::with_capacity(length);
    let mut rest = mem::replace(expr, null());
    loop {
        match rest {
            Expr::BinaryOp {
                left,
                op: of,
                right,
            } if of == *op => {
                operands.push(*right);
                rest = *left;
            }
            first => {
                operands.push(first);
                break;
            }
        }
    }
    operands.reverse();
    if *op == BinaryOperator::Or
        && let Some(list) = as_list(&mut operands)
    {
        *expr = list;
        return;
    }
    *expr = balanced(&mut operands.into_iter(), length, op);
}

/// The next `count` operands as a tree.
fn balanced(operands: &mut impl Iterator<Item = Expr>, count: usize, op: &BinaryOperator) -> Expr {
    if count <= 1 {
        return operands.next().unwrap_or_else(null);
    }
    let left = balanced(operands, count / 2, op);
    let right = balanced(operands, count - count / 2, op);
    Expr::BinaryOp {
        left: Box::new(left),
        op: op.clone(),
        right: Box::new(right),
    }
}

/// `x = 1 OR x = 2 OR …` as `x IN (1, 2, …)`; leaves other operands alone.
fn as_list(operands: &mut Vec<Expr>) -> Option<Expr> {
    let equality = |expr: &Expr| match expr {
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            right,
        } => {
            let column = matches!(**left, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
            let literal = matches!(**right, Expr::Value(_));
            (column && literal).then(|| left.clone())
        }
        _ => None,
    };
    let column = equality(operands.first()?)?;
    if !operands
        .iter()
        .all(|expr| equality(expr).as_ref() == Some(&column))
    {
        return None;
    }
    let list = mem::take(operands)
        .into_iter()
        .filter_map(|expr| match expr {
            Expr::BinaryOp { right, .. } => Some(*right),
            _ => None,
        })
        .collect();
    Some(Expr::InList {
        expr: column,
        list,
        negated: false,
    })
}

#[cfg(test)]
mod tests {
    use crate::statement::{ParseError, Statement, parse_statement};

    fn parsed(sql: &str) -> Result<String, ParseError> {
        parse_statement(sql).map(|parsed| match parsed.statement {
            Statement::Query(query) => query.ast.to_string(),
            other => panic!("{other:?}"),
        })
    }

    fn chain(operand: impl Fn(usize) -> String, operator: &str, length: usize) -> String {
        let operands: Vec<String> = (0..length).map(operand).collect();
        operands.join(operator)
    }

    #[test]
    fn a_long_or_of_one_column_is_a_list() {
        let or = chain(|i| format!("id = {i}"), " OR ", 100_000);
        let list = chain(|i| i.to_string(), ", ", 100_000);
        assert_eq!(
            parsed(&format!("SELECT 1 FROM t WHERE {or}")).unwrap(),
            format!("SELECT 1 FROM t WHERE id IN ({list})")
        );
    }

    #[test]
    fn a_long_and_keeps_its_operands_in_order() {
        let and = chain(|i| format!("a <> {i}"), " AND ", 100_000);
        let sql = format!("SELECT 1 FROM t WHERE {and}");
        assert_eq!(parsed(&sql).unwrap(), sql);
    }

    #[test]
    fn chains_that_cannot_be_balanced_are_refused_and_end_no_thread() {
        for sql in [
            format!("SELECT {}", chain(|_| "1".into(), " + ", 1_000_000)),
            format!(
                "SELECT {}, {}",
                chain(|_| "1".into(), " - ", 300_000),
                chain(|_| "'a'".into(), " || ", 300_000)
            ),
            format!("SELECT 1{}", " IS NULL".repeat(300_000)),
            chain(|i| format!("SELECT {i}"), " UNION ", 100_000),
            format!(
                "WITH {} SELECT 1",
                chain(|i| format!("c{i} AS (SELECT 1)"), ", ", 10_000)
            ),
        ] {
            assert_eq!(
                parsed(&sql).unwrap_err(),
                ParseError::TooDeep,
                "{}",
                &sql[..60]
            );
        }
    }

    #[test]
    fn chains_that_people_write_stay_as_they_are() {
        for sql in [
            "SELECT a OR b OR c AND d FROM t".to_string(),
            format!("SELECT {}", chain(|i| i.to_string(), " + ", 400)),
            chain(|i| format!("SELECT {i}"), " UNION ALL ", 400),
        ] {
            assert_eq!(parsed(&sql).unwrap(), sql);
        }
    }
}
