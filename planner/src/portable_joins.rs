//! Operators that arrive on the workers as they were sent.
//!
//! DataFusion's protocol (datafusion-proto 54) loses two things. A hash join's `fetch` is not written: a join that is to stop at ten
//! rows gives all of them. And the projection of a join or of a table of values is a list whose emptiness is read as "none": an
//! operator of which nothing but the count of its rows is asked comes out with all its columns, and what stands above fails. So both
//! stand above the operator, as a limit and as a projection of their own.

use std::sync::Arc;

use datafusion::catalog::memory::{DataSourceExec, MemorySourceConfig};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::source::DataSource;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{
    HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder,
};
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

/// Takes out of operators what the protocol loses. It goes after DataFusion's pushdown of projections and limits.
#[derive(Debug)]
pub(crate) struct PortableJoins;

impl PhysicalOptimizerRule for PortableJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            Ok(match portable(&node)? {
                Some(node) => Transformed::yes(node),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "portable_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The operator with what it would lose above it; `None` if it loses nothing.
fn portable(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let counted = node.schema().fields().is_empty();
    let mut fetch = None;
    let plan: Arc<dyn ExecutionPlan> = if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        fetch = join.fetch();
        if !counted && fetch.is_none() {
            return Ok(None);
        }
        let mut builder = join.builder().with_fetch(None);
        if counted {
            builder = builder.with_projection_ref(Some(Arc::from([0])));
        }
        builder.build_exec()?
    } else if !counted {
        return Ok(None);
    } else if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        let builder = NestedLoopJoinExecBuilder::from(join);
        Arc::new(builder.with_projection_ref(Some(Arc::from([0]))).build()?)
    } else if let Some(values) = node
        .downcast_ref::<DataSourceExec>()
        .and_then(|exec| exec.data_source().downcast_ref::<MemorySourceConfig>())
        .filter(|values| !values.original_schema().fields().is_empty())
    {
        let all = MemorySourceConfig::try_new(values.partitions(), values.original_schema(), None)?;
        DataSourceExec::from_data_source(all.with_limit(values.fetch()))
    } else {
        return Ok(None);
    };
    let plan = match fetch {
        Some(rows) => Arc::new(LocalLimitExec::new(plan, rows)),
        None => plan,
    };
    Ok(Some(if counted {
        Arc::new(ProjectionExec::try_new(Vec::<ProjectionExpr>::new(), plan)?)
    } else {
        plan
    }))
}
