//! By what the rows of a table's files are sorted.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Fields, SchemaRef as ArrowSchemaRef};
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
    /// One for each key: a spec of several would have to be one that a table may be partitioned by.
    keys: Vec<TransformedColumns>,
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
    /// `None` for tables without an order, and for those with one that cannot be computed: by a transform that is not known of a type, or
    /// a column that is gone. Files are then written unsorted, and say so, which every reader allows for.
    pub(super) fn new(metadata: &TableMetadata, rows: &ArrowSchemaRef) -> Option<Self> {
        let (order, schema) = (metadata.default_sort_order(), metadata.current_schema());
        let order_id = i32::try_from(order.order_id).ok()?;
        let fields = telling_fields(order);
        if fields.is_empty() || !fields.iter().all(|field| is_known(field, schema)) {
            return None;
        }
        let keys: Result<Vec<_>> = fields.iter().map(|field| key(field, schema)).collect();
        let keys = Self {
            order_id,
            keys: keys.ok()?,
            options: fields
                .iter()
                .map(|field| SortOptions {
                    descending: field.direction == SortDirection::Descending,
                    nulls_first: field.null_order == NullOrder::First,
                })
                .collect(),
        };
        // Not every transform is computed of every type that may have it.
        let tried = keys.of(&RecordBatch::new_empty(Arc::clone(rows)));
        tried.is_ok().then_some(keys)
    }

    /// How each key is ordered.
    pub fn options(&self) -> &[SortOptions] {
        &self.options
    }

    /// The keys' names, which no column has, and their types.
    pub fn fields(&self) -> Fields {
        self.keys
            .iter()
            .flat_map(|key| match key.arrow_type() {
                DataType::Struct(fields) => fields.iter().cloned().collect(),
                _ => Vec::new(),
            })
            .collect()
    }

    /// The keys of each row of a batch, whose columns are the table's.
    pub fn of(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let mut columns = Vec::with_capacity(self.keys.len());
        for key in &self.keys {
            columns.extend(key.of(batch)?.as_struct().columns().iter().cloned());
        }
        Ok(columns)
    }
}

/// A key is computed as a partition field would be.
fn key(field: &SortField, schema: &SchemaRef) -> Result<TransformedColumns> {
    let values = UnboundPartitionField {
        source_id: field.source_id,
        field_id: None,
        // No column's name: an identity field may have its own column's alone.
        name: format!("\u{1}{}_{}", field.source_id, field.transform),
        transform: field.transform,
    };
    let spec = PartitionSpec::builder(Arc::clone(schema))
        .add_unbound_fields([values])
        .and_then(|builder| builder.build())
        .map_err(failed)?;
    TransformedColumns::new(&Arc::new(spec), schema)
}

fn is_known(field: &SortField, schema: &SchemaRef) -> bool {
    let source = schema.field_by_id(field.source_id);
    source.is_some_and(|source| {
        field.transform != Transform::Unknown
            && field.transform.result_type(&source.field_type).is_ok()
    })
}

/// The fields that decide anything: not those that were there before, and not `void`, which makes all rows alike.
fn telling_fields(order: &SortOrder) -> Vec<&SortField> {
    let mut fields: Vec<&SortField> = Vec::new();
    for field in &order.fields {
        let same = |other: &&SortField| {
            other.source_id == field.source_id && other.transform == field.transform
        };
        if field.transform != Transform::Void && !fields.iter().any(same) {
            fields.push(field);
        }
    }
    fields
}
