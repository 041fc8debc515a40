//! The file source of an Iceberg scan: DataFusion's Parquet source, with the table's columns found by field id.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::datatypes::Schema;
use datafusion::common::config::ConfigOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, lit};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{
    EquivalenceProperties, LexOrdering, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, SortOrderPushdownResult};
use datafusion_datasource::file_stream::FileOpener;
use datafusion_datasource::morsel::Morselizer;
use object_store::ObjectStore;
use tarn_audit::ScanReport;

use super::bucket_check::BucketCheck;
use super::column_adapter::{ColumnAdapterFactory, FileConstants};
use super::file_order::in_order_of;
use super::file_pruning::FilePruning;
use super::morselizer::{IcebergMorselizer, WithDeletes};
use super::other_formats::OtherFormats;
use super::reader::{ReadSource, ReaderFactory};
use super::scan_table::ScanTable;
use super::stores::ScanStores;
use crate::buckets::ScanBuckets;
use crate::deletes::DeleteLoader;
use crate::metadata_answers::{FactsCell, ScanFacts};
use crate::progress::QueryProgress;

/// Rows of a batch as long as nobody has said how many.
const DEFAULT_BATCH_SIZE: usize = 8192;

/// Wraps a [`ParquetSource`], to which all that is pushed down is handed on.
#[derive(Clone)]
pub(crate) struct IcebergSource {
    parquet: Arc<ParquetSource>,
    table: Arc<ScanTable>,
    stores: Arc<ScanStores>,
    progress: Option<Arc<QueryProgress>>,
    /// The order that row groups are read in as far as their statistics tell; the Parquet source keeps it to itself.
    order: Option<LexOrdering>,
    /// Rows of a batch; the Parquet source keeps that to itself too.
    batch_size: usize,
    /// What planning knows of the files; none where the scan is run.
    facts: Arc<FactsCell>,
    /// Set when the scan's partitions are buckets.
    buckets: Option<ScanBuckets>,
}

impl IcebergSource {
    pub(crate) fn new(
        parquet: ParquetSource,
        table: Arc<ScanTable>,
        stores: Arc<ScanStores>,
        progress: Option<Arc<QueryProgress>>,
    ) -> Self {
        Self {
            parquet: Arc::new(parquet),
            table,
            stores,
            progress,
            order: None,
            batch_size: DEFAULT_BATCH_SIZE,
            facts: Arc::default(),
            buckets: None,
        }
    }

    pub(crate) fn buckets(&self) -> Option<ScanBuckets> {
        self.buckets
    }

    /// The source of a scan that reads by these buckets.
    pub(crate) fn with_buckets(&self, buckets: Option<ScanBuckets>) -> Self {
        Self {
            buckets,
            ..self.clone()
        }
    }

    pub(crate) fn with_facts(self, facts: ScanFacts) -> Self {
        Self {
            facts: Arc::new(FactsCell::new(facts)),
            ..self
        }
    }

    pub(crate) fn take_facts(&self) -> Option<ScanFacts> {
        self.facts.take()
    }

    /// The source of a scan that reads other files of the table.
    pub(crate) fn with_report(&self, report: ScanReport) -> Self {
        Self {
            table: Arc::new(self.table.with_report(report)),
            ..self.clone()
        }
    }

    pub(crate) fn table(&self) -> &Arc<ScanTable> {
        &self.table
    }

    pub(crate) fn stores(&self) -> &Arc<ScanStores> {
        &self.stores
    }

    /// A source of the same table that filters nothing and counts for itself, and where in the table the given columns of this
    /// scan are; `None` if one of them is none of the table's.
    pub(crate) fn afresh(&self, columns: &[usize]) -> Option<(Self, Vec<usize>)> {
        let given = self.parquet.projection()?;
        let columns = columns
            .iter()
            .map(|column| {
                let expr = &given.iter().nth(*column)?.expr;
                Some(expr.downcast_ref::<Column>()?.index())
            })
            .collect::<Option<Vec<_>>>()?;
        let parquet = ParquetSource::new(self.parquet.table_schema().clone())
            .with_table_parquet_options(self.parquet.table_parquet_options().clone());
        let (table, stores) = (Arc::clone(&self.table), Arc::clone(&self.stores));
        Some((Self::new(parquet, table, stores, None), columns))
    }

    pub(crate) fn order(&self) -> Option<&LexOrdering> {
        self.order.as_ref()
    }

    pub(crate) fn parquet(&self) -> &ParquetSource {
        &self.parquet
    }

    /// This source with another predicate, in terms of the table's columns.
    pub(crate) fn with_predicate(&self, predicate: Arc<dyn PhysicalExpr>) -> Self {
        let parquet = ParquetSource::clone(&self.parquet).with_predicate(predicate);
        Self {
            parquet: Arc::new(parquet),
            ..self.clone()
        }
    }

    /// This source around another state of the Parquet source, as its own methods return it.
    fn around(&self, parquet: Arc<dyn FileSource>) -> Result<Arc<dyn FileSource>> {
        let Some(parquet) = parquet.downcast_ref::<ParquetSource>() else {
            return Err(DataFusionError::Internal(
                "the Parquet source became another one".to_string(),
            ));
        };
        Ok(Arc::new(Self {
            parquet: Arc::new(parquet.clone()),
            ..self.clone()
        }))
    }
}

impl FileSource for IcebergSource {
    fn create_file_opener(
        &self,
        _object_store: Arc<dyn ObjectStore>,
        _base_config: &FileScanConfig,
        _partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        Err(DataFusionError::Internal(
            "an Iceberg scan is read by morsels".to_string(),
        ))
    }

    fn create_morselizer(
        &self,
        object_store: Arc<dyn ObjectStore>,
        base_config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        if let (Some(progress), Some(group)) =
            (&self.progress, base_config.file_groups.get(partition))
        {
            progress
                .splits_total
                .fetch_add(group.len() as u64, Ordering::Relaxed);
        }
        let source = Arc::new(ReadSource::new(
            Arc::clone(&object_store),
            base_config.object_store_url.as_str().into(),
            !self.table.storage.is_local(),
            Arc::clone(self.stores.footers()),
            Arc::clone(&self.table.columns),
            self.parquet.metrics(),
            partition,
            self.progress.clone(),
        ));
        let parquet = self
            .parquet
            .as_ref()
            .clone()
            .with_parquet_file_reader_factory(Arc::new(ReaderFactory {
                source: Arc::clone(&source),
                counts_files: true,
            }));
        let loader = DeleteLoader::new(
            self.table.name.to_string(),
            Arc::clone(&source),
            Arc::clone(self.stores.deletes()),
            self.parquet.table_parquet_options().clone(),
            self.parquet.metrics(),
            partition,
        );
        // The predicate prunes Parquet's row groups even where it is evaluated above.
        let evaluated_here = self.parquet.table_parquet_options().global.pushdown_filters;
        let projection = self.parquet.projection().cloned().ok_or_else(|| {
            DataFusionError::Internal("the Parquet source has no projection".to_string())
        })?;
        let bucket_check = self
            .buckets
            .map(|buckets| {
                BucketCheck::new(buckets, &projection, self.table_schema().table_schema())
            })
            .transpose()?;
        // What the Parquet source takes from the configuration; without the files, which can be many.
        let (url, limit, preserve_order) = (
            base_config.object_store_url.clone(),
            base_config.limit,
            base_config.preserve_order,
        );
        let columns = Arc::clone(&self.table.columns);
        let morselizer = move |constants: Option<FileConstants>, deletes: bool| {
            let adapter = ColumnAdapterFactory {
                columns: Arc::clone(&columns),
                constants,
            };
            let config = FileScanConfigBuilder::new(url.clone(), Arc::new(parquet.clone()))
                .with_limit(limit)
                // With a limit and without an order to keep, the Parquet source looks for row groups that have enough
                // rows and reads all of them, the deleted ones, too.
                .with_preserve_order(preserve_order || deletes)
                .with_expr_adapter(Some(Arc::new(adapter)))
                .build();
            parquet.create_morselizer(Arc::clone(&object_store), &config, partition)
        };
        let plain = morselizer(None, false)?;
        let with_deletes = Arc::new(WithDeletes {
            plain: morselizer(None, true)?,
            columns: Arc::clone(&self.table.columns),
            loader,
            pruning: FilePruning {
                predicate: self.parquet.filter(),
                schema: Arc::clone(self.parquet.table_schema().file_schema()),
                metrics: self.parquet.metrics().clone(),
                partition,
            },
            make: Box::new(morselizer),
        });
        Ok(Box::new(IcebergMorselizer {
            plain,
            other_formats: OtherFormats {
                source,
                table: Arc::clone(&self.table),
                with_deletes: Arc::clone(&with_deletes),
                projection,
                predicate: self.parquet.filter().filter(|_| evaluated_here),
                batch_rows: self.batch_size,
            },
            with_deletes,
            table: Arc::clone(&self.table),
            progress: self.progress.clone(),
            bucket_check,
        }))
    }

    fn table_schema(&self) -> &TableSchema {
        self.parquet.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        let sized = self.parquet.with_batch_size(batch_size);
        let source = Self {
            batch_size,
            ..self.clone()
        };
        // A Parquet source stays one, so this cannot fail; if it did, its default size would do.
        source
            .around(sized)
            .unwrap_or_else(|_| Arc::new(source.clone()))
    }

    /// DataFusion takes a column for constant that a scan's filter compares with one value, but rows of other values come out of files that
    /// are not ruled out. Of an OR it knows nothing.
    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        let filter = self.parquet.filter()?;
        Some(Arc::new(BinaryExpr::new(filter, Operator::Or, lit(false))))
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.parquet.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.parquet.metrics()
    }

    fn file_type(&self) -> &str {
        "iceberg"
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let report = &self.table.report;
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, ", table={}", self.table.name)?;
                match report.snapshot_id {
                    Some(snapshot) => write!(f, ", snapshot={snapshot}")?,
                    None => write!(f, ", snapshot=none")?,
                }
                write!(
                    f,
                    ", manifests={}/{} ({} skipped), files={}/{} ({} skipped)",
                    report.manifests.kept,
                    report.manifests.total,
                    report.manifests.skipped,
                    report.files.kept,
                    report.files.total,
                    report.files.skipped,
                )?;
                if report.files_answered > 0 {
                    write!(f, ", answered={}", report.files_answered)?;
                }
                if report.delete_files.total > 0 {
                    let deletes = report.delete_files;
                    write!(f, ", delete_files={}/{}", deletes.kept, deletes.total)?;
                }
                write!(f, ", bytes={}", report.data_in_bytes)?;
                if let Some(buckets) = self.buckets {
                    let column = self.table_schema().table_schema().field(buckets.column);
                    write!(f, ", buckets={} of {}", buckets.count, column.name())?;
                }
                if !report.filter.is_empty() {
                    write!(f, ", pushed_filter={}", report.filter)?;
                }
            }
            DisplayFormatType::TreeRender => {
                writeln!(f, "table={}", self.table.name)?;
                writeln!(f, "kept={}/{} files", report.files.kept, report.files.total)?;
            }
        }
        self.parquet.fmt_extra(t, f)
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        // A filter that the reader takes on is evaluated nowhere else, and the reader drops one that it cannot apply
        // to a file: fields of a struct that changed since, for one. Those stay above the scan.
        let evaluated_here = config.execution.parquet.pushdown_filters
            || self.parquet.table_parquet_options().global.pushdown_filters;
        let schema = self.table_schema().table_schema();
        let stays: Vec<bool> = filters
            .iter()
            .map(|f| evaluated_here && names_nested(f, schema))
            .collect();
        let offered = filters
            .into_iter()
            .zip(&stays)
            .filter(|(_, stays)| !**stays)
            .map(|(filter, _)| filter)
            .collect();
        let pushed = self.parquet.try_pushdown_filters(offered, config)?;
        let updated_node = pushed
            .updated_node
            .map(|parquet| self.around(parquet))
            .transpose()?;
        let mut answers = pushed.filters.into_iter();
        let filters = stays
            .iter()
            .map(|stays| {
                if *stays {
                    PushedDown::No
                } else {
                    answers.next().unwrap_or(PushedDown::No)
                }
            })
            .collect();
        Ok(FilterPushdownPropagation {
            filters,
            updated_node,
        })
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        eq_properties: &EquivalenceProperties,
    ) -> Result<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        Ok(
            match self.parquet.try_pushdown_sort(order, eq_properties)? {
                SortOrderPushdownResult::Exact { inner } => SortOrderPushdownResult::Exact {
                    inner: self.around(inner)?,
                },
                SortOrderPushdownResult::Inexact { inner } => {
                    let order = LexOrdering::new(order.iter().cloned());
                    SortOrderPushdownResult::Inexact {
                        inner: Self {
                            order,
                            ..self.clone()
                        }
                        .around(inner)?,
                    }
                }
                SortOrderPushdownResult::Unsupported => SortOrderPushdownResult::Unsupported,
            },
        )
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        match &self.order {
            Some(order) => in_order_of(files, order.first(), self.table_schema().table_schema()),
            None => files,
        }
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        self.parquet
            .try_pushdown_projection(projection)?
            .map(|parquet| self.around(parquet))
            .transpose()
    }
}

/// Whether the expression names a column of a nested type.
fn names_nested(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    collect_columns(expr).iter().any(|column| {
        schema
            .fields()
            .get(column.index())
            .is_none_or(|field| field.data_type().is_nested())
    })
}
