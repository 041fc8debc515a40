//! Joins whose rows may be spread.

use std::sync::Arc;

use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Distribution, PhysicalExprRef};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};

use super::{SkewOptions, address};
use crate::buckets::BucketJoinExec;
use crate::proven_filters::origin;
use crate::runtime_filters::can_be_summed_up;
use crate::scan::iceberg_scans;

/// A join, and where its probe side's keys are read.
pub(super) struct Candidate {
    /// The address of the join.
    pub join: usize,
    pub scan: Arc<dyn ExecutionPlan>,
    /// The columns of the scan that the keys are.
    pub columns: Vec<usize>,
}

pub(super) fn candidates(
    plan: &Arc<dyn ExecutionPlan>,
    options: SkewOptions,
) -> Result<Vec<Candidate>> {
    let mut found = Vec::new();
    // Whether something above needs the node's rows to be where their keys' hashes say.
    let mut open = vec![(plan, false)];
    while let Some((node, relied_on)) = open.pop() {
        if !relied_on && let Some(candidate) = candidate(node, options)? {
            found.push(candidate);
        }
        let moves = node.is::<RepartitionExec>()
            || node.is::<CoalescePartitionsExec>()
            || node.is::<SortPreservingMergeExec>();
        let wanted = node.required_input_distribution();
        for (child, wanted) in node.children().into_iter().zip(wanted) {
            let relies = match wanted {
                _ if moves => false,
                _ if node.is::<BucketJoinExec>() => true,
                Distribution::HashPartitioned(_) => true,
                Distribution::SinglePartition => false,
                _ => relied_on,
            };
            open.push((child, relies));
        }
    }
    Ok(found)
}

fn candidate(node: &Arc<dyn ExecutionPlan>, options: SkewOptions) -> Result<Option<Candidate>> {
    let Some(join) = node.downcast_ref::<HashJoinExec>() else {
        return Ok(None);
    };
    let build_rows_stay_unseen = match join.join_type {
        JoinType::Inner
        | JoinType::Right
        | JoinType::RightSemi
        | JoinType::RightAnti
        | JoinType::RightMark => true,
        JoinType::Left
        | JoinType::Full
        | JoinType::LeftSemi
        | JoinType::LeftAnti
        | JoinType::LeftMark => false,
    };
    let keys: (Vec<PhysicalExprRef>, Vec<PhysicalExprRef>) = join.on.iter().cloned().unzip();
    if !build_rows_stay_unseen
        || join.mode != PartitionMode::Partitioned
        || join.null_aware
        || join.null_equality != NullEquality::NullEqualsNothing
        || !is_shuffled_by(&join.left, &keys.0)
        || !is_shuffled_by(&join.right, &keys.1)
    {
        return Ok(None);
    }
    let rows = join.right.partition_statistics(None)?.num_rows;
    if rows.get_value().copied().unwrap_or(0) < options.min_rows {
        return Ok(None);
    }
    let mut columns = Vec::new();
    let mut scan: Option<&Arc<dyn ExecutionPlan>> = None;
    for key in &keys.1 {
        let column = key.downcast_ref::<Column>();
        let Some((source, column)) = column.and_then(|it| read_at(&join.right, it.index())) else {
            return Ok(None);
        };
        let schema = source.schema();
        let of = schema.field(column).data_type();
        if scan.is_some_and(|scan| !Arc::ptr_eq(scan, source))
            || *of != key.data_type(&join.right.schema())?
            || !can_be_summed_up(of)
        {
            return Ok(None);
        }
        scan = Some(source);
        columns.push(column);
    }
    Ok(scan.map(|scan| Candidate {
        join: address(node),
        scan: Arc::clone(scan),
        columns,
    }))
}

fn is_shuffled_by(side: &Arc<dyn ExecutionPlan>, keys: &[PhysicalExprRef]) -> bool {
    side.is::<RepartitionExec>()
        && matches!(side.output_partitioning(), Partitioning::Hash(by, partitions)
            if by == keys && *partitions > 1)
}

/// The scan, and its column, that a node's column is read from.
fn read_at(
    node: &Arc<dyn ExecutionPlan>,
    column: usize,
) -> Option<(&Arc<dyn ExecutionPlan>, usize)> {
    let children = node.children();
    if children.is_empty() {
        let is_there = column < node.schema().fields().len() && iceberg_scans(node).len() == 1;
        return is_there.then_some((node, column));
    }
    // Its rows have each key once.
    if node.is::<AggregateExec>() {
        return None;
    }
    children
        .into_iter()
        .enumerate()
        .find_map(|(i, child)| read_at(child, origin(node, column, i)?))
}
