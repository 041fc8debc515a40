//! The values of transforms of columns, by which rows are partitioned and sorted.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, LargeBinaryArray, RecordBatch, StructArray};
use arrow::datatypes::DataType;
use iceberg::arrow::PartitionValueCalculator;
use iceberg::spec::{
    PartitionSpec, PartitionSpecRef, PrimitiveType, SchemaRef, StructType, Transform, Type,
    UnboundPartitionField,
};

use super::partition::failed;
use crate::error::Result;

/// Computes the fields of a partition spec, for each row.
pub(super) struct TransformedColumns {
    calculator: PartitionValueCalculator,
    /// Fields that the calculator gives whole, and how many bytes of them count.
    cuts: Vec<(usize, usize)>,
}

impl TransformedColumns {
    pub(super) fn new(spec: &PartitionSpecRef, schema: &SchemaRef) -> Result<Self> {
        let (whole, cuts) = whole_binaries(spec, schema)?;
        Ok(Self {
            calculator: PartitionValueCalculator::try_new(&whole, schema).map_err(failed)?,
            cuts,
        })
    }

    /// A struct.
    pub(super) fn arrow_type(&self) -> &DataType {
        self.calculator.partition_arrow_type()
    }

    pub(super) fn iceberg_type(&self) -> &StructType {
        self.calculator.partition_type()
    }

    /// A struct with one field for each of the spec.
    pub(super) fn of(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let values = self.calculator.calculate(batch).map_err(failed)?;
        cut(values, &self.cuts)
    }
}

/// The spec with `truncate` of binary columns left out, and what is to be cut off instead: the Iceberg crate cuts Arrow's
/// small binaries alone, and a table's are large.
fn whole_binaries(
    spec: &PartitionSpecRef,
    schema: &SchemaRef,
) -> Result<(PartitionSpecRef, Vec<(usize, usize)>)> {
    let mut cuts = Vec::new();
    let fields: Vec<UnboundPartitionField> = spec
        .fields()
        .iter()
        .enumerate()
        .map(|(index, field)| {
            let source = schema.field_by_id(field.source_id);
            let is_binary = source
                .is_some_and(|source| *source.field_type == Type::Primitive(PrimitiveType::Binary));
            let (name, transform) = match field.transform {
                Transform::Truncate(width) if is_binary => {
                    cuts.push((index, width as usize));
                    // No column's name: an identity field may have its own column's alone.
                    (format!("\u{1}{index}"), Transform::Identity)
                }
                transform => (field.name.clone(), transform),
            };
            UnboundPartitionField {
                source_id: field.source_id,
                field_id: Some(field.field_id),
                name,
                transform,
            }
        })
        .collect();
    if cuts.is_empty() {
        return Ok((Arc::clone(spec), cuts));
    }
    let whole = PartitionSpec::builder(Arc::clone(schema))
        .with_spec_id(spec.spec_id())
        .add_unbound_fields(fields)
        .and_then(|builder| builder.build())
        .map_err(failed)?;
    Ok((Arc::new(whole), cuts))
}

fn cut(values: ArrayRef, cuts: &[(usize, usize)]) -> Result<ArrayRef> {
    let Some(tuples) = values.as_struct_opt().filter(|_| !cuts.is_empty()) else {
        return Ok(values);
    };
    let (fields, mut columns, nulls) = tuples.clone().into_parts();
    for (index, width) in cuts {
        let column = columns
            .get_mut(*index)
            .ok_or_else(|| failed("a partition tuple is too short"))?;
        let whole = column
            .as_binary_opt::<i64>()
            .ok_or_else(|| failed("a binary column is of another type"))?;
        let heads: LargeBinaryArray = whole
            .iter()
            .map(|bytes| bytes.map(|bytes| &bytes[..bytes.len().min(*width)]))
            .collect();
        *column = Arc::new(heads);
    }
    let tuples = StructArray::try_new(fields, columns, nulls).map_err(failed)?;
    Ok(Arc::new(tuples))
}
