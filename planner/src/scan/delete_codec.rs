//! The delete files of a scan on their way to a worker.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::error::Result;
use iceberg::spec::{DataFileFormat, Schema as IcebergSchema};
use prost::Message;
use tarn_catalog::location_to_path;

use super::scan_table::ScanTable;
use crate::deletes::{DeleteFile, DeleteKind, FileDeletes, KeyColumns};
use crate::error::codec_error;

/// All delete files of a message.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DeletesMessage {
    #[prost(message, repeated, tag = "1")]
    files: Vec<DeleteFileMessage>,
    /// The key columns of equality deletes: Iceberg schemas as JSON.
    #[prost(bytes = "vec", repeated, tag = "2")]
    keys: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct DeleteFileMessage {
    #[prost(string, tag = "1")]
    location: String,
    #[prost(uint64, tag = "2")]
    size: u64,
    #[prost(string, tag = "3")]
    format: String,
    /// With equality deletes: which of the key columns are theirs.
    #[prost(uint32, optional, tag = "4")]
    keys: Option<u32>,
    /// With a deletion vector: where it is.
    #[prost(message, optional, tag = "5")]
    vector: Option<VectorMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct VectorMessage {
    #[prost(uint64, tag = "1")]
    offset: u64,
    #[prost(uint64, tag = "2")]
    length: u64,
    #[prost(uint64, tag = "3")]
    cardinality: u64,
}

/// The delete files of one data file, by their number.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FileDeletesMessage {
    #[prost(string, tag = "1")]
    data_file: String,
    #[prost(uint32, optional, tag = "2")]
    vector: Option<u32>,
    #[prost(uint32, repeated, tag = "3")]
    positions: Vec<u32>,
    #[prost(uint32, repeated, tag = "4")]
    equality: Vec<u32>,
}

/// The delete files of a message that is put together.
#[derive(Default)]
pub(super) struct DeleteFileSet {
    // A scan has each delete file once, so its address will do as its identity. So it does for keys.
    files: HashMap<*const DeleteFile, u32>,
    keys: HashMap<*const KeyColumns, u32>,
    message: DeletesMessage,
}

impl DeleteFileSet {
    pub(super) fn file(&mut self, of: &FileDeletes) -> Result<FileDeletesMessage> {
        Ok(FileDeletesMessage {
            data_file: of.data_file.clone(),
            vector: of.vector.as_ref().map(|f| self.number(f)).transpose()?,
            positions: self.numbers(&of.positions)?,
            equality: self.numbers(&of.equality)?,
        })
    }

    fn numbers(&mut self, files: &[Arc<DeleteFile>]) -> Result<Vec<u32>> {
        files.iter().map(|file| self.number(file)).collect()
    }

    fn number(&mut self, file: &Arc<DeleteFile>) -> Result<u32> {
        if let Some(number) = self.files.get(&Arc::as_ptr(file)) {
            return Ok(*number);
        }
        let mut message = DeleteFileMessage {
            location: file.location.clone(),
            size: file.size,
            format: file.format.to_string(),
            keys: None,
            vector: None,
        };
        match &file.kind {
            DeleteKind::Positions => {}
            DeleteKind::Vector {
                offset,
                length,
                cardinality,
            } => {
                message.vector = Some(VectorMessage {
                    offset: *offset,
                    length: *length,
                    cardinality: *cardinality,
                });
            }
            DeleteKind::Equality(keys) => message.keys = Some(self.keys(keys)?),
        }
        let number = u32::try_from(self.message.files.len()).map_err(codec_error)?;
        self.message.files.push(message);
        self.files.insert(Arc::as_ptr(file), number);
        Ok(number)
    }

    fn keys(&mut self, keys: &Arc<KeyColumns>) -> Result<u32> {
        if let Some(number) = self.keys.get(&Arc::as_ptr(keys)) {
            return Ok(*number);
        }
        let schema = serde_json::to_vec(keys.columns().schema()).map_err(codec_error)?;
        let number = u32::try_from(self.message.keys.len()).map_err(codec_error)?;
        self.message.keys.push(schema);
        self.keys.insert(Arc::as_ptr(keys), number);
        Ok(number)
    }

    pub(super) fn into_message(self) -> Option<DeletesMessage> {
        (!self.message.files.is_empty()).then_some(self.message)
    }
}

/// The delete files of a message that arrived.
pub(super) struct DecodedDeletes {
    files: Vec<Arc<DeleteFile>>,
}

impl DecodedDeletes {
    pub(super) fn new(message: DeletesMessage, table: &ScanTable) -> Result<Self> {
        let keys: Vec<Arc<KeyColumns>> = message
            .keys
            .iter()
            .map(|schema| {
                let schema: IcebergSchema = serde_json::from_slice(schema).map_err(codec_error)?;
                let names = table.columns.name_mapping().cloned();
                KeyColumns::new(schema, names)
                    .map(Arc::new)
                    .map_err(codec_error)
            })
            .collect::<Result<_>>()?;
        let files = message
            .files
            .into_iter()
            .map(|file| decode(file, &keys).map(Arc::new))
            .collect::<Result<_>>()?;
        Ok(Self { files })
    }

    pub(super) fn file(&self, of: FileDeletesMessage) -> Result<FileDeletes> {
        let get = |number: u32| {
            self.files
                .get(number as usize)
                .map(Arc::clone)
                .ok_or_else(|| codec_error("a delete file is missing"))
        };
        let all = |numbers: Vec<u32>| numbers.into_iter().map(get).collect::<Result<Vec<_>>>();
        Ok(FileDeletes {
            data_file: of.data_file,
            vector: of.vector.map(get).transpose()?,
            positions: all(of.positions)?,
            equality: all(of.equality)?,
        })
    }
}

fn decode(message: DeleteFileMessage, keys: &[Arc<KeyColumns>]) -> Result<DeleteFile> {
    let format: DataFileFormat = message.format.parse().map_err(codec_error)?;
    let kind = match (message.keys, message.vector) {
        (None, None) => DeleteKind::Positions,
        (None, Some(vector)) => DeleteKind::Vector {
            offset: vector.offset,
            length: vector.length,
            cardinality: vector.cardinality,
        },
        (Some(number), _) => DeleteKind::Equality(
            keys.get(number as usize)
                .map(Arc::clone)
                .ok_or_else(|| codec_error("the keys of a delete file are missing"))?,
        ),
    };
    Ok(DeleteFile {
        path: location_to_path(&message.location).map_err(codec_error)?,
        location: message.location,
        size: message.size,
        format,
        kind,
    })
}
