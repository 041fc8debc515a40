//! What each kind of node does with buckets below it.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::{JoinSide, JoinType};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Distribution, PhysicalExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::buffer::BufferExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode, SortMergeJoinExec};
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::InterleaveExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, Partitioning};

use super::distribution::estimated_bytes;
use super::hinted::hinted_join;
use super::join::BucketJoinExec;
use super::kind::{BucketKind, column_of};
use super::route::shuffle_by_bucket;
use super::scan::bucketed_scans;
use super::subtree::{Bucketed, Grouping, Subtree, common_buckets, ordered};
use crate::hints::JoinHintExec;
use crate::null_supplying::NullSupplyingExec;

type Plan = Arc<dyn ExecutionPlan>;
type On = [(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)];

/// The forms that a plan can take.
pub(super) fn subtree_of(plan: &Plan, grouping: &Grouping) -> Result<Subtree> {
    let children = plan
        .children()
        .into_iter()
        .map(|child| subtree_of(child, grouping))
        .collect::<Result<Vec<_>>>()?;
    if let [left, right] = children.as_slice() {
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            return hash_join(plan, join, left, right, grouping);
        }
        if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
            return sort_merge_join(plan, join, left, right, grouping);
        }
    }
    let [child] = children.as_slice() else {
        return any_node(plan, &children, grouping);
    };
    if let Some(repartition) = plan.downcast_ref::<RepartitionExec>() {
        return repartitioned(plan, repartition, child, grouping);
    }
    if plan.is::<CoalescePartitionsExec>() || plan.is::<SortPreservingMergeExec>() {
        let gather = with_children(plan, vec![Arc::clone(&child.free)])?;
        let gathered = match plan.is::<CoalescePartitionsExec>() && plan.fetch().is_none() {
            true => child.bucketed.clone(),
            false => Vec::new(),
        };
        let one = (gather, child.free_saved);
        let mut subtree = grouping.subtree(one.clone(), one, Vec::new())?;
        subtree.gathered = gathered;
        return Ok(subtree);
    }
    let Some(passage) = passage(plan) else {
        return any_node(plan, &children, grouping);
    };
    let bucketed = child
        .bucketed
        .iter()
        .filter_map(|part| passage.through(plan, part).transpose())
        .collect::<Result<_>>()?;
    let kept = with_children(plan, vec![Arc::clone(&child.kept)])?;
    let free = match passage.needs {
        Some(_) => (Arc::clone(&kept), child.kept_saved),
        None => (
            with_children(plan, vec![Arc::clone(&child.free)])?,
            child.free_saved,
        ),
    };
    grouping.subtree((kept, child.kept_saved), free, bucketed)
}

pub(super) fn with_children(plan: &Plan, children: Vec<Plan>) -> Result<Plan> {
    let same = plan
        .children()
        .iter()
        .zip(&children)
        .all(|(old, new)| Arc::ptr_eq(old, new));
    match same {
        true => Ok(Arc::clone(plan)),
        false => Arc::clone(plan).with_new_children(children),
    }
}

/// A node that nothing is known of but what it asks of its children.
fn any_node(plan: &Plan, children: &[Subtree], grouping: &Grouping) -> Result<Subtree> {
    if children.is_empty() {
        let leaf = (Arc::clone(plan), 0);
        let bucketed = bucketed_scans(plan, grouping.wanted());
        return grouping.subtree(leaf.clone(), leaf, bucketed);
    }
    let asked = plan.required_input_distribution();
    // It needs its inputs partitioned alike, and does not say so.
    let interleaves = plan.is::<InterleaveExec>();
    let (mut kept, mut free) = (Vec::new(), Vec::new());
    let (mut kept_saved, mut free_saved) = (0, 0);
    for (i, child) in children.iter().enumerate() {
        kept.push(Arc::clone(&child.kept));
        kept_saved += child.kept_saved;
        let any = matches!(asked.get(i), Some(Distribution::UnspecifiedDistribution));
        match any && !interleaves {
            true => {
                free.push(Arc::clone(&child.free));
                free_saved += child.free_saved;
            }
            false => {
                free.push(Arc::clone(&child.kept));
                free_saved += child.kept_saved;
            }
        }
    }
    grouping.subtree(
        (with_children(plan, kept)?, kept_saved),
        (with_children(plan, free)?, free_saved),
        Vec::new(),
    )
}

/// A shuffle can be left out by whoever asked for it, if buckets do as well.
fn repartitioned(
    plan: &Plan,
    repartition: &RepartitionExec,
    child: &Subtree,
    grouping: &Grouping,
) -> Result<Subtree> {
    let kept = (
        with_children(plan, vec![Arc::clone(&child.free)])?,
        child.free_saved,
    );
    let bucketed = match repartition.partitioning() {
        Partitioning::Hash(..) | Partitioning::RoundRobinBatch(_) => child.bucketed.clone(),
        _ => Vec::new(),
    };
    let mut subtree = grouping.subtree(kept.clone(), kept, bucketed)?;
    if matches!(repartition.partitioning(), Partitioning::Hash(..)) {
        subtree.unshuffled = Some((Arc::clone(&child.free), child.free_saved));
    }
    Ok(subtree)
}

/// How rows come through a node with one child that takes each partition by itself.
struct Passage {
    /// By column of the output, the column of the input that it has the values of.
    columns: Vec<Option<usize>>,
    /// Rows that are alike in these columns must be in one partition.
    needs: Option<BTreeSet<usize>>,
}

impl Passage {
    fn through(&self, plan: &Plan, part: &Bucketed) -> Result<Option<Bucketed>> {
        let satisfied = self
            .needs
            .as_ref()
            .is_none_or(|needs| !needs.is_disjoint(&part.columns));
        if !satisfied {
            return Ok(None);
        }
        Ok(Some(Bucketed {
            plan: with_children(plan, vec![Arc::clone(&part.plan)])?,
            columns: self
                .columns
                .iter()
                .enumerate()
                .filter(|(_, from)| from.is_some_and(|from| part.columns.contains(&from)))
                .map(|(output, _)| output)
                .collect(),
            saved: part.saved + usize::from(self.needs.is_some()),
            ..part.clone()
        }))
    }
}

fn passage(plan: &Plan) -> Option<Passage> {
    let input = plan.children().first()?.schema();
    let column = |expr: &Arc<dyn PhysicalExpr>| column_of(expr, &input);
    let all = || (0..input.fields().len()).map(Some).collect::<Vec<_>>();
    let free = |columns| {
        Some(Passage {
            columns,
            needs: None,
        })
    };
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return free(projection.expr().iter().map(|e| column(&e.expr)).collect());
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return free(match filter.projection() {
            Some(projection) => projection.iter().map(|i| Some(*i)).collect(),
            None => all(),
        });
    }
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        return sort.preserve_partitioning().then(|| free(all()))?;
    }
    if plan.is::<CooperativeExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<BufferExec>()
        || plan.is::<JoinHintExec>()
        || plan.is::<NullSupplyingExec>()
    {
        return free(all());
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let groups = aggregate.group_expr();
        // A column that a grouping set leaves out is null, wherever its row is.
        if !groups.is_single() {
            return None;
        }
        let columns: Vec<Option<usize>> = groups.expr().iter().map(|(e, _)| column(e)).collect();
        let needs = match aggregate.mode() {
            AggregateMode::Partial | AggregateMode::PartialReduce => None,
            AggregateMode::FinalPartitioned | AggregateMode::SinglePartitioned => {
                Some(columns.iter().flatten().copied().collect())
            }
            AggregateMode::Final | AggregateMode::Single => return None,
        };
        return Some(Passage { columns, needs });
    }
    let keys = if let Some(window) = plan.downcast_ref::<WindowAggExec>() {
        window.partition_keys()
    } else {
        plan.downcast_ref::<BoundedWindowAggExec>()?
            .partition_keys()
    };
    (!keys.is_empty()).then(|| Passage {
        columns: all(),
        needs: Some(keys.iter().filter_map(column).collect()),
    })
}

/// The sides of a join that have their buckets where both meet.
struct Meeting<'a> {
    left: &'a Bucketed,
    right: &'a Bucketed,
    count: u32,
}

/// The ways in which both sides of a join are bucketed by one pair of its keys.
fn meetings<'a>(
    on: &On,
    left: &'a [Bucketed],
    right: &'a [Bucketed],
    wanted: usize,
) -> Vec<Meeting<'a>> {
    let mut meetings = Vec::new();
    for left in left {
        for right in right {
            let alike = left.kind.is_none() || right.kind.is_none() || left.kind == right.kind;
            let by_key = on.iter().any(|(l, r)| {
                let l = column_of(l, &left.plan.schema());
                let r = column_of(r, &right.plan.schema());
                l.is_some_and(|l| left.columns.contains(&l))
                    && r.is_some_and(|r| right.columns.contains(&r))
            });
            if alike
                && by_key
                && let Some(count) = common_buckets(left.count, right.count, wanted)
            {
                meetings.push(Meeting { left, right, count });
            }
        }
    }
    meetings
}

/// By column of a join's output, the side and the column that it comes from.
fn join_columns(
    join_type: JoinType,
    left: usize,
    right: usize,
    projection: Option<&[usize]>,
) -> Vec<(JoinSide, usize)> {
    let of = |side, count| (0..count).map(move |i| (side, i));
    let left = of(JoinSide::Left, left);
    let right = of(JoinSide::Right, right);
    let mark = (JoinSide::None, 0);
    let all: Vec<(JoinSide, usize)> = match join_type {
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
            left.chain(right).collect()
        }
        JoinType::LeftSemi | JoinType::LeftAnti => left.collect(),
        JoinType::RightSemi | JoinType::RightAnti => right.collect(),
        JoinType::LeftMark => left.chain([mark]).collect(),
        JoinType::RightMark => right.chain([mark]).collect(),
    };
    match projection {
        Some(projection) => projection
            .iter()
            .map(|i| all.get(*i).copied().unwrap_or(mark))
            .collect(),
        None => all,
    }
}

/// Whether rows keep the values of a side: outer joins put nulls in place of those that are missing.
fn keeps_left(join_type: JoinType) -> bool {
    !matches!(join_type, JoinType::Right | JoinType::Full)
}

fn keeps_right(join_type: JoinType) -> bool {
    !matches!(join_type, JoinType::Left | JoinType::Full)
}

/// A join of two bucketed sides, bucket by bucket.
fn met(
    meeting: &Meeting<'_>,
    join_type: JoinType,
    columns: &[(JoinSide, usize)],
    plan: Plan,
) -> Bucketed {
    let (left, right) = (meeting.left, meeting.right);
    let columns = columns
        .iter()
        .enumerate()
        .filter(|(_, (side, column))| match side {
            JoinSide::Left => keeps_left(join_type) && left.columns.contains(column),
            JoinSide::Right => keeps_right(join_type) && right.columns.contains(column),
            JoinSide::None => false,
        });
    Bucketed {
        plan,
        columns: columns.map(|(output, _)| output).collect(),
        kind: left.kind.or(right.kind),
        count: meeting.count,
        saved: left.saved + right.saved + 2,
        meets_shuffled: left.meets_shuffled || right.meets_shuffled,
        moved: left.moved.saturating_add(right.moved),
    }
}

fn hash_join(
    plan: &Plan,
    join: &HashJoinExec,
    left: &Subtree,
    right: &Subtree,
    grouping: &Grouping,
) -> Result<Subtree> {
    let join_type = *join.join_type();
    let columns = join_columns(
        join_type,
        join.left().schema().fields().len(),
        join.right().schema().fields().len(),
        join.projection.as_deref(),
    );
    if let Some(hinted) = hinted_join(plan, join, &columns, left, right, grouping)? {
        return Ok(hinted);
    }
    let mut bucketed = colocations(join, &columns, left, right, grouping)?;
    if bucketed.is_empty() && *join.partition_mode() == PartitionMode::Partitioned {
        bucketed = bucket_shuffles(join, &columns, left, right, grouping)?;
    }
    as_planned(plan, join, &columns, left, right, bucketed, grouping)
}

/// A join that stays as it was planned, besides its forms by buckets; a broadcast keeps the buckets of its other side.
pub(super) fn as_planned(
    plan: &Plan,
    join: &HashJoinExec,
    columns: &[(JoinSide, usize)],
    left: &Subtree,
    right: &Subtree,
    mut bucketed: Vec<Bucketed>,
    grouping: &Grouping,
) -> Result<Subtree> {
    let kept = with_children(plan, vec![Arc::clone(&left.kept), Arc::clone(&right.kept)])?;
    let kept_saved = left.kept_saved + right.kept_saved;
    let (mut free, mut free_saved) = (Arc::clone(&kept), kept_saved);
    if *join.partition_mode() == PartitionMode::CollectLeft {
        free = with_children(plan, vec![Arc::clone(&left.kept), Arc::clone(&right.free)])?;
        free_saved = left.kept_saved + right.free_saved;
        if keeps_probe_side(*join.join_type()) {
            for part in &right.bucketed {
                let sides = vec![Arc::clone(&left.kept), Arc::clone(&part.plan)];
                bucketed.push(Bucketed {
                    plan: with_children(plan, sides)?,
                    columns: probed_columns(join, columns, part),
                    saved: part.saved + left.kept_saved,
                    ..part.clone()
                });
            }
        }
    }
    grouping.subtree((kept, kept_saved), (free, free_saved), bucketed)
}

/// The ways to join both sides bucket by bucket.
pub(super) fn colocations(
    join: &HashJoinExec,
    columns: &[(JoinSide, usize)],
    left: &Subtree,
    right: &Subtree,
    grouping: &Grouping,
) -> Result<Vec<Bucketed>> {
    // What `NOT IN` needs to know of nulls, it must know of all of them.
    if join.null_aware {
        return Ok(Vec::new());
    }
    let lefts: Vec<Bucketed> = left
        .bucketed
        .iter()
        .chain(&left.gathered)
        .cloned()
        .collect();
    meetings(join.on(), &lefts, &right.bucketed, grouping.wanted())
        .into_iter()
        .map(|meeting| {
            let sides = vec![
                Arc::clone(&meeting.left.plan),
                Arc::clone(&meeting.right.plan),
            ];
            let joined: Plan = Arc::new(BucketJoinExec::of(join, sides)?);
            Ok(met(&meeting, *join.join_type(), columns, joined))
        })
        .collect()
}

/// The ways to join one side's buckets with rows of the other that are sent to them.
pub(super) fn bucket_shuffles(
    join: &HashJoinExec,
    columns: &[(JoinSide, usize)],
    left: &Subtree,
    right: &Subtree,
    grouping: &Grouping,
) -> Result<Vec<Bucketed>> {
    if join.null_aware {
        return Ok(Vec::new());
    }
    let lefts = left.bucketed.iter().chain(&left.gathered);
    let mut ways = Vec::new();
    for part in lefts {
        ways.extend(bucket_shuffle(
            join,
            JoinSide::Left,
            part,
            right,
            columns,
            grouping,
        )?);
    }
    for part in &right.bucketed {
        ways.extend(bucket_shuffle(
            join,
            JoinSide::Right,
            part,
            left,
            columns,
            grouping,
        )?);
    }
    Ok(ways)
}

/// A join of one bucketed side with rows of the other that are sent to its buckets.
fn bucket_shuffle(
    join: &HashJoinExec,
    bucketed_side: JoinSide,
    part: &Bucketed,
    other: &Subtree,
    columns: &[(JoinSide, usize)],
    grouping: &Grouping,
) -> Result<Option<Bucketed>> {
    // Fewer buckets than workers would leave workers without work.
    let few = (part.count as usize) < grouping.placement.workers.len();
    let (Some(kind), false) = (part.kind, few) else {
        return Ok(None);
    };
    let (input, saved) = match &other.unshuffled {
        Some((input, saved)) => (input, *saved),
        None => (&other.free, other.free_saved),
    };
    let input = &ungathered(input);
    let schema = input.schema();
    let key = join.on().iter().find_map(|(l, r)| {
        let (own, other) = match bucketed_side {
            JoinSide::Left => (l, r),
            _ => (r, l),
        };
        let own = column_of(own, &part.plan.schema())?;
        let other_kind = BucketKind::of(&other.data_type(&schema).ok()?);
        (part.columns.contains(&own) && other_kind == Some(kind)).then_some(other)
    });
    let Some(key) = key else {
        return Ok(None);
    };
    let own = Bucketed {
        saved: part.saved + saved,
        meets_shuffled: true,
        moved: part
            .moved
            .saturating_add(estimated_bytes(input).unwrap_or(0)),
        ..part.clone()
    };
    let sent = Bucketed {
        plan: shuffle_by_bucket(Arc::clone(input), key)?,
        // Where it is in the buckets, its key is too.
        columns: column_of(key, &schema).into_iter().collect(),
        saved: 0,
        moved: 0,
        ..part.clone()
    };
    let (left, right) = match bucketed_side {
        JoinSide::Left => (&own, &sent),
        _ => (&sent, &own),
    };
    let sides = vec![Arc::clone(&left.plan), Arc::clone(&right.plan)];
    let joined: Plan = Arc::new(BucketJoinExec::of(join, sides)?);
    // Rows that were sent are in no order any more.
    let joined = ordered(joined, join.properties().output_ordering());
    let meeting = Meeting {
        left,
        right,
        count: part.count,
    };
    let met = met(&meeting, *join.join_type(), columns, joined);
    // One of the two shuffles is left.
    Ok(Some(Bucketed {
        saved: met.saved - 1,
        ..met
    }))
}

/// A side without the node that gathers it to be broadcast.
pub(super) fn ungathered(side: &Plan) -> Plan {
    match side.downcast_ref::<CoalescePartitionsExec>() {
        Some(gather) if gather.fetch().is_none() => Arc::clone(gather.input()),
        _ => Arc::clone(side),
    }
}

/// Whether each row that comes out is one of the right side's, in whose partition it was.
pub(super) fn keeps_probe_side(join_type: JoinType) -> bool {
    matches!(
        join_type,
        JoinType::Inner
            | JoinType::Right
            | JoinType::RightSemi
            | JoinType::RightAnti
            | JoinType::RightMark
    )
}

/// Where the output of a join with a small left side has the column that its right side is bucketed by, or its equal.
fn probed_columns(
    join: &HashJoinExec,
    columns: &[(JoinSide, usize)],
    part: &Bucketed,
) -> BTreeSet<usize> {
    let equal: BTreeSet<usize> = match join.join_type() {
        JoinType::Inner => join
            .on()
            .iter()
            .filter(|(_, r)| {
                r.downcast_ref::<Column>()
                    .is_some_and(|r| part.columns.contains(&r.index()))
            })
            .filter_map(|(l, _)| Some(l.downcast_ref::<Column>()?.index()))
            .collect(),
        _ => BTreeSet::new(),
    };
    columns
        .iter()
        .enumerate()
        .filter(|(_, (side, column))| match side {
            JoinSide::Left => equal.contains(column),
            JoinSide::Right => part.columns.contains(column),
            JoinSide::None => false,
        })
        .map(|(output, _)| output)
        .collect()
}

fn sort_merge_join(
    plan: &Plan,
    join: &SortMergeJoinExec,
    left: &Subtree,
    right: &Subtree,
    grouping: &Grouping,
) -> Result<Subtree> {
    let columns = join_columns(
        join.join_type(),
        join.left().schema().fields().len(),
        join.right().schema().fields().len(),
        None,
    );
    let meetings = meetings(
        join.on(),
        &left.bucketed,
        &right.bucketed,
        grouping.wanted(),
    );
    let mut bucketed = Vec::new();
    for meeting in meetings {
        let sides = vec![
            Arc::clone(&meeting.left.plan),
            Arc::clone(&meeting.right.plan),
        ];
        let joined = with_children(plan, sides)?;
        bucketed.push(met(&meeting, join.join_type(), &columns, joined));
    }
    let kept = with_children(plan, vec![Arc::clone(&left.kept), Arc::clone(&right.kept)])?;
    let kept = (kept, left.kept_saved + right.kept_saved);
    grouping.subtree(kept.clone(), kept, bucketed)
}
