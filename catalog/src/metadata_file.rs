//! Decoding of table metadata files, manifest lists and manifests.

use std::borrow::Cow;
use std::io::{Read, Write};
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use iceberg::spec::{
    FormatVersion, ManifestEntry, ManifestFile, ManifestList, ManifestStatus, Snapshot,
    TableMetadata,
};
use serde::Deserialize;

use crate::avro_guard::checked;
use crate::avro_names::with_first_names;
use crate::error::{CatalogError, Result};
use crate::manifest::DecodedManifest;
use crate::manifest_decoder::decode_entries;
use crate::name::TableName;
use crate::newer_types::{restore_metadata, tell_metadata};
use crate::storage::{MAX_METADATA_FILE_BYTES, root_cause};

/// The newest version of the table format that is read.
const NEWEST_VERSION: u64 = 3;

fn corrupt(
    what: &'static str,
    file: &str,
    error: &(dyn std::error::Error + 'static),
) -> CatalogError {
    CatalogError::Corrupt {
        what,
        file: file.to_string(),
        reason: root_cause(error),
    }
}

/// Parses a table metadata file, gzipped or not.
pub(crate) fn parse_metadata(table: &TableName, file: &str, bytes: &[u8]) -> Result<TableMetadata> {
    const WHAT: &str = "table metadata file";
    let unpacked;
    let json = if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut json = Vec::new();
        GzDecoder::new(bytes)
            .take(MAX_METADATA_FILE_BYTES)
            .read_to_end(&mut json)
            .map_err(|e| corrupt(WHAT, file, &e))?;
        unpacked = json;
        unpacked.as_slice()
    } else {
        bytes
    };

    #[derive(Deserialize)]
    struct Version {
        #[serde(rename = "format-version")]
        format_version: u64,
    }
    // Looked at first: a version that is not known need not have fields that are.
    let version: Version = serde_json::from_slice(json).map_err(|e| corrupt(WHAT, file, &e))?;
    check_version(table, version.format_version)?;
    if version.format_version < 3 {
        return serde_json::from_slice(json).map_err(|e| corrupt(WHAT, file, &e));
    }
    let mut json = serde_json::from_slice(json).map_err(|e| corrupt(WHAT, file, &e))?;
    tell_metadata(&mut json).map_err(|feature| CatalogError::Unsupported {
        table: table.clone(),
        feature,
    })?;
    serde_json::from_value(json).map_err(|e| corrupt(WHAT, file, &e))
}

/// The text of a table metadata file and the end of its name, as `write.metadata.compression-codec` asks.
pub(crate) fn metadata_text(metadata: &TableMetadata) -> Result<(Bytes, &'static str)> {
    let failed = |e: &(dyn std::error::Error + 'static)| {
        CatalogError::Internal(format!(
            "table metadata cannot be written: {}",
            root_cause(e)
        ))
    };
    let json = match metadata.format_version() {
        FormatVersion::V1 | FormatVersion::V2 => serde_json::to_vec(metadata),
        FormatVersion::V3 => serde_json::to_value(metadata).and_then(|mut value| {
            restore_metadata(&mut value);
            serde_json::to_vec(&value)
        }),
    }
    .map_err(|e| failed(&e))?;
    let codec = metadata
        .properties()
        .get("write.metadata.compression-codec");
    if codec.is_some_and(|codec| codec.eq_ignore_ascii_case("gzip")) {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let packed = encoder
            .write_all(&json)
            .and_then(|()| encoder.finish())
            .map_err(|e| failed(&e))?;
        return Ok((packed.into(), ".gz.metadata.json"));
    }
    Ok((json.into(), ".metadata.json"))
}

fn check_version(table: &TableName, version: u64) -> Result<()> {
    if version > NEWEST_VERSION {
        return Err(CatalogError::Unsupported {
            table: table.clone(),
            feature: format!("version {version} of the Iceberg table format"),
        });
    }
    Ok(())
}

/// Refuses what metadata alone shows is not read here.
pub(crate) fn check_supported(table: &TableName, metadata: &TableMetadata) -> Result<()> {
    check_version(table, metadata.format_version() as u64)?;
    if metadata.properties().contains_key("encryption.key-id") {
        return Err(encrypted(table));
    }
    match metadata.current_snapshot() {
        Some(snapshot) => check_snapshot(table, snapshot),
        None => Ok(()),
    }
}

/// Refuses a snapshot that is not read here.
pub(crate) fn check_snapshot(table: &TableName, snapshot: &Snapshot) -> Result<()> {
    match snapshot.encryption_key_id() {
        Some(_) => Err(encrypted(table)),
        None => Ok(()),
    }
}

fn encrypted(table: &TableName) -> CatalogError {
    CatalogError::Unsupported {
        table: table.clone(),
        feature: "encryption".to_string(),
    }
}

/// An Avro file, unpacked and looked over.
fn plain<'a>(what: &'static str, file: &str, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>> {
    checked(bytes, MAX_METADATA_FILE_BYTES).map_err(|reason| CatalogError::Corrupt {
        what,
        file: file.to_string(),
        reason,
    })
}

/// Parses a manifest list.
pub(crate) fn parse_manifest_list(
    file: &str,
    bytes: &[u8],
    version: FormatVersion,
) -> Result<Vec<ManifestFile>> {
    let bytes = plain("manifest list", file, bytes)?;
    let bytes = bytes.as_ref();
    // An upgraded table keeps the lists that were written before.
    let older: &[FormatVersion] = match version {
        FormatVersion::V1 => &[],
        FormatVersion::V2 => &[FormatVersion::V1],
        FormatVersion::V3 => &[FormatVersion::V2, FormatVersion::V1],
    };
    let parse = |version| match version {
        FormatVersion::V1 => {
            let renamed = with_first_names(bytes);
            ManifestList::parse_with_version(renamed.as_deref().unwrap_or(bytes), version)
        }
        version => ManifestList::parse_with_version(bytes, version),
    };
    let list = parse(version).or_else(|error| {
        older
            .iter()
            .find_map(|version| parse(*version).ok())
            .ok_or(error)
    });
    let list = list.map_err(|e| corrupt("manifest list", file, &e))?;
    Ok(list.consume_entries().into_iter().collect())
}

/// Parses a manifest, keeps its live entries, and lets them inherit what the manifest list says of the manifest.
pub(crate) fn parse_manifest(manifest: &ManifestFile, bytes: &[u8]) -> Result<DecodedManifest> {
    let entries = parse_all_entries(manifest, bytes)?
        .into_iter()
        .filter(ManifestEntry::is_alive)
        .map(Arc::new)
        .collect();
    Ok(DecodedManifest::new(
        entries,
        manifest.partition_spec_id,
        manifest.content,
    ))
}

/// Parses a manifest with the entries of deleted files, which metadata tables show.
pub(crate) fn parse_all_entries(
    manifest: &ManifestFile,
    bytes: &[u8],
) -> Result<Vec<ManifestEntry>> {
    let file = manifest.manifest_path.as_str();
    let bytes = plain("manifest", file, bytes)?;
    let entries = decode_entries(&bytes).map_err(|reason| CatalogError::Corrupt {
        what: "manifest",
        file: file.to_string(),
        reason,
    })?;
    let entries = entries.into_iter().map(|entry| inherit(entry, manifest));
    Ok(entries.collect())
}

/// Inheritance of the snapshot id and of sequence numbers, as the spec has it: an added entry without a number takes
/// the manifest's; in a manifest of version 1 (number 0) all do.
fn inherit(mut entry: ManifestEntry, manifest: &ManifestFile) -> ManifestEntry {
    entry.snapshot_id.get_or_insert(manifest.added_snapshot_id);
    if entry.status == ManifestStatus::Added || manifest.sequence_number == 0 {
        entry
            .sequence_number
            .get_or_insert(manifest.sequence_number);
        entry
            .file_sequence_number
            .get_or_insert(manifest.sequence_number);
    }
    entry
}
