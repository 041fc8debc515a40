//! The delete files of one scan: which there are, which data files they apply to, and what is known of them unread.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use datafusion::error::Result;
use datafusion::scalar::ScalarValue;
use iceberg::spec::{DataFile, DataFileFormat, ManifestFile, Struct};
use tarn_audit::Counts;
use tarn_catalog::{DecodedManifest, location_to_path};

use super::iceberg_table::IcebergTable;
use super::scan_plan::{files_in, read_manifests};
use crate::deletes::{
    Applied, DeleteFile, DeleteIndex, DeleteKind, FileDeletes, KeyColumnsOf, KeyError, ValueRange,
    blob_range, is_readable, unpartitioned_specs,
};
use crate::error::{PlannerError, catalog_error};
use crate::prune::{PruneFilter, column_bounds, prune_manifests};
use crate::statistics::{DeletedRows, KeptFiles};

/// The deletes of a scan.
pub(super) struct ScanDeletes<'a> {
    table: &'a IcebergTable,
    index: DeleteIndex,
    /// Delete files of the snapshot.
    total: u64,
    keys: KeyColumnsOf<'a>,
    /// Delete files by their number in the index, each made once.
    files: HashMap<u32, Arc<DeleteFile>>,
}

impl<'a> ScanDeletes<'a> {
    /// Reads the delete manifests that may concern rows that the filter keeps.
    pub(super) async fn load(
        table: &'a IcebergTable,
        manifests: &[&ManifestFile],
        filter: &PruneFilter,
    ) -> Result<Self> {
        let layout = table.layout();
        let may_match = prune_manifests(filter, manifests, layout);
        let decoded = read_manifests(table.pinned(), manifests, &may_match).await?;
        let mut total: u64 = manifests
            .iter()
            .zip(&may_match)
            .filter(|(_, keep)| !**keep)
            .map(|(manifest, _)| files_in(manifest))
            .sum();
        let mut kept: Vec<(Arc<DecodedManifest>, Vec<bool>)> = Vec::with_capacity(decoded.len());
        for manifest in decoded {
            total += manifest.entries.len() as u64;
            let keep = filter.prune_deletes(&manifest, layout)?;
            kept.push((manifest, keep));
        }
        let metadata = table.pinned().metadata();
        let unpartitioned: HashSet<i32> = unpartitioned_specs(metadata.partition_specs_iter());
        let index = DeleteIndex::new(
            kept.iter()
                .map(|(manifest, keep)| (manifest, keep.as_slice())),
            &unpartitioned,
            layout,
        )
        .map_err(|e| invalid(table, &e))?;
        Ok(Self {
            table,
            index,
            total,
            keys: KeyColumnsOf::new(
                metadata,
                table.pinned().schema(),
                table.columns().name_mapping(),
            ),
            files: HashMap::new(),
        })
    }

    /// Finds the delete files of each kept data file.
    pub(super) fn assign(&self, kept: &mut [KeptFiles]) -> Result<()> {
        if self.index.is_empty() {
            return Ok(());
        }
        let layout = self.table.layout();
        let columns = self.index.key_columns();
        let mut users: HashMap<u32, u64> = HashMap::new();
        for files in kept.iter_mut() {
            let manifest = Arc::clone(&files.manifest);
            let bounds: Vec<_> = columns
                .iter()
                .map(|column| {
                    (
                        *column,
                        column_bounds(&manifest, &layout.columns()[*column]),
                    )
                })
                .collect();
            let mut deletes = HashMap::new();
            for place in files.indices() {
                let entry = &manifest.entries[place];
                let rows = entry.data_file().record_count();
                let known: Vec<(usize, ValueRange)> = bounds
                    .iter()
                    .map(|(column, bounds)| (*column, ValueRange::of(bounds, place, rows)))
                    .collect();
                let applied = self
                    .index
                    .applied(manifest.partition_spec_id, entry, &known)
                    .map_err(|e| invalid(self.table, &e))?;
                if applied.is_empty() {
                    continue;
                }
                for number in applied.numbers() {
                    *users.entry(number).or_default() += 1;
                }
                deletes.insert(place, self.deleted_rows(applied));
            }
            files.deletes = deletes;
        }
        for rows in kept.iter_mut().flat_map(|files| files.deletes.values_mut()) {
            // What deletes from several files is taken to delete from all of them alike.
            rows.expected = rows
                .files
                .numbers()
                .map(|number| {
                    let users = users.get(&number).copied().unwrap_or(1).max(1);
                    self.index
                        .file(number)
                        .data_file()
                        .record_count()
                        .div_ceil(users)
                })
                .sum();
        }
        Ok(())
    }

    fn deleted_rows(&self, files: Applied) -> DeletedRows {
        let positions = files.vector.iter().chain(&files.positions);
        let at_most = match files.equality.is_empty() {
            true => Some(
                positions
                    .map(|number| self.index.file(*number).data_file().record_count())
                    .sum(),
            ),
            false => None,
        };
        DeletedRows {
            files,
            at_most,
            expected: 0,
        }
    }

    /// How many delete files apply to the data files that are read, and the bytes to read of them.
    pub(super) fn count(&self, kept: &[KeptFiles]) -> (Counts, u64) {
        let mut used: BTreeMap<u32, u64> = BTreeMap::new();
        for files in kept {
            for place in files.indices() {
                let Some(rows) = files.deletes.get(&place) else {
                    continue;
                };
                for number in rows.files.numbers() {
                    used.entry(number).or_insert_with(|| {
                        let file = self.index.file(number).data_file();
                        blob_range(file).map_or(file.file_size_in_bytes(), |(_, length)| length)
                    });
                }
            }
        }
        let kept = used.len() as u64;
        (Counts::kept_of(kept, self.total), used.values().sum())
    }

    /// The delete files of a data file, ready to be sent along with it.
    pub(super) fn of_file(&mut self, data: &DataFile, rows: &DeletedRows) -> Result<FileDeletes> {
        let mut all = |numbers: &[u32]| {
            numbers
                .iter()
                .map(|number| self.file(*number))
                .collect::<Result<Vec<_>>>()
        };
        Ok(FileDeletes {
            data_file: data.file_path().to_string(),
            positions: all(&rows.files.positions)?,
            equality: all(&rows.files.equality)?,
            vector: rows
                .files
                .vector
                .map(|number| self.file(number))
                .transpose()?,
        })
    }

    /// What the partition of a data file of that spec says of the keys of its deletes that the table lacks.
    pub(super) fn dropped_constants(
        &self,
        of: &FileDeletes,
        spec_id: i32,
        partition: &Struct,
    ) -> Vec<(String, ScalarValue)> {
        let metadata = self.table.pinned().metadata();
        let Some(spec) = metadata.partition_spec_by_id(spec_id) else {
            return vec![];
        };
        let keys = of.equality.iter().filter_map(|file| match &file.kind {
            DeleteKind::Equality(keys) => Some(keys),
            DeleteKind::Positions | DeleteKind::Vector { .. } => None,
        });
        keys.flat_map(|keys| keys.dropped_constants(spec, partition))
            .collect()
    }

    fn file(&mut self, number: u32) -> Result<Arc<DeleteFile>> {
        if let Some(file) = self.files.get(&number) {
            return Ok(Arc::clone(file));
        }
        let data = self.index.file(number).data_file();
        let (format, ids) = (data.file_format(), data.equality_ids());
        let kind = match (format, ids) {
            (DataFileFormat::Puffin, _) => {
                let (offset, length) = blob_range(data).unwrap_or((0, 0));
                DeleteKind::Vector {
                    offset,
                    length,
                    cardinality: data.record_count(),
                }
            }
            (format, _) if !is_readable(format) => {
                let feature = format!("delete files of format {format:?}");
                return Err(catalog_error(self.table.unsupported(feature)));
            }
            (_, _) if data.content_type() == iceberg::spec::DataContentType::PositionDeletes => {
                DeleteKind::Positions
            }
            (_, ids) => match self.keys.get(&ids.unwrap_or_default()) {
                Ok(keys) => DeleteKind::Equality(keys),
                Err(KeyError::Unsupported(feature)) => {
                    return Err(catalog_error(self.table.unsupported(feature)));
                }
                Err(error) => {
                    return Err(PlannerError::DeleteFile {
                        table: self.table.pinned().name().to_string(),
                        file: data.file_path().to_string(),
                        reason: error.to_string(),
                    }
                    .into());
                }
            },
        };
        let location = data.file_path();
        let file = Arc::new(DeleteFile {
            location: location.to_string(),
            path: location_to_path(location).map_err(catalog_error)?,
            size: data.file_size_in_bytes(),
            format,
            kind,
        });
        self.files.insert(number, Arc::clone(&file));
        Ok(file)
    }
}

fn invalid(table: &IcebergTable, error: &impl ToString) -> PlannerError {
    PlannerError::Metadata {
        table: table.pinned().name().clone(),
        reason: error.to_string(),
    }
}
