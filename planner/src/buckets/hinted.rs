//! Joins whose distribution a hint says.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinSide, JoinType, plan_err};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode,
};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};

use super::distribution::tables;
use super::nodes::{
    as_planned, bucket_shuffles, colocations, keeps_probe_side, ungathered, with_children,
};
use super::origin::why_not_by_buckets;
use super::subtree::{Bucketed, Grouping, Subtree, ordered};
use crate::hints::{JoinHint, JoinHintExec};

type Plan = Arc<dyn ExecutionPlan>;

/// More than all shuffles that a plan could do without.
const FORCED: usize = 1 << 20;

/// The hint that a side of a join was given.
fn hint_of(side: &Plan) -> Option<JoinHint> {
    let mut at = side;
    loop {
        if let Some(hinted) = at.downcast_ref::<JoinHintExec>() {
            return Some(hinted.hint());
        }
        let children = at.children();
        at = match children.as_slice() {
            [child] => child,
            // What filters a relation takes no hint from it.
            [left, right] => match filtered_side(at)? {
                JoinSide::Left => left,
                _ => right,
            },
            _ => return None,
        };
    }
}

/// The side whose rows a join only filters: what it is hinted is meant for another join above.
fn filtered_side(plan: &Plan) -> Option<JoinSide> {
    let join_type = if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        *join.join_type()
    } else {
        *plan.downcast_ref::<NestedLoopJoinExec>()?.join_type()
    };
    match join_type {
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => Some(JoinSide::Left),
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => Some(JoinSide::Right),
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => None,
    }
}

/// The hint of a join, and the side that it was given.
fn hint_of_sides(plan: &Plan, left: &Plan, right: &Plan) -> Option<(JoinHint, JoinSide)> {
    let filtered = filtered_side(plan);
    let of = |side, plan| match filtered == Some(side) {
        true => None,
        false => hint_of(plan).map(|hint| (hint, side)),
    };
    of(JoinSide::Right, right).or_else(|| of(JoinSide::Left, left))
}

/// The plan with what is to be broadcast on the left of each join without equal keys, or an error for a hint that such a
/// join cannot obey.
pub(super) fn with_hinted_loops(plan: Plan) -> Result<Plan> {
    plan.transform_up(|node| {
        Ok(match hinted_loop(&node)? {
            Some(turned) => Transformed::yes(turned),
            None => Transformed::no(node),
        })
    })
    .data()
}

fn hinted_loop(plan: &Plan) -> Result<Option<Plan>> {
    let children = plan.children();
    let [left, right] = children.as_slice() else {
        return Ok(None);
    };
    if plan.is::<HashJoinExec>() {
        return Ok(None);
    }
    let Some((hint, side)) = hint_of_sides(plan, left, right) else {
        return Ok(None);
    };
    let join = plan.downcast_ref::<NestedLoopJoinExec>();
    let crossed = plan.downcast_ref::<CrossJoinExec>();
    if hint != JoinHint::Broadcast {
        // Not a join, then: a hint below a union, say, is that of another join or of none.
        if join.is_none() && crossed.is_none() {
            return Ok(None);
        }
        return plan_err!(
            "hint {hint} of the join of {} and {} is impossible: its rows are not found by equal keys",
            tables(left),
            tables(right)
        );
    }
    let join_type = match (join, crossed) {
        (Some(join), _) => *join.join_type(),
        (None, Some(_)) => JoinType::Inner,
        (None, None) => return Ok(None),
    };
    let build_is_left = side == JoinSide::Left;
    broadcast_possible(join_type, build_is_left, left, right)?;
    if build_is_left {
        return Ok(None);
    }
    let sides = vec![ungathered(left), gathered(Arc::clone(right))];
    let sides = with_children(plan, sides)?;
    let turned = match (
        sides.downcast_ref::<NestedLoopJoinExec>(),
        sides.downcast_ref::<CrossJoinExec>(),
    ) {
        (Some(join), _) => join.swap_inputs()?,
        (None, Some(join)) => join.swap_inputs()?,
        (None, None) => return Ok(None),
    };
    as_before(&turned, plan).map(Some)
}

/// An error where broadcasting that side of a join would leave rows of it unanswered for.
fn broadcast_possible(
    join_type: JoinType,
    build_is_left: bool,
    left: &Plan,
    right: &Plan,
) -> Result<()> {
    let (join_type, broadcast, other) = match build_is_left {
        true => (join_type, left, right),
        false => (join_type.swap(), right, left),
    };
    if keeps_probe_side(join_type) {
        return Ok(());
    }
    plan_err!(
        "hint BROADCAST of the join of {} and {} is impossible: the join also yields rows of {} that have no match or one \
         each, and no worker sees all rows of {}",
        tables(left),
        tables(right),
        tables(broadcast),
        tables(other)
    )
}

/// The plan without its hints.
pub(super) fn without_hints(plan: Plan) -> Result<Plan> {
    plan.transform_up(|node| {
        Ok(match node.downcast_ref::<JoinHintExec>() {
            Some(hinted) => Transformed::yes(Arc::clone(hinted.input())),
            None => Transformed::no(node),
        })
    })
    .data()
}

/// Whether a plan has hints.
pub(super) fn has_hints(plan: &Plan) -> Result<bool> {
    plan.exists(|node| Ok(node.is::<JoinHintExec>()))
}

/// The forms of a join that a hint was given for; `None` if there is no hint.
pub(super) fn hinted_join(
    plan: &Plan,
    join: &HashJoinExec,
    columns: &[(JoinSide, usize)],
    left: &Subtree,
    right: &Subtree,
    grouping: &Grouping,
) -> Result<Option<Subtree>> {
    let Some((hint, side)) = hint_of_sides(plan, join.left(), join.right()) else {
        return Ok(None);
    };
    let mode = *join.partition_mode();
    if join.null_aware {
        return plan_err!(
            "hint {hint} of the join of {} and {}: NOT IN has to see all of its subquery's rows in one place",
            tables(join.left()),
            tables(join.right())
        );
    }
    let ways = match hint {
        JoinHint::Colocate => colocations(join, columns, left, right, grouping)?,
        JoinHint::Bucket => bucket_shuffles(join, columns, left, right, grouping)?,
        JoinHint::Broadcast if mode == PartitionMode::CollectLeft && side == JoinSide::Left => {
            broadcast_possible(*join.join_type(), true, join.left(), join.right())?;
            return as_planned(plan, join, columns, left, right, Vec::new(), grouping).map(Some);
        }
        JoinHint::Broadcast => {
            return broadcast(plan, join, side, left, right).map(Some);
        }
        JoinHint::Shuffle => {
            return shuffled(plan, join, left, right, grouping).map(Some);
        }
    };
    if ways.is_empty() {
        return plan_err!(
            "hint {hint} of the join of {} and {} is impossible: {}",
            tables(join.left()),
            tables(join.right()),
            why_not_by_buckets(&join.on().to_vec(), join.left(), join.right())
        );
    }
    let ways: Vec<Bucketed> = ways
        .into_iter()
        .map(|way| Bucketed {
            saved: way.saved + FORCED,
            ..way
        })
        .collect();
    let unhinted = (Arc::clone(plan), 0);
    let mut subtree = grouping.subtree(unhinted.clone(), unhinted, ways)?;
    subtree.kept = as_before(&subtree.free, plan)?;
    subtree.kept_saved = subtree.free_saved;
    Ok(Some(subtree))
}

/// The plan, partitioned as the one that it stands for.
fn as_before(plan: &Plan, before: &Plan) -> Result<Plan> {
    let plan: Plan = match before.output_partitioning() {
        Partitioning::Hash(..) => Arc::new(RepartitionExec::try_new(
            Arc::clone(plan),
            before.output_partitioning().clone(),
        )?),
        one if one.partition_count() == 1 => {
            Arc::new(CoalescePartitionsExec::new(Arc::clone(plan)))
        }
        _ => Arc::clone(plan),
    };
    Ok(ordered(plan, before.output_ordering()))
}

fn chosen(plan: Plan, before: &Plan, saved: usize) -> Result<Subtree> {
    let plan = ordered(plan, before.output_ordering());
    Ok(Subtree {
        kept: as_before(&plan, before)?,
        kept_saved: saved + FORCED,
        free: plan,
        free_saved: saved + FORCED,
        bucketed: Vec::new(),
        gathered: Vec::new(),
        unshuffled: None,
    })
}

/// A side without the shuffle that was put above it.
fn unshuffled(side: &Subtree) -> (Plan, usize) {
    match &side.unshuffled {
        Some((plan, saved)) => (Arc::clone(plan), *saved),
        None => (Arc::clone(&side.free), side.free_saved),
    }
}

fn gathered(plan: Plan) -> Plan {
    match plan.output_partitioning().partition_count() {
        1 => plan,
        _ => Arc::new(CoalescePartitionsExec::new(plan)),
    }
}

fn broadcast(
    plan: &Plan,
    join: &HashJoinExec,
    side: JoinSide,
    left: &Subtree,
    right: &Subtree,
) -> Result<Subtree> {
    let build_is_left = side == JoinSide::Left;
    broadcast_possible(*join.join_type(), build_is_left, join.left(), join.right())?;
    let ((left, left_saved), (right, right_saved)) = (unshuffled(left), unshuffled(right));
    let (left, right) = match build_is_left {
        true => (gathered(left), right),
        false => (left, gathered(right)),
    };
    let bare = join
        .builder()
        .with_partition_mode(PartitionMode::CollectLeft)
        .with_new_children(vec![left, right])?
        .reset_state()
        .build()?;
    let joined = match build_is_left {
        true => Arc::new(bare) as Plan,
        false => bare.swap_inputs(PartitionMode::CollectLeft)?,
    };
    chosen(joined, plan, left_saved + right_saved)
}

fn shuffled(
    plan: &Plan,
    join: &HashJoinExec,
    left: &Subtree,
    right: &Subtree,
    grouping: &Grouping,
) -> Result<Subtree> {
    let ((left, left_saved), (right, right_saved)) = (unshuffled(left), unshuffled(right));
    let shuffle = |side: Plan, keys: Vec<Arc<dyn PhysicalExpr>>| -> Result<Plan> {
        let partitioning = Partitioning::Hash(keys, grouping.partitions);
        Ok(Arc::new(RepartitionExec::try_new(
            ungathered(&side),
            partitioning,
        )?))
    };
    let (left_keys, right_keys) = join.on().iter().cloned().unzip();
    let joined = join
        .builder()
        .with_partition_mode(PartitionMode::Partitioned)
        .with_new_children(vec![shuffle(left, left_keys)?, shuffle(right, right_keys)?])?
        .reset_state()
        .build()?;
    chosen(Arc::new(joined), plan, left_saved + right_saved)
}
