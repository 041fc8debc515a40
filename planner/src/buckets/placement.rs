//! Which buckets make one partition, and which worker reads it.
//!
//! ```text
//!   bucket ──rendezvous──▶ worker ──round robin──▶ slot: a partition of the worker's task
//! ```
//!
//! In the plan of one process, a partition has the buckets of its slot on all workers; a task has its own of them. The worker of a bucket depends on nothing but the number of the bucket, how many
//! there are and the names of the workers, so all tables with that many buckets meet there, query after query, and a worker
//! that comes or goes moves few of them.

use std::any::Any;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::error::{DataFusionError, Result};
use tarn_cache::rendezvous;

/// Where buckets are read. Part of a session's configuration; without it, all are read in this process.
#[derive(Debug, Clone, Default)]
pub(crate) struct BucketPlacement {
    /// The names of the query's workers; task `i` of a stage runs on the `i`th.
    pub(crate) workers: Vec<String>,
}

/// Where each bucket is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BucketPlaces {
    /// How many partitions a task has.
    pub(super) slots: usize,
    /// How many workers there are.
    pub(super) workers: usize,
    of: Vec<BucketPlace>,
}

/// Where a bucket is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BucketPlace {
    pub(super) worker: usize,
    /// The partition within the worker's task.
    pub(super) slot: usize,
}

impl BucketPlaces {
    /// The place of a bucket, of any number of buckets that is a multiple of this one's. Nulls are with bucket 0.
    pub(super) fn of(&self, bucket: Option<u32>) -> BucketPlace {
        let buckets = self.of.len().max(1);
        let place = self.of.get(bucket.unwrap_or(0) as usize % buckets);
        place.copied().unwrap_or(BucketPlace { worker: 0, slot: 0 })
    }
}

impl BucketPlacement {
    /// The placement that a session has.
    pub(super) fn of_session(config: &ConfigOptions) -> Self {
        config.extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// The places of that many buckets, of which a worker reads at most `partitions` at once.
    pub(super) fn places(&self, buckets: u32, partitions: usize) -> BucketPlaces {
        let buckets = buckets.max(1) as usize;
        let workers = self.workers.len().max(1);
        let slots = buckets.div_ceil(workers).clamp(1, partitions.max(1));
        let items: Vec<(String, u64)> = (0..buckets)
            .map(|bucket| (format!("bucket {bucket} of {buckets}"), 1))
            .collect();
        let owners = match self.workers.is_empty() {
            true => vec![0; buckets],
            false => rendezvous::assign(&items, &self.workers, 1.0),
        };
        let mut filled = vec![0; workers];
        let of = owners
            .into_iter()
            .map(|worker| {
                let slot = filled[worker] % slots;
                filled[worker] += 1;
                BucketPlace { worker, slot }
            })
            .collect();
        BucketPlaces { slots, workers, of }
    }
}

impl ConfigExtension for BucketPlacement {
    const PREFIX: &'static str = "tarn_buckets";
}

impl ExtensionOptions for BucketPlacement {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _: &str) -> Result<()> {
        Err(DataFusionError::Configuration(format!(
            "where buckets are read is not a setting: '{key}'"
        )))
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(workers: usize) -> BucketPlacement {
        BucketPlacement {
            workers: (0..workers).map(|i| format!("http://w{i}:9050")).collect(),
        }
    }

    /// How many buckets each partition of each worker has.
    fn sizes(places: &BucketPlaces, buckets: u32) -> Vec<usize> {
        let mut sizes = vec![0; places.slots * places.workers];
        for bucket in 0..buckets {
            let place = places.of(Some(bucket));
            sizes[place.worker * places.slots + place.slot] += 1;
        }
        sizes
    }

    #[test]
    fn buckets_are_spread_evenly_over_workers_and_their_cores() {
        let sizes = sizes(&placement(3).places(64, 2), 64);
        assert_eq!(sizes.len(), 6);
        assert!(sizes.iter().all(|n| (10..=11).contains(n)), "{sizes:?}");
    }

    #[test]
    fn few_buckets_make_few_partitions() {
        assert_eq!(sizes(&placement(0).places(4, 8), 4), [1, 1, 1, 1]);
        let spread = sizes(&placement(3).places(2, 8), 2);
        assert_eq!((spread.len(), spread.iter().sum::<usize>()), (3, 2));
        assert!(spread.iter().all(|n| *n <= 1), "{spread:?}");
    }

    #[test]
    fn a_multiple_of_the_buckets_lies_in_the_same_places() {
        let places = placement(3).places(8, 2);
        for bucket in 0..32 {
            assert_eq!(places.of(Some(bucket)), places.of(Some(bucket % 8)));
        }
        assert_eq!(places.of(None), places.of(Some(0)));
    }

    #[test]
    fn a_worker_that_joins_takes_its_share_and_little_else_moves() {
        let (before, after) = (placement(3).places(60, 2), placement(4).places(60, 2));
        let stayed = (0..60)
            .filter(|bucket| before.of(Some(*bucket)).worker == after.of(Some(*bucket)).worker)
            .count();
        // 45 would be the best, 15 if buckets were dealt out anew.
        assert!(stayed >= 30, "{stayed}");
    }
}
