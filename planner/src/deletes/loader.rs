//! From a data file's delete files to the rows of it that are left.

use std::sync::Arc;

use datafusion::config::TableParquetOptions;
use datafusion::datasource::listing::{FileRange, PartitionedFile};
use datafusion::datasource::physical_plan::parquet::ParquetAccessPlan;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, Time};
use futures::{StreamExt, TryStreamExt};
use iceberg::spec::DataFileFormat;
use parquet::file::metadata::ParquetMetaData;
use roaring::RoaringTreemap;

use super::cache::{DeleteCache, Loaded, LoadedKey};
use super::delete_file::{DeleteFile, DeleteKind, FileDeletes};
use super::deletion_vector;
use super::equality::{KeySet, for_each_match};
use super::key_columns::KeyColumns;
use super::position::{LoadedPositions, position_columns};
use super::rows::read_rows;
use super::selection::{RowGroup, remaining};
use crate::error::PlannerError;
use crate::formats::FileFormat;
use crate::scan::{ReadSource, data_file};

/// Delete files that are read at the same time for one data file.
const AT_ONCE: usize = 8;

/// Leaves row groups out that a query has no use for: it clears their place among those that are to be read.
pub(crate) type PruneRowGroups<'a> = &'a (dyn Fn(&ParquetMetaData, &mut [bool]) + Send + Sync);

/// Loads deletes for the files of one partition of a scan.
pub(crate) struct DeleteLoader {
    table: String,
    source: Arc<ReadSource>,
    cache: Arc<DeleteCache>,
    options: TableParquetOptions,
    rows_deleted: Count,
    load_time: Time,
}

impl DeleteLoader {
    pub(crate) fn new(
        table: String,
        source: Arc<ReadSource>,
        cache: Arc<DeleteCache>,
        options: TableParquetOptions,
        metrics: &ExecutionPlanMetricsSet,
        partition: usize,
    ) -> Self {
        Self {
            table,
            source,
            cache,
            options,
            rows_deleted: MetricBuilder::new(metrics).counter("rows_deleted", partition),
            load_time: MetricBuilder::new(metrics).subset_time("delete_load_time", partition),
        }
    }

    /// The rows to read of a Parquet data file, or of the range of it that is asked for; `None` if there are none.
    pub(crate) async fn parquet_access(
        &self,
        file: &PartitionedFile,
        deletes: &FileDeletes,
        prune: PruneRowGroups<'_>,
    ) -> Result<Option<ParquetAccessPlan>> {
        let _timer = self.load_time.timer();
        let (path, size) = (&file.object_meta.location, file.object_meta.size);
        let mut deleted = self.positions(deletes).await?;
        let footer = self.source.footer(path, size).await?;
        let groups = row_groups(&footer, file.range.as_ref())?;
        if !deletes.equality.is_empty() {
            let mut wanted = vec![false; footer.num_row_groups()];
            for group in &groups {
                // What is gone already need not be looked at.
                let gone = deleted.range_cardinality(group.first..group.first + group.rows);
                wanted[group.index] = gone < group.rows;
            }
            prune(&footer, &mut wanted);
            let open: Vec<RowGroup> = groups
                .iter()
                .copied()
                .filter(|group| wanted[group.index])
                .collect();
            let matched = self.matched(file, deletes, footer.num_row_groups(), &open);
            let matched = matched.await?;
            if !matched.is_empty() {
                *Arc::make_mut(&mut deleted) |= matched;
            }
        }
        let left = remaining(footer.num_row_groups(), &groups, &deleted);
        self.rows_deleted.add(left.deleted as usize);
        Ok(left.any.then_some(left.plan))
    }

    /// The positions in a data file of another format than Parquet that are deleted. All of its rows are held against
    /// equality deletes, as such a file cannot be read from anywhere in it.
    pub(crate) async fn deleted_rows(
        &self,
        file: &PartitionedFile,
        format: FileFormat,
        deletes: &FileDeletes,
    ) -> Result<Arc<RoaringTreemap>> {
        let _timer = self.load_time.timer();
        let mut deleted = self.positions(deletes).await?;
        for (keys, files) in by_key(&deletes.equality) {
            let key = LoadedKey::Matched {
                store: Arc::clone(self.source.store_url()),
                path: file.object_meta.location.clone(),
                row_group: 0,
                columns: keys.columns().fingerprint(),
                deletes: names(&files).into(),
            };
            let load = async {
                let sets = self
                    .at_once(&files, |file| self.key_set(file, &keys))
                    .await?;
                let matched = self.match_all_rows(file, format, &keys, &sets).await?;
                Ok(Loaded::Bitmap(Arc::new(matched)))
            };
            match self.cache.get_or_load(key, load).await? {
                Loaded::Bitmap(matched) if matched.is_empty() => {}
                Loaded::Bitmap(matched) => *Arc::make_mut(&mut deleted) |= matched.as_ref(),
                Loaded::Positions(_) | Loaded::Keys(_) => {
                    return Err(DataFusionError::Internal(
                        "matched rows were mixed up with deletes".to_string(),
                    ));
                }
            }
        }
        Ok(deleted)
    }

    async fn match_all_rows(
        &self,
        file: &PartitionedFile,
        format: FileFormat,
        keys: &KeyColumns,
        sets: &[Arc<KeySet>],
    ) -> Result<RoaringTreemap> {
        let mut rows = read_rows(
            file.clone(),
            format.data_file_format(),
            keys.columns(),
            &self.source,
            &self.options,
        )
        .await?;
        let converter = keys.converter()?;
        let mut found = RoaringTreemap::new();
        let mut first = 0;
        while let Some(batch) = rows.try_next().await? {
            for_each_match(sets, &converter, &keys.keys(&batch)?, |row| {
                found.insert(first + row as u64);
            })?;
            first += batch.num_rows() as u64;
        }
        Ok(found)
    }

    /// Counts rows that were read and left out.
    pub(crate) fn count_deleted(&self, rows: u64) {
        self.rows_deleted.add(rows as usize);
    }

    /// What position deletes, or the vector that stands for them, delete from the data file.
    async fn positions(&self, deletes: &FileDeletes) -> Result<Arc<RoaringTreemap>> {
        if let Some(vector) = &deletes.vector {
            return self.vector(vector).await;
        }
        let loaded: Vec<Arc<LoadedPositions>> = self
            .at_once(&deletes.positions, |file| self.position_file(file))
            .await?;
        let mut of_file = loaded
            .iter()
            .filter_map(|positions| positions.of(&deletes.data_file));
        let mut all = of_file.next().map(Arc::clone).unwrap_or_default();
        for more in of_file {
            *Arc::make_mut(&mut all) |= more.as_ref();
        }
        Ok(all)
    }

    async fn position_file(&self, file: Arc<DeleteFile>) -> Result<Arc<LoadedPositions>> {
        let key = LoadedKey::Positions {
            store: Arc::clone(self.source.store_url()),
            path: file.path.clone(),
        };
        let load = async {
            let columns = position_columns().map_err(|e| self.named(&file, e))?;
            let rows = self.rows(&file, &columns).await?;
            let positions = LoadedPositions::read(rows).await;
            let positions = positions.map_err(|e| self.name_error(&file, e))?;
            Ok(Loaded::Positions(Arc::new(positions)))
        };
        match self.cache.get_or_load(key, load).await? {
            Loaded::Positions(positions) => Ok(positions),
            Loaded::Bitmap(_) | Loaded::Keys(_) => Err(self.mixed_up(&file)),
        }
    }

    async fn vector(&self, file: &Arc<DeleteFile>) -> Result<Arc<RoaringTreemap>> {
        let DeleteKind::Vector {
            offset,
            length,
            cardinality,
        } = file.kind
        else {
            return Err(self.mixed_up(file));
        };
        let key = LoadedKey::Vector {
            store: Arc::clone(self.source.store_url()),
            path: file.path.clone(),
            offset,
        };
        let load = async {
            let end = offset
                .checked_add(length)
                .filter(|end| *end <= file.size)
                .ok_or_else(|| {
                    self.named(
                        file,
                        format!(
                            "its deletion vector is said to be {length} bytes at {offset}, past its {} bytes",
                            file.size
                        ),
                    )
                })?;
            let blob = self
                .source
                .read(&file.path, offset..end)
                .await
                .map_err(|e| self.name_error(file, e.into()))?;
            let positions = deletion_vector::parse(&blob)
                .map_err(|e| self.named(file, format!("the deletion vector at {offset}: {e}")))?;
            if positions.len() != cardinality {
                return Err(self.named(
                    file,
                    format!(
                        "the deletion vector at {offset} has {} positions, {cardinality} by its manifest",
                        positions.len()
                    ),
                ));
            }
            Ok(Loaded::Bitmap(Arc::new(positions)))
        };
        match self.cache.get_or_load(key, load).await? {
            Loaded::Bitmap(bitmap) => Ok(bitmap),
            Loaded::Positions(_) | Loaded::Keys(_) => Err(self.mixed_up(file)),
        }
    }

    async fn key_set(&self, file: Arc<DeleteFile>, keys: &KeyColumns) -> Result<Arc<KeySet>> {
        let key = LoadedKey::Keys {
            store: Arc::clone(self.source.store_url()),
            path: file.path.clone(),
            columns: keys.columns().fingerprint(),
        };
        let load = async {
            let rows = self.rows(&file, keys.columns()).await?;
            let set = KeySet::read(rows, keys).await;
            let set = set.map_err(|e| self.name_error(&file, e))?;
            Ok(Loaded::Keys(Arc::new(set)))
        };
        match self.cache.get_or_load(key, load).await? {
            Loaded::Keys(set) => Ok(set),
            Loaded::Positions(_) | Loaded::Bitmap(_) => Err(self.mixed_up(&file)),
        }
    }

    /// Which rows of those row groups of a Parquet data file the equality deletes match.
    async fn matched(
        &self,
        file: &PartitionedFile,
        deletes: &FileDeletes,
        row_groups: usize,
        groups: &[RowGroup],
    ) -> Result<RoaringTreemap> {
        let mut all = RoaringTreemap::new();
        for (keys, files) in by_key(&deletes.equality) {
            let names: Arc<str> = names(&files).into();
            let cached = |group: &RowGroup| LoadedKey::Matched {
                store: Arc::clone(self.source.store_url()),
                path: file.object_meta.location.clone(),
                row_group: group.index,
                columns: keys.columns().fingerprint(),
                deletes: Arc::clone(&names),
            };
            let mut missing = Vec::new();
            for group in groups {
                match self.cache.get(&cached(group)).await {
                    Some(Loaded::Bitmap(matched)) => all |= matched.as_ref(),
                    _ => missing.push(*group),
                }
            }
            if missing.is_empty() {
                continue;
            }
            let sets = self
                .at_once(&files, |file| self.key_set(file, &keys))
                .await?;
            let found = self
                .match_rows(file, &keys, &sets, row_groups, &missing)
                .await?;
            for (group, matched) in missing.iter().zip(found) {
                all |= &matched;
                self.cache
                    .insert(cached(group), Loaded::Bitmap(Arc::new(matched)))
                    .await;
            }
        }
        Ok(all)
    }

    /// Reads the key columns of those row groups, and gives the positions in each whose key is in one of the sets.
    async fn match_rows(
        &self,
        file: &PartitionedFile,
        keys: &KeyColumns,
        sets: &[Arc<KeySet>],
        row_groups: usize,
        groups: &[RowGroup],
    ) -> Result<Vec<RoaringTreemap>> {
        let mut plan = ParquetAccessPlan::new_none(row_groups);
        for group in groups {
            plan.scan(group.index);
        }
        let mut whole = file.clone().with_extension(plan);
        whole.range = None;
        // Statistics are by the table's columns, not by the key's.
        whole.statistics = None;
        let mut rows = read_rows(
            whole,
            DataFileFormat::Parquet,
            keys.columns(),
            &self.source,
            &self.options,
        )
        .await?;
        let converter = keys.converter()?;
        let mut found = vec![RoaringTreemap::new(); groups.len()];
        // The row group that the next row is of, and its number in there.
        let (mut group, mut offset) = (0, 0);
        while let Some(batch) = rows.try_next().await? {
            let mut batch_matches = vec![false; batch.num_rows()];
            for_each_match(sets, &converter, &keys.keys(&batch)?, |row| {
                batch_matches[row] = true;
            })?;
            for matches in batch_matches {
                while groups.get(group).is_some_and(|g| offset >= g.rows) {
                    (group, offset) = (group + 1, 0);
                }
                let Some(current) = groups.get(group) else {
                    return Err(too_many_or_few());
                };
                if matches {
                    found[group].insert(current.first + offset);
                }
                offset += 1;
            }
        }
        while groups.get(group).is_some_and(|g| offset >= g.rows) {
            (group, offset) = (group + 1, 0);
        }
        match group == groups.len() {
            true => Ok(found),
            false => Err(too_many_or_few()),
        }
    }

    async fn rows(
        &self,
        file: &DeleteFile,
        columns: &Arc<crate::scan::TableColumns>,
    ) -> Result<futures::stream::BoxStream<'static, Result<arrow::array::RecordBatch>>> {
        let opened = read_rows(
            data_file(file.path.clone(), file.size),
            file.format,
            columns,
            &self.source,
            &self.options,
        );
        opened.await.map_err(|e| self.name_error(file, e))
    }

    async fn at_once<T, F>(
        &self,
        files: &[Arc<DeleteFile>],
        load: impl Fn(Arc<DeleteFile>) -> F,
    ) -> Result<Vec<T>>
    where
        F: Future<Output = Result<T>>,
    {
        let loads: Vec<F> = files.iter().map(|file| load(Arc::clone(file))).collect();
        futures::stream::iter(loads)
            .buffered(AT_ONCE)
            .try_collect()
            .await
    }

    fn named(&self, file: &DeleteFile, reason: impl ToString) -> DataFusionError {
        PlannerError::DeleteFile {
            table: self.table.clone(),
            file: file.location.clone(),
            reason: reason.to_string(),
        }
        .into()
    }

    /// The error, with the delete file that it is about, if it is about the file.
    fn name_error(&self, file: &DeleteFile, error: DataFusionError) -> DataFusionError {
        match error.find_root() {
            DataFusionError::ResourcesExhausted(_) | DataFusionError::Internal(_) => error,
            DataFusionError::External(inner) if inner.is::<PlannerError>() => error,
            _ => self.named(file, error.strip_backtrace()),
        }
    }

    fn mixed_up(&self, file: &DeleteFile) -> DataFusionError {
        self.named(file, "it is also a delete file of another kind")
    }
}

fn too_many_or_few() -> DataFusionError {
    DataFusionError::Execution("it has other rows than its footer says".to_string())
}

/// The row groups of a file, or those that begin in a range of it, as the Parquet source assigns them to ranges.
fn row_groups(footer: &ParquetMetaData, range: Option<&FileRange>) -> Result<Vec<RowGroup>> {
    let mut groups = Vec::with_capacity(footer.num_row_groups());
    let mut first = 0u64;
    for (index, group) in footer.row_groups().iter().enumerate() {
        let rows = u64::try_from(group.num_rows()).map_err(|_| {
            DataFusionError::Execution(format!("row group {index} has {} rows", group.num_rows()))
        })?;
        let start = group.columns().first().map_or(0, |column| {
            column
                .dictionary_page_offset()
                .unwrap_or_else(|| column.data_page_offset())
        });
        if range.is_none_or(|range| range.start <= start && start < range.end) {
            groups.push(RowGroup { index, first, rows });
        }
        first = first.checked_add(rows).ok_or_else(too_many_or_few)?;
    }
    Ok(groups)
}

/// Equality delete files by their key, in the order that they came in.
fn by_key(files: &[Arc<DeleteFile>]) -> Vec<(Arc<KeyColumns>, Vec<Arc<DeleteFile>>)> {
    let mut groups: Vec<(Arc<KeyColumns>, Vec<Arc<DeleteFile>>)> = Vec::new();
    for file in files {
        let DeleteKind::Equality(keys) = &file.kind else {
            continue;
        };
        match groups.iter_mut().find(|(known, _)| known == keys) {
            Some((_, files)) => files.push(Arc::clone(file)),
            None => groups.push((Arc::clone(keys), vec![Arc::clone(file)])),
        }
    }
    groups
}

/// The paths of files as one text.
fn names(files: &[Arc<DeleteFile>]) -> String {
    let names: Vec<&str> = files.iter().map(|file| file.path.as_ref()).collect();
    names.join("\n")
}
