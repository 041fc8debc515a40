//! The partition specs of a table, seen from its columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use iceberg::spec::{PartitionSpec, PrimitiveType, Schema as IcebergSchema, Transform, Type};
use tarn_catalog::PinnedTable;

use crate::scan::scan_schema;

/// One field of a partition spec whose source is a column of the table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PartitionColumn {
    /// Where the field is in partition values and summaries.
    pub position: usize,
    pub transform: Transform,
    /// The type of the source column.
    pub source: PrimitiveType,
    /// The type of the partition values.
    pub result: PrimitiveType,
}

/// A column of the table.
#[derive(Debug, Clone)]
pub(crate) struct TableColumn {
    pub field_id: i32,
    /// The type that scans give it.
    pub arrow: DataType,
    /// `None` for nested types.
    pub primitive: Option<PrimitiveType>,
    /// By partition spec id, the fields that derive from it.
    pub partitions: HashMap<i32, Vec<PartitionColumn>>,
}

impl TableColumn {
    /// The fields of one spec that derive from this column.
    pub(crate) fn partitions_of(&self, spec_id: i32) -> &[PartitionColumn] {
        self.partitions.get(&spec_id).map_or(&[], Vec::as_slice)
    }

    /// The field of that spec whose value is the column's own.
    pub(crate) fn identity_of(&self, spec_id: i32) -> Option<&PartitionColumn> {
        self.partitions_of(spec_id)
            .iter()
            .find(|field| field.transform == Transform::Identity)
    }
}

/// The columns of a pinned table, by name and by position.
#[derive(Debug)]
pub(crate) struct TableLayout {
    pub schema: SchemaRef,
    columns: Vec<TableColumn>,
    by_name: HashMap<String, usize>,
    /// Of the spec that new data is written with: names of the columns that a partition field derives from.
    default_spec: i32,
}

impl TableLayout {
    pub(crate) fn new(table: &PinnedTable) -> iceberg::Result<Self> {
        let metadata = table.metadata();
        let specs: Vec<&PartitionSpec> = metadata.partition_specs_iter().map(Arc::as_ref).collect();
        Self::of_specs(
            &table.schema(),
            &specs,
            metadata.default_partition_spec_id(),
        )
    }

    pub(crate) fn of_specs(
        schema: &IcebergSchema,
        specs: &[&PartitionSpec],
        default_spec: i32,
    ) -> iceberg::Result<Self> {
        let arrow = scan_schema(schema)?;
        let mut columns: Vec<TableColumn> = schema
            .as_struct()
            .fields()
            .iter()
            .zip(arrow.fields())
            .map(|(field, arrow)| TableColumn {
                field_id: field.id,
                arrow: arrow.data_type().clone(),
                primitive: match field.field_type.as_ref() {
                    Type::Primitive(primitive) => Some(primitive.clone()),
                    _ => None,
                },
                partitions: HashMap::new(),
            })
            .collect();
        let by_id: HashMap<i32, usize> = columns
            .iter()
            .enumerate()
            .map(|(i, c)| (c.field_id, i))
            .collect();
        for spec in specs {
            for (position, field) in spec.fields().iter().enumerate() {
                // The source of an old spec's field may be dropped by now, or nested: no filter names it.
                let Some(column) = by_id.get(&field.source_id).map(|i| &mut columns[*i]) else {
                    continue;
                };
                let Some(source) = column.primitive.clone() else {
                    continue;
                };
                let result = match field
                    .transform
                    .result_type(&Type::Primitive(source.clone()))
                {
                    Ok(Type::Primitive(result)) => result,
                    _ => continue,
                };
                let transform = field.transform;
                column
                    .partitions
                    .entry(spec.spec_id())
                    .or_default()
                    .push(PartitionColumn {
                        position,
                        transform,
                        source,
                        result,
                    });
            }
        }
        let by_name = arrow
            .fields()
            .iter()
            .enumerate()
            .map(|(i, field)| (field.name().clone(), i))
            .collect();
        Ok(Self {
            schema: arrow,
            columns,
            by_name,
            default_spec,
        })
    }

    pub(crate) fn column(&self, name: &str) -> Option<&TableColumn> {
        self.by_name.get(name).map(|i| &self.columns[*i])
    }

    pub(crate) fn columns(&self) -> &[TableColumn] {
        &self.columns
    }

    /// Whether a partition field of the current spec derives from the column.
    pub(crate) fn is_partitioned_by(&self, name: &str) -> bool {
        self.column(name).is_some_and(|column| {
            column
                .partitions_of(self.default_spec)
                .iter()
                .any(|field| field.transform != Transform::Void)
        })
    }
}
