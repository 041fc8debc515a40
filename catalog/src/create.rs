//! What a new table shall be, and its first metadata.

use std::collections::{HashMap, HashSet};

use iceberg::spec::{
    FormatVersion, NestedField, NullOrder, PrimitiveType, Schema, SortDirection, SortField,
    SortOrder, TableMetadata, TableMetadataBuilder, Transform, Type, UnboundPartitionField,
    UnboundPartitionSpec,
};

use crate::append::{check_properties as check_write_properties, unsupported_partitioning};
use crate::error::{CatalogError, Result};
use crate::name::TableName;
use crate::near_names::near_names;

/// A table to create.
#[derive(Debug, Clone)]
pub struct NewTable {
    /// The table's name in its database.
    pub name: String,
    /// Its columns. Field ids are assigned anew; those given only need to be distinct.
    pub schema: Schema,
    /// Its partition fields, in order; empty for an unpartitioned table.
    pub partition: Vec<PartitionField>,
    /// By what the rows of its files are sorted, in order; empty for an unsorted table.
    pub order: Vec<OrderField>,
    /// Table properties, such as `write.target-file-size-bytes`.
    pub properties: HashMap<String, String>,
    /// Where its files go; if `None`, a fresh place below the database's location or the warehouse.
    pub location: Option<String>,
    /// The version of the table format: 1, 2 or 3.
    pub format_version: u8,
    /// Leave a table of that name as it is.
    pub if_not_exists: bool,
}

impl NewTable {
    /// An unpartitioned table of format version 2.
    pub fn new(name: impl Into<String>, schema: Schema) -> Self {
        Self {
            name: name.into(),
            schema,
            partition: Vec::new(),
            order: Vec::new(),
            properties: HashMap::new(),
            location: None,
            format_version: 2,
            if_not_exists: false,
        }
    }
}

/// One field of a partition spec: `transform(column)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionField {
    /// The source column; dots lead into structs.
    pub column: String,
    /// How a value of it becomes a partition value.
    pub transform: Transform,
    /// The field's name; if `None`, the usual one, such as `ts_day` or `id_bucket`.
    pub name: Option<String>,
}

impl PartitionField {
    /// The field's name: the one given, or the one that other engines would give it.
    pub fn field_name(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        let column = &self.column;
        match self.transform {
            Transform::Identity => column.clone(),
            Transform::Bucket(_) => format!("{column}_bucket"),
            Transform::Truncate(_) => format!("{column}_trunc"),
            Transform::Year => format!("{column}_year"),
            Transform::Month => format!("{column}_month"),
            Transform::Day => format!("{column}_day"),
            Transform::Hour => format!("{column}_hour"),
            Transform::Void => format!("{column}_null"),
            Transform::Unknown => format!("{column}_unknown"),
        }
    }
}

/// One field of a sort order: `transform(column)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderField {
    /// The source column; dots lead into structs.
    pub column: String,
    /// How a value of it becomes the value that is compared.
    pub transform: Transform,
    /// From the least value on, or from the greatest.
    pub direction: SortDirection,
    /// Where rows without a value are.
    pub nulls: NullOrder,
}

/// The first metadata of a table: field ids assigned, partition spec bound and checked.
pub(crate) fn first_metadata(
    table: &TableName,
    spec: NewTable,
    location: String,
) -> Result<TableMetadata> {
    let invalid = |reason: String| CatalogError::InvalidTable {
        table: table.to_string(),
        reason,
    };
    let format_version = format_version(table, &spec)?;
    check_columns(&spec.schema).map_err(invalid)?;
    check_version_of_types(&spec.schema, format_version).map_err(invalid)?;
    let partition = partition_spec(&spec.schema, &spec.partition).map_err(invalid)?;
    for field in partition.fields() {
        if let Some(feature) = unsupported_partitioning(field.transform) {
            return Err(CatalogError::Unsupported {
                table: table.clone(),
                feature,
            });
        }
    }
    let order = sort_order(&spec.schema, &spec.order).map_err(invalid)?;
    check_properties(&spec.properties).map_err(invalid)?;
    let mut properties = spec.properties;
    // Not a property of the table, but the way other engines ask for a version.
    properties.remove("format-version");
    // Other engines write zstd unless told otherwise; written down, the table says so itself.
    properties
        .entry("write.parquet.compression-codec".to_string())
        .or_insert_with(|| "zstd".to_string());
    let built = TableMetadataBuilder::new(
        spec.schema,
        partition,
        order,
        location,
        format_version,
        properties,
    )
    .and_then(|builder| builder.build())
    .map_err(|error| invalid(error.message().to_string()))?;
    Ok(built.metadata)
}

/// The version asked for: by the field, or by the property that other engines use for it.
fn format_version(table: &TableName, spec: &NewTable) -> Result<FormatVersion> {
    let asked = match spec.properties.get("format-version") {
        Some(text) => text
            .trim()
            .parse::<u8>()
            .map_err(|_| CatalogError::InvalidTable {
                table: table.to_string(),
                reason: format!("'{text}' is not a format version; 1, 2 and 3 are"),
            })?,
        None => spec.format_version,
    };
    match asked {
        1 => Ok(FormatVersion::V1),
        2 => Ok(FormatVersion::V2),
        3 => Ok(FormatVersion::V3),
        other => Err(CatalogError::Unsupported {
            table: table.clone(),
            feature: format!("version {other} of the Iceberg table format"),
        }),
    }
}

fn check_columns(schema: &Schema) -> Result<(), String> {
    let fields = schema.as_struct().fields();
    if fields.is_empty() {
        return Err("a table needs at least one column".to_string());
    }
    let mut seen = HashSet::new();
    for field in fields {
        if field.name.is_empty() {
            return Err("a column has no name".to_string());
        }
        // Case is folded, since SQL finds columns without regard to it.
        if !seen.insert(field.name.to_lowercase()) {
            return Err(format!("column '{}' is there twice", field.name));
        }
    }
    Ok(())
}

/// Refuses types that the version of the table does not have.
fn check_version_of_types(schema: &Schema, version: FormatVersion) -> Result<(), String> {
    if version >= FormatVersion::V3 {
        return Ok(());
    }
    for id in 1..=schema.highest_field_id() {
        let Some(field) = schema.field_by_id(id) else {
            continue;
        };
        if matches!(
            field.field_type.as_ref(),
            Type::Primitive(PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs)
        ) {
            return Err(format!(
                "column '{}' is of type {}, which tables of format version 3 have; set the property 'format-version' to 3",
                schema.name_by_field_id(id).unwrap_or(&field.name),
                field.field_type
            ));
        }
    }
    Ok(())
}

fn check_properties(properties: &HashMap<String, String>) -> Result<(), String> {
    if let Some(format) = properties.get("write.format.default")
        && !format.eq_ignore_ascii_case("parquet")
    {
        return Err(format!(
            "files of format '{format}' are not written; 'parquet' is"
        ));
    }
    check_write_properties(properties)
}

fn partition_spec(
    schema: &Schema,
    fields: &[PartitionField],
) -> Result<UnboundPartitionSpec, String> {
    let mut names = HashSet::new();
    let mut bound = Vec::with_capacity(fields.len());
    for field in fields {
        let source = source(schema, &field.column, field.transform, "partition")?;
        // The name that the schema has, not the one in whatever case the statement had.
        let column = schema
            .name_by_field_id(source.id)
            .unwrap_or(&field.column)
            .to_string();
        let name = PartitionField {
            column,
            ..field.clone()
        }
        .field_name();
        if !names.insert(name.to_lowercase()) {
            return Err(format!("partition field '{name}' is there twice"));
        }
        bound.push(UnboundPartitionField {
            source_id: source.id,
            field_id: None,
            name,
            transform: field.transform,
        });
    }
    let builder = UnboundPartitionSpec::builder()
        .add_partition_fields(bound)
        .map_err(|error| error.message().to_string())?;
    Ok(builder.build())
}

fn sort_order(schema: &Schema, fields: &[OrderField]) -> Result<SortOrder, String> {
    let mut order = SortOrder::builder();
    for field in fields {
        let source = source(schema, &field.column, field.transform, "sort")?;
        order.with_sort_field(SortField {
            source_id: source.id,
            transform: field.transform,
            direction: field.direction,
            null_order: field.nulls,
        });
    }
    order
        .build(schema)
        .map_err(|error| error.message().to_string())
}

/// The column that a transform is of. `what` is done with it, for errors: `sort` or `partition`.
fn source<'a>(
    schema: &'a Schema,
    column: &str,
    transform: Transform,
    what: &str,
) -> Result<&'a NestedField, String> {
    let source = schema
        .field_by_name(column)
        .or_else(|| schema.field_by_name_case_insensitive(column))
        .ok_or_else(|| {
            let columns = schema.as_struct().fields().iter().map(|f| f.name.as_str());
            let near = near_names(column, columns);
            let hint = near
                .first()
                .map(|name| format!("; did you mean '{name}'?"))
                .unwrap_or_default();
            format!("there is no column '{column}' to {what} by{hint}")
        })?;
    let kind = &source.field_type;
    if !kind.is_primitive() || transform.result_type(kind).is_err() {
        return Err(format!(
            "column '{column}' of type {kind} cannot be {what}ed by {transform}"
        ));
    }
    if matches!(transform, Transform::Bucket(0) | Transform::Truncate(0)) {
        return Err(format!(
            "{transform} on column '{column}' needs a number above zero"
        ));
    }
    Ok(source)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use iceberg::spec::NestedField;

    use super::*;

    fn schema() -> Schema {
        let field =
            |id, name: &str, kind| Arc::new(NestedField::optional(id, name, Type::Primitive(kind)));
        Schema::builder()
            .with_fields(vec![
                field(1, "id", PrimitiveType::Long),
                field(2, "ts", PrimitiveType::Timestamp),
                field(3, "name", PrimitiveType::String),
                field(4, "price", PrimitiveType::Double),
            ])
            .build()
            .unwrap()
    }

    fn by(column: &str, transform: Transform) -> PartitionField {
        PartitionField {
            column: column.to_string(),
            transform,
            name: None,
        }
    }

    fn made(partition: Vec<PartitionField>) -> Result<TableMetadata> {
        let spec = NewTable {
            partition,
            ..NewTable::new("t", schema())
        };
        first_metadata(
            &TableName::new("lake", "db", "t"),
            spec,
            "file:///wh/db/t".to_string(),
        )
    }

    #[test]
    fn transforms_are_bound_and_named() {
        let metadata = made(vec![
            by("ts", Transform::Day),
            by("ID", Transform::Bucket(16)),
            by("name", Transform::Truncate(2)),
        ])
        .unwrap();
        let fields: Vec<(i32, i32, String, String)> = metadata
            .default_partition_spec()
            .fields()
            .iter()
            .map(|f| {
                (
                    f.source_id,
                    f.field_id,
                    f.name.clone(),
                    f.transform.to_string(),
                )
            })
            .collect();
        assert_eq!(
            fields,
            [
                (2, 1000, "ts_day".to_string(), "day".to_string()),
                (1, 1001, "id_bucket".to_string(), "bucket[16]".to_string()),
                (3, 1002, "name_trunc".to_string(), "truncate[2]".to_string()),
            ]
        );
        assert_eq!(metadata.format_version(), FormatVersion::V2);
    }

    #[test]
    fn a_spec_that_cannot_be_is_refused_with_the_reason() {
        for (partition, reason) in [
            (
                vec![by("tz", Transform::Day)],
                "no column 'tz' to partition by; did you mean 'ts'?",
            ),
            (
                vec![by("id", Transform::Day)],
                "column 'id' of type long cannot be partitioned by day",
            ),
            (
                vec![by("price", Transform::Bucket(4))],
                "column 'price' of type double cannot be partitioned by bucket[4]",
            ),
            (
                vec![by("id", Transform::Bucket(0))],
                "needs a number above zero",
            ),
            (
                vec![by("ts", Transform::Day), by("ts", Transform::Day)],
                "'ts_day' is there twice",
            ),
        ] {
            let error = made(partition).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_version_may_be_asked_for_as_a_property() {
        let properties = HashMap::from([("format-version".to_string(), "1".to_string())]);
        let spec = NewTable {
            properties,
            ..NewTable::new("t", schema())
        };
        let metadata = first_metadata(
            &TableName::new("lake", "db", "t"),
            spec,
            "file:///wh/t".to_string(),
        )
        .unwrap();
        assert_eq!(metadata.format_version(), FormatVersion::V1);
        assert!(!metadata.properties().contains_key("format-version"));
    }

    #[test]
    fn types_of_version_three_need_it() {
        let nanoseconds = Schema::builder()
            .with_fields(vec![Arc::new(NestedField::optional(
                1,
                "at",
                Type::Primitive(PrimitiveType::TimestampNs),
            ))])
            .build()
            .unwrap();
        let made = |format_version| {
            let spec = NewTable {
                format_version,
                ..NewTable::new("t", nanoseconds.clone())
            };
            let name = TableName::new("lake", "db", "t");
            first_metadata(&name, spec, "file:///wh".to_string())
        };
        assert_eq!(made(3).unwrap().format_version(), FormatVersion::V3);
        let error = made(2).unwrap_err().to_string();
        assert!(
            error.contains("column 'at' is of type timestamp_ns"),
            "{error}"
        );
        let error = made(4).unwrap_err();
        assert!(matches!(error, CatalogError::Unsupported { .. }), "{error}");
    }
}
