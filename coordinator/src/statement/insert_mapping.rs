//! From the columns of a query to those of the table it is inserted into.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryArray, Float64Array, RecordBatch, RecordBatchOptions,
    StringArray,
};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Field, Float64Type, Schema, SchemaRef,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::scalar::ScalarValue;
use iceberg::spec::{NestedField, Schema as IcebergSchema};
use tarn_catalog::{is_uuid, near_names};
use tarn_planner::{time_in_full, write_default};
use uuid::Uuid;

use crate::error::{Error, ErrorKind, Result};
use crate::error_conversion::did_you_mean;

/// A value that does not fit is an error, never a NULL.
const STRICT: CastOptions<'static> = CastOptions {
    safe: false,
    format_options: datafusion::arrow::util::display::FormatOptions::new(),
};

/// What fills each column of the table.
#[derive(Debug)]
pub(super) struct Mapping {
    table: SchemaRef,
    sources: Vec<Source>,
}

#[derive(Debug, Clone, PartialEq)]
enum Source {
    /// The query's column of that position.
    Query(usize),
    /// The statement leaves the column out: its default, or NULL.
    Default(ScalarValue),
}

impl Mapping {
    /// Matches `columns` (all of the table's, if empty) with the query's by position.
    ///
    /// # Errors
    /// A column that the table does not have, twice the same one, another number of values than of
    /// columns, or a required column that is left out.
    pub fn new(
        schema: &IcebergSchema,
        table: &SchemaRef,
        columns: &[String],
        query: &Schema,
    ) -> Result<Self> {
        let width = query.fields().len();
        let named = if columns.is_empty() {
            table.fields().len()
        } else {
            columns.len()
        };
        if named != width {
            return Err(Error::new(
                ErrorKind::ColumnCountMismatch,
                format!(
                    "Column count doesn't match value count: {named} columns and {width} values"
                ),
            ));
        }
        let sources = if columns.is_empty() {
            (0..width).map(Some).collect()
        } else {
            let mut sources = vec![None; table.fields().len()];
            for (source, column) in columns.iter().enumerate() {
                let index = position(table, column)?;
                if let Some(slot) = sources.get_mut(index) {
                    if slot.is_some() {
                        return Err(Error::new(
                            ErrorKind::DuplicateColumn,
                            format!("Column '{column}' specified twice"),
                        ));
                    }
                    *slot = Some(source);
                }
            }
            sources
        };
        let columns = schema.as_struct().fields().iter().zip(table.fields());
        Ok(Self {
            table: Arc::clone(table),
            sources: sources
                .into_iter()
                .zip(columns)
                .map(|(source, (column, field))| match source {
                    Some(index) => Ok(Source::Query(index)),
                    None => default(column, field).map(Source::Default),
                })
                .collect::<Result<_>>()?,
        })
    }

    /// What a batch of the table is like.
    pub fn table(&self) -> &SchemaRef {
        &self.table
    }

    /// The batch as the table holds it; `rows_before` is how many rows came in earlier batches.
    ///
    /// # Errors
    /// A value that its column cannot hold, or NULL where none may be; both name the column and
    /// the row.
    pub fn apply(&self, batch: &RecordBatch, rows_before: usize) -> Result<RecordBatch> {
        let mut arrays = Vec::with_capacity(self.sources.len());
        for (field, source) in self.table.fields().iter().zip(&self.sources) {
            let array = match source {
                Source::Default(value) => value.to_array_of_size(batch.num_rows())?,
                Source::Query(index) => convert(batch.column(*index), field, rows_before)?,
            };
            if !field.is_nullable() && array.null_count() > 0 {
                let row = (0..array.len())
                    .find(|row| array.is_null(*row))
                    .unwrap_or(0);
                return Err(Error::new(
                    ErrorKind::NullInRequiredColumn,
                    format!(
                        "Column '{}' cannot be null (row {})",
                        field.name(),
                        rows_before + row + 1
                    ),
                ));
            }
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.table),
            arrays,
            &options,
        )?)
    }
}

/// The value of a column that a statement leaves out.
fn default(column: &NestedField, field: &Field) -> Result<ScalarValue> {
    let name = field.name();
    let value = write_default(column, field.data_type()).ok_or_else(|| {
        Error::new(
            ErrorKind::Unsupported,
            format!(
                "The default value of column '{name}', which is of type {}, is not written: give it a value",
                column.field_type
            ),
        )
    })?;
    if value.is_null() && !field.is_nullable() {
        return Err(Error::new(
            ErrorKind::NullInRequiredColumn,
            format!("Field '{name}' doesn't have a default value"),
        ));
    }
    Ok(value)
}

/// The column called `name`, which MySQL compares without regard to case.
fn position(table: &Schema, name: &str) -> Result<usize> {
    let fields = table.fields();
    fields
        .iter()
        .position(|field| field.name() == name)
        .or_else(|| {
            fields
                .iter()
                .position(|field| field.name().eq_ignore_ascii_case(name))
        })
        .ok_or_else(|| {
            let similar = near_names(name, fields.iter().map(|field| field.name().as_str()));
            Error::new(
                ErrorKind::NoSuchColumn,
                format!(
                    "Unknown column '{name}' in 'field list'{}",
                    did_you_mean(&similar)
                ),
            )
        })
}

fn convert(array: &ArrayRef, field: &Field, rows_before: usize) -> Result<ArrayRef> {
    let (to, column) = (field.data_type(), field.name());
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    if !makes_sense(array.data_type(), to) {
        return Err(Error::new(
            ErrorKind::WrongValue,
            format!(
                "Column '{column}' of type {to} cannot take values of type {}",
                array.data_type()
            ),
        ));
    }
    cast(array, field).map_err(|error| {
        // Only now it matters which row it was.
        let row = (0..array.len())
            .find(|row| cast(&array.slice(*row, 1), field).is_err())
            .unwrap_or(0);
        let value = array_value_to_string(array, row).unwrap_or_default();
        let at = rows_before + row + 1;
        if array.data_type().is_numeric() && to.is_numeric() {
            return Error::new(
                ErrorKind::NumberOutOfRange,
                format!(
                    "Out of range value for column '{column}' at row {at}: {value} is not a {to}"
                ),
            );
        }
        Error::new(
            ErrorKind::WrongValue,
            format!(
                "Incorrect value '{value}' for column '{column}' at row {at}: {}",
                Error::from(error).message
            ),
        )
    })
}

/// Numbers without their fraction: decimals to the nearest, away from zero of two, doubles to the even one, as MySQL does.
fn rounded(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Decimal128(_, 1..) => {
            let whole = DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0);
            cast_with_options(array, &whole, &STRICT)
        }
        DataType::Float32 | DataType::Float64 => {
            let doubles = cast_with_options(array, &DataType::Float64, &STRICT)?;
            let whole: Float64Array = doubles
                .as_primitive::<Float64Type>()
                .unary(f64::round_ties_even);
            Ok(Arc::new(whole))
        }
        _ => Ok(Arc::clone(array)),
    }
}

/// As Arrow casts, but to whole numbers; short texts become times, text a UUID, and bytes become bytes of a fixed length,
/// which Arrow does not do.
fn cast(array: &ArrayRef, field: &Field) -> Result<ArrayRef, ArrowError> {
    let DataType::FixedSizeBinary(length) = field.data_type() else {
        let rounded = match field.data_type().is_integer() {
            true => rounded(array)?,
            false => Arc::clone(array),
        };
        return match field.data_type() {
            DataType::Timestamp(..) | DataType::Date32 if array.data_type().is_string() => {
                cast_with_options(array, field.data_type(), &STRICT).or_else(|_| {
                    let texts = cast_with_options(array, &DataType::Utf8, &STRICT)?;
                    let texts = texts.as_string::<i32>().iter();
                    let full: StringArray = texts
                        .map(|text| {
                            text.map(|text| time_in_full(text).unwrap_or_else(|| text.to_owned()))
                        })
                        .collect();
                    cast_with_options(&full, field.data_type(), &STRICT)
                })
            }
            to => cast_with_options(&rounded, to, &STRICT),
        };
    };
    let sized = |values: Vec<Option<Vec<u8>>>| -> Result<ArrayRef, ArrowError> {
        let array =
            FixedSizeBinaryArray::try_from_sparse_iter_with_size(values.into_iter(), *length)?;
        Ok(Arc::new(array))
    };
    if is_uuid(field) && array.data_type().is_string() {
        let texts = cast_with_options(array, &DataType::Utf8, &STRICT)?;
        let uuids = texts.as_string::<i32>().iter().map(|text| {
            text.map(|text| Uuid::try_parse(text).map(|uuid| uuid.as_bytes().to_vec()))
                .transpose()
        });
        return sized(
            uuids
                .collect::<Result<_, _>>()
                .map_err(|e| ArrowError::CastError(e.to_string()))?,
        );
    }
    let bytes = cast_with_options(array, &DataType::Binary, &STRICT)?;
    sized(
        bytes
            .as_binary::<i32>()
            .iter()
            .map(|value| value.map(<[u8]>::to_vec))
            .collect(),
    )
}

/// Arrow would take a number for days or microseconds since 1970, which is never what was meant.
fn makes_sense(from: &DataType, to: &DataType) -> bool {
    let number = |kind: &DataType| kind.is_numeric() || *kind == DataType::Boolean;
    !(number(from) && to.is_temporal() || from.is_temporal() && number(to))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int32Array, Int64Array};
    use datafusion::arrow::datatypes::TimeUnit;

    use super::*;

    fn table() -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("id", DataType::Int32, false),
            Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, None), true),
            Field::new("note", DataType::Utf8, true),
        ]))
    }

    /// The columns of `table`; a note is 'none' where a statement leaves it out.
    fn table_columns() -> IcebergSchema {
        use iceberg::spec::{Literal, PrimitiveType as P, Type};
        let note = NestedField::optional(3, "note", Type::Primitive(P::String))
            .with_write_default(Literal::string("none"));
        IcebergSchema::builder()
            .with_fields(vec![
                NestedField::required(1, "id", Type::Primitive(P::Int)).into(),
                NestedField::optional(2, "at", Type::Primitive(P::Timestamp)).into(),
                note.into(),
            ])
            .build()
            .expect("a schema")
    }

    #[test]
    fn columns_that_are_left_out_get_their_defaults() {
        let batch = query(vec![Arc::new(Int64Array::from(vec![7, 8]))]);
        let mapping = Mapping::new(&table_columns(), &table(), &names(&["id"]), &batch.schema())
            .expect("fits");
        let mapped = mapping.apply(&batch, 0).expect("fits");
        assert_eq!(mapped.column(1).null_count(), 2);
        let notes = mapped.column(2).as_string::<i32>();
        assert_eq!(
            notes.iter().collect::<Vec<_>>(),
            [Some("none"), Some("none")]
        );
        // A NULL that is given is one.
        let batch = query(vec![
            Arc::new(Int64Array::from(vec![7])),
            Arc::new(StringArray::from(vec![None::<&str>])),
        ]);
        let named = names(&["id", "note"]);
        let mapping =
            Mapping::new(&table_columns(), &table(), &named, &batch.schema()).expect("fits");
        assert!(mapping.apply(&batch, 0).expect("fits").column(2).is_null(0));
    }

    #[test]
    fn text_becomes_a_uuid_and_bytes_must_have_the_length() {
        let column = iceberg::spec::Type::Primitive(iceberg::spec::PrimitiveType::Uuid);
        let uuid = tarn_catalog::mark_uuid(
            Field::new("u", DataType::FixedSizeBinary(16), true),
            &column,
        );
        let text: ArrayRef = Arc::new(StringArray::from(vec![
            Some("00000000-0000-0000-0000-0000000000ff"),
            None,
        ]));
        let made = convert(&text, &uuid, 0).expect("a UUID");
        let made = made.as_fixed_size_binary();
        assert_eq!(
            made.value(0),
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255]
        );
        assert!(made.is_null(1));
        let wrong: ArrayRef = Arc::new(StringArray::from(vec![
            "00000000-0000-0000-0000-0000000000ff",
            "no",
        ]));
        let error = convert(&wrong, &uuid, 10).expect_err("no UUID");
        assert!(
            error.message.contains("'no' for column 'u' at row 12"),
            "{}",
            error.message
        );
        let fixed = Field::new("f", DataType::FixedSizeBinary(2), true);
        let bytes: ArrayRef = Arc::new(StringArray::from(vec!["ab", "abc"]));
        assert!(convert(&bytes, &fixed, 0).is_err());
        assert_eq!(
            convert(&bytes.slice(0, 1), &fixed, 0)
                .expect("two bytes")
                .as_fixed_size_binary()
                .value(0),
            b"ab"
        );
    }

    fn query(columns: Vec<ArrayRef>) -> RecordBatch {
        let fields: Vec<Field> = columns
            .iter()
            .enumerate()
            .map(|(index, column)| {
                Field::new(format!("c{index}"), column.data_type().clone(), true)
            })
            .collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("equal lengths")
    }

    fn names(columns: &[&str]) -> Vec<String> {
        columns.iter().map(|column| (*column).to_owned()).collect()
    }

    #[test]
    fn columns_go_where_they_are_named_and_the_others_are_null() {
        let batch = query(vec![
            Arc::new(StringArray::from(vec!["a"])),
            Arc::new(Int64Array::from(vec![7])),
        ]);
        let mapping = Mapping::new(
            &table_columns(),
            &table(),
            &names(&["note", "ID"]),
            &batch.schema(),
        )
        .expect("fits");
        let mapped = mapping.apply(&batch, 0).expect("fits");
        let id = mapped
            .column(0)
            .as_any()
            .downcast_ref::<Int32Array>()
            .expect("int");
        assert_eq!(id.value(0), 7);
        assert_eq!(mapped.column(1).null_count(), 1);
        assert_eq!(mapped.schema(), table());
    }

    #[test]
    fn a_value_that_does_not_fit_names_its_column_and_row() {
        let batch = query(vec![Arc::new(Int64Array::from(vec![1, 5_000_000_000]))]);
        let mapping = Mapping::new(&table_columns(), &table(), &names(&["id"]), &batch.schema())
            .expect("fits");
        let error = mapping.apply(&batch, 100).expect_err("too large");
        assert_eq!(error.kind, ErrorKind::NumberOutOfRange);
        assert!(
            error.message.contains("'id' at row 102"),
            "{}",
            error.message
        );

        let batch = query(vec![
            Arc::new(Int64Array::from(vec![1])),
            Arc::new(StringArray::from(vec!["not a time"])),
        ]);
        let mapping = Mapping::new(
            &table_columns(),
            &table(),
            &names(&["id", "at"]),
            &batch.schema(),
        )
        .expect("fits");
        let error = mapping.apply(&batch, 0).expect_err("no time");
        assert_eq!(error.kind, ErrorKind::WrongValue);
        assert!(
            error
                .message
                .contains("'not a time' for column 'at' at row 1"),
            "{}",
            error.message
        );
    }

    #[test]
    fn null_in_a_required_column_names_it() {
        let batch = query(vec![Arc::new(Int64Array::from(vec![Some(1), None]))]);
        let mapping = Mapping::new(&table_columns(), &table(), &names(&["id"]), &batch.schema())
            .expect("fits");
        let error = mapping.apply(&batch, 0).expect_err("a NULL");
        assert_eq!(error.mysql_code(), 1048);
        assert_eq!(error.message, "Column 'id' cannot be null (row 2)");
    }

    #[test]
    fn numbers_are_not_taken_for_times() {
        let batch = query(vec![
            Arc::new(Int64Array::from(vec![1])),
            Arc::new(Int64Array::from(vec![20_240_101])),
        ]);
        let mapping = Mapping::new(
            &table_columns(),
            &table(),
            &names(&["id", "at"]),
            &batch.schema(),
        )
        .expect("fits");
        let error = mapping.apply(&batch, 0).expect_err("a number");
        assert_eq!(error.kind, ErrorKind::WrongValue);
    }

    #[test]
    fn wrong_lists_of_columns_are_told_before_anything_runs() {
        let one = query(vec![Arc::new(Int64Array::from(vec![1]))]).schema();
        for (columns, kind) in [
            (names(&[]), ErrorKind::ColumnCountMismatch),
            (names(&["nte"]), ErrorKind::NoSuchColumn),
            (names(&["note"]), ErrorKind::NullInRequiredColumn),
        ] {
            let error =
                Mapping::new(&table_columns(), &table(), &columns, &one).expect_err("wrong");
            assert_eq!(error.kind, kind, "{columns:?}");
        }
    }
}
