//! Where joins are ordered: after the rules over logical plans, which push filters into scans, and before the plan
//! becomes physical.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::Optimizer;
use datafusion::optimizer::optimize_projections::OptimizeProjections;

use super::ordering::Ordering;
use super::scans::ScanStatistics;
use super::search::MOST_PAIRS;

/// An optimised plan with its joins in the order that costs least.
pub async fn with_ordered_joins(plan: &LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    if !has_joins(plan)? {
        return Ok(plan.clone());
    }
    let scans = ScanStatistics::of_plan(plan, state).await?;
    let ordering = Ordering {
        scans: &scans,
        most_pairs: MOST_PAIRS,
    };
    let (ordered, _) = ordering.order(plan.clone())?;
    // Columns that an earlier join needed and a later one does not.
    let projections = Optimizer::with_rules(vec![Arc::new(OptimizeProjections::new())]);
    projections.optimize(ordered, state, |_, _| {})
}

fn has_joins(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= matches!(node, LogicalPlan::Join(_));
        Ok(match found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}
