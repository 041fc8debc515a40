//! From the optimised logical plan to the physical one.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};

use crate::common_subplans::{SharedSubplanPlanner, share_subplans};
use crate::hints::HintPlanner;
use crate::join_order::with_ordered_joins;
use crate::size_estimates::SizeEstimatePlanner;
use crate::skewed_joins::{SkewOptions, with_spread_joins};

/// DataFusion's planner, which knows hints, after what is decided by statistics or by the plan as a whole.
#[derive(Debug)]
pub(crate) struct IcebergQueryPlanner {
    /// Puts joins into the order that costs least.
    pub order_joins: bool,
    /// Computes what occurs more than once in a plan once.
    pub share_subplans: bool,
    /// Spreads the rows of heavy keys.
    pub skew: Option<SkewOptions>,
}

#[async_trait]
impl QueryPlanner for IcebergQueryPlanner {
    async fn create_physical_plan(
        &self,
        logical: &LogicalPlan,
        state: &SessionState,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut plan = match self.order_joins {
            true => with_ordered_joins(logical, state).await?,
            false => logical.clone(),
        };
        if self.share_subplans {
            plan = share_subplans(plan)?;
        }
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![
            Arc::new(HintPlanner),
            Arc::new(SizeEstimatePlanner),
            Arc::new(SharedSubplanPlanner::default()),
        ]);
        let plan = planner.create_physical_plan(&plan, state).await?;
        match self.skew {
            Some(options) => with_spread_joins(plan, options, &state.task_ctx()).await,
            None => Ok(plan),
        }
    }
}
