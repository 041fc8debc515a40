//! `readable_metrics`: the metrics of each primitive column of the table, under its name and in its type.

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::DataType;
use datafusion::error::Result;
use iceberg::spec::{
    DataFile, Datum, NestedField, NestedFieldRef, PrimitiveLiteral, PrimitiveType, Schema,
    StructType, Type,
};
use std::collections::HashMap;
use std::sync::Arc;

use super::arrays::{primitives, structs};

pub(super) const READABLE_METRICS: &str = "readable_metrics";

/// The primitive columns, nested ones too, by their full names in the order of these.
pub(super) fn metric_columns(schema: &Schema) -> Vec<(String, i32, PrimitiveType)> {
    let mut columns: Vec<(String, i32, PrimitiveType)> = schema
        .field_id_to_name_map()
        .iter()
        .filter_map(|(id, name)| {
            let of = schema.field_by_id(*id)?.field_type.as_primitive_type()?;
            Some((name.clone(), *id, of.clone()))
        })
        .collect();
    columns.sort_by(|a, b| a.0.cmp(&b.0));
    columns
}

/// The column; none for a table without primitive columns. Its fields have ids above `highest`.
pub(super) fn readable_metrics_type(schema: &Schema, highest: i32) -> Option<NestedFieldRef> {
    let mut id = highest;
    let mut next = || {
        id += 1;
        id
    };
    let long = || Type::Primitive(PrimitiveType::Long);
    let columns: Vec<NestedFieldRef> = metric_columns(schema)
        .into_iter()
        .map(|(name, _, of)| {
            let own = next();
            let of = Type::Primitive(of);
            let metrics = [
                ("column_size", long()),
                ("value_count", long()),
                ("null_value_count", long()),
                ("nan_value_count", long()),
                ("lower_bound", of.clone()),
                ("upper_bound", of),
            ];
            let fields = metrics
                .into_iter()
                .map(|(name, of)| NestedField::optional(next(), name, of).into())
                .collect();
            NestedField::optional(own, &name, Type::Struct(StructType::new(fields))).into()
        })
        .collect();
    if columns.is_empty() {
        return None;
    }
    let of = Type::Struct(StructType::new(columns));
    Some(NestedField::optional(next(), READABLE_METRICS, of).into())
}

/// The values of the column for some files.
pub(super) fn readable_metrics(
    of: &DataType,
    columns: &[(String, i32, PrimitiveType)],
    files: &[&DataFile],
) -> Result<ArrayRef> {
    let DataType::Struct(fields) = of else {
        return structs(of, files.len(), vec![]);
    };
    let children = columns
        .iter()
        .zip(fields)
        .map(|((_, id, of_column), field)| column(field.data_type(), *id, of_column, files))
        .collect::<Result<Vec<_>>>()?;
    structs(of, files.len(), children)
}

fn column(
    of: &DataType,
    id: i32,
    of_column: &PrimitiveType,
    files: &[&DataFile],
) -> Result<ArrayRef> {
    let counts = |of_file: fn(&DataFile) -> &HashMap<i32, u64>| -> ArrayRef {
        let counts = files.iter().map(|file| {
            let count = of_file(file).get(&id)?;
            i64::try_from(*count).ok()
        });
        Arc::new(counts.collect::<Int64Array>())
    };
    let bound_type = match of {
        DataType::Struct(fields) => fields.last().map(|field| field.data_type()),
        _ => None,
    };
    let bounds = |of_file: fn(&DataFile) -> &HashMap<i32, Datum>| -> Result<ArrayRef> {
        let values = files.iter().map(|file| {
            of_file(file)
                .get(&id)
                .and_then(|bound| shown(bound, of_column))
        });
        primitives(bound_type.unwrap_or(&DataType::Null), values)
    };
    structs(
        of,
        files.len(),
        vec![
            counts(DataFile::column_sizes),
            counts(DataFile::value_counts),
            counts(DataFile::null_value_counts),
            counts(DataFile::nan_value_counts),
            bounds(DataFile::lower_bounds)?,
            bounds(DataFile::upper_bounds)?,
        ],
    )
}

/// A bound, if it is of the column's type or of one that this was promoted from.
fn shown<'a>(bound: &'a Datum, of: &PrimitiveType) -> Option<&'a PrimitiveLiteral> {
    use PrimitiveType as P;
    let fits = match (bound.data_type(), of) {
        (P::Int, P::Long) | (P::Float, P::Double) => true,
        (P::Decimal { scale: old, .. }, P::Decimal { scale: new, .. }) => old == new,
        (old, new) => old == new,
    };
    fits.then(|| bound.literal())
}
