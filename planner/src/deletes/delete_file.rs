//! Delete files, and what of them one data file needs.

use std::sync::Arc;

use iceberg::spec::DataFileFormat;
use object_store::path::Path;

use super::key_columns::KeyColumns;

/// One delete file of a scan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DeleteFile {
    /// As the table's metadata spells it.
    pub location: String,
    pub path: Path,
    /// Of the whole file, in bytes.
    pub size: u64,
    pub format: DataFileFormat,
    pub kind: DeleteKind,
}

/// What is in a delete file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DeleteKind {
    /// Rows of a data file's path and a position in it, for any number of data files.
    Positions,
    /// One blob of a Puffin file: the positions of one data file.
    Vector {
        offset: u64,
        length: u64,
        /// Positions in it, as the manifest has it.
        cardinality: u64,
    },
    /// Keys of rows.
    Equality(Arc<KeyColumns>),
}

/// The delete files of one data file, as an extension of its `PartitionedFile`.
///
/// A file that has them keeps its statistics: they are of what the file holds, deleted rows included, and serve to
/// leave the file out. No answer may be taken from them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FileDeletes {
    /// The data file as the table's metadata spells it, which is how position deletes name it.
    pub data_file: String,
    pub vector: Option<Arc<DeleteFile>>,
    pub positions: Vec<Arc<DeleteFile>>,
    pub equality: Vec<Arc<DeleteFile>>,
}
