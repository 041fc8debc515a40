//! The columns of row lineage (the specification's "Row Lineage", format version 3): a row's id, and the sequence
//! number of the commit that last changed it.
//!
//! They are columns of a scan's schema, by reserved field ids, when a query names them, and of no table's schema: a
//! `*` leaves them out. A file may have either; where it has not, or has null, the row inherits from the file's entry in
//! its manifest:
//!
//! | column | inherited |
//! |---|---|
//! | `_row_id` | the file's first row id, and the row's position in the file |
//! | `_last_updated_sequence_number` | the file's data sequence number |
//!
//! A snapshot of before the upgrade to version 3 gave its files no first row id: both are null.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Int64Type, Schema};
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, IsNullExpr, case, lit};
use datafusion::scalar::ScalarValue;
use iceberg::spec::{NestedField, PrimitiveType, Schema as IcebergSchema, Type};

use super::positions::POSITION;
use crate::formats::{FileRows, WantedField};

/// Reserved field ids of the specification.
pub(crate) const ROW_ID: i32 = 2_147_483_540;
const LAST_UPDATED: i32 = 2_147_483_539;

const ROW_ID_NAME: &str = "_row_id";
const LAST_UPDATED_NAME: &str = "_last_updated_sequence_number";

/// The names of the columns.
pub const ROW_LINEAGE_COLUMNS: [&str; 2] = [ROW_ID_NAME, LAST_UPDATED_NAME];

/// Whether a field id is that of one of the columns. What bounds a manifest has of them is of some rows only.
pub(crate) fn is_row_lineage(field_id: i32) -> bool {
    matches!(field_id, ROW_ID | LAST_UPDATED)
}

/// The schema with the columns at its end, unless it has columns of their names.
pub(crate) fn with_row_lineage(schema: &IcebergSchema) -> iceberg::Result<IcebergSchema> {
    let mut fields = schema.as_struct().fields().to_vec();
    for (id, name) in [(ROW_ID, ROW_ID_NAME), (LAST_UPDATED, LAST_UPDATED_NAME)] {
        if schema.field_by_name(name).is_some() {
            return Ok(schema.clone());
        }
        let of = Type::Primitive(PrimitiveType::Long);
        fields.push(Arc::new(NestedField::optional(id, name, of)));
    }
    IcebergSchema::builder()
        .with_schema_id(schema.schema_id())
        .with_fields(fields)
        .build()
}

/// What rows of a file inherit, by column name, as constants of the file.
pub(crate) fn inherited(
    first_row_id: Option<i64>,
    sequence_number: Option<i64>,
) -> [(String, ScalarValue); 2] {
    let sequence_number = sequence_number.filter(|_| first_row_id.is_some());
    [
        (ROW_ID_NAME.to_owned(), ScalarValue::Int64(first_row_id)),
        (
            LAST_UPDATED_NAME.to_owned(),
            ScalarValue::Int64(sequence_number),
        ),
    ]
}

/// What reads a column of row lineage from a file whose rows inherit `inherited` of it.
pub(super) fn lineage_expr(
    name: &str,
    inherited: &ScalarValue,
    file: &Schema,
) -> Result<Arc<dyn PhysicalExpr>> {
    if inherited.is_null() {
        return Ok(lit(ScalarValue::Int64(None)));
    }
    let column = |name: &str| -> Option<Arc<dyn PhysicalExpr>> {
        let (index, _) = file.column_with_name(name)?;
        Some(Arc::new(Column::new(name, index)))
    };
    let mut value = lit(inherited.clone());
    if name == ROW_ID_NAME
        && let Some(position) = column(POSITION)
    {
        value = Arc::new(BinaryExpr::new(value, Operator::Plus, position));
    }
    match column(name) {
        Some(own) if file.field_with_name(name)?.data_type() == &DataType::Int64 => {
            let is_null = Arc::new(IsNullExpr::new(Arc::clone(&own)));
            case(None, vec![(is_null, value)], Some(own))
        }
        _ => Ok(value),
    }
}

/// The columns of row lineage among those that a file of another format than Parquet is read for: their positions, and what the rows of the
/// file inherit of them.
#[derive(Debug, Default)]
pub(super) struct InheritedColumns(Vec<(usize, i32, i64)>);

impl InheritedColumns {
    /// Takes the constants off these columns: the file may have some of the values itself.
    pub(super) fn taken_from(fields: &mut [WantedField]) -> Self {
        let inherited = fields.iter_mut().enumerate().filter_map(|(index, wanted)| {
            let id = wanted.field.id;
            match is_row_lineage(id).then(|| wanted.constant.take())? {
                Some(ScalarValue::Int64(Some(value))) => Some((index, id, value)),
                _ => None,
            }
        });
        Self(inherited.collect())
    }

    /// The rows with what they inherit where they have nothing of their own.
    pub(super) fn given_to(&self, rows: FileRows) -> Result<FileRows> {
        if self.0.is_empty() {
            return Ok(rows);
        }
        let FileRows { first_row, batch } = rows;
        let mut columns = batch.columns().to_vec();
        for (index, id, value) in &self.0 {
            let Some(own) = columns[*index].as_primitive_opt::<Int64Type>() else {
                continue;
            };
            let first = match *id {
                ROW_ID => value.saturating_add_unsigned(first_row),
                _ => *value,
            };
            let step = i64::from(*id == ROW_ID);
            let values = own.iter().zip(0i64..);
            let values: Int64Array = values
                .map(|(own, row)| own.or(Some(first.saturating_add(step * row))))
                .collect();
            columns[*index] = Arc::new(values) as ArrayRef;
        }
        Ok(FileRows {
            first_row,
            batch: RecordBatch::try_new(batch.schema(), columns)?,
        })
    }
}
