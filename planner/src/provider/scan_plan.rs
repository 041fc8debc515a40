//! From a table, a projection and filters to the plan of a scan.
//!
//! ```text
//!   manifest list ─► summaries ─► manifests, read concurrently ─► partition values, bounds ─► files ─► DataSourceExec
//!                                 delete manifests ─────────────► their scope ───────────────┘
//! ```

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::BooleanArray;
use datafusion::catalog::Session;
use datafusion::common::Statistics;
use datafusion::common::runtime::SpawnedTask;
use datafusion::config::TableParquetOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::scalar::ScalarValue;
use datafusion::sql::unparser::expr_to_sql;
use futures::{StreamExt, TryStreamExt};
use iceberg::spec::{DataContentType, DataFile, DataFileFormat, ManifestFile};
use tarn_audit::{Counts, ScanReport};
use tarn_catalog::{CatalogError, DecodedManifest, PinnedTable, location_to_path};

use super::iceberg_table::IcebergTable;
use super::scan_deletes::ScanDeletes;
use crate::buckets::SpecBuckets;
use crate::error::catalog_error;
use crate::formats::FileFormat;
use crate::metadata_answers::{FilePlace, ScanFacts};
use crate::progress::QueryProgress;
use crate::prune::{
    ColumnBounds, PartitionColumn, PruneFilter, TableLayout, column_bounds, identity_columns,
    partition_constant, prune_manifests, unqualified,
};
use crate::scan::{FileConstants, IcebergSource, ScanTable, data_file, group_by_size, inherited};
use crate::statistics::{KeptFiles, file_statistics, scan_statistics};

/// Manifests that one scan reads at the same time.
const MANIFESTS_AT_ONCE: usize = 16;

/// Files carry statistics of their own, which dynamic filters use, as long as all of them together have no more
/// column entries than this. Each entry takes some 500 bytes.
const MAX_FILE_STATISTICS: usize = 100_000;

/// What is asked of the table.
pub(super) struct ScanPlan<'a> {
    pub(super) table: &'a IcebergTable,
    pub(super) projection: Option<&'a Vec<usize>>,
    pub(super) filters: &'a [Expr],
    pub(super) limit: Option<usize>,
}

impl ScanPlan<'_> {
    pub(super) async fn build(
        &self,
        manifests: Vec<&ManifestFile>,
        delete_manifests: Vec<&ManifestFile>,
        state: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let layout = self.table.layout();
        let filter = PruneFilter::new(self.filters, layout, state.execution_props())?;
        let may_match = prune_manifests(&filter, &manifests, layout);
        let (decoded, mut deletes) = futures::try_join!(
            read_manifests(self.table.pinned(), &manifests, &may_match),
            ScanDeletes::load(self.table, &delete_manifests, &filter),
        )?;

        let (mut kept, files_total) = self.kept(decoded, &manifests, &may_match, &filter)?;
        deletes.assign(&mut kept)?;
        self.keep_up_to_limit(&mut kept);

        let needed = self.needed(&filter);
        let statistics = scan_statistics(&kept, &needed, layout, self.table.distinct());
        let files = self.files(&kept, &needed, &mut deletes)?;

        let (delete_files, delete_bytes) = deletes.count(&kept);
        let data_bytes: u64 = files.iter().map(|file| file.object_meta.size).sum();
        let report = ScanReport {
            manifests: Counts::kept_of(kept.len() as u64, manifests.len() as u64),
            files: Counts::kept_of(files.len() as u64, files_total),
            delete_files,
            result_data_files: files.len() as u64,
            data_in_bytes: data_bytes + delete_bytes,
            rows_in_files: statistics
                .num_rows
                .get_value()
                .map_or(0, |rows| *rows as u64),
            ..self.report(&filter)
        };
        let pinned = self.table.pinned();
        self.table.remember(&report);
        let scan_table = ScanTable::new(
            pinned.name().clone(),
            pinned.storage().descriptor.clone(),
            Arc::clone(self.table.columns()),
            report,
        );
        let stores = self.table.stores();
        let url = stores.register(&pinned.storage().descriptor, state.runtime_env())?;
        let parquet = ParquetSource::new(TableSchema::new(Arc::clone(&layout.schema), vec![]))
            .with_table_parquet_options(TableParquetOptions {
                global: state.config_options().execution.parquet.clone(),
                ..TableParquetOptions::default()
            });
        let source = IcebergSource::new(
            parquet,
            Arc::new(scan_table),
            Arc::clone(stores),
            state.config().get_extension::<QueryProgress>(),
        )
        .with_facts(ScanFacts {
            kept,
            layout: Arc::clone(layout),
            distinct: Arc::clone(self.table.distinct()),
            columns: needed,
        });
        let config = FileScanConfigBuilder::new(url, Arc::new(source))
            .with_file_groups(group_by_size(files, state.config().target_partitions()))
            .with_statistics(statistics)
            .with_limit(self.limit)
            .with_projection_indices(self.projection.cloned())?
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    /// What the scan would read, deleted rows among it, and its statistics.
    pub(super) async fn statistics(
        &self,
        manifests: Vec<&ManifestFile>,
        state: &dyn Session,
    ) -> Result<(Statistics, Vec<KeptFiles>)> {
        let layout = self.table.layout();
        let filter = PruneFilter::new(self.filters, layout, state.execution_props())?;
        let may_match = prune_manifests(&filter, &manifests, layout);
        let decoded = read_manifests(self.table.pinned(), &manifests, &may_match).await?;
        let (kept, _) = self.kept(decoded, &manifests, &may_match, &filter)?;
        let needed = self.needed(&filter);
        let statistics = scan_statistics(&kept, &needed, layout, self.table.distinct());
        Ok((statistics, kept))
    }

    /// The files of the decoded manifests that the filter keeps, and how many there are in all manifests.
    fn kept(
        &self,
        decoded: Vec<Arc<DecodedManifest>>,
        manifests: &[&ManifestFile],
        may_match: &[bool],
        filter: &PruneFilter,
    ) -> Result<(Vec<KeptFiles>, u64)> {
        let layout = self.table.layout();
        let mut kept = Vec::with_capacity(decoded.len());
        let mut files_total = 0;
        let read = manifests.iter().zip(may_match).filter(|(_, read)| **read);
        for (manifest, (listed, _)) in decoded.into_iter().zip(read) {
            files_total += manifest.entries.len() as u64;
            let keep = BooleanArray::from(filter.prune_files(&manifest, layout)?);
            let first_row_ids = match self.table.has_row_lineage() {
                true => manifest.first_row_ids(listed),
                false => Vec::new(),
            };
            kept.push(KeptFiles {
                manifest,
                keep,
                deletes: HashMap::new(),
                first_row_ids,
            });
        }
        for (manifest, _) in manifests.iter().zip(may_match).filter(|(_, keep)| !**keep) {
            files_total += files_in(manifest);
        }
        Ok((kept, files_total))
    }

    /// The columns that the scan gives or filters by.
    fn needed(&self, filter: &PruneFilter) -> BTreeSet<String> {
        let fields = self.table.layout().schema.fields();
        let mut needed = filter.columns().clone();
        match self.projection {
            Some(projection) => needed.extend(projection.iter().map(|i| fields[*i].name().clone())),
            None => needed.extend(fields.iter().map(|field| field.name().clone())),
        }
        needed
    }

    /// Without a filter that is left to evaluate, the first files that together have enough rows will do.
    fn keep_up_to_limit(&self, kept: &mut [KeptFiles]) {
        let Some(limit) = self.limit else { return };
        if !self
            .filters
            .iter()
            .all(|filter| self.table.is_exact(filter))
        {
            return;
        }
        let mut rows = 0u64;
        for files in kept {
            let keep: Vec<bool> = files
                .keep
                .values()
                .iter()
                .zip(&files.manifest.entries)
                .enumerate()
                .map(|(place, (keep, entry))| {
                    let wanted = keep && rows < limit as u64;
                    if wanted {
                        // Rows that are there for certain.
                        let deleted = match files.deletes.get(&place) {
                            None => 0,
                            Some(deletes) => deletes.at_most.unwrap_or(u64::MAX),
                        };
                        rows += entry.data_file().record_count().saturating_sub(deleted);
                    }
                    wanted
                })
                .collect();
            files.keep = BooleanArray::from(keep);
        }
    }

    fn files(
        &self,
        kept: &[KeptFiles],
        needed: &BTreeSet<String>,
        deletes: &mut ScanDeletes<'_>,
    ) -> Result<Vec<PartitionedFile>> {
        let layout = self.table.layout();
        let columns: Vec<usize> = (0..layout.columns().len())
            .filter(|i| {
                layout.columns()[*i].primitive.is_some()
                    && needed.contains(layout.schema.field(*i).name())
            })
            .collect();
        let count: usize = kept.iter().map(|files| files.keep.true_count()).sum();
        let with_statistics = count * layout.columns().len() <= MAX_FILE_STATISTICS;
        let mut constants = PartitionConstants::default();
        let mut buckets: HashMap<i32, SpecBuckets> = HashMap::new();
        let mut files = Vec::with_capacity(count);
        for (of_manifest, kept) in kept.iter().enumerate() {
            let manifest = &kept.manifest;
            let bounds: Vec<(usize, Arc<ColumnBounds>)> = match with_statistics {
                true => columns
                    .iter()
                    .map(|i| (*i, column_bounds(manifest, &layout.columns()[*i])))
                    .collect(),
                false => vec![],
            };
            let identity = identity_columns(layout, manifest.partition_spec_id);
            let buckets = buckets
                .entry(manifest.partition_spec_id)
                .or_insert_with(|| SpecBuckets::new(layout, manifest.partition_spec_id));
            for index in kept.indices() {
                let data = manifest.entries[index].data_file();
                let format = self.format(data)?;
                let path = location_to_path(data.file_path()).map_err(catalog_error)?;
                let place = FilePlace {
                    manifest: of_manifest,
                    entry: index,
                };
                let mut file = data_file(path, data.file_size_in_bytes()).with_extension(place);
                if let Some(format) = format {
                    file = file.with_extension(format);
                }
                if with_statistics {
                    file.statistics =
                        Some(Arc::new(file_statistics(manifest, index, &bounds, layout)));
                }
                let lineage = self.table.has_row_lineage().then(|| {
                    let entry = &manifest.entries[index];
                    let first = kept.first_row_ids.get(index).copied().flatten();
                    inherited(first, entry.sequence_number())
                });
                let mut set = constants.of_file(data, &identity, layout, lineage);
                if let Some(buckets) = buckets.of_file(data.partition()) {
                    file = file.with_extension(buckets);
                }
                if let Some(rows) = kept.deletes.get(&index) {
                    let of_file = deletes.of_file(data, rows)?;
                    let spec_id = manifest.partition_spec_id;
                    let dropped = deletes.dropped_constants(&of_file, spec_id, data.partition());
                    if !dropped.is_empty() {
                        let known = set.iter().flat_map(|FileConstants(known)| known.iter());
                        let known = known.map(|(name, value)| (name.clone(), value.clone()));
                        set = Some(FileConstants(Arc::new(known.chain(dropped).collect())));
                    }
                    file = file.with_extension(of_file);
                }
                if let Some(set) = set {
                    file = file.with_extension(set);
                }
                files.push(file);
            }
        }
        Ok(files)
    }

    /// The format of a file, if it is not Parquet. An error if it cannot be read.
    fn format(&self, file: &DataFile) -> Result<Option<FileFormat>> {
        let feature = match (file.content_type(), file.file_format()) {
            (DataContentType::Data, DataFileFormat::Parquet) => return Ok(None),
            (DataContentType::Data, format) => match FileFormat::of_data_file(format) {
                Some(format) => return Ok(Some(format)),
                None => format!("data files of format {format:?}"),
            },
            (content, _) => format!("{content:?} files among its data files"),
        };
        Err(catalog_error(self.table.unsupported(feature)))
    }

    /// What the report says of the query.
    fn report(&self, filter: &PruneFilter) -> ScanReport {
        let pinned = self.table.pinned();
        let layout = self.table.layout();
        let projected: Vec<String> = match self.projection {
            Some(projection) => projection
                .iter()
                .map(|i| layout.schema.field(*i).name().clone())
                .collect(),
            None => layout
                .schema
                .fields()
                .iter()
                .map(|field| field.name().clone())
                .collect(),
        };
        ScanReport {
            catalog: pinned.name().catalog.clone(),
            database: pinned.name().database.clone(),
            table: pinned.name().table.clone(),
            snapshot_id: pinned.snapshot().map(|snapshot| snapshot.snapshot_id()),
            schema_id: pinned.schema().schema_id(),
            filter: filter_text(self.filters),
            non_part_filter_cols: filter
                .columns()
                .iter()
                .filter(|name| !layout.is_partitioned_by(name))
                .cloned()
                .collect(),
            projected_columns: projected,
            ..ScanReport::default()
        }
    }
}

/// Live files that a manifest lists, by the manifest list; none if that does not say.
pub(super) fn files_in(manifest: &ManifestFile) -> u64 {
    let files = |count: Option<u32>| u64::from(count.unwrap_or(0));
    files(manifest.added_files_count) + files(manifest.existing_files_count)
}

/// The manifests whose place in `wanted` is true, in their order.
pub(super) async fn read_manifests(
    pinned: &PinnedTable,
    manifests: &[&ManifestFile],
    wanted: &[bool],
) -> Result<Vec<Arc<DecodedManifest>>> {
    let reads: Vec<_> = manifests
        .iter()
        .zip(wanted)
        .filter(|(_, wanted)| **wanted)
        .map(|(manifest, _)| read_manifest(pinned.clone(), ManifestFile::clone(manifest)))
        .collect();
    futures::stream::iter(reads)
        .buffered(MANIFESTS_AT_ONCE)
        .try_collect()
        .await
        .map_err(catalog_error)
}

/// Decoding is work for the processor, so each manifest is a task of its own. What is dropped is aborted.
async fn read_manifest(
    pinned: PinnedTable,
    manifest: ManifestFile,
) -> Result<Arc<DecodedManifest>, CatalogError> {
    SpawnedTask::spawn(async move { pinned.manifest(&manifest).await })
        .join()
        .await
        .unwrap_or_else(|e| {
            Err(CatalogError::Internal(format!(
                "a manifest's reader stopped: {e}"
            )))
        })
}

/// The filters as one SQL expression.
fn filter_text(filters: &[Expr]) -> String {
    let texts: Vec<String> = filters
        .iter()
        .map(|filter| {
            let plain = unqualified(filter.clone()).unwrap_or_else(|_| filter.clone());
            expr_to_sql(&plain).map_or_else(|_| plain.to_string(), |sql| sql.to_string())
        })
        .collect();
    texts.join(" AND ")
}

/// The constants of files, one set for all files of a partition.
#[derive(Default)]
struct PartitionConstants {
    sets: HashMap<Vec<(usize, ScalarValue)>, FileConstants>,
}

impl PartitionConstants {
    fn of_file(
        &mut self,
        file: &DataFile,
        identity: &[(usize, PartitionColumn)],
        layout: &TableLayout,
        lineage: Option<[(String, ScalarValue); 2]>,
    ) -> Option<FileConstants> {
        let values: Vec<(usize, ScalarValue)> = identity
            .iter()
            .filter_map(|(index, field)| {
                let value =
                    partition_constant(field, file.partition(), &layout.columns()[*index].arrow)?;
                Some((*index, value))
            })
            .collect();
        let named = values
            .iter()
            .map(|(index, value)| (layout.schema.field(*index).name().clone(), value.clone()));
        if let Some(lineage) = lineage {
            // No two files have the same.
            return Some(FileConstants(Arc::new(named.chain(lineage).collect())));
        }
        if values.is_empty() {
            return None;
        }
        if let Some(known) = self.sets.get(&values) {
            return Some(known.clone());
        }
        let set = FileConstants(Arc::new(named.collect()));
        self.sets.insert(values, set.clone());
        Some(set)
    }
}
