//! Filters that are known at run time, kept only where they are proven to be about the right column.
//!
//! A hash join, a TopK, an aggregate or a [runtime filter](crate::runtime_filters) hands the filter that it will know to the scans below. DataFusion 54 looks for its
//! columns by name in each operator on the way down (its issue 25244):
//!
//! ```text
//!            HashJoinExec on c.y ── filter on the second y ─┐
//!                 │                                         ▼
//!   HashJoinExec b ⋈ c: [b.k, b.y, c.k, c.y]      the first y of that name: b.y
//!         ┌───────┴───────┐
//!         b  ◀── arrives   c
//! ```
//!
//! At `b` it rules out rows, row groups and files that it says nothing about. So each filter is followed down once more, by
//! position, and a scan to which it does not lead loses it. So does the right side of `NOT IN`, where a NULL that the filter rules
//! out decides the answer, and of `<=>`, where it finds its like; and an aggregate whose filter is not of all that it computes.

use std::sync::Arc;

use datafusion::common::NullEquality;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::JoinType;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::union::UnionExec;

use crate::buckets::hash_join;
use crate::runtime_filters::RuntimeFilterTarget;
use crate::scan::retain_filters;

/// Takes filters off the scans that are not theirs. It goes after DataFusion's pushdown of such filters.
#[derive(Debug)]
pub struct ProvenFilters;

impl PhysicalOptimizerRule for ProvenFilters {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        prove(plan, &[])
    }

    fn name(&self) -> &str {
        "proven_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A filter of an operator further up, in terms of the columns that an operator gives.
struct Live {
    id: u64,
    children: Vec<Arc<dyn PhysicalExpr>>,
}

impl Live {
    /// The filter that the operator hands to its child `child`.
    fn made_by(node: &Arc<dyn ExecutionPlan>, child: usize) -> Option<Self> {
        let filter: Arc<dyn PhysicalExpr> = if let Some(join) = node.downcast_ref::<HashJoinExec>()
        {
            // The side that is probed; all of it, where a NULL there decides for every row (NOT IN) or finds another (`<=>`).
            let nulls_count =
                join.null_aware || join.null_equality() == NullEquality::NullEqualsNull;
            join.dynamic_filter_expr()
                .filter(|_| child == 1 && !nulls_count)?
                .clone()
        } else if let Some(sort) = node.downcast_ref::<SortExec>() {
            sort.dynamic_filter_expr()?
        } else if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
            let whole = aggregate
                .dynamic_filter_expr()
                .filter(|_| is_of_columns(aggregate));
            whole?.clone()
        } else if let Some(target) = node.downcast_ref::<RuntimeFilterTarget>() {
            Arc::clone(target.pruning()) as _
        } else {
            return None;
        };
        Some(Self {
            id: filter.expression_id()?,
            children: filter.children().into_iter().cloned().collect(),
        })
    }

    /// The filter in terms of what the operator's child gives, if that has all of its columns.
    fn below(&self, node: &Arc<dyn ExecutionPlan>, child: usize) -> Result<Option<Self>> {
        let mut children = Vec::with_capacity(self.children.len());
        for expr in &self.children {
            match by_position(expr, &|column| origin(node, column, child))? {
                Some(expr) => children.push(expr),
                None => return Ok(None),
            }
        }
        Ok(Some(Self {
            id: self.id,
            children,
        }))
    }

    /// Whether a scan's filter, in terms of what the scan gives, is this one.
    fn is(&self, filter: &Arc<dyn PhysicalExpr>) -> Result<bool> {
        if filter.expression_id() != Some(self.id) {
            return Ok(false);
        }
        let theirs = filter.children();
        if theirs.len() != self.children.len() {
            return Ok(false);
        }
        for (ours, theirs) in self.children.iter().zip(theirs) {
            let same = |column| Some(column);
            if by_position(ours, &same)? != by_position(theirs, &same)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether an aggregate's filter is of all that it computes. DataFusion 54 makes one of the columns among the arguments, and forgets the
/// others: of `max(a), max(a + b)` it would keep rows with a large `a`.
fn is_of_columns(aggregate: &AggregateExec) -> bool {
    let mut calls = aggregate.aggr_expr().iter();
    calls.all(|call| matches!(call.expressions().as_slice(), [arg] if arg.is::<Column>()))
}

fn prove(plan: Arc<dyn ExecutionPlan>, live: &[Live]) -> Result<Arc<dyn ExecutionPlan>> {
    if plan.children().is_empty() {
        return retain_filters(plan, &|filter| {
            for live in live {
                if live.is(filter)? {
                    return Ok(true);
                }
            }
            Ok(false)
        });
    }
    let mut changed = false;
    let mut children = Vec::new();
    for (i, child) in plan.children().into_iter().enumerate() {
        let mut below: Vec<Live> = Live::made_by(&plan, i).into_iter().collect();
        for filter in live {
            below.extend(filter.below(&plan, i)?);
        }
        let proven = prove(Arc::clone(child), &below)?;
        changed |= !Arc::ptr_eq(&proven, child);
        children.push(proven);
    }
    if changed {
        plan.with_new_children(children)
    } else {
        Ok(plan)
    }
}

/// The expression with each column moved to where `place` says, without its name; `None` if one has no place.
fn by_position(
    expr: &Arc<dyn PhysicalExpr>,
    place: &dyn Fn(usize) -> Option<usize>,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let mut lost = false;
    let moved = Arc::clone(expr)
        .transform_up(|expr| {
            let Some(column) = expr.downcast_ref::<Column>() else {
                return Ok(Transformed::no(expr));
            };
            Ok(match place(column.index()) {
                Some(index) => Transformed::yes(Arc::new(Column::new("", index)) as _),
                None => {
                    lost = true;
                    Transformed::no(expr)
                }
            })
        })?
        .data;
    Ok((!lost).then_some(moved))
}

/// Which column of its child `child` an operator gives on as its column `column`; `None` if it is none of that child's, or the
/// operator is not known to.
pub(crate) fn origin(node: &Arc<dyn ExecutionPlan>, column: usize, child: usize) -> Option<usize> {
    if let Some(join) = hash_join(node) {
        join_origin(join, column, child)
    } else if let Some(filter) = node.downcast_ref::<FilterExec>() {
        match filter.projection().as_ref() {
            Some(projection) => projection.get(column).copied(),
            None => Some(column),
        }
    } else if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        column_of(&projection.expr().get(column)?.expr)
    } else if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        // A group's key, which all of its rows have, in each of the grouping sets.
        let group = aggregate.group_expr();
        let in_all = group
            .groups()
            .iter()
            .all(|set| set.get(column) == Some(&false));
        column_of(&group.expr().get(column).filter(|_| in_all)?.0)
    } else if node.is::<UnionExec>() {
        Some(column)
    } else {
        // Repartitioning, sorting and the like give on what they get.
        let [input] = node.children()[..] else {
            return None;
        };
        (input.schema().fields() == node.schema().fields()).then_some(column)
    }
}

fn join_origin(join: &HashJoinExec, column: usize, child: usize) -> Option<usize> {
    let column = match join.projection.as_ref() {
        Some(projection) => *projection.get(column)?,
        None => column,
    };
    let (left, right) = (
        join.left().schema().fields().len(),
        join.right().schema().fields().len(),
    );
    let (side, index) = match join.join_type() {
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full if column < left => {
            (0, column)
        }
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => (1, column - left),
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark if column < left => {
            (0, column)
        }
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark if column < right => {
            (1, column)
        }
        // Whether there was a match.
        _ => return None,
    };
    if side == child {
        return Some(index);
    }
    // What is asked of a key may be asked of its like, where that side is there to be looked at only.
    let semi = matches!(
        join.join_type(),
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::RightSemi | JoinType::RightAnti
    ) && !join.null_aware;
    join.on().iter().filter(|_| semi).find_map(|(left, right)| {
        let (own, other) = if side == 0 {
            (left, right)
        } else {
            (right, left)
        };
        (column_of(own)? == index).then(|| column_of(other))?
    })
}

fn column_of(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}
