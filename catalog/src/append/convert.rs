//! Batches of whatever types a query made, as the table's types.

use arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::{CastOptions, can_cast_types, cast_with_options};
use arrow::datatypes::{DataType, Field, SchemaRef};
use arrow::util::display::FormatOptions;

use crate::error::{CatalogError, Result};
use crate::name::TableName;

/// Converts batches to the schema of a table; columns are matched by position.
#[derive(Debug)]
pub(crate) struct Converter {
    table: TableName,
    schema: SchemaRef,
}

impl Converter {
    pub(crate) fn new(table: TableName, schema: SchemaRef) -> Self {
        Self { table, schema }
    }

    pub(crate) fn convert(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        if batch.num_columns() != self.schema.fields().len() {
            return Err(CatalogError::InvalidTable {
                table: self.table.to_string(),
                reason: format!(
                    "it has {} column(s), but rows of {} were given",
                    self.schema.fields().len(),
                    batch.num_columns()
                ),
            });
        }
        let columns = self
            .schema
            .fields()
            .iter()
            .zip(batch.columns())
            .map(|(field, column)| self.column(field, column))
            .collect::<Result<Vec<_>>>()?;
        RecordBatch::try_new(self.schema.clone(), columns).map_err(|error| {
            CatalogError::InvalidTable {
                table: self.table.to_string(),
                reason: error.to_string(),
            }
        })
    }

    fn column(&self, field: &Field, column: &ArrayRef) -> Result<ArrayRef> {
        let invalid = |reason: String| CatalogError::InvalidValue {
            table: self.table.to_string(),
            column: field.name().clone(),
            reason,
        };
        let converted = convert_array(column, field.data_type()).map_err(invalid)?;
        if !field.is_nullable() && converted.null_count() > 0 {
            return Err(invalid("it is required, and cannot be NULL".to_string()));
        }
        Ok(converted)
    }
}

fn convert_array(column: &ArrayRef, to: &DataType) -> Result<ArrayRef, String> {
    let from = column.data_type();
    if from == to {
        return Ok(column.clone());
    }
    if from == &DataType::Null {
        return Ok(new_null_array(to, column.len()));
    }
    if !can_cast_types(from, to) {
        return Err(format!("a value of type {from} cannot be stored as {to}"));
    }
    // Unsafe in Arrow's sense: a value that does not fit is an error, not a NULL.
    let options = CastOptions {
        safe: false,
        format_options: FormatOptions::default(),
    };
    let cast = |column: &ArrayRef, to: &DataType| {
        cast_with_options(column, to, &options).map_err(|e| plain(&e))
    };
    let converted = cast(column, to)?;
    // A fraction is not cut off without a word.
    let fractional = |kind: &DataType| {
        kind.is_floating() || matches!(kind, DataType::Decimal128(..) | DataType::Decimal256(..))
    };
    if to.is_integer() && fractional(from) {
        let back = cast(&converted, from)?;
        let same = not_distinct(&back, column).map_err(|e| plain(&e))?;
        if same.true_count() != column.len() {
            return Err(format!(
                "a value of type {from} with a fraction cannot be stored as {to}"
            ));
        }
    }
    Ok(converted)
}

fn plain(error: &arrow::error::ArrowError) -> String {
    use arrow::error::ArrowError;
    match error {
        ArrowError::CastError(message)
        | ArrowError::ComputeError(message)
        | ArrowError::InvalidArgumentError(message) => message.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        Decimal128Array, DictionaryArray, Float64Array, Int32Array, Int64Array, StringArray,
        StringViewArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    };
    use arrow::datatypes::{Int32Type, Schema, TimeUnit};

    use super::*;

    fn converted(column: ArrayRef, to: DataType, nullable: bool) -> Result<ArrayRef> {
        let given = Schema::new(vec![Field::new(
            "whatever",
            column.data_type().clone(),
            true,
        )]);
        let batch = RecordBatch::try_new(Arc::new(given), vec![column]).unwrap();
        let schema = Arc::new(Schema::new(vec![Field::new("c", to, nullable)]));
        let converter = Converter::new(TableName::new("lake", "db", "t"), schema);
        Ok(converter.convert(&batch)?.column(0).clone())
    }

    #[test]
    fn values_that_fit_are_converted() {
        let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
        let cases: Vec<(ArrayRef, DataType, ArrayRef)> = vec![
            (
                Arc::new(Int32Array::from(vec![1, -2])),
                DataType::Int64,
                Arc::new(Int64Array::from(vec![1, -2])),
            ),
            (
                Arc::new(Float64Array::from(vec![1.0, 2.0])),
                DataType::Int32,
                Arc::new(Int32Array::from(vec![1, 2])),
            ),
            (
                Arc::new(StringViewArray::from(vec![
                    "a",
                    "a longer text than twelve",
                ])),
                DataType::Utf8,
                Arc::new(StringArray::from(vec!["a", "a longer text than twelve"])),
            ),
            (
                Arc::new(
                    vec!["x", "y", "x"]
                        .into_iter()
                        .collect::<DictionaryArray<Int32Type>>(),
                ),
                DataType::Utf8,
                Arc::new(StringArray::from(vec!["x", "y", "x"])),
            ),
            (
                Arc::new(TimestampMillisecondArray::from(vec![1_000])),
                utc,
                Arc::new(TimestampMicrosecondArray::from(vec![1_000_000]).with_timezone("+00:00")),
            ),
            (
                Arc::new(
                    Decimal128Array::from(vec![125])
                        .with_precision_and_scale(5, 2)
                        .unwrap(),
                ),
                DataType::Decimal128(12, 3),
                Arc::new(
                    Decimal128Array::from(vec![1250])
                        .with_precision_and_scale(12, 3)
                        .unwrap(),
                ),
            ),
            (
                new_null_array(&DataType::Null, 2),
                DataType::Int32,
                Arc::new(Int32Array::from(vec![None, None])),
            ),
        ];
        for (given, to, expected) in cases {
            assert_eq!(
                converted(given, to.clone(), true).unwrap().as_ref(),
                expected.as_ref(),
                "{to}"
            );
        }
    }

    #[test]
    fn what_does_not_fit_names_the_column() {
        let cases: Vec<(ArrayRef, DataType, bool, &str)> = vec![
            (
                Arc::new(Int64Array::from(vec![1 << 40])),
                DataType::Int32,
                true,
                "1099511627776",
            ),
            (
                Arc::new(Float64Array::from(vec![1.5])),
                DataType::Int32,
                true,
                "fraction",
            ),
            (
                Arc::new(StringArray::from(vec!["x"])),
                DataType::Int32,
                true,
                "'x'",
            ),
            (
                Arc::new(Int32Array::from(vec![None])),
                DataType::Int64,
                false,
                "cannot be NULL",
            ),
            (
                Arc::new(Int32Array::from(vec![1])),
                DataType::FixedSizeBinary(16),
                true,
                "cannot be stored as",
            ),
            (
                Arc::new(
                    Decimal128Array::from(vec![12345])
                        .with_precision_and_scale(5, 2)
                        .unwrap(),
                ),
                DataType::Decimal128(4, 2),
                true,
                "too large",
            ),
        ];
        for (given, to, nullable, reason) in cases {
            let error = converted(given, to, nullable).unwrap_err().to_string();
            assert!(
                error.starts_with("column 'c' of table 'lake.db.t'") && error.contains(reason),
                "{error}"
            );
        }
    }
}
