//! A scan without some of the filters that were handed to it to be known at run time.

use std::sync::Arc;

use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder, FileSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_expr::projection::{ProjectionExpr, update_expr};
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_expr::{PhysicalExpr, conjunction};
use datafusion::physical_expr_common::physical_expr::is_dynamic_physical_expr;
use datafusion::physical_plan::ExecutionPlan;

use super::source::IcebergSource;

/// Keeps those that `keep` wants: it sees them in terms of the columns that the scan gives. What is no Iceberg scan stays as it
/// is.
pub(crate) fn retain_filters(
    plan: Arc<dyn ExecutionPlan>,
    keep: &dyn Fn(&Arc<dyn PhysicalExpr>) -> Result<bool>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let Some((config, source, predicate)) = filtered_scan(&plan) else {
        return Ok(plan);
    };
    let projection: Vec<ProjectionExpr> = source
        .parquet()
        .projection()
        .into_iter()
        .flat_map(|projection| projection.iter().cloned())
        .collect();
    let conjuncts = split_conjunction(&predicate);
    let mut kept = Vec::with_capacity(conjuncts.len());
    for conjunct in &conjuncts {
        let wanted = !is_dynamic_physical_expr(conjunct)
            || match update_expr(conjunct, &projection, false)? {
                Some(given) => keep(&given)?,
                None => false,
            };
        if wanted {
            kept.push(Arc::clone(conjunct));
        }
    }
    if kept.len() == conjuncts.len() {
        return Ok(plan);
    }
    let source = source.with_predicate(conjunction(kept));
    let config = FileScanConfigBuilder::from(config.clone())
        .with_source(Arc::new(source))
        .build();
    Ok(DataSourceExec::from_data_source(config))
}

fn filtered_scan(
    plan: &Arc<dyn ExecutionPlan>,
) -> Option<(&FileScanConfig, &IcebergSource, Arc<dyn PhysicalExpr>)> {
    let config = plan
        .downcast_ref::<DataSourceExec>()?
        .data_source()
        .downcast_ref::<FileScanConfig>()?;
    let source = config.file_source.downcast_ref::<IcebergSource>()?;
    let predicate = source.parquet().filter()?;
    Some((config, source, predicate))
}
