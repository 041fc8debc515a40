//! What can go wrong while a data set is made.

use tarn_catalog::CatalogError;

/// Result of this crate.
pub type Result<T, E = LakeError> = std::result::Result<T, E>;

/// A data set could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LakeError {
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A table of that name is there and is not one of ours: it is not touched.
    #[error(
        "the table {table} is there already and is no generated one; drop it or choose another database"
    )]
    ForeignTable { table: String },
    #[error("cannot build the rows of {table}: {source}")]
    Rows {
        table: String,
        source: arrow::error::ArrowError,
    },
    #[error("the schema of {table} is not valid: {source}")]
    Schema {
        table: String,
        source: Box<iceberg::Error>,
    },
    #[error("generating {table} stopped: {reason}")]
    Stopped { table: String, reason: String },
    /// Nothing below 0.001 makes sense of the tables' proportions.
    #[error("a scale factor of {scale} is not between 0.001 and 1000")]
    Scale { scale: f64 },
}
