//! How files are laid out: from the table's properties and the writer's options.

use std::collections::HashMap;
use std::sync::Arc;

use iceberg::spec::{Schema, TableMetadata};
use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::schema::types::ColumnPath;

use super::metrics::{MetricsMode, MetricsModes};

/// Rows of a row group at most.
const ROW_GROUP_ROWS: usize = 1024 * 1024;

/// Bytes of Arrow data of a row group, if the table does not say.
const ROW_GROUP_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes on disk of a file, if the table does not say; the same that other engines take.
const FILE_BYTES: u64 = 512 * 1024 * 1024;

/// How an append lays out its files.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// The size of data files to aim at, in bytes of Arrow data in memory (files on disk are smaller, since they are
    /// encoded and compressed). The table property `write.target-file-size-bytes`, which is about bytes on disk, also
    /// ends a file.
    pub target_file_bytes: u64,
    /// The most files that are open at the same time. If rows of more partitions come in turn, files are ended early.
    pub max_open_files: usize,
    /// Memory for rows that wait to be encoded, in bytes. As much again is in use for rows that are being encoded.
    pub buffer_bytes: u64,
    /// The rows will come sorted by [`AppendWriter::sort_keys`](super::AppendWriter::sort_keys), and files may say so.
    pub sorted: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            target_file_bytes: 512 * 1024 * 1024,
            max_open_files: 16,
            buffer_bytes: 128 * 1024 * 1024,
            sorted: false,
        }
    }
}

/// The layout of the files of one append.
#[derive(Debug)]
pub(crate) struct FileLayout {
    pub(crate) parquet: WriterPropertiesPtr,
    pub(crate) metrics: MetricsModes,
    /// Bytes on disk that end a file.
    pub(crate) file_bytes: u64,
    pub(crate) row_group_rows: usize,
    /// Bytes of Arrow data that end a row group.
    pub(crate) row_group_bytes: u64,
    /// Where data files go.
    pub(crate) data_location: String,
}

impl FileLayout {
    pub(crate) fn new(metadata: &TableMetadata) -> Result<Self, String> {
        let properties = metadata.properties();
        let data_location = properties
            .get("write.data.path")
            .or_else(|| properties.get("write.folder-storage.path"))
            .map(|path| path.trim_end_matches('/').to_string())
            .unwrap_or_else(|| format!("{}/data", metadata.location().trim_end_matches('/')));
        Ok(Self {
            parquet: Arc::new(parquet_properties(properties, metadata.current_schema())?),
            metrics: MetricsModes::new(properties, metadata.current_schema())?,
            file_bytes: number(properties, "write.target-file-size-bytes")?
                .unwrap_or(FILE_BYTES)
                .max(1),
            row_group_rows: number(properties, "write.parquet.row-group-limit")?
                .map_or(ROW_GROUP_ROWS, |rows| {
                    rows.clamp(1, 16 * ROW_GROUP_ROWS as u64) as usize
                }),
            row_group_bytes: number(properties, "write.parquet.row-group-size-bytes")?
                .unwrap_or(ROW_GROUP_BYTES)
                .max(1),
            data_location,
        })
    }
}

/// Checks the properties that writing looks at, so that a bad one is an error when the table is made.
pub(crate) fn check_properties(properties: &HashMap<String, String>) -> Result<(), String> {
    compression(properties)?;
    for key in [
        "write.target-file-size-bytes",
        "write.parquet.row-group-size-bytes",
        "write.parquet.row-group-limit",
        "write.parquet.page-size-bytes",
        "write.parquet.page-row-limit",
        "write.parquet.dict-size-bytes",
    ] {
        number(properties, key)?;
    }
    for (key, value) in properties
        .iter()
        .filter(|(key, _)| key.starts_with("write.metadata.metrics."))
    {
        if key.starts_with("write.metadata.metrics.column.")
            || key == "write.metadata.metrics.default"
        {
            MetricsMode::parse(value).ok_or_else(|| bad(key, value))?;
        }
    }
    Ok(())
}

fn bad(key: &str, value: &str) -> String {
    format!("property '{key}' cannot be '{value}'")
}

fn number(properties: &HashMap<String, String>, key: &str) -> Result<Option<u64>, String> {
    properties
        .get(key)
        .map(|value| value.trim().parse::<u64>().map_err(|_| bad(key, value)))
        .transpose()
}

fn compression(properties: &HashMap<String, String>) -> Result<Compression, String> {
    const CODEC: &str = "write.parquet.compression-codec";
    const LEVEL: &str = "write.parquet.compression-level";
    let codec = properties.get(CODEC).map_or("zstd", String::as_str);
    let level = properties
        .get(LEVEL)
        .filter(|level| !level.eq_ignore_ascii_case("null"))
        .map(|level| level.trim().parse::<i32>().map_err(|_| bad(LEVEL, level)))
        .transpose()?;
    let bad_level = |_| bad(LEVEL, &level.unwrap_or_default().to_string());
    let unsigned = || {
        level
            .map(|level| u32::try_from(level).map_err(|_| bad(LEVEL, &level.to_string())))
            .transpose()
    };
    Ok(match codec.to_ascii_lowercase().as_str() {
        "zstd" => Compression::ZSTD(match level {
            Some(level) => ZstdLevel::try_new(level).map_err(bad_level)?,
            None => ZstdLevel::default(),
        }),
        "gzip" => Compression::GZIP(match unsigned()? {
            Some(level) => GzipLevel::try_new(level).map_err(bad_level)?,
            None => GzipLevel::default(),
        }),
        "brotli" => Compression::BROTLI(match unsigned()? {
            Some(level) => BrotliLevel::try_new(level).map_err(bad_level)?,
            None => BrotliLevel::default(),
        }),
        "snappy" => Compression::SNAPPY,
        "lz4" | "lz4_raw" => Compression::LZ4_RAW,
        "none" | "uncompressed" => Compression::UNCOMPRESSED,
        other => return Err(bad(CODEC, other)),
    })
}

fn parquet_properties(
    properties: &HashMap<String, String>,
    schema: &Schema,
) -> Result<WriterProperties, String> {
    let mut builder = WriterProperties::builder()
        .set_compression(compression(properties)?)
        .set_created_by(concat!("tarn version ", env!("CARGO_PKG_VERSION")).to_string())
        .set_statistics_enabled(EnabledStatistics::Page);
    if let Some(bytes) = number(properties, "write.parquet.page-size-bytes")? {
        builder = builder.set_data_page_size_limit(bytes as usize);
    }
    if let Some(rows) = number(properties, "write.parquet.page-row-limit")? {
        builder = builder.set_data_page_row_count_limit(rows as usize);
    }
    if let Some(bytes) = number(properties, "write.parquet.dict-size-bytes")? {
        builder = builder.set_dictionary_page_size_limit(bytes as usize);
    }
    for (key, value) in properties {
        let Some(column) = key.strip_prefix("write.parquet.bloom-filter-enabled.column.") else {
            continue;
        };
        if value.eq_ignore_ascii_case("true") && schema.field_by_name(column).is_some() {
            let path = ColumnPath::new(column.split('.').map(str::to_string).collect());
            builder = builder.set_column_bloom_filter_enabled(path, true);
        }
    }
    Ok(builder.build())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> HashMap<String, String> {
        pairs
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect()
    }

    #[test]
    fn codecs() {
        for (pairs, expected) in [
            (vec![], Compression::ZSTD(ZstdLevel::default())),
            (
                vec![
                    ("write.parquet.compression-codec", "ZSTD"),
                    ("write.parquet.compression-level", "3"),
                ],
                Compression::ZSTD(ZstdLevel::try_new(3).unwrap()),
            ),
            (
                vec![("write.parquet.compression-codec", "snappy")],
                Compression::SNAPPY,
            ),
            (
                vec![("write.parquet.compression-codec", "uncompressed")],
                Compression::UNCOMPRESSED,
            ),
        ] {
            assert_eq!(compression(&of(&pairs)).unwrap(), expected);
        }
    }

    #[test]
    fn a_bad_property_is_named() {
        for (key, value) in [
            ("write.parquet.compression-codec", "zip"),
            ("write.parquet.compression-level", "high"),
            ("write.target-file-size-bytes", "128MB"),
            ("write.metadata.metrics.default", "some"),
        ] {
            let error = check_properties(&of(&[(key, value)])).unwrap_err();
            assert_eq!(error, format!("property '{key}' cannot be '{value}'"));
        }
    }
}
