//! Floats of columns that are equal in SQL: `-0.0` and `0.0`, and NaN of any bits.
//!
//! Arrow compares, hashes and groups floats by their bits, so what decides which rows are alike goes through
//! [`normal_float`] first: both sides of a comparison of columns, keys of joins, of groups and of windows, rows of DISTINCT
//! and of set operations. A literal needs no help but for a zero ([`EqualZeros`](super::EqualZeros)), and comparing with one
//! goes on to prune.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::{AggregateFunctionParams, Case, InSubquery, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, ExprSchemable, GroupingSet, Join, JoinConstraint,
    LogicalPlan, Projection, Subquery,
};
use datafusion::optimizer::AnalyzerRule;

use super::is_comparison;
use super::plan_expressions::change_expressions;
use crate::functions::{has_floats, normal_float};

/// Goes over a plan whose types were made alike.
#[derive(Debug)]
pub(crate) struct EqualFloats;

impl AnalyzerRule for EqualFloats {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        change_expressions(plan, in_expression)?
            .transform_up_with_subqueries(in_plan)
            .data()
    }

    fn name(&self) -> &str {
        "equal_floats"
    }
}

fn in_expression(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_float = |expr: &Expr| is_float(expr, schema);
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_comparison(op)
                && !is_literal(&left)
                && !is_literal(&right)
                && (is_float(&left) || is_float(&right)) =>
        {
            Transformed::yes(Expr::BinaryExpr(BinaryExpr {
                left: Box::new(normal_float(*left)),
                op,
                right: Box::new(normal_float(*right)),
            }))
        }
        Expr::Between(mut between)
            if is_float(&between.expr)
                && !(is_literal(&between.low) && is_literal(&between.high)) =>
        {
            for part in [&mut between.expr, &mut between.low, &mut between.high] {
                normalise(part);
            }
            Transformed::yes(Expr::Between(between))
        }
        Expr::InList(mut list) if is_float(&list.expr) && !list.list.iter().all(is_literal) => {
            normalise(&mut list.expr);
            list.list.iter_mut().for_each(normalise);
            Transformed::yes(Expr::InList(list))
        }
        Expr::InSubquery(mut of) if is_float(&of.expr) => {
            normalise(&mut of.expr);
            let subquery = normal_rows(of.subquery)?;
            Transformed::yes(Expr::InSubquery(InSubquery { subquery, ..of }))
        }
        Expr::SetComparison(mut of) if is_float(&of.expr) => {
            normalise(&mut of.expr);
            of.subquery = normal_rows(of.subquery)?;
            Transformed::yes(Expr::SetComparison(of))
        }
        Expr::Case(Case {
            expr: Some(mut value),
            mut when_then_expr,
            else_expr,
        }) if is_float(&value) => {
            normalise(&mut value);
            for (when, _) in &mut when_then_expr {
                let expr = std::mem::take(&mut **when);
                **when = normal_float(expr);
            }
            Transformed::yes(Expr::Case(Case {
                expr: Some(value),
                when_then_expr,
                else_expr,
            }))
        }
        Expr::ScalarFunction(mut call)
            if call.func.name() == "nullif" && call.args.iter().any(is_float) =>
        {
            call.args = call.args.into_iter().map(normal_float).collect();
            Transformed::yes(Expr::ScalarFunction(call))
        }
        Expr::AggregateFunction(mut of)
            if tells_apart(of.func.name(), of.params.distinct)
                && of.params.args.iter().any(is_float) =>
        {
            let AggregateFunctionParams { args, .. } = &mut of.params;
            normalise_floats(args, schema);
            Transformed::yes(Expr::AggregateFunction(of))
        }
        Expr::WindowFunction(mut of) => {
            let changed = in_window(&mut of, schema);
            Transformed::new_transformed(Expr::WindowFunction(of), changed)
        }
        other => Transformed::no(other),
    })
}

/// Whether an aggregate counts values that are alike once.
fn tells_apart(name: &str, distinct: bool) -> bool {
    distinct || name == "approx_distinct"
}

fn in_window(of: &mut WindowFunction, schema: &DFSchema) -> bool {
    let apart = tells_apart(of.fun.name(), of.params.distinct);
    let params = &mut of.params;
    let mut changed = normalise_floats(&mut params.partition_by, schema);
    for by in &mut params.order_by {
        if is_float(&by.expr, schema) {
            normalise(&mut by.expr);
            changed = true;
        }
    }
    if apart {
        changed |= normalise_floats(&mut params.args, schema);
    }
    changed
}

fn in_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => groups(aggregate),
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let (input, changed) = match normal_columns(&input)? {
                Some(projection) => (Arc::new(LogicalPlan::Projection(projection)), true),
                None => (input, false),
            };
            let plan = LogicalPlan::Distinct(Distinct::All(input));
            Ok(Transformed::new_transformed(plan, changed))
        }
        LogicalPlan::Join(join) => keys(join),
        other => Ok(Transformed::no(other)),
    }
}

fn groups(mut aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    if let [Expr::GroupingSet(_)] = aggregate.group_expr.as_slice() {
        return grouping_sets(aggregate);
    }
    let schema = Arc::clone(aggregate.input.schema());
    let names = NamePreserver::new_for_projection();
    let mut changed = false;
    for group in &mut aggregate.group_expr {
        if is_float(group, &schema) {
            let name = names.save(group);
            normalise(group);
            *group = name.restore(std::mem::take(group));
            changed = true;
        }
    }
    let plan = match changed {
        true => Aggregate::try_new(aggregate.input, aggregate.group_expr, aggregate.aggr_expr)?,
        false => aggregate,
    };
    Ok(Transformed::new_transformed(
        LogicalPlan::Aggregate(plan),
        changed,
    ))
}

/// Expressions in sets have no names of their own, so what becomes of them is computed below, under the name they had.
fn grouping_sets(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let schema = Arc::clone(aggregate.input.schema());
    let mut columns: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
    let mut renamed: HashMap<Expr, Expr> = HashMap::new();
    for set in &aggregate.group_expr {
        let Expr::GroupingSet(set) = set else {
            continue;
        };
        for group in set.distinct_expr() {
            if !is_float(group, &schema) || renamed.contains_key(group) {
                continue;
            }
            let (relation, name) = group.qualified_name();
            let normal = normal_float(group.clone()).alias_qualified(relation.clone(), &name);
            match columns.iter_mut().find(|column| *column == group) {
                Some(column) => *column = normal,
                None => columns.push(normal),
            }
            renamed.insert(group.clone(), Expr::Column(Column::new(relation, name)));
        }
    }
    if renamed.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let rename = |expr: Expr| renamed.get(&expr).cloned().unwrap_or(expr);
    let rename_set = |set: Vec<Expr>| -> Vec<Expr> { set.into_iter().map(rename).collect() };
    let groups = aggregate
        .group_expr
        .into_iter()
        .map(|set| match set {
            Expr::GroupingSet(GroupingSet::Rollup(set)) => {
                Expr::GroupingSet(GroupingSet::Rollup(rename_set(set)))
            }
            Expr::GroupingSet(GroupingSet::Cube(set)) => {
                Expr::GroupingSet(GroupingSet::Cube(rename_set(set)))
            }
            Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => Expr::GroupingSet(
                GroupingSet::GroupingSets(sets.into_iter().map(rename_set).collect()),
            ),
            other => other,
        })
        .collect();
    let input = Projection::try_new(columns, aggregate.input)?;
    let input = Arc::new(LogicalPlan::Projection(input));
    let plan = Aggregate::try_new(input, groups, aggregate.aggr_expr)?;
    Ok(Transformed::yes(LogicalPlan::Aggregate(plan)))
}

fn keys(mut join: Join) -> Result<Transformed<LogicalPlan>> {
    let (left, right) = (join.left.schema(), join.right.schema());
    let mut changed = false;
    for (of_left, of_right) in &mut join.on {
        if is_float(of_left, left) || is_float(of_right, right) {
            normalise(of_left);
            normalise(of_right);
            changed = true;
        }
    }
    if changed {
        // Which columns `*` shows is settled by now, and keys of USING would have to be columns.
        join.join_constraint = JoinConstraint::On;
    }
    Ok(Transformed::new_transformed(
        LogicalPlan::Join(join),
        changed,
    ))
}

/// The rows of a plan with floats that are equal made the same; none if it has no floats.
fn normal_columns(input: &Arc<LogicalPlan>) -> Result<Option<Projection>> {
    let schema = input.schema();
    if !schema
        .fields()
        .iter()
        .any(|field| has_floats(field.data_type()))
    {
        return Ok(None);
    }
    let columns = schema
        .iter()
        .map(|(qualifier, field)| {
            let column = Expr::Column(Column::from((qualifier, field)));
            match has_floats(field.data_type()) {
                true => normal_float(column).alias_qualified(qualifier.cloned(), field.name()),
                false => column,
            }
        })
        .collect();
    Ok(Some(Projection::try_new(columns, Arc::clone(input))?))
}

fn normal_rows(subquery: Subquery) -> Result<Subquery> {
    Ok(match normal_columns(&subquery.subquery)? {
        Some(projection) => subquery.with_plan(Arc::new(LogicalPlan::Projection(projection))),
        None => subquery,
    })
}

fn normalise(expr: &mut Expr) {
    if !is_literal(expr) {
        *expr = normal_float(std::mem::take(expr));
    }
}

fn normalise_floats(exprs: &mut [Expr], schema: &DFSchema) -> bool {
    let mut changed = false;
    for expr in exprs {
        if is_float(expr, schema) {
            normalise(expr);
            changed = true;
        }
    }
    changed
}

fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).as_ref().is_ok_and(has_floats)
}

/// A literal, or a cast of one, which planning makes a literal.
fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(..) => true,
        Expr::Cast(cast) => {
            matches!(cast.expr.as_ref(), Expr::Literal(..))
                && !matches!(cast.field.data_type(), DataType::Null)
        }
        _ => false,
    }
}
