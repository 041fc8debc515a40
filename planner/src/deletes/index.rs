//! Which delete files apply to which data file (the specification, "Scan Planning").
//!
//! | delete file | applies to data files |
//! |---|---|
//! | deletion vector | that it names, of a sequence number not above its own |
//! | position deletes that name a data file | that one, the same; not if it has a deletion vector |
//! | other position deletes | of its partition and spec, the same; not to those that have a deletion vector |
//! | equality deletes | of its partition and spec, or of all if its spec is unpartitioned, of a smaller sequence number |
//!
//! Delete files whose bounds rule out that they concern a data file are left out. Nothing is read here.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use iceberg::metadata_columns::RESERVED_FIELD_ID_DELETE_FILE_PATH;
use iceberg::spec::{
    DataContentType, DataFile, DataFileFormat, Datum, ManifestEntry, ManifestEntryRef,
    PartitionSpec, PrimitiveLiteral, Transform,
};
use tarn_catalog::DecodedManifest;

use super::file_bounds::ValueRange;
use super::partition_key::PartitionKey;
use crate::prune::{TableLayout, column_bounds};

/// What contradicts the specification, or itself, in a table's metadata.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{file}': {reason}")]
pub(crate) struct IndexError {
    pub file: String,
    pub reason: String,
}

impl IndexError {
    fn new(file: &str, reason: impl Into<String>) -> Self {
        Self {
            file: file.to_string(),
            reason: reason.into(),
        }
    }
}

/// The delete files of a snapshot that a query may have to look at.
#[derive(Debug, Default)]
pub(crate) struct DeleteIndex {
    files: Vec<IndexedDelete>,
    vectors: HashMap<String, u32>,
    by_path: HashMap<String, Vec<u32>>,
    positions: HashMap<PartitionKey, Vec<u32>>,
    global: Vec<u32>,
    equality: HashMap<PartitionKey, Vec<u32>>,
}

/// One delete file.
#[derive(Debug)]
pub(crate) struct IndexedDelete {
    entry: ManifestEntryRef,
    sequence: i64,
    /// Bounds of the data files' paths in a position delete file.
    paths: (Option<String>, Option<String>),
    /// What is known of key columns of an equality delete file, by the column's place in the table.
    keys: Vec<(usize, ValueRange)>,
}

impl IndexedDelete {
    pub(crate) fn data_file(&self) -> &DataFile {
        self.entry.data_file()
    }
}

/// The delete files that apply to one data file, by their number in the index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Applied {
    pub vector: Option<u32>,
    pub positions: Vec<u32>,
    pub equality: Vec<u32>,
}

impl Applied {
    pub(crate) fn is_empty(&self) -> bool {
        self.vector.is_none() && self.positions.is_empty() && self.equality.is_empty()
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.vector
            .iter()
            .chain(&self.positions)
            .chain(&self.equality)
            .copied()
    }
}

/// Deletion vectors are the only delete files in Puffin.
fn is_vector(file: &DataFile) -> bool {
    file.file_format() == DataFileFormat::Puffin
}

/// The one data file that a position delete file is about, if it is about one.
fn referenced(file: &DataFile) -> Option<String> {
    file.referenced_data_file().or_else(|| {
        // Writers that did not name it yet have bounds that do: shortened ones are never equal.
        let (lower, upper) = path_bounds(file);
        lower.filter(|lower| Some(lower) == upper.as_ref())
    })
}

fn path_bounds(file: &DataFile) -> (Option<String>, Option<String>) {
    let text = |datum: Option<&Datum>| match datum?.literal() {
        PrimitiveLiteral::String(path) => Some(path.clone()),
        _ => None,
    };
    let id = RESERVED_FIELD_ID_DELETE_FILE_PATH;
    (
        text(file.lower_bounds().get(&id)),
        text(file.upper_bounds().get(&id)),
    )
}

fn sequence(entry: &ManifestEntry) -> Result<i64, IndexError> {
    entry
        .sequence_number()
        .ok_or_else(|| IndexError::new(entry.file_path(), "its manifest has no sequence number"))
}

/// The ids of specs whose equality deletes are global.
pub(crate) fn unpartitioned_specs<'a>(
    specs: impl Iterator<Item = &'a Arc<PartitionSpec>>,
) -> HashSet<i32> {
    specs
        .filter(|spec| {
            spec.fields()
                .iter()
                .all(|field| field.transform == Transform::Void)
        })
        .map(|spec| spec.spec_id())
        .collect()
}

impl DeleteIndex {
    /// An index of the entries of delete manifests, without those whose place in `keep` is false.
    pub(crate) fn new<'a>(
        manifests: impl IntoIterator<Item = (&'a Arc<DecodedManifest>, &'a [bool])>,
        unpartitioned: &HashSet<i32>,
        layout: &TableLayout,
    ) -> Result<Self, IndexError> {
        let mut index = Self::default();
        for (manifest, keep) in manifests {
            for (place, entry) in manifest.entries.iter().enumerate() {
                if keep.get(place).copied().unwrap_or(true) {
                    index.add(manifest, place, entry, unpartitioned, layout)?;
                }
            }
        }
        Ok(index)
    }

    fn add(
        &mut self,
        manifest: &DecodedManifest,
        place: usize,
        entry: &ManifestEntryRef,
        unpartitioned: &HashSet<i32>,
        layout: &TableLayout,
    ) -> Result<(), IndexError> {
        let file = entry.data_file();
        let spec_id = manifest.partition_spec_id;
        let number = u32::try_from(self.files.len())
            .map_err(|_| IndexError::new(file.file_path(), "there are too many delete files"))?;
        let mut indexed = IndexedDelete {
            entry: Arc::clone(entry),
            sequence: sequence(entry)?,
            paths: (None, None),
            keys: Vec::new(),
        };
        match file.content_type() {
            DataContentType::PositionDeletes if is_vector(file) => {
                self.add_vector(number, file)?;
            }
            DataContentType::PositionDeletes => match referenced(file) {
                Some(path) => self.by_path.entry(path).or_default().push(number),
                None => {
                    indexed.paths = path_bounds(file);
                    let key = PartitionKey::new(spec_id, file.partition());
                    self.positions.entry(key).or_default().push(number);
                }
            },
            DataContentType::EqualityDeletes => {
                indexed.keys = key_ranges(manifest, place, file, layout);
                if unpartitioned.contains(&spec_id) {
                    self.global.push(number);
                } else {
                    let key = PartitionKey::new(spec_id, file.partition());
                    self.equality.entry(key).or_default().push(number);
                }
            }
            DataContentType::Data => {
                return Err(IndexError::new(
                    file.file_path(),
                    "it is a data file in a manifest of delete files",
                ));
            }
        }
        self.files.push(indexed);
        Ok(())
    }

    fn add_vector(&mut self, number: u32, file: &DataFile) -> Result<(), IndexError> {
        let missing = |what: &str| {
            IndexError::new(
                file.file_path(),
                format!("its manifest says nothing of a deletion vector's {what}"),
            )
        };
        let data_file = file
            .referenced_data_file()
            .ok_or_else(|| missing("data file"))?;
        blob_range(file).ok_or_else(|| missing("place in the file"))?;
        if let Some(other) = self.vectors.insert(data_file.clone(), number) {
            let other = self.files[other as usize].data_file().file_path();
            return Err(IndexError::new(
                &data_file,
                format!(
                    "it has two deletion vectors, in '{other}' and in '{}'",
                    file.file_path()
                ),
            ));
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub(crate) fn file(&self, number: u32) -> &IndexedDelete {
        &self.files[number as usize]
    }

    /// Columns, by their place in the table, of which something is known in some equality delete file.
    pub(crate) fn key_columns(&self) -> BTreeSet<usize> {
        self.files
            .iter()
            .flat_map(|file| file.keys.iter().map(|(column, _)| *column))
            .collect()
    }

    /// The delete files that apply to a data file of that spec.
    ///
    /// `known` is what is known of the [`key_columns`](Self::key_columns) in it.
    pub(crate) fn applied(
        &self,
        spec_id: i32,
        entry: &ManifestEntry,
        known: &[(usize, ValueRange)],
    ) -> Result<Applied, IndexError> {
        if self.is_empty() {
            return Ok(Applied::default());
        }
        let file = entry.data_file();
        let path = file.file_path();
        let data_sequence = sequence(entry)?;
        let partition = match self.positions.is_empty() && self.equality.is_empty() {
            true => None,
            false => Some(PartitionKey::new(spec_id, file.partition())),
        };
        let of_partition = |map: &HashMap<PartitionKey, Vec<u32>>| -> Vec<u32> {
            partition
                .as_ref()
                .and_then(|key| map.get(key).cloned())
                .unwrap_or_default()
        };
        let vector = self.vectors.get(path).copied();
        let mut positions = Vec::new();
        match vector {
            Some(number) if self.file(number).sequence < data_sequence => {
                return Err(IndexError::new(
                    path,
                    format!(
                        "its sequence number {data_sequence} is above {} of its deletion vector",
                        self.file(number).sequence
                    ),
                ));
            }
            // "There is no deletion vector that must be applied to the data file."
            Some(_) => {}
            None => {
                let named = self.by_path.get(path).map_or(&[][..], Vec::as_slice);
                positions.extend(named);
                positions.extend(of_partition(&self.positions));
                positions.retain(|number| {
                    let delete = self.file(*number);
                    data_sequence <= delete.sequence && may_name(&delete.paths, path)
                });
            }
        }
        let mut equality = self.global.clone();
        equality.extend(of_partition(&self.equality));
        equality.retain(|number| {
            let delete = self.file(*number);
            data_sequence < delete.sequence && may_match(&delete.keys, known)
        });
        Ok(Applied {
            vector,
            positions,
            equality,
        })
    }
}

/// Where a deletion vector's blob is in its file: offset and length.
pub(crate) fn blob_range(file: &DataFile) -> Option<(u64, u64)> {
    let offset = u64::try_from(file.content_offset()?).ok()?;
    let length = u64::try_from(file.content_size_in_bytes()?).ok()?;
    Some((offset, length))
}

/// Whether a path is between the bounds of a position delete file's paths.
fn may_name((lower, upper): &(Option<String>, Option<String>), path: &str) -> bool {
    // Some writers order text by UTF-16, which is another order from here on.
    let ordered_alike = |text: &str| text.chars().all(|c| c < '\u{e000}');
    let below = |a: &str, b: &str| a < b && ordered_alike(a) && ordered_alike(b);
    !lower.as_ref().is_some_and(|lower| below(path, lower))
        && !upper.as_ref().is_some_and(|upper| below(upper, path))
}

/// Whether a key of a delete file may be in a data file: each of its parts may.
fn may_match(keys: &[(usize, ValueRange)], known: &[(usize, ValueRange)]) -> bool {
    keys.iter().all(|(column, deleted)| {
        known
            .iter()
            .find(|(of, _)| of == column)
            .is_none_or(|(_, values)| values.may_meet(deleted))
    })
}

/// What a manifest tells of the key columns that the table still has.
fn key_ranges(
    manifest: &DecodedManifest,
    place: usize,
    file: &DataFile,
    layout: &TableLayout,
) -> Vec<(usize, ValueRange)> {
    let ids = file.equality_ids().unwrap_or_default();
    layout
        .columns()
        .iter()
        .enumerate()
        .filter(|(_, column)| column.primitive.is_some() && ids.contains(&column.field_id))
        .map(|(index, column)| {
            let bounds = column_bounds(manifest, column);
            let range = ValueRange::of(&bounds, place, file.record_count());
            (index, range)
        })
        .collect()
}
