//! Damaged metadata files are errors that name the file: no panic, no memory or time without bound.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use iceberg::spec::{FormatVersion, ManifestContentType, ManifestFile};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::error::{CatalogError, Result};
use crate::metadata_file::{
    metadata_text, parse_all_entries, parse_manifest, parse_manifest_list, parse_metadata,
};
use crate::name::TableName;

const FILE: &str = "s3://lake/t/metadata/file";

/// How long one damaged file may take; whole ones take milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

fn table() -> TableName {
    TableName::new("lake", "db", "t")
}

fn listed() -> ManifestFile {
    ManifestFile {
        manifest_path: FILE.to_string(),
        manifest_length: 1,
        partition_spec_id: 0,
        content: ManifestContentType::Data,
        sequence_number: 1,
        min_sequence_number: 1,
        added_snapshot_id: 1,
        added_files_count: Some(1),
        existing_files_count: Some(0),
        deleted_files_count: Some(0),
        added_rows_count: Some(1),
        existing_rows_count: Some(0),
        deleted_rows_count: Some(0),
        partitions: None,
        key_metadata: None,
        first_row_id: None,
    }
}

/// Files that Spark wrote, whose names end so; a few of them.
fn samples(of: impl Fn(&str) -> bool) -> Vec<Vec<u8>> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path() {
                path if path.is_dir() => below(&path, found),
                path => found.push(path),
            }
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/iceberg/warehouse");
    let mut found = Vec::new();
    below(&folder, &mut found);
    found.sort();
    found.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        path.components().any(|part| part.as_os_str() == "metadata") && name.is_some_and(&of)
    });
    assert!(!found.is_empty(), "no samples");
    let step = found.len().div_ceil(12);
    let few = found.iter().step_by(step);
    few.map(|path| std::fs::read(path).expect("a file"))
        .collect()
}

static METADATA_FILES: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| samples(|name| name.ends_with(".metadata.json")));

static MANIFEST_LISTS: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| samples(|name| name.starts_with("snap-") && name.ends_with(".avro")));

static MANIFESTS: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| samples(|name| !name.starts_with("snap-") && name.ends_with(".avro")));

/// The outcome is a value or an error that names the file, soon.
fn check<T>(parse: impl FnOnce() -> Result<T>) -> std::result::Result<Option<T>, TestCaseError> {
    let begun = Instant::now();
    let parsed = parse();
    prop_assert!(begun.elapsed() < PATIENCE, "it took {:?}", begun.elapsed());
    match parsed {
        Ok(value) => Ok(Some(value)),
        Err(error) => {
            let named = match &error {
                CatalogError::Corrupt { file, .. } => file == FILE,
                // Metadata of something that is not read.
                CatalogError::Unsupported { .. } => true,
                _ => false,
            };
            prop_assert!(named, "{error:?}");
            Ok(None)
        }
    }
}

fn check_metadata(bytes: &[u8]) -> std::result::Result<(), TestCaseError> {
    if let Some(metadata) = check(|| parse_metadata(&table(), FILE, bytes))? {
        // What was read can be written.
        prop_assert!(metadata_text(&metadata).is_ok());
    }
    Ok(())
}

fn check_list(bytes: &[u8]) -> std::result::Result<(), TestCaseError> {
    for version in [FormatVersion::V1, FormatVersion::V2, FormatVersion::V3] {
        check(|| parse_manifest_list(FILE, bytes, version))?;
    }
    Ok(())
}

fn check_manifest(bytes: &[u8]) -> std::result::Result<(), TestCaseError> {
    check(|| parse_all_entries(&listed(), bytes))?;
    if let Some(manifest) = check(|| parse_manifest(&listed(), bytes))? {
        prop_assert_eq!(
            manifest.first_row_ids(&listed()).len(),
            manifest.entries.len()
        );
    }
    Ok(())
}

/// What becomes of a file's bytes.
#[derive(Debug, Clone)]
enum Damage {
    Set(Vec<(Index, u8)>),
    Cut(Index),
    /// A part of it, again.
    Repeat(Index, Index),
    /// The longest number that Avro writes.
    LongNumber(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        prop::collection::vec((any::<Index>(), any::<u8>()), 1..4).prop_map(Damage::Set),
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Repeat(from, to)),
        any::<Index>().prop_map(Damage::LongNumber),
    ]
}

impl Damage {
    fn done_to(&self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        let length = bytes.len();
        match self {
            Self::Set(changes) => {
                for (at, value) in changes {
                    bytes[at.index(length)] = *value;
                }
            }
            Self::Cut(at) => bytes.truncate(at.index(length)),
            Self::Repeat(from, to) => {
                let (from, to) = (from.index(length), to.index(length));
                let part = bytes[from.min(to)..from.max(to)].to_vec();
                bytes.splice(from.max(to)..from.max(to), part);
            }
            Self::LongNumber(at) => {
                let at = at.index(length);
                bytes.splice(at..at + 1, [0xfe, 0xff, 0xff, 0xff, 0x03]);
            }
        }
        bytes
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        for bytes in [bytes.clone(), [b"Obj\x01".as_slice(), &bytes].concat()] {
            check_metadata(&bytes)?;
            check_list(&bytes)?;
            check_manifest(&bytes)?;
        }
        check_metadata(&[b"\x1f\x8b".as_slice(), &bytes].concat())?;
    }

    #[test]
    fn damaged_metadata_does_no_harm(which in any::<Index>(), damage in damage()) {
        let files = &*METADATA_FILES;
        check_metadata(&damage.done_to(&files[which.index(files.len())]))?;
    }

    #[test]
    fn a_damaged_manifest_list_does_no_harm(which in any::<Index>(), damage in damage()) {
        let files = &*MANIFEST_LISTS;
        check_list(&damage.done_to(&files[which.index(files.len())]))?;
    }

    #[test]
    fn a_damaged_manifest_does_no_harm(which in any::<Index>(), damage in damage()) {
        let files = &*MANIFESTS;
        check_manifest(&damage.done_to(&files[which.index(files.len())]))?;
    }
}
