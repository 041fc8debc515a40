//! How far the scans of a running query are.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters that the scans of one query bump while they run.
///
/// An `Arc` of it goes into the session configuration as an extension
/// (`SessionConfig::with_extension`); a scan finds it there when it is planned, or decoded on a worker.
#[derive(Debug, Default)]
pub struct QueryProgress {
    /// Files, or ranges of files, that the opened partitions are to read.
    pub splits_total: AtomicU64,
    /// Of those, how many are read to their end, or ruled out.
    pub splits_done: AtomicU64,
    /// Rows that the scans gave.
    pub rows: AtomicU64,
    /// Bytes read from storage or cache.
    pub bytes: AtomicU64,
}

/// What [`QueryProgress`] stood at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProgressSnapshot {
    pub splits_total: u64,
    pub splits_done: u64,
    pub rows: u64,
    pub bytes: u64,
}

impl QueryProgress {
    /// The values now.
    pub fn snapshot(&self) -> ProgressSnapshot {
        ProgressSnapshot {
            splits_total: self.splits_total.load(Ordering::Relaxed),
            splits_done: self.splits_done.load(Ordering::Relaxed),
            rows: self.rows.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}
