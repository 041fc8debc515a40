//! What can be wrong with a file, before its name and its table's are added.

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;

use super::file_format::FileFormat;

/// An error of a file's reader. The scan adds table and file to it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FormatError {
    /// The bytes are not what the format says they are.
    #[error("the {format} file is damaged or cut off: {reason}")]
    Damaged { format: FileFormat, reason: String },

    /// Something that the format knows and we do not.
    #[error("the {format} file uses {feature}, which is not supported")]
    Unsupported { format: FileFormat, feature: String },

    /// A column of the file that cannot be the table's.
    #[error("column '{column}' {reason}")]
    Column { column: String, reason: String },

    #[error("its columns carry no Iceberg field ids, and the table has no name mapping")]
    NoFieldIds,

    #[error(transparent)]
    Store(#[from] object_store::Error),

    #[error(transparent)]
    Arrow(#[from] ArrowError),

    #[error("{0}")]
    Value(String),
}

impl FormatError {
    pub(crate) fn damaged(format: FileFormat, reason: impl Into<String>) -> Self {
        FormatError::Damaged {
            format,
            reason: reason.into(),
        }
    }

    pub(crate) fn unsupported(format: FileFormat, feature: impl Into<String>) -> Self {
        FormatError::Unsupported {
            format,
            feature: feature.into(),
        }
    }

    pub(crate) fn column(column: impl Into<String>, reason: impl Into<String>) -> Self {
        FormatError::Column {
            column: column.into(),
            reason: reason.into(),
        }
    }
}

impl From<DataFusionError> for FormatError {
    fn from(error: DataFusionError) -> Self {
        FormatError::Value(error.strip_backtrace())
    }
}

impl From<FormatError> for DataFusionError {
    fn from(error: FormatError) -> Self {
        DataFusionError::External(Box::new(error))
    }
}
