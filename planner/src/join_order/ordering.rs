//! A plan with its joins in the order that costs least.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinConstraint, JoinType, NullEquality, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder};

use super::costs::GroupCosts;
use super::estimate::{PlanEstimate, estimate};
use super::group::{JoinGroup, is_group, rejoined};
use super::reduction::{keys, reduced, reductions};
use super::relation_set::RelationSet;
use super::scans::ScanStatistics;
use super::search::{JoinTree, cheapest};
use crate::size_estimates::{SizeEstimate, estimated};

/// Orders the joins of a plan.
pub(crate) struct Ordering<'a> {
    pub scans: &'a ScanStatistics,
    /// See [`MOST_PAIRS`](super::search::MOST_PAIRS).
    pub most_pairs: usize,
}

impl Ordering<'_> {
    /// The plan with its joins ordered, and what it gives.
    pub(crate) fn order(&self, plan: LogicalPlan) -> Result<(LogicalPlan, PlanEstimate)> {
        let plan = plan
            .map_subqueries(|subquery| Ok(Transformed::yes(self.order(subquery)?.0)))?
            .data;
        if let LogicalPlan::TableScan(scan) = &plan {
            let estimate = self.scans.estimate(scan);
            return Ok((plan, estimate));
        }
        if is_group(&plan)
            && let Some(group) = JoinGroup::of(&plan)?
        {
            return self.order_group(&plan, group);
        }
        let mut inputs = Vec::new();
        let plan = plan
            .map_children(|input| {
                let (input, estimate) = self.order(input)?;
                inputs.push(estimate);
                Ok(Transformed::yes(input))
            })?
            .data;
        let estimate = match &plan {
            LogicalPlan::Join(join) => joined(join, &inputs),
            plan => estimate(plan, &inputs),
        };
        Ok((plan, estimate))
    }

    fn order_group(
        &self,
        plan: &LogicalPlan,
        mut group: JoinGroup,
    ) -> Result<(LogicalPlan, PlanEstimate)> {
        let mut written = Vec::with_capacity(group.relations.len());
        let mut plans = Vec::with_capacity(group.relations.len());
        let mut estimates = Vec::with_capacity(group.relations.len());
        for (number, relation) in group.relations.iter_mut().enumerate() {
            // What concerns the relation alone is left in the group only where it could not be pushed down.
            let own = group
                .predicates
                .iter()
                .filter(|predicate| predicate.needs.single() == Some(number))
                .map(|predicate| predicate.expr.clone())
                .collect();
            let plan = filtered(std::mem::take(&mut relation.plan), own)?;
            let (ordered, estimate) = self.order(plan.clone())?;
            written.push(plan);
            plans.push(Some(ordered));
            estimates.push(estimate);
        }
        let mut costs = GroupCosts::new(&group, &estimates);
        let reductions = reductions(&group, &written, &costs.classes, &estimates, self.scans)?;
        for reduction in &reductions {
            let number = reduction.aggregate;
            let keys = keys(&written[reduction.reducer], &reduction.key, number)?;
            if let Some(plan) = reduced(&written[number], reduction.column, keys)? {
                let (ordered, estimate) = self.order(plan)?;
                plans[number] = Some(ordered);
                estimates[number] = estimate;
            }
        }
        if !reductions.is_empty() {
            costs = GroupCosts::new(&group, &estimates);
        }
        let Some(tree) = cheapest(&costs, self.most_pairs) else {
            return datafusion::common::internal_err!("no order of joins was found");
        };
        let mut rebuilding = Rebuilding {
            group: &group,
            costs: &costs,
            plans,
        };
        let joined = rebuilding.build(&tree)?;
        let constant = group
            .predicates
            .iter()
            .filter(|predicate| predicate.needs.is_empty())
            .map(|predicate| predicate.expr.clone())
            .collect();
        let joined = filtered(joined, constant)?;
        let all = RelationSet::below(estimates.len());
        let estimate = estimates
            .iter()
            .fold(PlanEstimate::default(), |all, one| all.beside(one, 0.0))
            .only(plan.schema(), costs.rows(all));
        let wanted = plan.schema().columns();
        let ordered = match joined.schema().columns() == wanted {
            true => joined,
            false => LogicalPlanBuilder::from(joined)
                .project(wanted.into_iter().map(Expr::Column))?
                .build()?,
        };
        Ok((ordered, estimate))
    }
}

/// Puts a group's joins together as a tree says.
struct Rebuilding<'a> {
    group: &'a JoinGroup,
    costs: &'a GroupCosts,
    /// By number; each is taken once.
    plans: Vec<Option<LogicalPlan>>,
}

impl Rebuilding<'_> {
    fn build(&mut self, tree: &JoinTree) -> Result<LogicalPlan> {
        let Some((left, right)) = tree.inputs.as_deref() else {
            let plan = tree
                .set
                .single()
                .and_then(|relation| self.plans.get_mut(relation)?.take());
            return match plan {
                Some(plan) => Ok(plan),
                None => datafusion::common::internal_err!("a relation is joined twice"),
            };
        };
        let mut side = |side: &JoinTree| -> Result<LogicalPlan> {
            let size = SizeEstimate {
                rows: side.joined.rows.ceil() as usize,
                bytes: side.joined.bytes.ceil() as usize,
            };
            Ok(estimated(size, self.build(side)?))
        };
        let (left_plan, right_plan) = (side(left)?, side(right)?);
        let attached = right
            .set
            .single()
            .and_then(|relation| self.group.relations[relation].attached.as_ref());
        let (keys, others) = self.conditions(left.set, right.set);
        match attached {
            Some(attached) => {
                let joined = rejoined(&attached.join, left_plan, right_plan)?;
                // They hold for what the join gives; as its own conditions they would not drop a row.
                let keys = keys.into_iter().map(|(left, right)| left.eq(right));
                filtered(joined, keys.chain(others).collect())
            }
            None => Join::try_new(
                Arc::new(left_plan),
                Arc::new(right_plan),
                keys,
                conjunction(others),
                JoinType::Inner,
                JoinConstraint::On,
                NullEquality::NullEqualsNothing,
                false,
            )
            .map(LogicalPlan::Join),
        }
    }

    /// What links two sets: pairs of keys, of the left and the right one, and other predicates.
    fn conditions(&self, left: RelationSet, right: RelationSet) -> (Vec<(Expr, Expr)>, Vec<Expr>) {
        let both = left | right;
        let mut keys = Vec::new();
        let mut others = Vec::new();
        for class in &self.costs.classes {
            if let (Some(a), Some(b)) = (class.member_in(left), class.member_in(right)) {
                keys.push((a.expr.clone(), b.expr.clone()));
            }
        }
        for predicate in &self.group.predicates {
            let is_new = both.covers(predicate.needs)
                && !left.covers(predicate.needs)
                && !right.covers(predicate.needs);
            if !is_new {
                continue;
            }
            match &predicate.sides {
                Some([(a, of_a), (b, of_b)]) if left.covers(*of_a) && right.covers(*of_b) => {
                    keys.push((a.clone(), b.clone()));
                }
                Some([(a, of_a), (b, of_b)]) if left.covers(*of_b) && right.covers(*of_a) => {
                    keys.push((b.clone(), a.clone()));
                }
                _ => others.push(predicate.expr.clone()),
            }
        }
        (keys, others)
    }
}

fn filtered(plan: LogicalPlan, predicates: Vec<Expr>) -> Result<LogicalPlan> {
    match conjunction(predicates) {
        None => Ok(plan),
        Some(predicate) => Filter::try_new(predicate, Arc::new(plan)).map(LogicalPlan::Filter),
    }
}

/// What a join that is a border gives.
fn joined(join: &Join, inputs: &[PlanEstimate]) -> PlanEstimate {
    let [left, right] = inputs else {
        return estimate(&LogicalPlan::Join(join.clone()), inputs);
    };
    let mut rows = left.rows * right.rows;
    for (a, b) in &join.on {
        let a = left.distinct_of(a).unwrap_or(left.rows);
        let b = right.distinct_of(b).unwrap_or(right.rows);
        rows /= a.max(b).max(1.0);
    }
    let rows = match join.join_type {
        JoinType::Inner => rows,
        JoinType::Left => rows.max(left.rows),
        JoinType::Right => rows.max(right.rows),
        JoinType::Full => rows.max(left.rows).max(right.rows),
        JoinType::LeftSemi | JoinType::LeftAnti => left.rows / 2.0,
        JoinType::RightSemi | JoinType::RightAnti => right.rows / 2.0,
        JoinType::LeftMark => left.rows,
        JoinType::RightMark => right.rows,
    };
    left.clone().beside(right, rows).only(&join.schema, rows)
}
