//! Which manifests may list files that a filter keeps, from the partition summaries in the manifest list.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array};
use arrow::datatypes::DataType;
use datafusion::scalar::ScalarValue;
use iceberg::spec::{Datum, FieldSummary, ManifestFile, PrimitiveLiteral, Transform};

use super::column_bounds::{Bounds, BoundsByName, ColumnBounds};
use super::filter::PruneFilter;
use super::partition_layout::{PartitionColumn, TableColumn, TableLayout};
use super::transform_bounds;
use super::values::scalar;

/// For each manifest: whether it may list files with rows that the filter keeps.
pub(crate) fn prune_manifests(
    filter: &PruneFilter,
    manifests: &[&ManifestFile],
    layout: &TableLayout,
) -> Vec<bool> {
    let mut bounds: BTreeMap<String, Vec<Bounds>> = BTreeMap::new();
    for name in filter.bounded() {
        let Some(column) = layout.column(name) else {
            continue;
        };
        if column.partitions.is_empty() {
            continue;
        }
        let rows = manifests
            .iter()
            .map(|manifest| {
                let mut bounds = Bounds::default();
                if column.bucket.is_some() {
                    if let Some(field) = column.buckets_field(manifest.partition_spec_id) {
                        let summaries = manifest.partitions.as_ref();
                        let summary = summaries.and_then(|all| all.get(field.position));
                        bounds = summary.map(|s| bucket_bounds(field, s)).unwrap_or_default();
                    }
                    return bounds;
                }
                for field in column.partitions_of(manifest.partition_spec_id) {
                    let summary = manifest
                        .partitions
                        .as_ref()
                        .and_then(|all| all.get(field.position));
                    if let Some(summary) = summary {
                        narrow_by_summary(&mut bounds, field, summary, column);
                    }
                }
                bounds.drop_inverted();
                bounds
            })
            .collect();
        bounds.insert(name.clone(), rows);
    }
    let bounds: BoundsByName = bounds
        .into_iter()
        .filter_map(|(name, rows)| {
            let column = layout.column(&name)?;
            Some((name, Arc::new(ColumnBounds::of_rows(&rows, &column.arrow))))
        })
        .collect();
    // A manifest counts as one row: null or not, or unknown when it has both.
    let rows: ArrayRef = Arc::new(UInt64Array::from(vec![1; manifests.len()]));
    filter.may_match(&bounds, rows)
}

/// What a summary of bucket numbers says of them.
fn bucket_bounds(field: &PartitionColumn, summary: &FieldSummary) -> Bounds {
    let number = |bytes: Option<&[u8]>| {
        let datum = Datum::try_from_bytes(bytes?, field.result.clone()).ok()?;
        match datum.literal() {
            PrimitiveLiteral::Int(number) => Some(ScalarValue::Int32(Some(*number))),
            _ => None,
        }
    };
    let mut bounds = Bounds {
        lower: number(summary.lower_bound.as_ref().map(|b| b.as_ref())),
        upper: number(summary.upper_bound.as_ref().map(|b| b.as_ref())),
        nulls: None,
    };
    bounds.nulls = match (&bounds.lower, &bounds.upper) {
        _ if !summary.contains_null => Some(0),
        (None, None) => Some(1),
        _ => None,
    };
    bounds.drop_inverted();
    bounds
}

fn narrow_by_summary(
    bounds: &mut Bounds,
    field: &PartitionColumn,
    summary: &FieldSummary,
    column: &TableColumn,
) {
    let arrow = &column.arrow;
    if matches!(field.transform, Transform::Void | Transform::Unknown) {
        return;
    }
    let no_bounds = summary.lower_bound.is_none() && summary.upper_bound.is_none();
    if column.numbers {
        // Bounds leave out null and NaN, and are missing if there is nothing else.
        if no_bounds {
            bounds.nulls = Some(1);
        } else if !summary.contains_null && summary.contains_nan == Some(false) {
            bounds.nulls = Some(0);
        }
    } else if !summary.contains_null {
        bounds.nulls = Some(0);
    } else if no_bounds && summary.contains_nan == Some(false) {
        bounds.nulls = Some(1);
    }
    let may_be_nan = matches!(arrow, DataType::Float32 | DataType::Float64)
        && !column.numbers
        && summary.contains_nan != Some(false);
    if may_be_nan {
        return;
    }
    let value = |bytes: Option<&[u8]>| {
        let bytes = bytes?;
        Datum::try_from_bytes(bytes, field.result.clone())
            .ok()
            .map(|datum| datum.literal().clone())
    };
    let smallest = value(summary.lower_bound.as_ref().map(|b| b.as_ref()));
    let largest = value(summary.upper_bound.as_ref().map(|b| b.as_ref()));
    let lower = smallest
        // What is wrapped around is the largest there is, but stands for the smallest values.
        .filter(|_| {
            !largest
                .as_ref()
                .is_some_and(|p| transform_bounds::is_wrapped(&field.transform, p))
        })
        .and_then(|p| transform_bounds::lower(&field.transform, &field.source, &p));
    let upper = largest.and_then(|p| transform_bounds::upper(&field.transform, &field.source, &p));
    bounds.narrow(
        lower.and_then(|v| scalar(&v, &field.source, arrow)),
        upper.and_then(|v| scalar(&v, &field.source, arrow)),
    );
}
