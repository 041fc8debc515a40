use datafusion::error::Result;
use datafusion_distributed::WorkerResolver;
use std::sync::Arc;
use url::Url;

/// The workers of one query, fixed when it is planned.
///
/// Planning and routing ask at different moments; both must see the same workers in the same order, or a task
/// meets files that were meant for another. Workers are sorted and hashed by address, not by process id: a
/// worker that restarts finds its own cache on its disk again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerSnapshot {
    urls: Arc<[Url]>,
    nodes: Arc<[String]>,
    cores: u32,
}

impl WorkerSnapshot {
    /// A snapshot of workers, each an address and its number of cores.
    pub fn new(workers: impl IntoIterator<Item = (Url, u32)>) -> Self {
        let mut workers: Vec<_> = workers.into_iter().collect();
        workers.sort();
        workers.dedup_by(|a, b| a.0 == b.0);
        Self {
            nodes: workers.iter().map(|(url, _)| url.to_string()).collect(),
            cores: workers
                .iter()
                .map(|(_, cores)| *cores)
                .min()
                .unwrap_or(1)
                .max(1),
            urls: workers.into_iter().map(|(url, _)| url).collect(),
        }
    }

    /// The same snapshot without the workers at `urls` (a retried query leaves out those that failed it).
    pub fn without(&self, urls: &[Url]) -> Self {
        Self::new(
            self.urls
                .iter()
                .filter(|url| !urls.contains(url))
                .map(|url| (url.clone(), self.cores)),
        )
    }

    /// At most `max` of the workers (0: all).
    pub fn limited(&self, max: usize) -> Self {
        if max == 0 || max >= self.len() {
            return self.clone();
        }
        Self::new(self.urls[..max].iter().map(|url| (url.clone(), self.cores)))
    }

    /// The addresses, sorted.
    pub fn urls(&self) -> &[Url] {
        &self.urls
    }

    /// The addresses as the names of nodes in rendezvous hashing, in the order of [`Self::urls`].
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// The cores of the worker that has fewest: every task of a stage has the same number of partitions.
    pub fn cores(&self) -> u32 {
        self.cores
    }

    /// How many workers.
    pub fn len(&self) -> usize {
        self.urls.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.urls.is_empty()
    }
}

impl WorkerResolver for WorkerSnapshot {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(self.urls.to_vec())
    }
}
