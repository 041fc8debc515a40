//! What a system table is.

use crate::rows::Column;

/// A system table's name and columns. Its rows come from [`rows`](super::schemas).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Definition {
    /// Lower-case.
    pub name: &'static str,
    /// In MySQL's spelling.
    pub columns: &'static [Column],
}

/// The definition called `name`, in any case.
pub(super) fn find(tables: &'static [Definition], name: &str) -> Option<&'static Definition> {
    tables
        .iter()
        .find(|table| table.name.eq_ignore_ascii_case(name))
}
