//! `$manifests` and `$all_manifests`: a row for each manifest of a manifest list.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int32Array, Int64Array, LargeBinaryArray, StringArray};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use futures::{Stream, StreamExt};
use iceberg::spec::{
    FieldSummary, ManifestContentType, ManifestFile, PrimitiveType, SnapshotRef, Transform, Type,
};
use tarn_catalog::PinnedTable;

use super::MetadataTable;
use super::arrays::{lists, structs};
use super::human::human_bound;
use super::static_tables::snapshots_in_order;
use super::table::batch;
use crate::error::{PlannerError, catalog_error};

/// The fields of each partition spec, with the type of their values; `None` where the source is not there any more.
type SpecFields = HashMap<i32, Vec<SpecField>>;
type SpecField = (Transform, Option<PrimitiveType>);

/// The rows of one of these tables. `schema` has the columns that are asked for.
pub(super) fn manifest_rows(
    kind: MetadataTable,
    table: PinnedTable,
    schema: SchemaRef,
) -> impl Stream<Item = Result<RecordBatch>> + Send + 'static {
    let specs = Arc::new(spec_fields(&table));
    let snapshots: Vec<SnapshotRef> = match kind.is_of_all_snapshots() {
        true => snapshots_in_order(&table),
        false => table.snapshot().cloned().into_iter().collect(),
    };
    futures::stream::iter(snapshots).then(move |snapshot| {
        let (table, specs, schema) = (table.clone(), Arc::clone(&specs), Arc::clone(&schema));
        async move {
            let manifests = table.manifests_of(&snapshot).await.map_err(catalog_error)?;
            rows(&manifests, snapshot.snapshot_id(), &specs, &schema)
        }
    })
}

fn spec_fields(table: &PinnedTable) -> SpecFields {
    let metadata = table.metadata();
    // A source that is dropped by now is in a schema of before.
    let source = |id: i32| {
        let current = metadata.current_schema().field_by_id(id);
        current.or_else(|| {
            metadata
                .schemas_iter()
                .find_map(|schema| schema.field_by_id(id))
        })
    };
    let field_type = |source_id: i32, transform: Transform| match transform
        .result_type(&source(source_id)?.field_type)
    {
        Ok(Type::Primitive(result)) => Some(result),
        _ => None,
    };
    metadata
        .partition_specs_iter()
        .map(|spec| {
            let fields = spec
                .fields()
                .iter()
                .map(|field| {
                    (
                        field.transform,
                        field_type(field.source_id, field.transform),
                    )
                })
                .collect();
            (spec.spec_id(), fields)
        })
        .collect()
}

fn rows(
    manifests: &[ManifestFile],
    snapshot_id: i64,
    specs: &SpecFields,
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    // A manifest counts either data files or delete files; it has none of the other.
    let counts =
        |content: ManifestContentType, count: fn(&ManifestFile) -> Option<u32>| -> ArrayRef {
            let counts = manifests.iter().map(|manifest| {
                if manifest.content != content {
                    return Some(0);
                }
                count(manifest).and_then(|count| i32::try_from(count).ok())
            });
            Arc::new(counts.collect::<Int32Array>())
        };
    let (data, deletes) = (ManifestContentType::Data, ManifestContentType::Deletes);
    let longs = |value: &dyn Fn(&ManifestFile) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(manifests.iter().map(value)))
    };
    let ints = |value: fn(&ManifestFile) -> i32| -> ArrayRef {
        Arc::new(Int32Array::from_iter_values(manifests.iter().map(value)))
    };
    batch(schema, manifests.len(), |field| {
        Ok(match field.name().as_str() {
            "content" => ints(|manifest| manifest.content as i32),
            "path" => Arc::new(StringArray::from_iter_values(
                manifests.iter().map(|manifest| &manifest.manifest_path),
            )),
            "length" => longs(&|manifest| manifest.manifest_length),
            "partition_spec_id" => ints(|manifest| manifest.partition_spec_id),
            "added_snapshot_id" => longs(&|manifest| manifest.added_snapshot_id),
            "added_data_files_count" => counts(data, |manifest| manifest.added_files_count),
            "existing_data_files_count" => counts(data, |manifest| manifest.existing_files_count),
            "deleted_data_files_count" => counts(data, |manifest| manifest.deleted_files_count),
            "added_delete_files_count" => counts(deletes, |manifest| manifest.added_files_count),
            "existing_delete_files_count" => {
                counts(deletes, |manifest| manifest.existing_files_count)
            }
            "deleted_delete_files_count" => {
                counts(deletes, |manifest| manifest.deleted_files_count)
            }
            "partition_summaries" => summaries(field.data_type(), manifests, specs)?,
            "reference_snapshot_id" => longs(&|_| snapshot_id),
            "key_metadata" => Arc::new(LargeBinaryArray::from_iter(
                manifests
                    .iter()
                    .map(|manifest| manifest.key_metadata.as_deref()),
            )),
            other => {
                return Err(PlannerError::MetadataValue(format!(
                    "manifests have no column '{other}'"
                ))
                .into());
            }
        })
    })
}

fn summaries(of: &DataType, manifests: &[ManifestFile], specs: &SpecFields) -> Result<ArrayRef> {
    let lengths: Vec<Option<usize>> = manifests
        .iter()
        .map(|manifest| manifest.partitions.as_ref().map(Vec::len))
        .collect();
    let none = Vec::new();
    let all: Vec<(&FieldSummary, Option<&SpecField>)> = manifests
        .iter()
        .flat_map(|manifest| {
            let fields = specs.get(&manifest.partition_spec_id);
            manifest
                .partitions
                .as_ref()
                .unwrap_or(&none)
                .iter()
                .enumerate()
                .map(move |(index, summary)| (summary, fields.and_then(|fields| fields.get(index))))
        })
        .collect();
    let bounds = |bound: fn(&FieldSummary) -> Option<&[u8]>| -> ArrayRef {
        let texts = all.iter().map(|(summary, field)| {
            let (transform, of) = field.as_ref()?;
            human_bound(bound(summary), *transform, of.as_ref()?)
        });
        Arc::new(texts.collect::<StringArray>())
    };
    let children: Vec<ArrayRef> = vec![
        Arc::new(
            all.iter()
                .map(|(summary, _)| Some(summary.contains_null))
                .collect::<BooleanArray>(),
        ),
        Arc::new(
            all.iter()
                .map(|(summary, _)| summary.contains_nan)
                .collect::<BooleanArray>(),
        ),
        bounds(|summary| summary.lower_bound.as_ref().map(|bytes| bytes.as_slice())),
        bounds(|summary| summary.upper_bound.as_ref().map(|bytes| bytes.as_slice())),
    ];
    let DataType::List(element) = of else {
        return lists(of, &lengths, Arc::new(Int32Array::from(Vec::<i32>::new())));
    };
    let elements = structs(element.data_type(), all.len(), children)?;
    lists(of, &lengths, elements)
}
