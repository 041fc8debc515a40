//! Who wants to know how far a data set is.

/// Told about each table while it is made.
pub trait Progress: Send + Sync {
    /// `done` of about `total` rows of the table `label` (`database.table`) are written; equal when the table is complete.
    fn step(&self, label: &str, done: u64, total: u64);
}

/// Nobody wants to know.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn step(&self, _label: &str, _done: u64, _total: u64) {}
}
