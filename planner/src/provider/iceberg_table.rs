//! A pinned Iceberg table, as DataFusion sees it.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Statistics;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableScan};
use datafusion::physical_plan::ExecutionPlan;
use iceberg::spec::{
    DEFAULT_SCHEMA_NAME_MAPPING, FormatVersion, ManifestContentType, ManifestFile, NameMapping,
};
use parking_lot::Mutex;
use tarn_audit::ScanReport;
use tarn_catalog::{CatalogError, PinnedTable};

use super::scan_plan::ScanPlan;
use crate::distinct_values::DistinctValues;
use crate::prune::{TableLayout, is_evaluated_by_partition};
use crate::scan::{ScanStores, TableColumns, with_row_lineage};

/// One table at one snapshot.
#[derive(Debug)]
pub struct IcebergTable {
    pinned: PinnedTable,
    manifests: Arc<Vec<ManifestFile>>,
    layout: Arc<TableLayout>,
    columns: Arc<TableColumns>,
    stores: Arc<ScanStores>,
    distinct: Arc<DistinctValues>,
    planned: Mutex<Vec<ScanReport>>,
}

impl IcebergTable {
    /// The table, with the list of its manifests read, and the columns of row lineage if they are asked for and it has
    /// them.
    ///
    /// A table that this version cannot read is refused when it is scanned, so that it can still be described.
    pub async fn open(
        pinned: PinnedTable,
        stores: Arc<ScanStores>,
        row_lineage: bool,
    ) -> Result<Self, CatalogError> {
        let internal =
            |e: iceberg::Error| CatalogError::Internal(format!("table '{}': {e}", pinned.name()));
        let manifests = pinned.manifests().await?;
        let schema = match row_lineage && pinned.metadata().format_version() >= FormatVersion::V3 {
            true => Arc::new(with_row_lineage(&pinned.schema()).map_err(internal)?),
            false => pinned.schema(),
        };
        let layout = TableLayout::new(&pinned, &schema).map_err(internal)?;
        let columns = TableColumns::new(schema, name_mapping(&pinned)?).map_err(internal)?;
        let distinct = DistinctValues::of(&pinned).await;
        Ok(Self {
            manifests,
            distinct: Arc::new(distinct),
            layout: Arc::new(layout),
            columns: Arc::new(columns),
            stores,
            planned: Mutex::default(),
            pinned,
        })
    }

    /// The scans that were planned so far, also those that the optimiser did away with because metadata answers.
    pub fn planned_scans(&self) -> Vec<ScanReport> {
        self.planned.lock().clone()
    }

    pub(super) fn remember(&self, report: &ScanReport) {
        self.planned.lock().push(report.clone());
    }

    /// The snapshot that is read.
    pub fn pinned(&self) -> &PinnedTable {
        &self.pinned
    }

    /// What a scan would read, by metadata alone: statistics of the columns that it gives or filters by.
    pub(crate) async fn statistics_of(
        &self,
        scan: &TableScan,
        state: &SessionState,
    ) -> Result<Statistics> {
        let plan = ScanPlan {
            table: self,
            projection: scan.projection.as_ref(),
            filters: &scan.filters,
            limit: None,
        };
        let (statistics, _) = plan
            .statistics(self.manifests(ManifestContentType::Data), state)
            .await?;
        Ok(statistics)
    }

    pub(super) fn layout(&self) -> &Arc<TableLayout> {
        &self.layout
    }

    /// Distinct values of columns, by the table's statistics files.
    pub(super) fn distinct(&self) -> &Arc<DistinctValues> {
        &self.distinct
    }

    pub(super) fn columns(&self) -> &Arc<TableColumns> {
        &self.columns
    }

    pub(super) fn has_row_lineage(&self) -> bool {
        self.columns.has_positions()
    }

    pub(super) fn stores(&self) -> &Arc<ScanStores> {
        &self.stores
    }

    pub(super) fn unsupported(&self, feature: impl Into<String>) -> CatalogError {
        CatalogError::Unsupported {
            table: self.pinned.name().clone(),
            feature: feature.into(),
        }
    }

    /// Manifests of that content that have live entries.
    pub(super) fn manifests(&self, content: ManifestContentType) -> Vec<&ManifestFile> {
        self.manifests
            .iter()
            // Counts that a writer left out are taken for non-zero.
            .filter(|manifest| manifest.has_added_files() || manifest.has_existing_files())
            .filter(|manifest| manifest.content == content)
            .collect()
    }

    /// Whether partition values alone decide the filter, whichever spec a file was written with.
    pub(super) fn is_exact(&self, filter: &Expr) -> bool {
        let columns = filter.column_refs();
        !columns.is_empty()
            && split_conjunction(filter)
                .into_iter()
                .all(is_evaluated_by_partition)
            && self
                .manifests
                .iter()
                .filter(|manifest| manifest.content == ManifestContentType::Data)
                .all(|manifest| {
                    columns
                        .iter()
                        .all(|c| self.layout.has_value(&c.name, manifest.partition_spec_id))
                })
    }
}

fn name_mapping(pinned: &PinnedTable) -> Result<Option<NameMapping>, CatalogError> {
    let Some(text) = pinned
        .metadata()
        .properties()
        .get(DEFAULT_SCHEMA_NAME_MAPPING)
    else {
        return Ok(None);
    };
    serde_json::from_str(text)
        .map(Some)
        .map_err(|e| CatalogError::InvalidTable {
            table: pinned.name().to_string(),
            reason: format!(
                "its property '{DEFAULT_SCHEMA_NAME_MAPPING}' is not a name mapping: {e}"
            ),
        })
}

#[async_trait]
impl TableProvider for IcebergTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.columns.arrow())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(filters
            .iter()
            .map(|filter| match self.is_exact(filter) {
                true => TableProviderFilterPushDown::Exact,
                false => TableProviderFilterPushDown::Inexact,
            })
            .collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        ScanPlan {
            table: self,
            projection,
            filters,
            limit,
        }
        .build(
            self.manifests(ManifestContentType::Data),
            self.manifests(ManifestContentType::Deletes),
            state,
        )
        .await
    }
}
