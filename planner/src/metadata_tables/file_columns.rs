//! The columns of data and delete files, as `$files` and `$entries` show them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array, Int64Array, LargeBinaryArray, StringArray};
use arrow::datatypes::DataType;
use datafusion::error::Result;
use iceberg::spec::{DataFile, Datum, Literal, PrimitiveType, StructType};
use tarn_catalog::PinnedTable;

use super::arrays::{lists, maps, primitives, structs};
use super::partition_type::positions;
use super::readable_metrics::{READABLE_METRICS, metric_columns, readable_metrics};
use crate::error::PlannerError;

/// What the files of a table have in common.
#[derive(Debug)]
pub(super) struct FilesOfTable {
    partition: StructType,
    /// By spec id, where a file's partition values are.
    positions: HashMap<i32, Vec<Option<usize>>>,
    metrics: Vec<(String, i32, PrimitiveType)>,
}

/// One file, with what its manifest says of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileRow<'a> {
    pub(super) file: &'a DataFile,
    pub(super) spec_id: i32,
    pub(super) first_row_id: Option<i64>,
}

impl FilesOfTable {
    pub(super) fn new(table: &PinnedTable, partition: StructType) -> Self {
        let metadata = table.metadata();
        let positions = metadata
            .partition_specs_iter()
            .map(|spec| (spec.spec_id(), positions(Some(spec), &partition)))
            .collect();
        Self {
            positions,
            metrics: metric_columns(metadata.current_schema()),
            partition,
        }
    }

    /// A column by its name.
    pub(super) fn column(
        &self,
        name: &str,
        of: &DataType,
        rows: &[FileRow<'_>],
    ) -> Result<ArrayRef> {
        let files: Vec<&DataFile> = rows.iter().map(|row| row.file).collect();
        let longs = |values: Vec<Option<i64>>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
        let ints = |values: Vec<Option<i32>>| -> ArrayRef { Arc::new(Int32Array::from(values)) };
        let long = |of_file: &dyn Fn(&DataFile) -> Option<i64>| {
            longs(files.iter().map(|file| of_file(file)).collect())
        };
        let size = |bytes: u64| i64::try_from(bytes).ok();
        Ok(match name {
            "content" => ints(
                files
                    .iter()
                    .map(|file| Some(file.content_type() as i32))
                    .collect(),
            ),
            "file_path" => Arc::new(StringArray::from_iter_values(
                files.iter().map(|file| file.file_path()),
            )),
            "file_format" => Arc::new(StringArray::from_iter_values(
                files
                    .iter()
                    .map(|file| file.file_format().to_string().to_ascii_uppercase()),
            )),
            "spec_id" => ints(rows.iter().map(|row| Some(row.spec_id)).collect()),
            "partition" => self.partitions(of, rows)?,
            "record_count" => long(&|file| size(file.record_count())),
            "file_size_in_bytes" => long(&|file| size(file.file_size_in_bytes())),
            "column_sizes" => counts(of, &files, DataFile::column_sizes)?,
            "value_counts" => counts(of, &files, DataFile::value_counts)?,
            "null_value_counts" => counts(of, &files, DataFile::null_value_counts)?,
            "nan_value_counts" => counts(of, &files, DataFile::nan_value_counts)?,
            "lower_bounds" => bounds(of, &files, DataFile::lower_bounds)?,
            "upper_bounds" => bounds(of, &files, DataFile::upper_bounds)?,
            "key_metadata" => Arc::new(LargeBinaryArray::from_iter(
                files.iter().map(|file| file.key_metadata()),
            )),
            "split_offsets" => {
                let offsets: Vec<_> = files.iter().map(|file| file.split_offsets()).collect();
                let lengths: Vec<_> = offsets.iter().map(|list| list.map(<[i64]>::len)).collect();
                let elements: Vec<i64> = offsets.into_iter().flatten().flatten().copied().collect();
                lists(of, &lengths, Arc::new(Int64Array::from(elements)))?
            }
            "equality_ids" => {
                let ids: Vec<_> = files.iter().map(|file| file.equality_ids()).collect();
                let lengths: Vec<_> = ids.iter().map(|list| list.as_ref().map(Vec::len)).collect();
                let elements: Vec<i32> = ids.into_iter().flatten().flatten().collect();
                lists(of, &lengths, Arc::new(Int32Array::from(elements)))?
            }
            "sort_order_id" => ints(files.iter().map(|file| file.sort_order_id()).collect()),
            "first_row_id" => longs(rows.iter().map(|row| row.first_row_id).collect()),
            "referenced_data_file" => Arc::new(StringArray::from_iter(
                files.iter().map(|file| file.referenced_data_file()),
            )),
            "content_offset" => long(&DataFile::content_offset),
            "content_size_in_bytes" => long(&DataFile::content_size_in_bytes),
            READABLE_METRICS => readable_metrics(of, &self.metrics, &files)?,
            other => {
                return Err(
                    PlannerError::MetadataValue(format!("files have no column '{other}'")).into(),
                );
            }
        })
    }

    /// All columns of files, in one struct.
    pub(super) fn file_struct(&self, of: &DataType, rows: &[FileRow<'_>]) -> Result<ArrayRef> {
        let DataType::Struct(fields) = of else {
            return structs(of, rows.len(), vec![]);
        };
        let children = fields
            .iter()
            .map(|field| self.column(field.name(), field.data_type(), rows))
            .collect::<Result<Vec<_>>>()?;
        structs(of, rows.len(), children)
    }

    /// Partition values by the fields of the common type; those that a file's spec does not have are null.
    fn partitions(&self, of: &DataType, rows: &[FileRow<'_>]) -> Result<ArrayRef> {
        let values: Vec<&[Option<Literal>]> = rows
            .iter()
            .map(|row| row.file.partition().fields())
            .collect();
        let of_rows: Vec<Option<&Vec<Option<usize>>>> = rows
            .iter()
            .map(|row| self.positions.get(&row.spec_id))
            .collect();
        let DataType::Struct(fields) = of else {
            return structs(of, rows.len(), vec![]);
        };
        let children = fields
            .iter()
            .enumerate()
            .map(|(index, field)| {
                let column = values.iter().zip(&of_rows).map(|(values, positions)| {
                    let position = positions.and_then(|positions| *positions.get(index)?)?;
                    match values.get(position) {
                        Some(Some(Literal::Primitive(value))) => Some(value),
                        _ => None,
                    }
                });
                primitives(field.data_type(), column)
            })
            .collect::<Result<Vec<_>>>()?;
        structs(of, rows.len(), children)
    }

    /// The partition of a file by the fields of the common type, and how many of them its spec has: two specs that have
    /// other fields make other partitions, even where the values are equal.
    pub(super) fn partition_key(
        &self,
        row: FileRow<'_>,
    ) -> (usize, Vec<Option<iceberg::spec::PrimitiveLiteral>>) {
        let none = vec![None; self.partition.fields().len()];
        let positions = self.positions.get(&row.spec_id).unwrap_or(&none);
        let values = row.file.partition().fields();
        let key = positions
            .iter()
            .map(|position| match values.get((*position)?) {
                Some(Some(Literal::Primitive(value))) => Some(value.clone()),
                _ => None,
            })
            .collect();
        (positions.iter().flatten().count(), key)
    }
}

/// A map that is empty and one that is missing are the same to us; Java's library has none of the first kind.
fn counts(
    of: &DataType,
    files: &[&DataFile],
    of_file: fn(&DataFile) -> &HashMap<i32, u64>,
) -> Result<ArrayRef> {
    let (mut keys, mut values, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
    for file in files {
        let mut pairs: Vec<(i32, i64)> = of_file(file)
            .iter()
            .filter_map(|(id, count)| Some((*id, i64::try_from(*count).ok()?)))
            .collect();
        pairs.sort_unstable();
        lengths.push((!pairs.is_empty()).then_some(pairs.len()));
        for (id, count) in pairs {
            keys.push(id);
            values.push(count);
        }
    }
    let (keys, values) = (Int32Array::from(keys), Int64Array::from(values));
    maps(of, &lengths, Arc::new(keys), Arc::new(values))
}

/// Bounds as the spec serialises single values.
fn bounds(
    of: &DataType,
    files: &[&DataFile],
    of_file: fn(&DataFile) -> &HashMap<i32, Datum>,
) -> Result<ArrayRef> {
    let (mut keys, mut values, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
    for file in files {
        let bounds = of_file(file);
        let mut ids: Vec<i32> = bounds.keys().copied().collect();
        ids.sort_unstable();
        lengths.push((!ids.is_empty()).then_some(ids.len()));
        for id in ids {
            let Some(bound) = bounds.get(&id) else {
                continue;
            };
            let bytes = bound.to_bytes().map_err(|error| {
                PlannerError::MetadataValue(format!("a bound of column {id}: {error}"))
            })?;
            keys.push(id);
            values.push(bytes.to_vec());
        }
    }
    let values: ArrayRef = Arc::new(LargeBinaryArray::from_iter_values(values));
    debug_assert_eq!(values.len(), keys.len());
    maps(of, &lengths, Arc::new(Int32Array::from(keys)), values)
}
