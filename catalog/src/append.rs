//! Appending rows to a table in one atomic commit.

mod writer;

pub use writer::{AppendSummary, AppendWriter, WriteOptions};

pub(crate) fn check_properties(
    _properties: &std::collections::HashMap<String, String>,
) -> Result<(), String> {
    Ok(())
}
