//! Rows of a batch, in the text or the binary encoding.

use arrow::array::{Array, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use std::sync::Arc;
use thiserror::Error;

use super::value::{ValueError, ValueWriter, value_writer};

/// The two encodings of a row: what COM_QUERY answers with, and what COM_STMT_EXECUTE does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowEncoding {
    Text,
    Binary,
}

/// A row that cannot be encoded.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("column '{column}' holds {error}")]
pub(crate) struct RowError {
    pub column: String,
    pub error: ValueError,
}

/// NULL in a text row.
const TEXT_NULL: u8 = 0xfb;

/// Gives a batch the types that its client was told of.
///
/// Operators may yield a column in another representation than the plan's schema says (a view for a
/// string, say), which must not show: the client decodes by what it was told.
pub(crate) fn align(schema: &Arc<Schema>, batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
    let same = batch.num_columns() == schema.fields().len()
        && schema
            .fields()
            .iter()
            .zip(batch.columns())
            .all(|(field, column)| field.data_type() == column.data_type());
    if same {
        return Ok(batch);
    }
    let columns = schema.fields().iter().zip(batch.columns());
    let columns = columns.map(|(field, column)| cast(column, field.data_type()));
    RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_, _>>()?)
}

struct Column<'a> {
    nulls: Option<NullBuffer>,
    writer: Box<dyn ValueWriter + 'a>,
}

/// Writes the rows of one batch.
pub(crate) struct RowEncoder<'a> {
    batch: &'a RecordBatch,
    columns: Vec<Column<'a>>,
    encoding: RowEncoding,
}

impl<'a> RowEncoder<'a> {
    /// `batch` has the types of `schema`, see [`align`].
    pub fn new(
        schema: &Schema,
        batch: &'a RecordBatch,
        encoding: RowEncoding,
    ) -> Result<Self, RowError> {
        let columns = schema
            .fields()
            .iter()
            .zip(batch.columns())
            .map(|(field, array)| {
                let writer = value_writer(field, array).map_err(|error| RowError {
                    column: field.name().clone(),
                    error,
                })?;
                Ok(Column {
                    nulls: array.logical_nulls(),
                    writer,
                })
            });
        Ok(Self {
            batch,
            columns: columns.collect::<Result<_, RowError>>()?,
            encoding,
        })
    }

    /// Appends the payload of one row's packet.
    pub fn put_row(&self, row: usize, out: &mut Vec<u8>) -> Result<(), RowError> {
        match self.encoding {
            RowEncoding::Text => self.put_text_row(row, out),
            RowEncoding::Binary => self.put_binary_row(row, out),
        }
    }

    fn put_text_row(&self, row: usize, out: &mut Vec<u8>) -> Result<(), RowError> {
        for (index, column) in self.columns.iter().enumerate() {
            if column
                .nulls
                .as_ref()
                .is_some_and(|nulls| nulls.is_null(row))
            {
                out.push(TEXT_NULL);
            } else {
                column
                    .writer
                    .text_with_length(row, out)
                    .map_err(|error| self.row_error(index, error))?;
            }
        }
        Ok(())
    }

    fn put_binary_row(&self, row: usize, out: &mut Vec<u8>) -> Result<(), RowError> {
        out.push(0);
        let bitmap = out.len();
        // The first two bits are not used.
        out.resize(bitmap + (self.columns.len() + 2).div_ceil(8), 0);
        for (index, column) in self.columns.iter().enumerate() {
            if column
                .nulls
                .as_ref()
                .is_some_and(|nulls| nulls.is_null(row))
            {
                out[bitmap + (index + 2) / 8] |= 1 << ((index + 2) % 8);
            } else {
                column
                    .writer
                    .binary(row, out)
                    .map_err(|error| self.row_error(index, error))?;
            }
        }
        Ok(())
    }

    fn row_error(&self, column: usize, error: ValueError) -> RowError {
        RowError {
            column: self.batch.schema_ref().field(column).name().clone(),
            error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        ArrayRef, BooleanArray, Date32Array, DictionaryArray, Int32Array, Int32RunArray, NullArray,
        StringArray, StringViewArray,
    };
    use arrow::datatypes::{DataType, Field, Int8Type};

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, array)| (name, array, true)),
        )
        .unwrap()
    }

    fn rows(batch: &RecordBatch, encoding: RowEncoding) -> Vec<Vec<u8>> {
        let encoder = RowEncoder::new(batch.schema_ref(), batch, encoding).unwrap();
        (0..batch.num_rows())
            .map(|row| {
                let mut out = vec![];
                encoder.put_row(row, &mut out).unwrap();
                out
            })
            .collect()
    }

    #[test]
    fn text_and_binary_rows_byte_by_byte() {
        let batch = batch(vec![
            ("i", Arc::new(Int32Array::from(vec![Some(-1), None]))),
            ("s", Arc::new(StringArray::from(vec![Some("ab"), Some("")]))),
            ("b", Arc::new(BooleanArray::from(vec![Some(true), None]))),
            ("n", Arc::new(NullArray::new(2))),
        ]);
        assert_eq!(
            rows(&batch, RowEncoding::Text),
            [&b"\x02-1\x02ab\x011\xfb"[..], b"\xfb\x00\xfb\xfb"]
        );
        assert_eq!(
            rows(&batch, RowEncoding::Binary),
            [
                &b"\x00\x20\xff\xff\xff\xff\x02ab\x01"[..], // bit 5: the fourth column
                b"\x00\x34\x00",                            // bits 2, 4 and 5
            ]
        );
    }

    #[test]
    fn the_null_bitmap_grows_after_six_columns() {
        let column = || Arc::new(Int32Array::from(vec![None::<i32>])) as ArrayRef;
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let batch = batch(names.iter().map(|name| (*name, column())).collect());
        assert_eq!(rows(&batch, RowEncoding::Binary), [[0, 0xfc, 0x01]]);
    }

    #[test]
    fn dictionaries_and_runs_are_their_values() {
        let dictionary: DictionaryArray<Int8Type> = [Some("x"), None, Some("y"), Some("x")]
            .into_iter()
            .collect();
        let runs: Int32RunArray = [Some("r"), Some("r"), None, Some("q")]
            .into_iter()
            .collect();
        let batch = batch(vec![("d", Arc::new(dictionary)), ("r", Arc::new(runs))]);
        assert_eq!(
            rows(&batch, RowEncoding::Text),
            [
                &b"\x01x\x01r"[..],
                b"\xfb\x01r",
                b"\x01y\xfb",
                b"\x01x\x01q"
            ]
        );
        assert_eq!(
            rows(&batch.slice(2, 2), RowEncoding::Text),
            [&b"\x01y\xfb"[..], b"\x01x\x01q"]
        );
    }

    #[test]
    fn a_batch_in_another_representation_is_cast_to_what_was_promised() {
        let schema = Arc::new(Schema::new(vec![Field::new("s", DataType::Utf8, true)]));
        let batch = batch(vec![("s", Arc::new(StringViewArray::from(vec!["a"])))]);
        let aligned = align(&schema, batch).unwrap();
        assert_eq!(aligned.column(0).data_type(), &DataType::Utf8);
    }

    #[test]
    fn what_cannot_be_carried_names_its_column() {
        let batch = batch(vec![("born", Arc::new(Date32Array::from(vec![i32::MAX])))]);
        let encoder = RowEncoder::new(batch.schema_ref(), &batch, RowEncoding::Text).unwrap();
        let error = encoder.put_row(0, &mut vec![]).unwrap_err();
        assert!(
            error.to_string().starts_with("column 'born' holds a date"),
            "{error}"
        );
    }
}
