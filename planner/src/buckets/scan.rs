//! A scan that reads the buckets of a column, a group of them in each partition.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::datasource::listing::{FileRange, PartitionedFile};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_datasource::file::FileSource;
use datafusion_distributed::DistributedLeafExec;
use tarn_cache::ChosenWorker;

use super::file_buckets::{FileBucket, FileBuckets};
use super::kind::{BucketKind, column_of};
use super::placement::BucketPlaces;
use super::subtree::{Bucketed, common_buckets};
use crate::scan::IcebergSource;

/// What a scan does with the buckets of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScanBuckets {
    /// The column of the table that the buckets are of.
    pub(crate) column: usize,
    /// How many buckets the plan tells apart: a divisor of what each file's are counted by.
    pub(crate) count: u32,
    /// Each file is in the group of its bucket; before, the scan is only meant to read buckets.
    pub(crate) placed: bool,
}

pub(super) fn iceberg_scan(
    plan: &Arc<dyn ExecutionPlan>,
) -> Option<(&FileScanConfig, &IcebergSource)> {
    let plan = match plan.downcast_ref::<DistributedLeafExec>() {
        Some(leaf) => leaf.original(),
        None => plan,
    };
    let exec = plan.downcast_ref::<DataSourceExec>()?;
    let config: &FileScanConfig = exec.data_source().downcast_ref()?;
    Some((config, config.file_source.downcast_ref()?))
}

/// Whether a node is a scan of which a file tells its bucket.
pub(super) fn tells_buckets(plan: &Arc<dyn ExecutionPlan>) -> bool {
    iceberg_scan(plan).is_some_and(|(config, _)| {
        let mut files = config.file_groups.iter().flat_map(|group| group.iter());
        files.any(|file| file.extensions.get::<FileBuckets>().is_some())
    })
}

/// By how many buckets a scan reads, if it does.
pub(super) fn placed_buckets(plan: &Arc<dyn ExecutionPlan>) -> Option<u32> {
    let (_, source) = iceberg_scan(plan)?;
    let buckets = source.buckets().filter(|buckets| buckets.placed)?;
    Some(buckets.count)
}

/// The ways to read a scan by buckets: one for each column that it yields whose buckets all its files tell.
pub(super) fn bucketed_scans(plan: &Arc<dyn ExecutionPlan>, wanted: usize) -> Vec<Bucketed> {
    let Some((config, source)) = iceberg_scan(plan) else {
        return Vec::new();
    };
    // A limit is each partition's, and groups that mean something already cannot be made anew.
    if config.limit.is_some()
        || config.partitioned_by_file_group
        || config.preserve_order
        || !config.output_ordering.is_empty()
    {
        return Vec::new();
    }
    let Some(projection) = source.projection() else {
        return Vec::new();
    };
    let schema = source.table_schema().table_schema();
    let yielded: Vec<(usize, usize)> = projection
        .iter()
        .enumerate()
        .filter_map(|(output, e)| Some((output, column_of(&e.expr, schema)?)))
        .collect();
    let files = || config.file_groups.iter().flat_map(|group| group.iter());
    if files().next().is_none() {
        // No row is in the wrong place, whatever the column and however many buckets there are; but it is one that it yields.
        let Some((_, column)) = yielded.first().copied() else {
            return Vec::new();
        };
        return vec![Bucketed {
            plan: with_buckets(
                config,
                source,
                ScanBuckets {
                    column,
                    count: 0,
                    placed: false,
                },
            ),
            columns: yielded.iter().map(|(output, _)| *output).collect(),
            kind: None,
            count: 0,
            saved: 0,
            meets_shuffled: false,
            moved: 0,
        }];
    }
    let columns: BTreeSet<usize> = yielded.iter().map(|(_, column)| *column).collect();
    columns
        .into_iter()
        .filter_map(|column| {
            let kind = BucketKind::of(schema.fields().get(column)?.data_type())?;
            let count = common_count(files(), column, wanted)?;
            let buckets = ScanBuckets {
                column,
                count,
                placed: false,
            };
            Some(Bucketed {
                plan: with_buckets(config, source, buckets),
                columns: yielded
                    .iter()
                    .filter(|(_, of)| *of == column)
                    .map(|(output, _)| *output)
                    .collect(),
                kind: Some(kind),
                count,
                saved: 0,
                meets_shuffled: false,
                moved: 0,
            })
        })
        .collect()
}

fn bucket_of(file: &PartitionedFile, column: usize) -> Option<&FileBucket> {
    file.extensions.get::<FileBuckets>()?.of_column(column)
}

/// How many buckets all files can be told apart by; `None` if one has none of that column, or the numbers do not fit.
fn common_count<'a>(
    mut files: impl Iterator<Item = &'a PartitionedFile>,
    column: usize,
    wanted: usize,
) -> Option<u32> {
    files.try_fold(0, |all, file| {
        common_buckets(all, bucket_of(file, column)?.count, wanted)
    })
}

/// Whether files can be read by buckets of a column.
pub(crate) fn in_buckets<'a>(
    files: impl Iterator<Item = &'a PartitionedFile>,
    column: usize,
) -> bool {
    common_count(files, column, usize::MAX).is_some()
}

fn with_buckets(
    config: &FileScanConfig,
    source: &IcebergSource,
    buckets: ScanBuckets,
) -> Arc<dyn ExecutionPlan> {
    let source: Arc<dyn FileSource> = Arc::new(source.with_buckets(Some(buckets)));
    DataSourceExec::from_data_source(
        FileScanConfigBuilder::from(config.clone())
            .with_source(source)
            .build(),
    )
}

/// The scan with its files in the groups of their buckets, if it is one that is meant to read buckets and does not yet.
pub(super) fn placed(
    plan: &Arc<dyn ExecutionPlan>,
    count: u32,
    places: &BucketPlaces,
    meets_shuffled: bool,
) -> Option<Arc<dyn ExecutionPlan>> {
    let (config, source) = iceberg_scan(plan)?;
    let buckets = source.buckets().filter(|buckets| !buckets.placed)?;
    let mut files: Vec<Vec<PartitionedFile>> = vec![Vec::new(); places.slots];
    for file in config.file_groups.iter().flat_map(|group| group.iter()) {
        let bucket = bucket_of(file, buckets.column).and_then(|of| of.bucket);
        let place = places.of(bucket);
        files[place.slot].push(file.clone().with_extension(ChosenWorker {
            worker: place.worker,
            workers: places.workers,
            meets_shuffled,
        }));
    }
    let source: Arc<dyn FileSource> = Arc::new(source.with_buckets(Some(ScanBuckets {
        count,
        placed: true,
        ..buckets
    })));
    let files = files
        .into_iter()
        .map(|files| FileGroup::new(joined(files)))
        .collect();
    Some(DataSourceExec::from_data_source(
        FileScanConfigBuilder::from(config.clone())
            .with_source(source)
            .with_file_groups(files)
            .with_partitioned_by_file_group(true)
            .build(),
    ))
}

/// Joins ranges of one file that the planner cut to spread it over partitions.
fn joined(mut files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
    let start = |file: &PartitionedFile| file.range.as_ref().map_or(0, |range| range.start);
    files.sort_by(|a, b| {
        let (path_a, path_b) = (&a.object_meta.location, &b.object_meta.location);
        path_a.cmp(path_b).then_with(|| start(a).cmp(&start(b)))
    });
    let mut joined: Vec<PartitionedFile> = Vec::with_capacity(files.len());
    for file in files {
        if let Some(last) = joined.last_mut()
            && last.object_meta.location == file.object_meta.location
            && let (Some(before), Some(after)) = (&last.range, &file.range)
            && before.end == after.start
        {
            let (start, end) = (before.start, after.end);
            let whole = start <= 0 && end >= 0 && end as u64 >= last.object_meta.size;
            last.range = (!whole).then_some(FileRange { start, end });
            continue;
        }
        joined.push(file);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(path: &str, range: Option<(i64, i64)>) -> PartitionedFile {
        let mut file = PartitionedFile::new(path, 100);
        file.range = range.map(|(start, end)| FileRange { start, end });
        file
    }

    #[test]
    fn pieces_of_a_file_become_one_again() {
        let files = joined(vec![
            part("b", Some((50, 100))),
            part("a", None),
            part("b", Some((0, 50))),
            part("c", Some((0, 40))),
            part("c", Some((60, 100))),
            part("a", None),
        ]);
        let seen: Vec<_> = files
            .iter()
            .map(|file| {
                let range = file.range.as_ref().map(|range| (range.start, range.end));
                (file.object_meta.location.to_string(), range)
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("a".to_string(), None),
                ("a".to_string(), None),
                ("b".to_string(), None),
                ("c".to_string(), Some((0, 40))),
                ("c".to_string(), Some((60, 100))),
            ]
        );
    }
}
