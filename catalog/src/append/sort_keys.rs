//! By what the rows of a table's files are sorted.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Fields};
use iceberg::spec::{
    NullOrder, PartitionSpec, SchemaRef, SortDirection, SortField, SortOrder, TableMetadata,
    Transform, UnboundPartitionField,
};

use super::partition::failed;
use super::transformed_columns::TransformedColumns;
use crate::error::Result;

/// The default sort order of a table, as keys of its rows (Iceberg spec, "Sorting").
pub struct SortKeys {
    pub(super) order_id: i32,
    values: TransformedColumns,
    options: Vec<SortOptions>,
}

impl fmt::Debug for SortKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SortKeys")
            .field("order_id", &self.order_id)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl SortKeys {
    /// `None` for tables without an order, and for those with one that cannot be computed: by a transform that is not known, or
    /// a column that is gone. Files are then written unsorted, and say so, which every reader allows for.
    pub(super) fn new(metadata: &TableMetadata) -> Result<Option<Self>> {
        let (order, schema) = (metadata.default_sort_order(), metadata.current_schema());
        let Ok(order_id) = i32::try_from(order.order_id) else {
            return Ok(None);
        };
        if order.is_unsorted() || !order.fields.iter().all(|field| is_known(field, schema)) {
            return Ok(None);
        }
        let fields = without_repetitions(order);
        let values = fields
            .iter()
            .enumerate()
            .map(|(index, field)| UnboundPartitionField {
                source_id: field.source_id,
                field_id: None,
                // No column's name: an identity field may have its own column's alone.
                name: format!("\u{1}{index}"),
                transform: field.transform,
            });
        let spec = PartitionSpec::builder(Arc::clone(schema))
            .add_unbound_fields(values)
            .and_then(|builder| builder.build())
            .map_err(failed)?;
        Ok(Some(Self {
            order_id,
            values: TransformedColumns::new(&Arc::new(spec), schema)?,
            options: fields
                .iter()
                .map(|field| SortOptions {
                    descending: field.direction == SortDirection::Descending,
                    nulls_first: field.null_order == NullOrder::First,
                })
                .collect(),
        }))
    }

    /// How each key is ordered.
    pub fn options(&self) -> &[SortOptions] {
        &self.options
    }

    /// The keys' names, which no column has, and their types.
    pub fn fields(&self) -> Fields {
        match self.values.arrow_type() {
            DataType::Struct(fields) => fields.clone(),
            _ => Fields::empty(),
        }
    }

    /// The keys of each row of a batch, whose columns are the table's.
    pub fn of(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        Ok(self.values.of(batch)?.as_struct().columns().to_vec())
    }
}

fn is_known(field: &SortField, schema: &SchemaRef) -> bool {
    let source = schema.field_by_id(field.source_id);
    source.is_some_and(|source| {
        field.transform != Transform::Unknown
            && field.transform.result_type(&source.field_type).is_ok()
    })
}

/// A key that was there before decides nothing.
fn without_repetitions(order: &SortOrder) -> Vec<&SortField> {
    let mut fields: Vec<&SortField> = Vec::new();
    for field in &order.fields {
        let same = |other: &&SortField| {
            other.source_id == field.source_id && other.transform == field.transform
        };
        if !fields.iter().any(same) {
            fields.push(field);
        }
    }
    fields
}
