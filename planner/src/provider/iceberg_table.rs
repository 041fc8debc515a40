//! A pinned Iceberg table, as DataFusion sees it.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::Result;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use iceberg::spec::{
    DEFAULT_SCHEMA_NAME_MAPPING, FormatVersion, ManifestContentType, ManifestFile, NameMapping,
};
use parking_lot::Mutex;
use tarn_audit::ScanReport;
use tarn_catalog::{CatalogError, PinnedTable};

use super::scan_plan::ScanPlan;
use crate::error::catalog_error;
use crate::prune::{TableLayout, is_evaluated_by_partition};
use crate::scan::{ScanStores, TableColumns};

/// One table at one snapshot.
#[derive(Debug)]
pub struct IcebergTable {
    pinned: PinnedTable,
    manifests: Arc<Vec<ManifestFile>>,
    layout: TableLayout,
    columns: Arc<TableColumns>,
    stores: Arc<ScanStores>,
    planned: Mutex<Vec<ScanReport>>,
}

impl IcebergTable {
    /// The table, with the list of its manifests read.
    ///
    /// A table that this version cannot read is refused when it is scanned, so that it can still be described.
    pub async fn open(pinned: PinnedTable, stores: Arc<ScanStores>) -> Result<Self, CatalogError> {
        let internal =
            |e: iceberg::Error| CatalogError::Internal(format!("table '{}': {e}", pinned.name()));
        let manifests = pinned.manifests().await?;
        let layout = TableLayout::new(&pinned).map_err(internal)?;
        let columns =
            TableColumns::new(pinned.schema(), name_mapping(&pinned)?).map_err(internal)?;
        Ok(Self {
            manifests,
            layout,
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

    pub(super) fn layout(&self) -> &TableLayout {
        &self.layout
    }

    pub(super) fn columns(&self) -> &Arc<TableColumns> {
        &self.columns
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

    /// Manifests of data files that have live entries. An error if the snapshot has deletes.
    pub(super) async fn data_manifests(&self) -> Result<Vec<&ManifestFile>, CatalogError> {
        if !matches!(
            self.pinned.metadata().format_version(),
            FormatVersion::V1 | FormatVersion::V2
        ) {
            return Err(self.unsupported(format!(
                "format version {:?}",
                self.pinned.metadata().format_version()
            )));
        }
        let mut data = Vec::new();
        for manifest in self.manifests.iter() {
            // Counts that a writer left out are taken for non-zero.
            let live = manifest.has_added_files() || manifest.has_existing_files();
            match manifest.content {
                _ if !live => {}
                ManifestContentType::Data => data.push(manifest),
                ManifestContentType::Deletes => {
                    let known = manifest.added_files_count.is_some()
                        && manifest.existing_files_count.is_some();
                    if known || !self.pinned.manifest(manifest).await?.entries.is_empty() {
                        return Err(self.unsupported("row-level deletes (delete files)"));
                    }
                }
            }
        }
        Ok(data)
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
        let manifests = self.data_manifests().await.map_err(catalog_error)?;
        ScanPlan {
            table: self,
            projection,
            filters,
            limit,
        }
        .build(manifests, state)
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query_tests::lake::Lake;
    use iceberg::spec::PrimitiveType;
    use tarn_catalog::{DEFAULT_CATALOG, DEFAULT_DATABASE};

    /// A manifest of delete files in a manifest list.
    fn deletes(added: Option<u32>) -> ManifestFile {
        ManifestFile {
            manifest_path: "file:///there/is/none.avro".to_string(),
            manifest_length: 1,
            partition_spec_id: 0,
            content: ManifestContentType::Deletes,
            sequence_number: 2,
            min_sequence_number: 2,
            added_snapshot_id: 1,
            added_files_count: added,
            existing_files_count: Some(0),
            deleted_files_count: Some(1),
            added_rows_count: None,
            existing_rows_count: None,
            deleted_rows_count: None,
            partitions: None,
            key_metadata: None,
            first_row_id: None,
        }
    }

    #[tokio::test]
    async fn a_table_with_live_deletes_is_refused_by_name() {
        let lake = Lake::new().await;
        lake.create("t", &[("id", PrimitiveType::Long)], &[]).await;
        let catalog = lake
            .catalogs
            .get(DEFAULT_CATALOG)
            .expect("the catalog is there");
        let pinned = catalog
            .table(DEFAULT_DATABASE, "t")
            .await
            .expect("it is pinned");
        let mut table = IcebergTable::open(pinned, Arc::clone(&lake.stores))
            .await
            .expect("it is opened");
        let context = lake.session();
        table.manifests = Arc::new(vec![deletes(Some(0))]);
        assert!(
            table.scan(&context.state(), None, &[], None).await.is_ok(),
            "none is live"
        );
        table.manifests = Arc::new(vec![deletes(Some(1))]);
        let error = table
            .scan(&context.state(), None, &[], None)
            .await
            .expect_err("rows are deleted");
        assert!(
            error
                .to_string()
                .contains("'lake.default.t' uses row-level deletes"),
            "{error}"
        );
        // Whether any is live is not said: it is looked up, and here cannot be.
        table.manifests = Arc::new(vec![deletes(None)]);
        assert!(table.scan(&context.state(), None, &[], None).await.is_err());
    }
}
