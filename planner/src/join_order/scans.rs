//! What is known of the tables that a plan reads, asked before joins are ordered: reading metadata waits, ordering does
//! not.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{LogicalPlan, TableScan};
use futures::StreamExt;

use super::estimate::PlanEstimate;
use crate::provider::IcebergTable;

/// Tables that are asked at the same time.
const AT_ONCE: usize = 8;

/// The statistics of a plan's scans.
#[derive(Debug, Default)]
pub(crate) struct ScanStatistics {
    scans: HashMap<String, Arc<Statistics>>,
}

impl ScanStatistics {
    /// Of all scans in a plan. A table that cannot tell is left out: its scan will say what is wrong.
    pub(crate) async fn of_plan(plan: &LogicalPlan, state: &SessionState) -> Result<Self> {
        let mut scans = HashMap::new();
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                scans.entry(key(scan)).or_insert_with(|| scan.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        let asked = scans.into_iter().map(|(key, scan)| async move {
            let provider = source_as_provider(&scan.source).ok()?;
            let statistics = match provider.downcast_ref::<IcebergTable>() {
                Some(table) => table.statistics_of(&scan, state).await.ok()?,
                None => provider.statistics()?,
            };
            Some((key, Arc::new(statistics)))
        });
        let scans = futures::stream::iter(asked)
            .buffer_unordered(AT_ONCE)
            .filter_map(|found| async { found })
            .collect()
            .await;
        Ok(Self { scans })
    }

    /// What a scan gives.
    pub(crate) fn estimate(&self, scan: &TableScan) -> PlanEstimate {
        let schema = scan.projected_schema.as_ref();
        let columns = match &scan.projection {
            Some(projection) => projection.clone(),
            None => (0..schema.fields().len()).collect(),
        };
        let unknown = Statistics::default();
        let statistics = self.scans.get(&key(scan)).map_or(&unknown, Arc::as_ref);
        let estimate = PlanEstimate::of_statistics(statistics, schema, &columns);
        match scan.fetch {
            Some(fetch) => {
                let rows = estimate.rows.min(fetch as f64);
                estimate.with_rows(rows)
            }
            None => estimate,
        }
    }
}

fn key(scan: &TableScan) -> String {
    let table = Arc::as_ptr(&scan.source).cast::<()>();
    format!("{table:p} {:?} {:?}", scan.projection, scan.filters)
}
