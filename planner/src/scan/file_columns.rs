//! Which column of a Parquet file is which column of the table: by field id.
//!
//! A decoded footer is given the table's names before anybody sees it. A column of the file that carries the id of a
//! table's column gets that column's name, at every level of nesting; any other gets a name that no column has, so
//! it is not read. From there on matching by name *is* matching by id: projections, pushed filters, row group and
//! page statistics, bloom filters and nested fields all find the right chunk.
//!
//! ```text
//!   file:   1 id  2 price  3 note          footer as read:  id  amount  ␁unread:2
//!   table:  1 id  2 amount 4 note   ───►   and `note`, whose id the file lacks, is null
//! ```

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef, TimeUnit};
use datafusion::scalar::ScalarValue;
use iceberg::ErrorKind;
use iceberg::spec::{
    ListType, MapType, MappedField, NameMapping, NestedField, NestedFieldRef,
    Schema as IcebergSchema, StructType, Type,
};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, parquet_to_arrow_schema};
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataBuilder, RowGroupMetaData,
};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, Type as ParquetType, TypePtr};

use super::conform::initial_default;
use super::row_lineage::ROW_ID;
use super::scan_schema;
use tarn_catalog::NewerType;

/// The columns of a table, as scans of its files need to know them.
pub(crate) struct TableColumns {
    schema: Arc<IcebergSchema>,
    name_mapping: Option<NameMapping>,
    arrow: SchemaRef,
    /// By name, of columns that have one.
    defaults: HashMap<String, ScalarValue>,
    fingerprint: u64,
}

impl fmt::Debug for TableColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableColumns")
            .field("schema_id", &self.schema.schema_id())
            .finish_non_exhaustive()
    }
}

impl TableColumns {
    pub(crate) fn new(
        schema: Arc<IcebergSchema>,
        name_mapping: Option<NameMapping>,
    ) -> iceberg::Result<Self> {
        let arrow = scan_schema(&schema)?;
        let mut defaults = HashMap::new();
        for (field, column) in arrow.fields().iter().zip(schema.as_struct().fields()) {
            let default = initial_default(column, field.data_type()).map_err(|e| {
                iceberg::Error::new(ErrorKind::FeatureUnsupported, e.strip_backtrace())
            })?;
            if let Some(value) = default {
                defaults.insert(field.name().clone(), value);
            }
        }
        let mut hasher = DefaultHasher::new();
        // The text holds ids, names and types of all fields.
        format!("{:?}", schema.as_struct()).hash(&mut hasher);
        format!("{name_mapping:?}").hash(&mut hasher);
        Ok(Self {
            schema,
            name_mapping,
            arrow,
            defaults,
            fingerprint: hasher.finish(),
        })
    }

    pub(crate) fn schema(&self) -> &IcebergSchema {
        &self.schema
    }

    pub(crate) fn name_mapping(&self) -> Option<&NameMapping> {
        self.name_mapping.as_ref()
    }

    /// The column of that name.
    pub(crate) fn field(&self, name: &str) -> Option<&NestedFieldRef> {
        let (index, _) = self.arrow.fields().find(name)?;
        self.schema.as_struct().fields().get(index)
    }

    /// The value of a column in files that do not have it, unless that is null.
    pub(crate) fn default_of(&self, name: &str) -> Option<&ScalarValue> {
        self.defaults.get(name)
    }

    /// Whether files are to have a column of their rows' positions.
    pub(crate) fn has_positions(&self) -> bool {
        self.schema.field_by_id(ROW_ID).is_some()
    }

    /// The schema that a scan yields.
    pub(crate) fn arrow(&self) -> &SchemaRef {
        &self.arrow
    }

    /// Tells apart, within a process, columns whose footers would get other names.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The footer with the table's names. An error if the file's columns cannot be told apart, or are of types that
    /// the table's cannot have been before.
    pub(crate) fn name_columns(
        &self,
        footer: ParquetMetaData,
    ) -> Result<ParquetMetaData, ParquetError> {
        let file = footer.file_metadata();
        let root = file.schema_descr().root_schema();
        let ids = match root.get_fields().iter().any(|field| has_id(field)) {
            true => Ids::OfFile,
            false if root.get_fields().is_empty() => Ids::OfFile,
            false => Ids::Mapped(self.name_mapping.as_ref().map(NameMapping::fields).ok_or_else(|| {
                general("its columns carry no Iceberg field ids, and the table has no name mapping")
            })?),
        };
        let fields = rename_fields(root, self.schema.as_struct(), &ids)?;
        let renamed = ParquetType::group_type_builder(root.name())
            .with_fields(fields)
            .build()?;
        let descriptor = Arc::new(SchemaDescriptor::new(Arc::new(renamed)));
        self.check_types(&descriptor)?;
        let is_float = |column: &ColumnDescPtr| {
            matches!(
                column.physical_type(),
                PhysicalType::FLOAT | PhysicalType::DOUBLE
            ) || matches!(column.logical_type_ref(), Some(LogicalType::Float16))
        };
        let floats: Vec<usize> = descriptor
            .columns()
            .iter()
            .enumerate()
            .filter(|(_, column)| is_float(column))
            .map(|(i, _)| i)
            .collect();
        // What Arrow type a writer had in mind does not matter: the table's schema says what a column is.
        let key_values = file.key_value_metadata().map(|all| {
            all.iter()
                .filter(|kv| kv.key != ARROW_SCHEMA_META_KEY)
                .cloned()
                .collect()
        });
        let named = FileMetaData::new(
            file.version(),
            file.num_rows(),
            file.created_by().map(str::to_owned),
            key_values,
            descriptor,
            file.column_orders().cloned(),
        );
        let mut parts = footer.into_builder();
        let mut row_groups = parts.take_row_groups();
        let mut column_index = parts.take_column_index();
        let offset_index = parts.take_offset_index();
        if !floats.is_empty() {
            row_groups = row_groups
                .into_iter()
                .map(|group| without_statistics(group, &floats))
                .collect::<Result<_, _>>()?;
            for group in column_index.iter_mut().flatten() {
                for float in &floats {
                    if let Some(index) = group.get_mut(*float) {
                        *index = ColumnIndexMetaData::NONE;
                    }
                }
            }
        }
        Ok(ParquetMetaDataBuilder::new(named)
            .set_row_groups(row_groups)
            .set_column_index(column_index)
            .set_offset_index(offset_index)
            .build())
    }

    fn check_types(&self, descriptor: &SchemaDescriptor) -> Result<(), ParquetError> {
        let physical = parquet_to_arrow_schema(descriptor, None)?;
        let columns = self.schema.as_struct().fields();
        for (field, column) in self.arrow.fields().iter().zip(columns) {
            if let Some((_, found)) = physical.fields().find(field.name())
                && !readable_as(found.data_type(), field.data_type(), column)
            {
                return Err(general(format!(
                    "column '{}' is of type {} in the file, which cannot be read as the table's {}",
                    field.name(),
                    found.data_type(),
                    field.data_type()
                )));
            }
        }
        Ok(())
    }
}

/// A row group that says nothing of the bounds of those columns.
///
/// Bounds of floats leave NaN out, which SQL orders after all numbers: `x > 5` holds for it, and a row group whose
/// largest number is 3 may still have it.
fn without_statistics(
    group: RowGroupMetaData,
    columns: &[usize],
) -> Result<RowGroupMetaData, ParquetError> {
    let mut parts = group.into_builder();
    let mut chunks = parts.take_columns();
    for column in columns {
        if let Some(chunk) = chunks.get_mut(*column) {
            *chunk = chunk.clone().into_builder().clear_statistics().build()?;
        }
    }
    parts.set_column_metadata(chunks).build()
}

fn general(message: impl Into<String>) -> ParquetError {
    ParquetError::General(message.into())
}

/// Where the ids of the fields of one level come from.
enum Ids<'a> {
    OfFile,
    /// The file has none; the table's name mapping gives them.
    Mapped(&'a [MappedField]),
    MappedNested(&'a [Arc<MappedField>]),
}

impl<'a> Ids<'a> {
    fn of(&self, field: &ParquetType) -> Option<i32> {
        match self {
            Ids::OfFile => has_id(field).then(|| field.get_basic_info().id()),
            _ => self.mapped(field.name()).and_then(MappedField::field_id),
        }
    }

    fn mapped(&self, name: &str) -> Option<&'a MappedField> {
        let named = |field: &&MappedField| field.names().iter().any(|n| n == name);
        match self {
            Ids::OfFile => None,
            Ids::Mapped(fields) => fields.iter().find(named),
            Ids::MappedNested(fields) => fields.iter().map(Arc::as_ref).find(named),
        }
    }

    /// The ids of the fields inside the field of that name.
    fn inside(&self, name: &str) -> Ids<'a> {
        match self {
            Ids::OfFile => Ids::OfFile,
            _ => Ids::MappedNested(self.mapped(name).map(MappedField::fields).unwrap_or(&[])),
        }
    }
}

fn has_id(field: &ParquetType) -> bool {
    field.get_basic_info().has_id()
}

/// A group's fields, named as the fields of a struct type with the same ids are.
fn rename_fields(
    group: &ParquetType,
    target: &StructType,
    ids: &Ids,
) -> Result<Vec<TypePtr>, ParquetError> {
    // A group that carries no id at all was written by somebody who does not keep them: reading its fields as null
    // would be a guess.
    if matches!(ids, Ids::OfFile)
        && !group.get_fields().is_empty()
        && !group.get_fields().iter().any(|f| has_id(f))
    {
        return Err(general(format!(
            "the fields of column '{}' carry no Iceberg field ids",
            group.name()
        )));
    }
    let by_id: HashMap<i32, &NestedField> = target
        .fields()
        .iter()
        .map(|field| (field.id, field.as_ref()))
        .collect();
    let mut seen = HashMap::new();
    group
        .get_fields()
        .iter()
        .enumerate()
        .map(|(index, field)| {
            let id = ids.of(field);
            let Some(target) = id.and_then(|id| by_id.get(&id)) else {
                return rebuild(field, &format!("\u{1}unread:{index}"), id, None);
            };
            if let Some(other) = seen.insert(target.id, field.name()) {
                return Err(general(format!(
                    "columns '{other}' and '{}' of the file carry the same field id {}",
                    field.name(),
                    target.id
                )));
            }
            rename_field(
                field,
                &target.name,
                target.id,
                &target.field_type,
                &ids.inside(field.name()),
            )
        })
        .collect()
}

/// `field` under another name, with what is inside it named after `target`.
fn rename_field(
    field: &TypePtr,
    name: &str,
    id: i32,
    target: &Type,
    inside: &Ids,
) -> Result<TypePtr, ParquetError> {
    let children = match target {
        Type::Primitive(_) => None,
        Type::Struct(target) if field.is_group() => Some(rename_fields(field, target, inside)?),
        Type::List(target) if field.is_group() => Some(rename_list(field, target, inside)?),
        Type::Map(target) if field.is_group() => Some(rename_map(field, target, inside)?),
        // The check of types says what is wrong.
        _ => None,
    };
    rebuild(field, name, Some(id), children)
}

/// `optional group x (LIST) { repeated group list { <element> } }`, or the older two levels without a group.
fn rename_list(
    field: &ParquetType,
    target: &ListType,
    inside: &Ids,
) -> Result<Vec<TypePtr>, ParquetError> {
    let [repeated] = field.get_fields() else {
        return Err(general(format!(
            "list '{}' of the file is not built as a list",
            field.name()
        )));
    };
    let element = &target.element_field;
    let inner = if repeated.is_group() {
        repeated.get_fields()
    } else {
        &[]
    };
    if let [child] = inner
        && repeated.name() != "array"
        && !repeated.name().ends_with("_tuple")
    {
        let renamed = rename_field(
            child,
            &element.name,
            element.id,
            &element.field_type,
            &inside.inside("element"),
        )?;
        return Ok(vec![rebuild(
            repeated,
            repeated.name(),
            None,
            Some(vec![renamed]),
        )?]);
    }
    // Two levels: the repeated field is the element itself.
    Ok(vec![rename_field(
        repeated,
        repeated.name(),
        element.id,
        &element.field_type,
        &inside.inside("element"),
    )?])
}

/// `optional group x (MAP) { repeated group key_value { required <key>; <value> } }`
fn rename_map(
    field: &ParquetType,
    target: &MapType,
    inside: &Ids,
) -> Result<Vec<TypePtr>, ParquetError> {
    let malformed = || {
        general(format!(
            "map '{}' of the file is not built as a map",
            field.name()
        ))
    };
    let [entries] = field.get_fields() else {
        return Err(malformed());
    };
    if !entries.is_group() {
        return Err(malformed());
    }
    let [key, value] = entries.get_fields() else {
        return Err(malformed());
    };
    let key = rename_field(
        key,
        &target.key_field.name,
        target.key_field.id,
        &target.key_field.field_type,
        &inside.inside("key"),
    )?;
    let value = rename_field(
        value,
        &target.value_field.name,
        target.value_field.id,
        &target.value_field.field_type,
        &inside.inside("value"),
    )?;
    Ok(vec![rebuild(
        entries,
        "key_value",
        None,
        Some(vec![key, value]),
    )?])
}

/// A field as it is, but for its name, id and children.
fn rebuild(
    field: &TypePtr,
    name: &str,
    id: Option<i32>,
    children: Option<Vec<TypePtr>>,
) -> Result<TypePtr, ParquetError> {
    let info = field.get_basic_info();
    let repetition = if info.has_repetition() {
        info.repetition()
    } else {
        Repetition::REQUIRED
    };
    let built = match field.as_ref() {
        ParquetType::GroupType { fields, .. } => ParquetType::group_type_builder(name)
            .with_repetition(repetition)
            .with_converted_type(info.converted_type())
            .with_logical_type(info.logical_type_ref().cloned())
            .with_id(id)
            .with_fields(children.unwrap_or_else(|| fields.clone()))
            .build()?,
        ParquetType::PrimitiveType {
            physical_type,
            type_length,
            scale,
            precision,
            ..
        } => ParquetType::primitive_type_builder(name, *physical_type)
            .with_repetition(repetition)
            .with_converted_type(converted_type(
                info.logical_type_ref(),
                info.converted_type(),
            ))
            .with_logical_type(info.logical_type_ref().cloned())
            .with_length(*type_length)
            .with_precision(*precision)
            .with_scale(*scale)
            .with_id(id)
            .build()?,
    };
    Ok(Arc::new(built))
}

/// The builder refuses a converted type beside a logical one that it does not derive from it; the logical one rules.
fn converted_type(logical: Option<&LogicalType>, converted: ConvertedType) -> ConvertedType {
    match logical {
        Some(LogicalType::Decimal { .. }) | None => converted,
        Some(_) => ConvertedType::NONE,
    }
}

/// Whether values of a file's type are, or were widened by schema evolution to, the type that scans give the field.
fn readable_as(file: &DataType, table: &DataType, field: &NestedField) -> bool {
    use DataType::*;
    if NewerType::of(field) == Some(NewerType::Variant) {
        return is_variant(file);
    }
    match (file, table, field.field_type.as_ref()) {
        (a, b, _) if a == b => true,
        (Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView, Utf8 | Utf8View, _) => {
            true
        }
        (
            Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView,
            Binary | LargeBinary | BinaryView,
            _,
        ) => true,
        // Promotions of the specification, and the narrower integers of files that other engines wrote.
        (Int8 | Int16 | UInt8 | UInt16, Int32 | Int64, _) => true,
        (Int32 | UInt32, Int64, _) => true,
        (Float32, Float64, _) => true,
        (Decimal32(p, s) | Decimal64(p, s) | Decimal128(p, s), Decimal128(to, scale), _) => {
            p <= to && s == scale
        }
        (Time32(_), Time64(_), _) => true,
        // INT96 has nanoseconds until it is read as microseconds; files of other engines may have milliseconds.
        (Timestamp(unit, _), Timestamp(to, _), _) => {
            unit == to || *unit == TimeUnit::Millisecond || is_int96(file)
        }
        (Struct(fields), Struct(targets), Type::Struct(columns)) => targets
            .iter()
            .zip(columns.fields())
            .all(|(target, column)| match fields.find(target.name()) {
                Some((_, field)) => readable_as(field.data_type(), target.data_type(), column),
                None => target.is_nullable() || column.initial_default.is_some(),
            }),
        (List(field) | LargeList(field), List(target), Type::List(list)) => {
            readable_as(field.data_type(), target.data_type(), &list.element_field)
        }
        (Map(field, _), Map(target, _), Type::Map(map)) => {
            let (Struct(fields), Struct(targets)) = (field.data_type(), target.data_type()) else {
                return false;
            };
            let columns = [&map.key_field, &map.value_field];
            fields.len() == columns.len()
                && targets.len() == columns.len()
                && columns.iter().enumerate().all(|(i, column)| {
                    readable_as(fields[i].data_type(), targets[i].data_type(), column)
                })
        }
        _ => false,
    }
}

/// The shape of Parquet's variants; a shredded one has a typed value, too.
fn is_variant(file: &DataType) -> bool {
    match file {
        DataType::Struct(fields) => fields.find("metadata").is_some(),
        _ => false,
    }
}

/// Parquet's deprecated 96-bit timestamps are nanoseconds without a zone in Arrow. So are logical nanoseconds, which
/// a table of format version 2 cannot hold.
fn is_int96(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(TimeUnit::Nanosecond, None))
}
