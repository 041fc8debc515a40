use std::fmt::Debug;

use parking_lot::Mutex;

use crate::AuditRecord;

/// Where records go. A sink never fails and never blocks: what it cannot take it counts.
pub trait AuditSink: Debug + Send + Sync {
    /// Takes one record.
    fn record(&self, record: AuditRecord);

    /// What became of the records so far.
    fn stats(&self) -> SinkStats;

    /// Writes out what is still in memory; called at shutdown.
    fn flush(&self) {}
}

/// Counts of records since the sink was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SinkStats {
    pub written: u64,
    /// Lost because the queue was full or the file could not be written.
    pub dropped: u64,
}

/// Keeps no record: for an engine that was started with the audit switched off.
#[derive(Debug, Default)]
pub struct NoSink;

impl AuditSink for NoSink {
    fn record(&self, _: AuditRecord) {}

    fn stats(&self) -> SinkStats {
        SinkStats::default()
    }
}

/// Keeps records in memory, for tests that look at them.
#[derive(Debug, Default)]
pub struct MemorySink(Mutex<Vec<AuditRecord>>);

impl MemorySink {
    /// The records so far, oldest first.
    pub fn records(&self) -> Vec<AuditRecord> {
        self.0.lock().clone()
    }
}

impl AuditSink for MemorySink {
    fn record(&self, record: AuditRecord) {
        self.0.lock().push(record);
    }

    fn stats(&self) -> SinkStats {
        SinkStats {
            written: self.0.lock().len() as u64,
            dropped: 0,
        }
    }
}
