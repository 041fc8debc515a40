//! The partition specs of a table, seen from its columns.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema as ArrowSchema, SchemaRef};
use iceberg::spec::{
    NestedField, PartitionSpec, PrimitiveType, Schema as IcebergSchema, Transform, Type,
};
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
    /// NaN is taken for null (see [`numbers`](super::numbers)).
    pub numbers: bool,
    /// It is not the column that is meant, but its buckets of that transform (see [`buckets`](super::buckets)).
    pub bucket: Option<Transform>,
    /// By partition spec id, the fields that derive from it.
    pub partitions: HashMap<i32, Vec<PartitionColumn>>,
}

/// The name of a field of a struct, among the names of columns: no column has a control character in its name.
pub(crate) fn nested_name(outer: &str, field: &str) -> String {
    format!("{outer}\u{1}{field}")
}

/// The name of the numbers of a column of floats.
pub(crate) fn numbers_name(column: &str) -> String {
    format!("{column}\u{2}")
}

/// Adds the numbers of columns of floats.
fn add_numbers(fields: &mut Vec<FieldRef>, columns: &mut Vec<TableColumn>) {
    for index in 0..columns.len() {
        if matches!(columns[index].arrow, DataType::Float32 | DataType::Float64) {
            let name = numbers_name(fields[index].name());
            fields.push(Arc::new(Field::new(
                name,
                columns[index].arrow.clone(),
                true,
            )));
            columns.push(TableColumn {
                numbers: true,
                ..columns[index].clone()
            });
        }
    }
}

/// The name of the buckets of a column.
fn buckets_name(column: &str, transform: &Transform) -> String {
    format!("{column}\u{3}{transform}")
}

/// Adds the buckets of columns that partition fields have.
fn add_buckets(fields: &mut Vec<FieldRef>, columns: &mut Vec<TableColumn>) {
    for index in 0..columns.len() {
        let transforms: HashSet<Transform> = columns[index]
            .partitions
            .values()
            .flatten()
            .map(|field| field.transform)
            .filter(|transform| matches!(transform, Transform::Bucket(_)))
            .collect();
        for transform in transforms {
            let name = buckets_name(fields[index].name(), &transform);
            fields.push(Arc::new(Field::new(name, DataType::Int32, true)));
            columns.push(TableColumn {
                arrow: DataType::Int32,
                bucket: Some(transform),
                ..columns[index].clone()
            });
        }
    }
}

/// Adds the primitive fields inside of structs. Inside of lists and maps there is more than one value a row, and
/// bounds say nothing of a row.
fn add_nested(
    field: &NestedField,
    arrow: &Field,
    name: &str,
    fields: &mut Vec<FieldRef>,
    columns: &mut Vec<TableColumn>,
) {
    let (Type::Struct(inner), DataType::Struct(arrows)) =
        (field.field_type.as_ref(), arrow.data_type())
    else {
        return;
    };
    for (field, arrow) in inner.fields().iter().zip(arrows) {
        let name = nested_name(name, &field.name);
        if field.field_type.is_primitive() {
            columns.push(TableColumn::new(field, arrow));
            // It is null where the struct is.
            fields.push(Arc::new(Field::new(&name, arrow.data_type().clone(), true)));
        }
        add_nested(field, arrow, &name, fields, columns);
    }
}

impl TableColumn {
    fn new(field: &NestedField, arrow: &Field) -> Self {
        Self {
            field_id: field.id,
            arrow: arrow.data_type().clone(),
            primitive: match field.field_type.as_ref() {
                Type::Primitive(primitive) => Some(primitive.clone()),
                _ => None,
            },
            numbers: false,
            bucket: None,
            partitions: HashMap::new(),
        }
    }

    /// The field of one spec that has the column's buckets.
    pub(crate) fn buckets_field(&self, spec_id: i32) -> Option<&PartitionColumn> {
        let transform = self.bucket?;
        let fields = self.partitions_of(spec_id);
        fields.iter().find(|field| field.transform == transform)
    }

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
    /// The schema, and after its columns the primitive fields inside of structs ([`nested_name`]) the numbers among
    /// floats ([`numbers_name`]), and buckets.
    pub prune_schema: SchemaRef,
    /// Those of `prune_schema`.
    all_columns: Vec<TableColumn>,
    by_name: HashMap<String, usize>,
    /// Of the spec that new data is written with: names of the columns that a partition field derives from.
    default_spec: i32,
}

impl TableLayout {
    /// Of a table whose scans have that schema.
    pub(crate) fn new(table: &PinnedTable, schema: &IcebergSchema) -> iceberg::Result<Self> {
        let metadata = table.metadata();
        let specs: Vec<&PartitionSpec> = metadata.partition_specs_iter().map(Arc::as_ref).collect();
        Self::of_specs(schema, &specs, metadata.default_partition_spec_id())
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
            .map(|(field, arrow)| TableColumn::new(field, arrow))
            .collect();
        let mut fields: Vec<FieldRef> = arrow.fields().iter().cloned().collect();
        for (field, arrow) in schema.as_struct().fields().iter().zip(arrow.fields()) {
            add_nested(field, arrow, &field.name, &mut fields, &mut columns);
        }
        let by_id: HashMap<i32, usize> = columns
            .iter()
            .enumerate()
            .map(|(i, c)| (c.field_id, i))
            .collect();
        for spec in specs {
            for (position, field) in spec.fields().iter().enumerate() {
                // The source of an old spec's field may be dropped by now: no filter names it.
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
        add_buckets(&mut fields, &mut columns);
        add_numbers(&mut fields, &mut columns);
        let by_name = fields
            .iter()
            .enumerate()
            .map(|(i, field)| (field.name().clone(), i))
            .collect();
        Ok(Self {
            schema: arrow,
            prune_schema: Arc::new(ArrowSchema::new(fields)),
            all_columns: columns,
            by_name,
            default_spec,
        })
    }

    pub(crate) fn column(&self, name: &str) -> Option<&TableColumn> {
        self.by_name.get(name).map(|i| &self.all_columns[*i])
    }

    /// The names, transforms and source types of the buckets that partition fields have of a column.
    pub(crate) fn buckets_of<'a>(
        &'a self,
        column: &str,
    ) -> impl Iterator<Item = (&'a str, &'a Transform, &'a PrimitiveType)> {
        let id = self
            .column(column)
            .filter(|column| column.bucket.is_none())
            .map(|column| column.field_id);
        let columns = self.all_columns.iter().zip(self.prune_schema.fields());
        columns.filter_map(move |(column, field)| {
            let transform = column
                .bucket
                .as_ref()
                .filter(|_| Some(column.field_id) == id)?;
            Some((field.name().as_str(), transform, column.primitive.as_ref()?))
        })
    }

    /// The columns of `schema`.
    pub(crate) fn columns(&self) -> &[TableColumn] {
        &self.all_columns[..self.schema.fields().len()]
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
