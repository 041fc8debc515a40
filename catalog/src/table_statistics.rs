//! Statistics files: Puffin files with a sketch of the distinct values of a column in each blob.
//!
//! A file belongs to a snapshot. A table has none for most of its snapshots, so for each column the nearest ancestor of the
//! pinned snapshot that has one counts, and how old that is goes with it. Statistics files are hints: whatever is wrong
//! with one is logged, and is no error of a query.

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;
use iceberg::compression::CompressionCodec;
use iceberg::puffin::{
    APACHE_DATASKETCHES_THETA_V1, Blob, CREATED_BY_PROPERTY, PuffinReader, PuffinWriter,
};
use iceberg::spec::{BlobMetadata, SnapshotRef, StatisticsFile};
use iceberg::{TableRequirement, TableUpdate};
use serde::Deserialize;
use uuid::Uuid;

use crate::backend::CommitError;
use crate::catalog::Catalog;
use crate::commit_retry::CommitRetry;
use crate::error::{CatalogError, Result};
use crate::pinned::PinnedTable;
use crate::storage::{StoreSettings, delete_files, file_io_over, read_file, root_cause};

/// The property of a blob that tells how many distinct values its sketch estimates.
const NDV: &str = "ndv";
/// What a Puffin file begins and ends with.
const MAGIC: &[u8] = b"PFA1";
/// The bytes of a Puffin footer beside its payload: two magics, the payload's length and the flags.
const FOOTER_FRAME_BYTES: usize = 16;

/// What a statistics file tells of one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSketch {
    pub field_id: i32,
    /// Distinct values, if the blob's properties tell: then its sketch need not be read.
    pub distinct: Option<u64>,
    /// The snapshot whose rows were counted.
    pub snapshot_id: i64,
    /// When that was made, in milliseconds since 1970.
    pub timestamp_ms: i64,
    /// Its rows, if its summary tells.
    pub rows: Option<u64>,
    /// Snapshots between that and the pinned one, which is counted.
    pub snapshots_since: usize,
    pub file: String,
}

/// A sketch that was made of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSketch {
    pub field_id: i32,
    /// The estimate of distinct values.
    pub distinct: u64,
    /// A compact theta sketch.
    pub sketch: Vec<u8>,
}

impl PinnedTable {
    /// The newest sketch of each column, of the pinned snapshot or its nearest ancestor that has one.
    pub fn column_sketches(&self) -> Vec<ColumnSketch> {
        let metadata = self.metadata();
        if metadata.statistics_iter().len() == 0 {
            return Vec::new();
        }
        let mut sketches: BTreeMap<i32, ColumnSketch> = BTreeMap::new();
        for (age, snapshot) in self.lineage().iter().enumerate() {
            let Some(file) = metadata.statistics_for_snapshot(snapshot.snapshot_id()) else {
                continue;
            };
            for blob in &file.blob_metadata {
                let [field_id] = blob.fields[..] else {
                    continue;
                };
                if blob.r#type != APACHE_DATASKETCHES_THETA_V1 || sketches.contains_key(&field_id) {
                    continue;
                }
                // A blob may be taken over from an older file.
                let counted = metadata
                    .snapshot_by_id(blob.snapshot_id)
                    .unwrap_or(snapshot);
                sketches.insert(
                    field_id,
                    ColumnSketch {
                        field_id,
                        distinct: blob.properties.get(NDV).and_then(|text| ndv(text)),
                        snapshot_id: counted.snapshot_id(),
                        timestamp_ms: counted.timestamp_ms(),
                        rows: total_records(counted),
                        snapshots_since: age,
                        file: file.statistics_path.clone(),
                    },
                );
            }
        }
        sketches.into_values().collect()
    }

    /// The pinned snapshot and those it was made from, newest first.
    fn lineage(&self) -> Vec<SnapshotRef> {
        let mut lineage: Vec<SnapshotRef> = Vec::new();
        let mut seen = HashSet::new();
        let mut next = self.snapshot().cloned();
        while let Some(snapshot) = next.filter(|snapshot| seen.insert(snapshot.snapshot_id())) {
            next = snapshot
                .parent_snapshot_id()
                .and_then(|id| self.metadata().snapshot_by_id(id).cloned());
            lineage.push(snapshot);
        }
        lineage
    }

    /// The bytes of a column's theta sketch in a statistics file (cached).
    ///
    /// # Errors
    /// The file cannot be read, is no Puffin file or has no such sketch.
    pub async fn theta_sketch(&self, file: &str, field_id: i32) -> Result<Bytes> {
        let read = async {
            let blobs = read_blobs(self, file).await?;
            let found = blobs.into_iter().find(|blob| {
                blob.blob_type() == APACHE_DATASKETCHES_THETA_V1 && blob.fields() == [field_id]
            });
            match found {
                Some(blob) => Ok(Bytes::copy_from_slice(blob.data())),
                None => Err(corrupt(
                    file,
                    format!("it has no sketch of the column with id {field_id}"),
                )),
            }
        };
        self.cached_sketch(&format!("{file}#{field_id}"), read)
            .await
    }
}

fn corrupt(file: &str, reason: String) -> CatalogError {
    CatalogError::Corrupt {
        what: "statistics file",
        file: file.to_owned(),
        reason,
    }
}

/// Other engines write whole numbers, as texts; some with a fraction.
fn ndv(text: &str) -> Option<u64> {
    let number = text.trim().parse::<f64>().ok()?;
    (number.is_finite() && number >= 0.0).then(|| number.round() as u64)
}

fn total_records(snapshot: &SnapshotRef) -> Option<u64> {
    let properties = &snapshot.summary().additional_properties;
    properties.get("total-records")?.trim().parse().ok()
}

async fn read_blobs(table: &PinnedTable, file: &str) -> Result<Vec<Blob>> {
    let bytes = read_file(&*table.storage().store, "statistics file", file).await?;
    check_frame(&bytes).map_err(|reason| corrupt(file, reason))?;
    let io = file_io_over(table.storage(), &StoreSettings::default());
    let read = async {
        let reader = PuffinReader::new(io.new_input(file)?);
        let mut blobs = Vec::new();
        for metadata in reader.file_metadata().await?.blobs() {
            blobs.push(reader.blob(metadata).await?);
        }
        Ok(blobs)
    };
    read.await
        .map_err(|error: iceberg::Error| corrupt(file, root_cause(&error)))
}

impl Catalog {
    /// Writes sketches of the pinned snapshot's columns into a statistics file of that snapshot. What an older file of
    /// the snapshot has of other columns goes along.
    pub async fn set_statistics(
        &self,
        table: &PinnedTable,
        sketches: Vec<NewSketch>,
    ) -> Result<String> {
        let snapshot = table.snapshot().ok_or_else(|| CatalogError::InvalidTable {
            table: table.name().to_string(),
            reason: "nothing was written to it yet, so there is nothing to analyze".to_owned(),
        })?;
        let statistics = self.write_statistics(table, snapshot, sketches).await?;
        let path = statistics.statistics_path.clone();
        let committed = self.commit_statistics(table, &statistics).await;
        if let Err(error) = &committed
            && !matches!(error, CatalogError::CommitUnknown { .. })
        {
            delete_files(&*table.storage().store, [path.clone()]).await;
        }
        committed.map(|()| path)
    }

    async fn write_statistics(
        &self,
        table: &PinnedTable,
        snapshot: &SnapshotRef,
        sketches: Vec<NewSketch>,
    ) -> Result<StatisticsFile> {
        let metadata = table.metadata();
        let new: HashSet<i32> = sketches.iter().map(|sketch| sketch.field_id).collect();
        let mut blobs: Vec<Blob> = sketches
            .into_iter()
            .map(|sketch| {
                Blob::builder()
                    .r#type(APACHE_DATASKETCHES_THETA_V1.to_owned())
                    .fields(vec![sketch.field_id])
                    .snapshot_id(snapshot.snapshot_id())
                    .sequence_number(snapshot.sequence_number())
                    .data(sketch.sketch)
                    .properties(HashMap::from([(
                        NDV.to_owned(),
                        sketch.distinct.to_string(),
                    )]))
                    .build()
            })
            .collect();
        if let Some(old) = metadata.statistics_for_snapshot(snapshot.snapshot_id()) {
            match read_blobs(table, &old.statistics_path).await {
                Ok(old) => blobs.extend(
                    old.into_iter()
                        .filter(|blob| !blob.fields().iter().any(|field| new.contains(field))),
                ),
                Err(error) => {
                    tracing::warn!(table = %table.name(), %error, "an older statistics file is replaced")
                }
            }
        }
        let described = blobs.iter().map(described).collect();
        let directory = match metadata.properties().get("write.metadata.path") {
            Some(path) => path.trim_end_matches('/').to_owned(),
            None => format!("{}/metadata", metadata.location().trim_end_matches('/')),
        };
        let path = format!(
            "{directory}/{}-{}.stats",
            snapshot.snapshot_id(),
            Uuid::new_v4()
        );
        let io = file_io_over(table.storage(), self.stores().settings());
        let written = async {
            let created_by = format!("Tarn {}", env!("CARGO_PKG_VERSION"));
            let properties = HashMap::from([(CREATED_BY_PROPERTY.to_owned(), created_by)]);
            let mut writer = PuffinWriter::new(&io.new_output(&path)?, properties, false).await?;
            for blob in blobs {
                writer.add(blob, CompressionCodec::None).await?;
            }
            writer.close().await
        };
        written
            .await
            .map_err(|error: iceberg::Error| CatalogError::Store {
                action: "write",
                location: path.clone(),
                reason: root_cause(&error),
            })?;
        let bytes = read_file(&*table.storage().store, "statistics file", &path).await?;
        Ok(StatisticsFile {
            snapshot_id: snapshot.snapshot_id(),
            file_size_in_bytes: bytes.len() as i64,
            file_footer_size_in_bytes: footer_bytes(&bytes)
                .ok_or_else(|| corrupt(&path, "it has no footer".to_owned()))?
                as i64,
            statistics_path: path,
            key_metadata: None,
            blob_metadata: described,
        })
    }

    async fn commit_statistics(
        &self,
        table: &PinnedTable,
        statistics: &StatisticsFile,
    ) -> Result<()> {
        let name = table.name().clone();
        let mut base = self.table(&name.database, &name.table).await?;
        let uuid = table.metadata().uuid();
        let mut retry = CommitRetry::of(&base);
        loop {
            if base.metadata().uuid() != uuid
                || base
                    .metadata()
                    .snapshot_by_id(statistics.snapshot_id)
                    .is_none()
            {
                return Err(CatalogError::InvalidTable {
                    table: name.to_string(),
                    reason: format!(
                        "its snapshot {}, which was analyzed, is gone meanwhile",
                        statistics.snapshot_id
                    ),
                });
            }
            let requirements = vec![TableRequirement::UuidMatch { uuid }];
            let update = TableUpdate::SetStatistics {
                statistics: statistics.clone(),
            };
            let reason = match self
                .backend()
                .commit(&base, requirements, vec![update])
                .await
            {
                Ok(()) => return Ok(()),
                Err(CommitError::Failed(error)) => return Err(error),
                Err(CommitError::Unknown(reason)) => {
                    let after = self.table(&name.database, &name.table).await.ok();
                    let is_so = after.is_some_and(|after| {
                        after
                            .metadata()
                            .statistics_for_snapshot(statistics.snapshot_id)
                            == Some(statistics)
                    });
                    return match is_so {
                        true => Ok(()),
                        false => Err(CatalogError::CommitUnknown {
                            table: name,
                            reason,
                        }),
                    };
                }
                Err(CommitError::Conflict(reason)) => reason,
            };
            base = retry.next_base(self, &name, reason).await?;
        }
    }
}

/// A blob as table metadata tells of it.
fn described(blob: &Blob) -> BlobMetadata {
    BlobMetadata {
        r#type: blob.blob_type().to_owned(),
        snapshot_id: blob.snapshot_id(),
        sequence_number: blob.sequence_number(),
        fields: blob.fields().to_vec(),
        properties: blob.properties().clone(),
    }
}

/// The size of a Puffin file's footer, from its first magic on.
fn footer_bytes(file: &[u8]) -> Option<usize> {
    let length = file.get(file.len().checked_sub(12)?..)?.get(..4)?;
    let payload = u32::from_le_bytes(length.try_into().ok()?) as usize;
    let footer = payload.checked_add(FOOTER_FRAME_BYTES)?;
    (footer + MAGIC.len() <= file.len()).then_some(footer)
}

/// Whether a file is a Puffin file whose parts lie within it: the Iceberg crate's reader takes that for granted.
fn check_frame(file: &[u8]) -> std::result::Result<(), String> {
    #[derive(Deserialize)]
    struct Footer {
        #[serde(default)]
        blobs: Vec<Place>,
    }
    #[derive(Deserialize)]
    struct Place {
        offset: u64,
        length: u64,
    }
    let footer = footer_bytes(file)
        .and_then(|length| file.get(file.len() - length..))
        .ok_or("it is too short for a Puffin file")?;
    if [file, footer].iter().any(|part| !part.starts_with(MAGIC)) || !file.ends_with(MAGIC) {
        return Err("it is not a Puffin file".to_owned());
    }
    // The first flag: the payload is compressed.
    if footer[footer.len() - 8] & 1 != 0 {
        return Err("its footer is compressed, which is not read".to_owned());
    }
    let payload = &footer[MAGIC.len()..footer.len() - (FOOTER_FRAME_BYTES - MAGIC.len())];
    let parsed: Footer =
        serde_json::from_slice(payload).map_err(|error| format!("its footer: {error}"))?;
    let outside = |place: &Place| {
        place
            .offset
            .checked_add(place.length)
            .is_none_or(|end| end > file.len() as u64)
    };
    match parsed.blobs.iter().any(outside) {
        true => Err("it has a blob outside of itself".to_owned()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_values_are_told_as_texts() {
        assert_eq!(ndv("12"), Some(12));
        assert_eq!(ndv(" 12.6 "), Some(13));
        for text in ["", "many", "-1", "NaN", "inf"] {
            assert_eq!(ndv(text), None, "{text}");
        }
    }

    #[test]
    fn a_footer_has_a_frame_around_its_payload() {
        // The specification's empty file: magic, magic, `{"blobs":[]}`, its length, flags, magic.
        let mut file = b"PFA1PFA1{\"blobs\":[]}".to_vec();
        file.extend([12, 0, 0, 0, 0, 0, 0, 0]);
        file.extend(b"PFA1");
        assert_eq!(footer_bytes(&file), Some(28));
        assert_eq!(check_frame(&file), Ok(()));
        assert_eq!(footer_bytes(b"PFA1"), None);
        file[20] = 200;
        assert_eq!(footer_bytes(&file), None);
    }

    #[test]
    fn a_file_that_is_cut_or_changed_is_told_from_a_puffin_file() {
        let file = |payload: &str| {
            let mut file = b"PFA1....PFA1".to_vec();
            file.extend(payload.as_bytes());
            file.extend((payload.len() as u32).to_le_bytes());
            file.extend([0; 4]);
            file.extend(b"PFA1");
            file
        };
        let whole = file(r#"{"blobs":[{"type":"t","fields":[1],"offset":4,"length":4}]}"#);
        assert_eq!(check_frame(&whole), Ok(()));
        for length in 0..whole.len() {
            assert!(check_frame(&whole[..length]).is_err(), "{length}");
        }
        for blob in [
            r#"{"offset":4,"length":400}"#,
            r#"{"offset":18446744073709551615,"length":4}"#,
            r#"{"offset":-1,"length":4}"#,
        ] {
            assert!(check_frame(&file(&format!("{{\"blobs\":[{blob}]}}"))).is_err());
        }
        assert!(check_frame(&file("[")).is_err());
        let mut packed = whole.clone();
        let flags = packed.len() - 8;
        packed[flags] = 1;
        assert!(check_frame(&packed).is_err());
    }
}
