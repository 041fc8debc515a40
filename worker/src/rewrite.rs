use crate::panic_guard::guard_panics;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion_distributed::{
    WorkerPlanRewriteEvent, WorkerPlanRewriteEventResponse, WorkerPlanRewriteHandler,
};
use tarn_planner::ProvenFilters;

/// Makes a decoded fragment ready to run.
///
/// The link between a hash join (or a TopK) and the scan that its dynamic filter prunes is shared memory, which
/// does not survive the wire; pushing the filters down once more makes it anew, for what is in the fragment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FragmentRewrite;

impl WorkerPlanRewriteHandler for FragmentRewrite {
    fn rewrite_worker_plan(
        &self,
        event: WorkerPlanRewriteEvent,
    ) -> Result<WorkerPlanRewriteEventResponse> {
        let plan = FilterPushdown::new_post_optimization()
            .optimize(event.plan, event.session_config.options())?;
        let plan = ProvenFilters.optimize(plan, event.session_config.options())?;
        Ok(WorkerPlanRewriteEventResponse::new(guard_panics(plan)?))
    }
}
