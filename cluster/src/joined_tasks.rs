//! Joins of small tables, whose rows are to meet although they are read by several tasks.
//!
//! DataFusion shuffles no side of a join that is in one partition and small: in one process both sides are complete. On a cluster
//! the files of that partition go to several tasks, and a row would miss its match in another. Such joins are shuffled like others:
//!
//! ```text
//!   HashJoin, Partitioned         CoalescePartitions
//!     scan, one partition  ──▶      HashJoin, Partitioned
//!     scan, one partition             Repartition by hash
//!                                       scan
//!                                     Repartition by hash
//!                                       scan
//! ```

use crate::planner::needs_cluster;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};
use std::sync::Arc;

/// The plan with such joins shuffled over so many partitions in each task.
pub(crate) fn shuffle_small_joins(
    plan: Arc<dyn ExecutionPlan>,
    partitions: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let Some(join) = node.downcast_ref::<HashJoinExec>() else {
            return Ok(Transformed::no(node));
        };
        let one_partition =
            |side: &Arc<dyn ExecutionPlan>| side.output_partitioning().partition_count() == 1;
        if *join.partition_mode() != PartitionMode::Partitioned
            || !one_partition(join.left())
            || !one_partition(join.right())
            || !needs_cluster(&node)
        {
            return Ok(Transformed::no(node));
        }
        let (left, right): (Vec<PhysicalExprRef>, Vec<PhysicalExprRef>) =
            join.on().iter().cloned().unzip();
        let shuffled = |side: &Arc<dyn ExecutionPlan>, keys| -> Result<Arc<dyn ExecutionPlan>> {
            let by = Partitioning::Hash(keys, partitions);
            Ok(Arc::new(RepartitionExec::try_new(Arc::clone(side), by)?))
        };
        let sides = vec![shuffled(join.left(), left)?, shuffled(join.right(), right)?];
        let join = Arc::clone(&node).with_new_children(sides)?;
        // What is above was planned for one partition.
        Ok(Transformed::yes(Arc::new(CoalescePartitionsExec::new(
            join,
        ))))
    })
    .data()
}
