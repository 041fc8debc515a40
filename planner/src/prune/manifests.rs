//! Which manifests may list files that a filter keeps, from the partition summaries in the manifest list.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array};
use arrow::datatypes::DataType;
use iceberg::spec::{Datum, FieldSummary, ManifestFile, Transform};

use super::column_bounds::{Bounds, BoundsByName, ColumnBounds};
use super::filter::PruneFilter;
use super::partition_layout::{PartitionColumn, TableLayout};
use super::transform_bounds;
use super::values::scalar;

/// For each manifest: whether it may list files with rows that the filter keeps.
pub(crate) fn prune_manifests(
    filter: &PruneFilter,
    manifests: &[&ManifestFile],
    layout: &TableLayout,
) -> Vec<bool> {
    let mut bounds: BTreeMap<String, Vec<Bounds>> = BTreeMap::new();
    for name in filter.columns() {
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
                for field in column.partitions_of(manifest.partition_spec_id) {
                    let summary = manifest
                        .partitions
                        .as_ref()
                        .and_then(|all| all.get(field.position));
                    if let Some(summary) = summary {
                        narrow_by_summary(&mut bounds, field, summary, &column.arrow);
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

fn narrow_by_summary(
    bounds: &mut Bounds,
    field: &PartitionColumn,
    summary: &FieldSummary,
    arrow: &DataType,
) {
    if matches!(field.transform, Transform::Void | Transform::Unknown) {
        return;
    }
    if !summary.contains_null {
        bounds.nulls = Some(0);
    } else if summary.lower_bound.is_none()
        && summary.upper_bound.is_none()
        && summary.contains_nan == Some(false)
    {
        bounds.nulls = Some(1);
    }
    let may_be_nan = matches!(arrow, DataType::Float32 | DataType::Float64)
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
