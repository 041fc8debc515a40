//! Which keys are heavy.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::hash_utils::create_hashes;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, FileSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::repartition::REPARTITION_RANDOM_STATE;
use datafusion::scalar::ScalarValue;
use futures::StreamExt;

use super::SkewOptions;
use super::candidates::Candidate;
use crate::scan::IcebergSource;

/// Files that are looked into, of those that a scan reads.
const FILES: usize = 8;
/// Rows of each.
const ROWS: usize = 8192;
/// Of fewer rows altogether nothing is concluded, where such sides are to be looked at at all.
const LEAST_ROWS: u64 = 1000;
/// Keys that are spread: each costs copies.
const MOST_KEYS: usize = 32;
/// A key is heavy if it has so many times a partition's fair share of the rows. Below, spreading costs more than it saves:
/// the join has one more key, and its rows one more column.
const FAIR_SHARES: f64 = 1.5;
/// With fewer partitions little is won.
const LEAST_PARTITIONS: usize = 4;
/// Keys with a smaller part of a file's rows are not remembered.
const LEAST_SHARE: f64 = 0.005;

/// The keys that are spread.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HeavyKeys {
    pub keys: Vec<Vec<ScalarValue>>,
    /// Rows without a key are as heavy.
    pub nulls: bool,
}

/// What the first rows of a file have for keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileSample {
    rows: u64,
    nulls: u64,
    frequent: Vec<(Vec<ScalarValue>, u64)>,
}

/// Samples by file and columns. Files never change.
pub(crate) type SampleCache = moka::sync::Cache<String, Arc<FileSample>>;

/// The keys that hold too much for one partition of so many; `None` if none does.
pub(super) async fn heavy_keys(
    candidate: &Candidate,
    options: SkewOptions,
    task: &Arc<TaskContext>,
) -> Result<Option<HeavyKeys>> {
    let config = candidate
        .scan
        .downcast_ref::<DataSourceExec>()
        .and_then(|exec| exec.data_source().downcast_ref::<FileScanConfig>());
    let source = config.and_then(|config| config.file_source.downcast_ref::<IcebergSource>());
    let (Some(config), Some(source)) = (config, source) else {
        return Ok(None);
    };
    let Some((source, columns)) = source.afresh(&candidate.columns) else {
        return Ok(None);
    };
    let mut samples = Vec::new();
    for file in some_files(config) {
        let schema = source.table_schema().table_schema();
        let fields: Vec<_> = columns.iter().map(|column| schema.field(*column)).collect();
        // A column may have another name, or type, in another schema of the table.
        let key = format!("{} {fields:?}", file.object_meta.location);
        let cache = source.stores().samples();
        let sample = match cache.get(&key) {
            Some(sample) => sample,
            None => {
                let sample = Arc::new(
                    sampled(&config.object_store_url, &source, file, &columns, task).await?,
                );
                cache.insert(key, Arc::clone(&sample));
                sample
            }
        };
        samples.push(sample);
    }
    Ok(heavy(&samples, options))
}

/// Files from all over a scan.
fn some_files(config: &FileScanConfig) -> Vec<PartitionedFile> {
    let mut files: Vec<&PartitionedFile> =
        config.file_groups.iter().flat_map(|g| g.iter()).collect();
    files.sort_by(|a, b| a.object_meta.location.cmp(&b.object_meta.location));
    files.dedup_by(|a, b| a.object_meta.location == b.object_meta.location);
    let step = files.len().div_ceil(FILES).max(1);
    files.into_iter().step_by(step).cloned().collect()
}

async fn sampled(
    store: &ObjectStoreUrl,
    source: &IcebergSource,
    file: PartitionedFile,
    columns: &[usize],
    task: &Arc<TaskContext>,
) -> Result<FileSample> {
    let keys = FileScanConfigBuilder::new(store.clone(), Arc::new(source.clone()))
        .with_file_groups(vec![FileGroup::new(vec![file])])
        .with_projection_indices(Some(columns.to_vec()))?
        .build();
    let mut rows = DataSourceExec::from_data_source(keys).execute(0, Arc::clone(task))?;
    let mut counted = Counted::default();
    while counted.rows < ROWS as u64
        && let Some(batch) = rows.next().await
    {
        counted.add(&batch?)?;
    }
    Ok(counted.into_sample())
}

/// The keys of rows, counted by their hashes.
#[derive(Default)]
struct Counted {
    rows: u64,
    nulls: u64,
    by_hash: HashMap<u64, (Vec<ScalarValue>, u64)>,
}

impl Counted {
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let keys: &[ArrayRef] = batch.columns();
        let mut hashes = vec![0; batch.num_rows()];
        create_hashes(keys, REPARTITION_RANDOM_STATE.random_state(), &mut hashes)?;
        let nulls: Vec<_> = keys.iter().filter_map(|key| key.logical_nulls()).collect();
        for (row, hash) in hashes.into_iter().enumerate() {
            self.rows += 1;
            if nulls.iter().any(|nulls| nulls.is_null(row)) {
                self.nulls += 1;
                continue;
            }
            match self.by_hash.get_mut(&hash) {
                Some((_, count)) => *count += 1,
                None => {
                    let key = keys
                        .iter()
                        .map(|key| ScalarValue::try_from_array(key, row))
                        .collect::<Result<_>>()?;
                    self.by_hash.insert(hash, (key, 1));
                }
            }
        }
        Ok(())
    }

    fn into_sample(self) -> FileSample {
        let least = (self.rows as f64 * LEAST_SHARE).max(2.0);
        FileSample {
            rows: self.rows,
            nulls: self.nulls,
            frequent: self
                .by_hash
                .into_values()
                .filter(|(_, count)| *count as f64 >= least)
                .collect(),
        }
    }
}

fn heavy(samples: &[Arc<FileSample>], options: SkewOptions) -> Option<HeavyKeys> {
    let rows: u64 = samples.iter().map(|sample| sample.rows).sum();
    if options.partitions < LEAST_PARTITIONS || rows < LEAST_ROWS.min(options.min_rows as u64) {
        return None;
    }
    let mut counts: HashMap<&Vec<ScalarValue>, u64> = HashMap::new();
    for (key, count) in samples.iter().flat_map(|sample| &sample.frequent) {
        *counts.entry(key).or_default() += count;
    }
    let least = (FAIR_SHARES / options.partitions as f64).max(LEAST_SHARE) * rows as f64;
    let mut keys: Vec<(&Vec<ScalarValue>, u64)> = counts
        .into_iter()
        .filter(|(_, count)| *count as f64 >= least)
        .collect();
    keys.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    keys.truncate(MOST_KEYS);
    let nulls: u64 = samples.iter().map(|sample| sample.nulls).sum();
    let nulls = nulls as f64 >= least;
    (nulls || !keys.is_empty()).then(|| HeavyKeys {
        keys: keys.into_iter().map(|(key, _)| key.clone()).collect(),
        nulls,
    })
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Int64Array;
    use datafusion::arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    fn sample(keys: Vec<Option<i64>>) -> Arc<FileSample> {
        let schema = Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, true)]));
        let keys: ArrayRef = Arc::new(Int64Array::from(keys));
        let mut counted = Counted::default();
        counted
            .add(&RecordBatch::try_new(schema, vec![keys]).unwrap())
            .unwrap();
        Arc::new(counted.into_sample())
    }

    fn key(value: i64) -> Vec<ScalarValue> {
        vec![ScalarValue::from(value)]
    }

    fn over(partitions: usize) -> SkewOptions {
        SkewOptions {
            min_rows: 1_000_000,
            partitions,
        }
    }

    /// A third is 7; of 1,000 keys the rest has one of each; a fifth is without a key.
    fn skewed() -> Vec<Option<i64>> {
        (0..3000)
            .map(|n| match n % 15 {
                0..5 => Some(7),
                5..8 => None,
                _ => Some(1000 + n),
            })
            .collect()
    }

    #[test]
    fn a_key_with_more_than_its_share_is_heavy() {
        let samples = [sample(skewed()), sample(skewed())];
        for partitions in [8, 64] {
            assert_eq!(
                heavy(&samples, over(partitions)),
                Some(HeavyKeys {
                    keys: vec![key(7)],
                    nulls: true
                })
            );
        }
        // One and a half fair shares of four are more than a third, and three partitions are too few.
        assert_eq!(heavy(&samples, over(4)), None);
        assert_eq!(heavy(&samples, over(3)), None);
    }

    #[test]
    fn shares_are_of_all_files_together() {
        // All of one file in eight: an eighth of the rows, one and a half fair shares of twelve partitions.
        let mut samples = vec![sample(vec![Some(1); 1000])];
        samples.extend(
            (0..7).map(|file| sample((0..1000).map(|n| Some(10_000 * (file + 1) + n)).collect())),
        );
        assert_eq!(heavy(&samples, over(12)).unwrap().keys, [key(1)]);
        assert_eq!(heavy(&samples, over(11)), None);
    }

    #[test]
    fn few_rows_say_nothing() {
        assert_eq!(heavy(&[sample(vec![Some(1); 999])], over(8)), None);
        assert_eq!(heavy(&[], over(8)), None);
    }

    #[test]
    fn even_keys_are_not_heavy() {
        let even = (0..8192).map(|n| Some(n % 500)).collect();
        assert_eq!(heavy(&[sample(even)], over(8)), None);
    }
}
