//! What can go wrong in a scan, besides what the catalog says.

use datafusion::error::DataFusionError;
use tarn_catalog::{CatalogError, TableName};

/// An error of the planner's scan half. It travels as [`DataFusionError::External`].
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PlannerError {
    /// A data file that is missing, cut off, or not what the table's metadata says of it.
    #[error("table '{table}': data file '{file}' cannot be read: {reason}")]
    DataFile {
        table: String,
        file: String,
        reason: String,
    },

    /// A delete file that is missing, cut off, or not what the table's metadata says of it.
    #[error("table '{table}': delete file '{file}' cannot be read: {reason}")]
    DeleteFile {
        table: String,
        file: String,
        reason: String,
    },

    /// A scan that arrived from another process and cannot be put together.
    #[error("a scan cannot be decoded: {0}")]
    Codec(String),

    /// `query_memory_bytes`, or another setting of a session, is out of range.
    #[error("setting '{setting}': {reason}")]
    Setting {
        setting: &'static str,
        reason: String,
    },

    /// A table's version that makes no sense, or of something that has none.
    #[error("{0}")]
    TableVersion(String),

    /// A value in a table's metadata that is not of the type it must have.
    #[error("a metadata table cannot be read: {0}")]
    MetadataValue(String),

    /// Metadata that contradicts itself.
    #[error("table '{table}': {reason}")]
    Metadata { table: TableName, reason: String },
}

impl From<PlannerError> for DataFusionError {
    fn from(error: PlannerError) -> Self {
        DataFusionError::External(Box::new(error))
    }
}

/// A catalog's error, as one of DataFusion's that can be taken apart again.
pub(crate) fn catalog_error(error: CatalogError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// A message between coordinator and workers that cannot be written or read.
pub(crate) fn codec_error(reason: impl ToString) -> DataFusionError {
    PlannerError::Codec(reason.to_string()).into()
}

/// Whether a message starts with the number that tells its kind, as a `fixed64` field of tag 1.
pub(crate) fn is_marked(message: &[u8], magic: u64) -> bool {
    // The field's tag and type are in one byte, then come eight bytes.
    message.get(1..9) == Some(magic.to_le_bytes().as_slice())
}
