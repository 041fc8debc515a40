//! Appending rows to a table in one atomic commit.

mod writer;

pub use writer::{AppendSummary, AppendWriter, WriteOptions};
