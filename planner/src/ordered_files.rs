//! Tells a scan below a filter in which order its first rows are wanted.
//!
//! ```text
//!   SortExec: TopK(fetch=10), expr=[x DESC]
//!     FilterExec: kind = 3
//!       DataSourceExec                        + opens the files with the largest x first
//! ```
//!
//! DataFusion tells it to the scan right below, and stops at a filter. The order is a hint: the sort stays.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, SortOrderPushdownResult};

use crate::scan::IcebergSource;

/// Goes after DataFusion's rule of that kind, and before filters are pushed down.
#[derive(Debug)]
pub(crate) struct OrderedFiles;

impl PhysicalOptimizerRule for OrderedFiles {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some(sort) = node.downcast_ref::<SortExec>() else {
                return Ok(Transformed::no(node));
            };
            if sort.fetch().is_none() {
                return Ok(Transformed::no(node));
            }
            match ordered(sort.input(), sort.expr())? {
                Some(input) => Ok(Transformed::yes(node.with_new_children(vec![input])?)),
                None => Ok(Transformed::no(node)),
            }
        })
        .data()
    }

    fn name(&self) -> &str {
        "ordered_files"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The plan with its scan told of the order; `None` if there is no such scan, or it knows already.
fn ordered(
    plan: &Arc<dyn ExecutionPlan>,
    order: &[PhysicalSortExpr],
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(source) = source_of(plan) {
        if source.order().is_some() {
            return Ok(None);
        }
        return Ok(match plan.try_pushdown_sort(order)? {
            SortOrderPushdownResult::Inexact { inner } => Some(inner),
            _ => None,
        });
    }
    let below: Vec<PhysicalSortExpr> = if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let meant = |column: &Column| match filter.projection() {
            Some(projection) => projection.get(column.index()).copied(),
            None => Some(column.index()),
        };
        through(order, filter.input(), meant)
    } else if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let meant = |column: &Column| {
            let expr = &projection.expr().get(column.index())?.expr;
            Some(expr.downcast_ref::<Column>()?.index())
        };
        through(order, projection.input(), meant)
    } else if plan.is::<RepartitionExec>() || plan.is::<CooperativeExec>() {
        order.to_vec()
    } else {
        return Ok(None);
    };
    let [input] = plan.children()[..] else {
        return Ok(None);
    };
    if below.is_empty() {
        return Ok(None);
    }
    ordered(input, &below)?
        .map(|input| Arc::clone(plan).with_new_children(vec![input]))
        .transpose()
}

/// The first keys of the order that are columns of the input, put as those.
fn through(
    order: &[PhysicalSortExpr],
    input: &Arc<dyn ExecutionPlan>,
    meant: impl Fn(&Column) -> Option<usize>,
) -> Vec<PhysicalSortExpr> {
    let schema = input.schema();
    order
        .iter()
        .map_while(|key| {
            let index = meant(key.expr.downcast_ref::<Column>()?)?;
            let name = schema.fields().get(index)?.name();
            Some(PhysicalSortExpr::new(
                Arc::new(Column::new(name, index)),
                key.options,
            ))
        })
        .collect()
}

fn source_of(plan: &Arc<dyn ExecutionPlan>) -> Option<&IcebergSource> {
    let scan: &FileScanConfig = plan
        .downcast_ref::<DataSourceExec>()?
        .data_source()
        .downcast_ref()?;
    scan.file_source.downcast_ref()
}
