//! How the rows of each join meet, for `EXPLAIN` and for the limit of shuffled dimensions.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode, SortMergeJoinExec,
};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion_distributed::NetworkBoundaryExt;

use super::join::BucketJoinExec;
use super::origin::why_not_by_buckets;
use super::route::is_bucket_shuffle;
use super::scan::{iceberg_scan, placed_buckets as scanned_buckets};
use crate::skewed_joins::is_salt;

/// How rows of both sides of a join come together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// They are in the same buckets: none moves.
    Colocate,
    /// Those of one side are sent to the buckets of the other.
    BucketShuffle,
    /// Those of the small side go to every task.
    Broadcast,
    /// All are sent by the hash of their keys.
    Shuffle,
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Colocate => "COLOCATE",
            Self::BucketShuffle => "BUCKET_SHUFFLE",
            Self::Broadcast => "BROADCAST",
            Self::Shuffle => "SHUFFLE",
        })
    }
}

/// What one join of a plan does.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinDistribution {
    pub distribution: Distribution,
    /// The tables of each side.
    pub left: String,
    pub right: String,
    /// Its keys as text; empty for a join without.
    pub on: String,
    /// Why it is distributed so.
    pub reason: String,
    /// Bytes that are expected to be sent between processes; `None` if nothing is known of them.
    pub moved_bytes: Option<u64>,
    /// Joins with the same number join one another's rows, with nothing but filters and projections in between.
    pub group: usize,
}

/// The joins of a plan, from the top. `tasks` is how many a broadcast goes to.
pub fn join_distributions(plan: &Arc<dyn ExecutionPlan>, tasks: usize) -> Vec<JoinDistribution> {
    let mut walk = Walk {
        tasks: tasks.max(1) as u64,
        groups: 0,
        joins: Vec::new(),
    };
    // Plans can be deep.
    let mut open = vec![(plan, None)];
    while let Some((plan, group)) = open.pop() {
        let group = walk.visit(plan, group);
        open.extend(
            plan.children()
                .into_iter()
                .rev()
                .map(|child| (child, group)),
        );
    }
    walk.joins
}

struct Walk {
    tasks: u64,
    groups: usize,
    joins: Vec<JoinDistribution>,
}

type Plan = Arc<dyn ExecutionPlan>;

impl Walk {
    /// Looks at one node; the group of joins that those below it belong to.
    fn visit(&mut self, plan: &Plan, group: Option<usize>) -> Option<usize> {
        match sides(plan) {
            Some([left, right]) => {
                let group = group.unwrap_or_else(|| {
                    self.groups += 1;
                    self.groups
                });
                let join = self.join(plan, left, right, group);
                self.joins.push(join);
                Some(group)
            }
            None => group.filter(|_| !starts_anew(plan)),
        }
    }

    fn join(&self, plan: &Plan, left: &Plan, right: &Plan, group: usize) -> JoinDistribution {
        let mut on = keys(plan);
        on.retain(|(key, _)| !is_salt(key));
        let (distribution, reason, moved_bytes) = match plan_kind(plan, left, right) {
            Distribution::Colocate => {
                let buckets = placed_buckets(left).max(placed_buckets(right));
                let reason =
                    format!("both sides are read by the same {buckets} buckets of their keys");
                (Distribution::Colocate, reason, Some(0))
            }
            Distribution::BucketShuffle => {
                let (bucketed, sent) = match sends_to_buckets(left) {
                    true => (right, left),
                    false => (left, right),
                };
                let reason = format!(
                    "{} is read by {} buckets of its keys, to which the rows of {} are sent",
                    tables(bucketed),
                    placed_buckets(bucketed),
                    tables(sent)
                );
                (Distribution::BucketShuffle, reason, self.shuffled(sent))
            }
            Distribution::Broadcast => {
                let size = estimated_bytes(left);
                let small = match size {
                    Some(bytes) => format!("{} is small (about {bytes} bytes)", tables(left)),
                    None => format!("{} is small", tables(left)),
                };
                let reason = match on.is_empty() {
                    true => "it has no keys that are equal".to_string(),
                    false => small,
                };
                let moved = match crosses(left) {
                    true => size.map(|bytes| bytes.saturating_mul(self.tasks)),
                    false => Some(0),
                };
                (Distribution::Broadcast, reason, moved)
            }
            Distribution::Shuffle => {
                let mut reason = why_not_by_buckets(&on, left, right);
                if keys(plan).iter().any(|(key, _)| is_salt(key)) {
                    reason.push_str("; rows of keys that many have are spread over all partitions");
                }
                let moved = self
                    .shuffled(left)
                    .zip(self.shuffled(right))
                    .map(|(left, right)| left + right);
                (Distribution::Shuffle, reason, moved)
            }
        };
        JoinDistribution {
            distribution,
            left: tables(left),
            right: tables(right),
            on: on
                .iter()
                .map(|(l, r)| format!("{l} = {r}"))
                .collect::<Vec<_>>()
                .join(" AND "),
            reason,
            moved_bytes,
            group,
        }
    }

    /// Bytes of a side that are sent over the network.
    fn shuffled(&self, side: &Plan) -> Option<u64> {
        match crosses(side) {
            true => estimated_bytes(side),
            false => Some(0),
        }
    }
}

/// Pairs of expressions over the left and the right side.
pub(super) type Keys = Vec<(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)>;

fn keys(plan: &Plan) -> Keys {
    if let Some(join) = hash_join(plan) {
        return join.on().to_vec();
    }
    plan.downcast_ref::<SortMergeJoinExec>()
        .map_or_else(Vec::new, |join| join.on().to_vec())
}

/// A hash join, of buckets or not.
pub(crate) fn hash_join(plan: &Arc<dyn ExecutionPlan>) -> Option<&HashJoinExec> {
    plan.downcast_ref::<HashJoinExec>().or_else(|| {
        plan.downcast_ref::<BucketJoinExec>()
            .map(BucketJoinExec::join)
    })
}

/// The sides of a join.
fn sides(plan: &Plan) -> Option<[&Plan; 2]> {
    let joins = plan.is::<BucketJoinExec>()
        || plan.is::<HashJoinExec>()
        || plan.is::<SortMergeJoinExec>()
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<CrossJoinExec>();
    joins.then(|| plan.children().try_into().ok()).flatten()
}

/// Whether what a node yields are no longer rows of the joins below.
fn starts_anew(plan: &Plan) -> bool {
    plan.is::<AggregateExec>() || plan.is::<UnionExec>() || plan.name().contains("Window")
}

fn plan_kind(plan: &Plan, left: &Plan, right: &Plan) -> Distribution {
    let by_buckets = match sends_to_buckets(left) || sends_to_buckets(right) {
        true => Distribution::BucketShuffle,
        false => Distribution::Colocate,
    };
    if plan.is::<BucketJoinExec>() {
        return by_buckets;
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return match join.partition_mode() {
            PartitionMode::CollectLeft => Distribution::Broadcast,
            PartitionMode::Partitioned | PartitionMode::Auto => Distribution::Shuffle,
        };
    }
    match plan.is::<SortMergeJoinExec>() {
        true if placed_buckets(left) > 0 && placed_buckets(right) > 0 => by_buckets,
        true => Distribution::Shuffle,
        false => Distribution::Broadcast,
    }
}

/// The nodes from a side of a join down to the first one that does more than to hand rows on.
fn way_down(side: &Plan) -> Vec<&Plan> {
    let mut way = vec![side];
    let mut at = side;
    while let [child] = at.children().as_slice() {
        if at.is::<AggregateExec>() {
            break;
        }
        at = child;
        way.push(at);
    }
    way
}

fn sends_to_buckets(side: &Plan) -> bool {
    way_down(side).into_iter().any(is_bucket_shuffle)
}

/// Whether the rows of a side come from other tasks.
fn crosses(side: &Plan) -> bool {
    way_down(side)
        .into_iter()
        .any(|node| node.is_network_boundary())
}

/// By how many buckets a side is read, without what is sent to it; 0 if it is not.
fn placed_buckets(side: &Plan) -> u32 {
    let mut most = 0;
    let _ = side.apply(|node| {
        most = most.max(scanned_buckets(node).unwrap_or(0));
        Ok(
            match node.is::<RepartitionExec>() || node.is_network_boundary() {
                true => TreeNodeRecursion::Jump,
                false => TreeNodeRecursion::Continue,
            },
        )
    });
    most
}

/// The tables that a part of a plan reads.
pub(super) fn tables(plan: &Plan) -> String {
    let mut names: Vec<String> = Vec::new();
    let _ = plan.apply(|node| {
        if let Some((_, source)) = iceberg_scan(node) {
            let name = &source.table().name.table;
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        Ok(TreeNodeRecursion::Continue)
    });
    match names.len() {
        0 => "rows of no table".to_string(),
        1..=3 => names.join(" and "),
        more => format!("{} and {} more", names[0], more - 1),
    }
}

/// About how many bytes the rows of a part of a plan take.
pub(super) fn estimated_bytes(plan: &Plan) -> Option<u64> {
    let statistics = plan.partition_statistics(None).ok()?;
    let rows = statistics.num_rows.get_value().map(|rows| *rows as u64);
    let width: u64 = plan
        .schema()
        .fields()
        .iter()
        .map(|field| match field.data_type() {
            DataType::Boolean => 1,
            data_type => data_type.primitive_width().unwrap_or(24) as u64,
        })
        .sum();
    match (rows, statistics.total_byte_size.get_value()) {
        // What a scan knows is the size of its files, all columns of them.
        (Some(rows), _) => Some(rows.saturating_mul(width)),
        (None, Some(bytes)) => Some(*bytes as u64),
        (None, None) => None,
    }
}
