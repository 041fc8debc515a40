//! What every statement leaves behind: an [`AuditRecord`] with a [`ScanReport`] per table it read.
//!
//! The record is plain data that serialises to one JSON line. It knows nothing of SQL or of
//! Iceberg's types, so that a job can read the log without linking the engine. Records go to an
//! [`AuditSink`]; a sink never fails and never blocks the statement that it records.

mod file_sink;
mod record;
mod scan_report;
mod sink;

pub use file_sink::{FileSink, FileSinkSettings};
pub use record::{AuditRecord, Outcome, StatementError};
pub use scan_report::{Counts, ScanReport};
pub use sink::{AuditSink, MemorySink, NoSink, SinkStats};
