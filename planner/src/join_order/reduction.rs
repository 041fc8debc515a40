//! Aggregates that compute only the groups that their join will look for.
//!
//! ```text
//!        Join part = key                     Join part = key
//!       ╱      ╲                            ╱      ╲
//!   parts (few)  Aggregate by key   ──▶  parts    Aggregate by key
//!                   items                             Semi key = part
//!                                                      ╱    ╲
//!                                                  items   parts (few)
//! ```
//!
//! A subquery that hangs on its outer row becomes such an aggregate, over all rows of its tables. Where another relation of the group
//! keeps few of the keys, rows of other keys are in no answer: a group either has all of its rows or none. What keeps few is read
//! twice, so it must be a scan that is small beside what the aggregate reads.

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinConstraint, JoinType, NullEquality, Result};
use datafusion::logical_expr::{Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder};

use super::estimate::PlanEstimate;
use super::group::JoinGroup;
use super::keys::KeyClass;
use super::scans::ScanStatistics;
use crate::repeatable::is_repeatable;

/// The part of an aggregate's groups that must be left at most.
const MOST_GROUPS: f64 = 0.1;
/// What the reducing scan may read at most, as a part of what the aggregate reads, in rows.
const MOST_READ: f64 = 0.5;
/// The column of the keys.
const KEY: &str = "key";

/// An aggregate of a group of joins, and what keeps few of its keys.
#[derive(Debug, PartialEq)]
pub(super) struct Reduction {
    /// The relation that is an aggregate.
    pub aggregate: usize,
    /// The place of the key among its columns.
    pub column: usize,
    /// The relation that keeps few keys.
    pub reducer: usize,
    /// The key there.
    pub key: Expr,
}

/// What can be reduced, at most once for each aggregate: by the relation that leaves least. `plans` are those of the group's relations.
pub(super) fn reductions(
    group: &JoinGroup,
    plans: &[LogicalPlan],
    classes: &[KeyClass],
    estimates: &[PlanEstimate],
    scans: &ScanStatistics,
) -> Result<Vec<Reduction>> {
    let mut found = Vec::new();
    for (aggregate, plan) in plans.iter().enumerate() {
        if group.relations[aggregate].attached.is_some() {
            continue;
        }
        let mut best: Option<(f64, Reduction)> = None;
        for (column, (relation, key)) in keys_of(aggregate, plan, group, classes) {
            let groups = estimates[aggregate]
                .distinct_of(&Expr::Column(plan.schema().columns().swap_remove(column)))
                .unwrap_or(estimates[aggregate].rows);
            let reducer = &estimates[relation];
            let kept = reducer
                .rows
                .min(reducer.distinct_of(&key).unwrap_or(reducer.rows))
                / groups;
            let fits = kept <= MOST_GROUPS
                && best.as_ref().is_none_or(|(least, _)| kept < *least)
                && is_scan(&plans[relation])
                && reducer.rows_unfiltered() <= MOST_READ * rows_read(plan, scans)?
                && same_type(plan, column, &plans[relation], &key)?;
            if fits {
                let reduction = Reduction {
                    aggregate,
                    column,
                    reducer: relation,
                    key,
                };
                best = Some((kept, reduction));
            }
        }
        found.extend(best.map(|(_, reduction)| reduction));
    }
    Ok(found)
}

/// The columns of an aggregate that are group keys, and what they are equal to in each row that is left: keys of inner joins and
/// of semi joins.
fn keys_of(
    aggregate: usize,
    plan: &LogicalPlan,
    group: &JoinGroup,
    classes: &[KeyClass],
) -> Vec<(usize, (usize, Expr))> {
    let mut keys = Vec::new();
    for class in classes {
        let own = class
            .members
            .iter()
            .find(|side| side.relation == aggregate)
            .and_then(|side| place(plan, &side.expr));
        let Some(column) = own.filter(|column| group_key(plan, *column).is_some()) else {
            continue;
        };
        for side in &class.members {
            let kept = group.relations[side.relation].attached.is_none();
            if side.relation != aggregate && kept {
                keys.push((column, (side.relation, side.expr.clone())));
            }
        }
        for (number, relation) in group.relations.iter().enumerate() {
            let Some(attached) = &relation.attached else {
                continue;
            };
            if attached.join.join_type != JoinType::LeftSemi {
                continue;
            }
            for (left, right) in &attached.join.on {
                if class.members.iter().any(|side| side.expr == *left) {
                    keys.push((column, (number, right.clone())));
                }
            }
        }
    }
    keys
}

fn place(plan: &LogicalPlan, expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Column(column) => plan.schema().maybe_index_of_column(column),
        _ => None,
    }
}

/// The expression that an aggregate groups by, of a column of a plan that does nothing above it but filter and rename.
fn group_key(plan: &LogicalPlan, column: usize) -> Option<&Expr> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => match aggregate.group_expr.as_slice() {
            [Expr::GroupingSet(_)] => None,
            keys => keys.get(column),
        },
        LogicalPlan::SubqueryAlias(alias) => group_key(&alias.input, column),
        LogicalPlan::Filter(filter) => group_key(&filter.input, column),
        LogicalPlan::Projection(projection) => {
            let expr = projection.expr.get(column)?.clone().unalias();
            group_key(&projection.input, place(&projection.input, &expr)?)
        }
        _ => None,
    }
}

/// The plan with the input of its aggregate reduced to the keys; `None` if [`group_key`] finds none.
pub(super) fn reduced(
    plan: &LogicalPlan,
    column: usize,
    keys: LogicalPlan,
) -> Result<Option<LogicalPlan>> {
    let below = match plan {
        LogicalPlan::Aggregate(aggregate) => {
            let Some(key) = group_key(plan, column) else {
                return Ok(None);
            };
            let on = vec![(
                key.clone(),
                Expr::Column(keys.schema().columns().swap_remove(0)),
            )];
            Some(LogicalPlan::Join(Join::try_new(
                Arc::clone(&aggregate.input),
                Arc::new(keys),
                on,
                None,
                JoinType::LeftSemi,
                JoinConstraint::On,
                NullEquality::NullEqualsNothing,
                false,
            )?))
        }
        LogicalPlan::SubqueryAlias(alias) => reduced(&alias.input, column, keys)?,
        LogicalPlan::Filter(filter) => reduced(&filter.input, column, keys)?,
        LogicalPlan::Projection(projection) => {
            let expr = projection.expr.get(column).cloned().map(Expr::unalias);
            match expr.and_then(|expr| place(&projection.input, &expr)) {
                Some(column) => reduced(&projection.input, column, keys)?,
                None => None,
            }
        }
        _ => None,
    };
    below
        .map(|input| plan.with_new_exprs(plan.expressions(), vec![input]))
        .transpose()
}

/// The keys that a relation keeps, under a name that nothing else has.
pub(super) fn keys(reducer: &LogicalPlan, key: &Expr, number: usize) -> Result<LogicalPlan> {
    LogicalPlanBuilder::from(reducer.clone())
        .project([key.clone().alias(KEY)])?
        .alias(format!("keys kept {number}"))?
        .build()
}

/// Whether a plan is one table's rows, filtered and projected.
fn is_scan(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(scan) => scan.fetch.is_none(),
        LogicalPlan::SubqueryAlias(alias) => is_scan(&alias.input),
        LogicalPlan::Filter(filter) => is_repeatable(&filter.predicate) && is_scan(&filter.input),
        LogicalPlan::Projection(projection) => {
            projection.expr.iter().all(is_repeatable) && is_scan(&projection.input)
        }
        _ => false,
    }
}

/// Rows of the tables below a plan.
fn rows_read(plan: &LogicalPlan, scans: &ScanStatistics) -> Result<f64> {
    let mut rows = 0.0;
    plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            rows += scans.estimate(scan).rows;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(rows)
}

fn same_type(plan: &LogicalPlan, column: usize, reducer: &LogicalPlan, key: &Expr) -> Result<bool> {
    Ok(*plan.schema().field(column).data_type() == key.get_type(reducer.schema())?)
}
