//! Values as people read them.

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::EncoderOptions;
use arrow::json::writer::make_encoder;
use arrow::util::display::{ArrayFormatter, FormatOptions};

const OPTIONS: FormatOptions<'static> = FormatOptions::new()
    .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
    .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"))
    .with_datetime_format(Some("%Y-%m-%d %H:%M:%S%.f"));

/// The texts of a batch, column by column; `None` is NULL.
pub fn texts(batch: &RecordBatch) -> Result<Vec<Vec<Option<String>>>, ArrowError> {
    let schema = batch.schema();
    batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| column_texts(column, field))
        .collect()
}

fn column_texts(column: &ArrayRef, field: &FieldRef) -> Result<Vec<Option<String>>, ArrowError> {
    if column.data_type().is_nested() {
        return nested_texts(column, field);
    }
    let formatter = ArrayFormatter::try_new(column.as_ref(), &OPTIONS)?;
    // Those of a column without a type as well, which has no null buffer.
    let nulls = column.logical_nulls();
    (0..column.len())
        .map(|row| {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                return Ok(None);
            }
            formatter.value(row).try_to_string().map(Some)
        })
        .collect()
}

/// Structs, lists and maps as JSON, as the MySQL protocol gives them.
fn nested_texts(column: &ArrayRef, field: &FieldRef) -> Result<Vec<Option<String>>, ArrowError> {
    let options = EncoderOptions::default().with_explicit_nulls(true);
    let mut encoder = make_encoder(field, column.as_ref(), &options)?;
    let mut bytes = Vec::new();
    Ok((0..column.len())
        .map(|row| {
            if column.is_null(row) {
                return None;
            }
            bytes.clear();
            encoder.encode(row, &mut bytes);
            Some(String::from_utf8_lossy(&bytes).into_owned())
        })
        .collect())
}

/// Which columns are numbers, and so aligned to the right.
pub fn numeric(schema: &SchemaRef) -> Vec<bool> {
    schema
        .fields()
        .iter()
        .map(|field| is_number(field.data_type()))
        .collect()
}

fn is_number(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, value) => is_number(value),
        kind => kind.is_numeric(),
    }
}

/// Escapes what would move the cursor of a terminal; a line break only where cells have one line.
pub fn printable(text: &str, one_line: bool) -> String {
    let harmless = |c: char| !c.is_control() || (c == '\n' && !one_line);
    if text.chars().all(harmless) {
        return text.to_string();
    }
    text.chars()
        .map(|c| match c {
            c if harmless(c) => c.to_string(),
            '\t' if !one_line => "    ".to_string(),
            c => c.escape_default().to_string(),
        })
        .collect()
}
