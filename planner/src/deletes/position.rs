//! Position delete files: rows of a data file's path and a position in it (the specification, "Position Delete Files").

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use futures::TryStreamExt;
use futures::stream::BoxStream;
use iceberg::metadata_columns::{
    RESERVED_COL_NAME_DELETE_FILE_PATH, RESERVED_COL_NAME_DELETE_FILE_POS,
    RESERVED_FIELD_ID_DELETE_FILE_PATH, RESERVED_FIELD_ID_DELETE_FILE_POS,
};
use iceberg::spec::{MappedField, NameMapping, NestedField, PrimitiveType, Schema, Type};
use roaring::RoaringTreemap;

use datafusion::error::{DataFusionError, Result};

use crate::scan::TableColumns;

/// The columns of a position delete file that matter. The deleted row's own columns may follow.
pub(crate) fn position_columns() -> iceberg::Result<Arc<TableColumns>> {
    static COLUMNS: LazyLock<iceberg::Result<Arc<TableColumns>>> = LazyLock::new(|| {
        let column = |id, name, of| NestedField::required(id, name, Type::Primitive(of)).into();
        let schema = Schema::builder()
            .with_fields(vec![
                column(
                    RESERVED_FIELD_ID_DELETE_FILE_PATH,
                    RESERVED_COL_NAME_DELETE_FILE_PATH,
                    PrimitiveType::String,
                ),
                column(
                    RESERVED_FIELD_ID_DELETE_FILE_POS,
                    RESERVED_COL_NAME_DELETE_FILE_POS,
                    PrimitiveType::Long,
                ),
            ])
            .build()?;
        // The names are fixed, so a file without ids is none the worse for it.
        let mapped =
            |id, name: &str| MappedField::new(Some(id), vec![name.to_string()], Vec::new());
        let names = NameMapping::new(vec![
            mapped(
                RESERVED_FIELD_ID_DELETE_FILE_PATH,
                RESERVED_COL_NAME_DELETE_FILE_PATH,
            ),
            mapped(
                RESERVED_FIELD_ID_DELETE_FILE_POS,
                RESERVED_COL_NAME_DELETE_FILE_POS,
            ),
        ]);
        TableColumns::new(Arc::new(schema), Some(names)).map(Arc::new)
    });
    match &*COLUMNS {
        Ok(columns) => Ok(Arc::clone(columns)),
        Err(error) => Err(iceberg::Error::new(error.kind(), error.to_string())),
    }
}

/// The content of one position delete file, by data file.
#[derive(Debug, Default)]
pub(crate) struct LoadedPositions {
    by_file: HashMap<Box<str>, Arc<RoaringTreemap>>,
}

impl LoadedPositions {
    /// Takes in all rows of [`position_columns`], in whatever order they come.
    pub(crate) async fn read(mut rows: BoxStream<'static, Result<RecordBatch>>) -> Result<Self> {
        let mut by_file: HashMap<Box<str>, RoaringTreemap> = HashMap::new();
        while let Some(batch) = rows.try_next().await? {
            add(&mut by_file, &batch)?;
        }
        let by_file = by_file
            .into_iter()
            .map(|(file, mut positions)| {
                positions.optimize();
                (file, Arc::new(positions))
            })
            .collect();
        Ok(Self { by_file })
    }

    /// The positions that are deleted from a data file.
    pub(crate) fn of(&self, data_file: &str) -> Option<&Arc<RoaringTreemap>> {
        self.by_file.get(data_file)
    }

    /// About its size in memory.
    pub(crate) fn memory_size(&self) -> usize {
        self.by_file
            .iter()
            .map(|(file, positions)| file.len() + 100 + bitmap_size(positions))
            .sum()
    }
}

/// About the size of a bitmap in memory: its containers are laid out as they are when written.
pub(crate) fn bitmap_size(positions: &RoaringTreemap) -> usize {
    positions.serialized_size() + 64
}

fn add(by_file: &mut HashMap<Box<str>, RoaringTreemap>, batch: &RecordBatch) -> Result<()> {
    let unexpected = || DataFusionError::Execution("its columns are not as they should be".into());
    let [files, positions] = batch.columns() else {
        return Err(unexpected());
    };
    let files = files.as_string_view_opt().ok_or_else(unexpected)?;
    let positions = positions
        .as_primitive_opt::<Int64Type>()
        .ok_or_else(unexpected)?;
    if files.null_count() > 0 || positions.null_count() > 0 {
        return Err(DataFusionError::Execution(
            "a row of it names no file or no position".to_string(),
        ));
    }
    let mut row = 0;
    while row < batch.num_rows() {
        // Rows of one file follow each other in files that are sorted as the specification asks.
        let file = files.value(row);
        let mut end = row + 1;
        while end < batch.num_rows() && files.value(end) == file {
            end += 1;
        }
        if !by_file.contains_key(file) {
            by_file.insert(file.into(), RoaringTreemap::new());
        }
        if let Some(deleted) = by_file.get_mut(file) {
            for position in &positions.values()[row..end] {
                let position = u64::try_from(*position).map_err(|_| {
                    DataFusionError::Execution(format!("it deletes at position {position}"))
                })?;
                if deleted.try_push(position).is_err() {
                    deleted.insert(position);
                }
            }
        }
        row = end;
    }
    Ok(())
}

/// A stream of batches, for tests.
#[cfg(test)]
pub(crate) fn rows(batches: Vec<RecordBatch>) -> BoxStream<'static, Result<RecordBatch>> {
    Box::pin(futures::stream::iter(batches.into_iter().map(Ok)))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringViewArray};
    use arrow::datatypes::{DataType, Field, Schema as ArrowSchema};

    use super::*;

    fn batch(of: &[(&str, i64)]) -> RecordBatch {
        let schema = ArrowSchema::new(vec![
            Field::new("file_path", DataType::Utf8View, false),
            Field::new("pos", DataType::Int64, false),
        ]);
        let files = StringViewArray::from_iter_values(of.iter().map(|(file, _)| file));
        let positions = Int64Array::from_iter_values(of.iter().map(|(_, position)| *position));
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(files), Arc::new(positions)])
            .expect("a batch")
    }

    #[tokio::test]
    async fn positions_are_kept_by_file_whatever_their_order() {
        let loaded = LoadedPositions::read(rows(vec![
            batch(&[("a", 1), ("a", 7), ("b", 3), ("a", 7), ("a", 2)]),
            batch(&[("a", 0), ("c", 1 << 40)]),
        ]))
        .await
        .expect("it is read");
        let of = |file: &str| loaded.of(file).map(|p| p.iter().collect::<Vec<_>>());
        assert_eq!(of("a"), Some(vec![0, 1, 2, 7]));
        assert_eq!(of("b"), Some(vec![3]));
        assert_eq!(of("c"), Some(vec![1 << 40]));
        assert_eq!(of("d"), None);
    }

    #[tokio::test]
    async fn a_negative_position_is_refused() {
        let error = LoadedPositions::read(rows(vec![batch(&[("a", -1)])]))
            .await
            .expect_err("there is no such position");
        assert!(error.to_string().contains("position -1"), "{error}");
    }
}
