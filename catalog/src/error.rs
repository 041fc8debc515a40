//! What can go wrong between a name in a query and the bytes of a table.

use crate::name::TableName;

/// Result of this crate.
pub type Result<T, E = CatalogError> = std::result::Result<T, E>;

/// An error of a catalog, a table's metadata, a store or a write.
///
/// Each message is a sentence for the person who typed the statement: it names the catalog, table, column or file.
/// Cloneable, because concurrent readers of the same metadata share one failure.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// No catalog of that name is configured.
    #[error("catalog '{catalog}' does not exist{}", did_you_mean(.similar))]
    NoSuchCatalog {
        catalog: String,
        similar: Vec<String>,
    },

    /// The catalog has no such database (namespace).
    #[error("database '{catalog}.{database}' does not exist{}", did_you_mean(.similar))]
    NoSuchDatabase {
        catalog: String,
        database: String,
        similar: Vec<String>,
    },

    /// The database has no such table.
    #[error("table '{table}' does not exist{}", did_you_mean(.similar))]
    NoSuchTable {
        table: TableName,
        similar: Vec<String>,
    },

    /// A location has no table, or more than one could be meant.
    #[error("there is no Iceberg table at '{location}': {reason}")]
    NoTableAt { location: String, reason: String },

    /// The table's metadata knows no such snapshot, branch or tag. `hint` begins with `; `.
    #[error("table '{table}' has no {version}{hint}")]
    NoSuchVersion {
        table: TableName,
        version: String,
        hint: String,
    },

    /// A catalog of that name is there already.
    #[error("catalog '{catalog}' already exists")]
    CatalogExists { catalog: String },

    /// A database of that name is there already.
    #[error("database '{catalog}.{database}' already exists")]
    DatabaseExists { catalog: String, database: String },

    /// A table (or view) of that name is there already.
    #[error("table '{table}' already exists")]
    TableExists { table: TableName },

    /// A database that still has tables is dropped only with CASCADE.
    #[error(
        "database '{catalog}.{database}' is not empty: it has {tables} table(s); drop them first, or use CASCADE"
    )]
    DatabaseNotEmpty {
        catalog: String,
        database: String,
        tables: usize,
    },

    /// A catalog that SQL may not change (embedded, or from the configuration file).
    #[error("catalog '{catalog}' cannot be dropped: {reason}")]
    CatalogFixed { catalog: String, reason: String },

    /// The properties of a catalog do not describe one.
    #[error("catalog '{catalog}': {reason}")]
    InvalidCatalog { catalog: String, reason: String },

    /// A name that no catalog could hold.
    #[error("{kind} name '{name}' is not valid: {reason}")]
    InvalidName {
        kind: &'static str,
        name: String,
        reason: String,
    },

    /// The definition of a table is wrong (a duplicate column, a transform that does not fit, a bad property).
    #[error("table '{table}': {reason}")]
    InvalidTable { table: String, reason: String },

    /// A value that cannot be stored in its column.
    #[error("column '{column}' of table '{table}': {reason}")]
    InvalidValue {
        table: String,
        column: String,
        reason: String,
    },

    /// The catalog's server or database file did not answer, after the retries allowed.
    #[error("catalog '{catalog}' at {uri} cannot be reached: {reason}")]
    Unreachable {
        catalog: String,
        uri: String,
        reason: String,
    },

    /// The catalog answered, with a refusal or with something it should not say.
    #[error("catalog '{catalog}' at {uri} answered with an error: {reason}")]
    Refused {
        catalog: String,
        uri: String,
        reason: String,
    },

    /// A store did not answer, refused, or failed, after the retries allowed.
    #[error("cannot {action} '{location}': {reason}")]
    Store {
        action: &'static str,
        location: String,
        reason: String,
    },

    /// A file that the table's metadata names is not there.
    #[error("{what} '{file}' is missing")]
    MissingFile { what: &'static str, file: String },

    /// A file is truncated, garbled, or not what it claims to be.
    #[error("{what} '{file}' is corrupt: {reason}")]
    Corrupt {
        what: &'static str,
        file: String,
        reason: String,
    },

    /// A location that is not a URL or path of a kind we know.
    #[error("location '{location}' is not valid: {reason}")]
    InvalidLocation { location: String, reason: String },

    /// Other writers won every attempt.
    #[error("table '{table}': the commit lost to other writers {attempts} time(s): {reason}")]
    CommitConflict {
        table: TableName,
        attempts: u32,
        reason: String,
    },

    /// The commit was sent, and no answer tells whether it took place. Its files are kept.
    #[error("table '{table}': it is unknown whether the commit took place: {reason}")]
    CommitUnknown { table: TableName, reason: String },

    /// The table uses a feature of Iceberg that this version of Tarn does not read or write.
    #[error("table '{table}' uses {feature}, which this version of Tarn does not support")]
    Unsupported { table: TableName, feature: String },

    /// Local files of Tarn itself (the data directory, the list of catalogs).
    #[error("{action} '{path}': {reason}")]
    LocalFile {
        action: &'static str,
        path: String,
        reason: String,
    },

    /// Something that should not happen; the message is for a bug report.
    #[error("internal error: {0}")]
    Internal(String),
}

fn did_you_mean(similar: &[String]) -> String {
    match similar {
        [] => String::new(),
        [one] => format!("; did you mean '{one}'?"),
        [first, rest @ ..] => {
            let mut text = format!("; did you mean '{first}'");
            for name in rest {
                text.push_str(&format!(" or '{name}'"));
            }
            text.push('?');
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_table_suggests_names() {
        let error = |similar: &[&str]| {
            CatalogError::NoSuchTable {
                table: TableName::new("lake", "tpch", "ordrs"),
                similar: similar.iter().map(|s| s.to_string()).collect(),
            }
            .to_string()
        };
        assert_eq!(error(&[]), "table 'lake.tpch.ordrs' does not exist");
        assert_eq!(
            error(&["orders"]),
            "table 'lake.tpch.ordrs' does not exist; did you mean 'orders'?"
        );
        assert_eq!(
            error(&["orders", "order"]),
            "table 'lake.tpch.ordrs' does not exist; did you mean 'orders' or 'order'?"
        );
    }
}
