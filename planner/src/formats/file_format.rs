//! The formats that data and delete files come in.

use std::fmt;

use iceberg::spec::DataFileFormat;

/// The format of a file. A `PartitionedFile` carries it as an extension; one without is Parquet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FileFormat {
    Orc,
    Avro,
}

impl FileFormat {
    /// How the format is written when a file travels to a worker.
    pub(crate) fn number(self) -> u32 {
        match self {
            FileFormat::Orc => 1,
            FileFormat::Avro => 2,
        }
    }

    /// The format of that number.
    pub(crate) fn of_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(FileFormat::Orc),
            2 => Some(FileFormat::Avro),
            _ => None,
        }
    }

    /// The format as manifests have it.
    pub(crate) fn data_file_format(self) -> DataFileFormat {
        match self {
            FileFormat::Orc => DataFileFormat::Orc,
            FileFormat::Avro => DataFileFormat::Avro,
        }
    }

    /// The format of a file of a manifest, if it is one of ours.
    pub(crate) fn of_data_file(format: DataFileFormat) -> Option<Self> {
        match format {
            DataFileFormat::Orc => Some(FileFormat::Orc),
            DataFileFormat::Avro => Some(FileFormat::Avro),
            _ => None,
        }
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileFormat::Orc => "ORC",
            FileFormat::Avro => "Avro",
        })
    }
}
