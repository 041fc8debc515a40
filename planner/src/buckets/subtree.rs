//! What is known of the buckets of a plan's parts.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::kind::BucketKind;
use super::placement::BucketPlacement;
use super::route::routed;
use super::scan::placed;

/// A part of a plan that yields rows by buckets: rows whose value in any of the columns is in one bucket are in one
/// partition, and partition `i` of every part with as many buckets has the same ones.
///
/// Its scans are not grouped yet, and rows that are sent to it have no address, since how many buckets are told apart depends on what it is joined with.
#[derive(Debug, Clone)]
pub(super) struct Bucketed {
    pub(super) plan: Arc<dyn ExecutionPlan>,
    /// Columns of the output that have the value whose bucket counts.
    pub(super) columns: BTreeSet<usize>,
    /// `None`: there are no rows, and any will do.
    pub(super) kind: Option<BucketKind>,
    /// 0: there are no rows.
    pub(super) count: u32,
    /// How many shuffles it does without.
    pub(super) saved: usize,
    /// Rows without buckets are sent to it.
    pub(super) meets_shuffled: bool,
    /// Bytes of these, as far as they are known.
    pub(super) moved: u64,
}

/// The forms that a part of a plan can take.
#[derive(Debug)]
pub(super) struct Subtree {
    /// Partitioned as the optimiser left it, so that it fits below a node that counts on that.
    pub(super) kept: Arc<dyn ExecutionPlan>,
    pub(super) kept_saved: usize,
    /// With the fewest shuffles, partitioned in any way.
    pub(super) free: Arc<dyn ExecutionPlan>,
    pub(super) free_saved: usize,
    /// By buckets, in each way that is possible.
    pub(super) bucketed: Vec<Bucketed>,
    /// For a node that gathers all partitions into one: its input by buckets.
    pub(super) gathered: Vec<Bucketed>,
    /// For a node that shuffles: its input, and how many shuffles that does without.
    pub(super) unshuffled: Option<(Arc<dyn ExecutionPlan>, usize)>,
}

/// Ways that are looked into at once, so that many bucketed columns do not make many plans.
const MAX_WAYS: usize = 8;

/// Where buckets go in one plan.
pub(super) struct Grouping {
    pub(super) placement: BucketPlacement,
    /// Partitions of a task.
    pub(super) partitions: usize,
}

impl Grouping {
    /// As many groups as the cluster can work on at once.
    pub(super) fn wanted(&self) -> usize {
        self.placement.workers.len().max(1) * self.partitions
    }

    /// The part with its scans grouped, ready to run.
    pub(super) fn place(&self, part: &Bucketed) -> Result<Arc<dyn ExecutionPlan>> {
        let count = part.count.max(1);
        let places = self.placement.places(count, self.partitions);
        Arc::clone(&part.plan)
            .transform_up(|node| {
                let fit = match placed(&node, count, &places, part.meets_shuffled) {
                    Some(scan) => Some(scan),
                    None => routed(&node, count, &places)?,
                };
                Ok(fit.map_or_else(|| Transformed::no(node), Transformed::yes))
            })
            .data()
    }

    /// The forms of a node: `kept` and `free` are without buckets.
    pub(super) fn subtree(
        &self,
        kept: (Arc<dyn ExecutionPlan>, usize),
        free: (Arc<dyn ExecutionPlan>, usize),
        mut bucketed: Vec<Bucketed>,
    ) -> Result<Subtree> {
        bucketed.retain(|part| part.saved > 0 || !part.columns.is_empty());
        bucketed.sort_by_key(|part| (Reverse(part.saved), part.moved, Reverse(part.count)));
        bucketed.truncate(MAX_WAYS);
        let (mut free, mut free_saved) = free;
        let (mut kept, mut kept_saved) = kept;
        if let Some(best) = bucketed.first().filter(|best| best.saved > free_saved) {
            free_saved = best.saved;
            let single = kept.output_partitioning().partition_count() == 1;
            free = self.place(best)?;
            if single && kept.output_ordering().is_none() && kept_saved < free_saved {
                kept = Arc::new(CoalescePartitionsExec::new(Arc::clone(&free)));
                kept_saved = free_saved;
            }
        }
        Ok(Subtree {
            kept,
            kept_saved,
            free,
            free_saved,
            bucketed,
            gathered: Vec::new(),
            unshuffled: None,
        })
    }
}

/// The plan, with each partition in that order, on which a node above counts.
pub(super) fn ordered(
    plan: Arc<dyn ExecutionPlan>,
    order: Option<&LexOrdering>,
) -> Arc<dyn ExecutionPlan> {
    match order {
        Some(order) if plan.output_ordering() != Some(order) => {
            Arc::new(SortExec::new(order.clone(), plan).with_preserve_partitioning(true))
        }
        _ => plan,
    }
}

/// The number of buckets that two numbers of buckets can both be told apart by: equal ones, or the smaller where it
/// divides the other; or another common divisor, if it leaves enough to keep everybody busy. 0 stands for any number.
pub(super) fn common_buckets(a: u32, b: u32, wanted: usize) -> Option<u32> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a == 0 || b == 0 || x == a.min(b) || (x > 1 && x as usize >= wanted)).then_some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_buckets_meet_where_one_divides_the_other() {
        let cases = [
            ((16, 16), Some(16)),
            ((16, 64), Some(16)),
            ((6, 4), None),
            ((64, 96), Some(32)),
            ((7, 8), None),
            ((0, 8), Some(8)),
            ((8, 0), Some(8)),
            ((1, 8), Some(1)),
        ];
        for ((a, b), expected) in cases {
            assert_eq!(common_buckets(a, b, 6), expected, "{a} and {b}");
        }
    }
}
