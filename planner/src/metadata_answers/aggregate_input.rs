//! What an aggregate reads: a scan, below filters and projections.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::scan::IcebergSource;

/// The input of an aggregate, in terms of the table's columns.
pub(super) struct AggregateInput<'a> {
    pub(super) scan: &'a FileScanConfig,
    pub(super) source: &'a IcebergSource,
    /// What the input's columns are.
    columns: Vec<Arc<dyn PhysicalExpr>>,
    /// What its rows have passed.
    pub(super) filters: Vec<Arc<dyn PhysicalExpr>>,
}

impl<'a> AggregateInput<'a> {
    /// `None` if the plan is something else, or not all rows of the scan's files reach the filters.
    pub(super) fn of(plan: &'a Arc<dyn ExecutionPlan>) -> Option<Self> {
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let mut input = Self::of(projection.input())?;
            input.columns = projection
                .expr()
                .iter()
                .map(|column| input.resolve(&column.expr))
                .collect::<Option<_>>()?;
            return Some(input);
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            let mut input = Self::of(filter.input())?;
            if filter.fetch().is_some() {
                return None;
            }
            input.filters.push(input.resolve(filter.predicate())?);
            if let Some(projection) = filter.projection() {
                input.columns = projection
                    .iter()
                    .map(|index| input.columns.get(*index).cloned())
                    .collect::<Option<_>>()?;
            }
            return Some(input);
        }
        let scan: &FileScanConfig = plan
            .downcast_ref::<DataSourceExec>()?
            .data_source()
            .downcast_ref()?;
        let source = scan.file_source.downcast_ref::<IcebergSource>()?;
        if scan.limit.is_some() || source.filter().is_some() {
            return None;
        }
        Some(Self {
            scan,
            source,
            columns: source.projection()?.expr_iter().collect(),
            filters: Vec::new(),
        })
    }

    /// An expression over the input's columns, put as one over the table's.
    pub(super) fn resolve(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
        let resolved = Arc::clone(expr).transform_down(|expr| {
            let Some(column) = expr.downcast_ref::<Column>() else {
                return Ok(Transformed::no(expr));
            };
            let meant = self.columns.get(column.index()).ok_or_else(|| {
                DataFusionError::Internal(format!("no column {} is read", column.index()))
            })?;
            // The column's expression is over other columns already.
            Ok(Transformed::new(
                Arc::clone(meant),
                true,
                TreeNodeRecursion::Jump,
            ))
        });
        resolved.data().ok()
    }
}

/// The same filters and projections over another scan.
pub(super) fn over_scan(
    plan: &Arc<dyn ExecutionPlan>,
    scan: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    match plan.children().first() {
        None => Ok(scan),
        Some(child) => {
            let child = over_scan(child, scan)?;
            Arc::clone(plan).with_new_children(vec![child])
        }
    }
}
