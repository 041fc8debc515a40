//! Names of tables, as the whole of Tarn spells them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The embedded catalog: a SQLite file and a warehouse in the data directory.
pub const DEFAULT_CATALOG: &str = "lake";

/// The database that the embedded catalog has from the start.
pub const DEFAULT_DATABASE: &str = "default";

/// The full name of a table: `catalog.database.table`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableName {
    /// The catalog, as it is called in this Tarn.
    pub catalog: String,
    /// The database; levels of a nested namespace are joined with dots.
    pub database: String,
    /// The table.
    pub table: String,
}

impl TableName {
    /// A table that no catalog holds: its location is its name.
    pub fn at(location: impl Into<String>) -> Self {
        Self::new("", "", location)
    }

    /// Puts the three parts together.
    pub fn new(
        catalog: impl Into<String>,
        database: impl Into<String>,
        table: impl Into<String>,
    ) -> Self {
        Self {
            catalog: catalog.into(),
            database: database.into(),
            table: table.into(),
        }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.catalog.is_empty() {
            return f.write_str(&self.table);
        }
        write!(f, "{}.{}.{}", self.catalog, self.database, self.table)
    }
}
