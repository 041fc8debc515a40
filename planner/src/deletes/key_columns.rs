//! The key columns of equality deletes, as delete files and data files are read for them.
//!
//! A key is named by field ids, and a field keeps its id when it is renamed, widened or dropped. So the columns are
//! taken from the table's schema, or from the newest schema that still had them, and both kinds of files are read with
//! them: whatever a file calls a key, and of whatever type it was when the file was written, equal keys come out equal.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StructArray};
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::row::{RowConverter, SortField};
use datafusion::error::{DataFusionError, Result};
use datafusion::scalar::ScalarValue;
use iceberg::spec::{
    Literal, NameMapping, NestedField, NestedFieldRef, PartitionSpec, Schema as IcebergSchema,
    SchemaRef, Struct, StructType, TableMetadata, Transform, Type,
};

use crate::prune::scalar;
use crate::scan::TableColumns;

/// Ends the name of a column that was dropped, before its id: another column may have the name by now.
const DROPPED: char = '\u{1}';

/// The columns of one key.
#[derive(Clone)]
pub(crate) struct KeyColumns {
    columns: Arc<TableColumns>,
    leaves: Vec<Leaf>,
}

/// One part of a key.
#[derive(Debug, Clone, PartialEq)]
struct Leaf {
    /// Where it is: the position of a column, then those of fields inside structs.
    path: Vec<usize>,
    id: i32,
    data_type: DataType,
}

impl fmt::Debug for KeyColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyColumns").field(&self.leaves).finish()
    }
}

impl PartialEq for KeyColumns {
    fn eq(&self, other: &Self) -> bool {
        self.columns.fingerprint() == other.columns.fingerprint() && self.leaves == other.leaves
    }
}

/// Why a key cannot be looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("its equality field id {0} is in no schema of the table")]
    Unknown(i32),
    #[error("it has no equality field ids")]
    Empty,
    /// The named feature is not supported.
    #[error("{0}")]
    Unsupported(&'static str),
    #[error("its key columns make no schema: {0}")]
    Schema(String),
}

impl KeyColumns {
    /// Columns made of `schema`, all primitive fields of which are parts of the key.
    pub(crate) fn new(
        schema: IcebergSchema,
        name_mapping: Option<NameMapping>,
    ) -> Result<Self, KeyError> {
        let bad = |e: iceberg::Error| KeyError::Schema(e.message().to_string());
        let columns = TableColumns::new(Arc::new(schema), name_mapping).map_err(bad)?;
        let mut leaves = Vec::new();
        for (index, (column, field)) in columns
            .schema()
            .as_struct()
            .fields()
            .iter()
            .zip(columns.arrow().fields())
            .enumerate()
        {
            collect_leaves(column, field.data_type(), &mut vec![index], &mut leaves)?;
        }
        if leaves.is_empty() {
            return Err(KeyError::Empty);
        }
        let fields = sort_fields(&leaves);
        if !RowConverter::supports_fields(&fields) {
            return Err(KeyError::Unsupported(
                "equality deletes by a column of such a type",
            ));
        }
        Ok(Self {
            columns: Arc::new(columns),
            leaves,
        })
    }

    /// What files are to be read with.
    pub(crate) fn columns(&self) -> &Arc<TableColumns> {
        &self.columns
    }

    /// What a file's partition says of columns that the table does not have any more, by their names here.
    pub(crate) fn dropped_constants(
        &self,
        spec: &PartitionSpec,
        partition: &Struct,
    ) -> Vec<(String, ScalarValue)> {
        let columns = self.columns.schema().as_struct().fields().iter();
        let fields = columns.zip(self.columns.arrow().fields());
        fields
            .filter(|(column, _)| column.name.contains(DROPPED))
            .filter_map(|(column, field)| {
                let position = spec.fields().iter().position(|of| {
                    of.source_id == column.id && of.transform == Transform::Identity
                })?;
                let value = match (partition.fields().get(position)?, &*column.field_type) {
                    (None, _) => ScalarValue::try_from(field.data_type()).ok(),
                    (Some(Literal::Primitive(value)), Type::Primitive(of)) => {
                        scalar(value, of, field.data_type())
                    }
                    _ => None,
                };
                Some((field.name().clone(), value?))
            })
            .collect()
    }

    /// A converter of [`keys`](Self::keys) into comparable bytes. All converters of one key make the same bytes.
    pub(crate) fn converter(&self) -> Result<RowConverter> {
        Ok(RowConverter::new(sort_fields(&self.leaves))?)
    }

    /// The parts of the key, from rows of [`columns`](Self::columns).
    pub(crate) fn keys(&self, rows: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.leaves
            .iter()
            .map(|leaf| {
                let (first, inside) = leaf
                    .path
                    .split_first()
                    .ok_or_else(|| DataFusionError::Internal("a key part without a path".into()))?;
                let mut array = Arc::clone(rows.column(*first));
                for index in inside {
                    let parent = array.as_struct_opt().ok_or_else(|| {
                        DataFusionError::Internal("a key part inside no struct".into())
                    })?;
                    array = child(parent, *index)?;
                }
                Ok(one_nan(array))
            })
            .collect()
    }
}

fn sort_fields(leaves: &[Leaf]) -> Vec<SortField> {
    leaves
        .iter()
        .map(|leaf| SortField::new(leaf.data_type.clone()))
        .collect()
}

/// The field of a struct, null where the struct is.
fn child(parent: &StructArray, index: usize) -> Result<ArrayRef> {
    let field = parent.column(index);
    match parent.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => Ok(Arc::clone(field)),
        Some(nulls) => {
            let null = arrow::array::BooleanArray::new(!nulls.inner(), None);
            Ok(nullif(field.as_ref(), &null)?)
        }
    }
}

/// All NaNs are one key.
fn one_nan(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => Arc::new(
            array
                .as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(|v| if v.is_nan() { f32::NAN } else { v }),
        ),
        DataType::Float64 => Arc::new(
            array
                .as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(|v| if v.is_nan() { f64::NAN } else { v }),
        ),
        _ => array,
    }
}

fn collect_leaves(
    field: &NestedField,
    data_type: &DataType,
    path: &mut Vec<usize>,
    leaves: &mut Vec<Leaf>,
) -> Result<(), KeyError> {
    match (field.field_type.as_ref(), data_type) {
        (Type::Primitive(_), _) => leaves.push(Leaf {
            path: path.clone(),
            id: field.id,
            data_type: data_type.clone(),
        }),
        (Type::Struct(of), DataType::Struct(arrow)) => {
            for (index, (inner, arrow)) in of.fields().iter().zip(arrow).enumerate() {
                path.push(index);
                collect_leaves(inner, arrow.data_type(), path, leaves)?;
                path.pop();
            }
        }
        _ => {
            return Err(KeyError::Unsupported(
                "equality deletes by a column of a nested type",
            ));
        }
    }
    Ok(())
}

/// The keys of a table's delete files: one for all files that have the same field ids.
pub(crate) struct KeyColumnsOf<'a> {
    metadata: &'a TableMetadata,
    current: SchemaRef,
    name_mapping: Option<&'a NameMapping>,
    /// The other schemas, newest first.
    former: Vec<SchemaRef>,
    known: HashMap<Vec<i32>, Arc<KeyColumns>>,
}

impl<'a> KeyColumnsOf<'a> {
    /// `current` is the schema that is read with.
    pub(crate) fn new(
        metadata: &'a TableMetadata,
        current: SchemaRef,
        name_mapping: Option<&'a NameMapping>,
    ) -> Self {
        let mut former: Vec<SchemaRef> = metadata.schemas_iter().cloned().collect();
        former.sort_by_key(|schema| std::cmp::Reverse(schema.schema_id()));
        Self {
            metadata,
            current,
            name_mapping,
            former,
            known: HashMap::new(),
        }
    }

    /// The key of those field ids.
    pub(crate) fn get(&mut self, ids: &[i32]) -> Result<Arc<KeyColumns>, KeyError> {
        let wanted: BTreeSet<i32> = ids.iter().copied().collect();
        let sorted: Vec<i32> = wanted.iter().copied().collect();
        if let Some(known) = self.known.get(&sorted) {
            return Ok(Arc::clone(known));
        }
        let mut fields: Vec<NestedFieldRef> = Vec::new();
        let mut left = wanted.clone();
        for column in self.current.as_struct().fields() {
            fields.extend(only(column, &wanted, &mut left));
        }
        for schema in &self.former {
            if left.is_empty() {
                break;
            }
            let dropped = left.clone();
            for column in schema.as_struct().fields() {
                if let Some(column) = only(column, &dropped, &mut left) {
                    add_dropped(&mut fields, &column)?;
                }
            }
            for id in dropped.difference(&left) {
                let is_column = fields.iter().any(|column| column.id == *id);
                if !is_column {
                    self.check_dropped(*id)?;
                }
            }
        }
        if let Some(id) = left.first() {
            let known = self
                .former
                .iter()
                .any(|schema| schema.field_by_id(*id).is_some());
            return Err(match known {
                true => {
                    KeyError::Unsupported("equality deletes by a field that is in a list or map")
                }
                false => KeyError::Unknown(*id),
            });
        }
        let schema = IcebergSchema::builder()
            .with_fields(fields)
            .build()
            .map_err(|e| KeyError::Schema(e.message().to_string()))?;
        let columns = Arc::new(KeyColumns::new(schema, self.name_mapping.cloned())?);
        self.known.insert(sorted, Arc::clone(&columns));
        Ok(columns)
    }

    /// A dropped field of a struct may be missing from files whose partition has its value, and is not looked for there.
    /// A column is: see [`KeyColumns::dropped_constants`].
    fn check_dropped(&self, id: i32) -> Result<(), KeyError> {
        let partitioned = self.metadata.partition_specs_iter().any(|spec| {
            spec.fields()
                .iter()
                .any(|field| field.source_id == id && field.transform == Transform::Identity)
        });
        match partitioned {
            true => Err(KeyError::Unsupported(
                "equality deletes by a dropped field of a struct that the table was partitioned by",
            )),
            false => Ok(()),
        }
    }
}

/// Adds a column of a former schema to those of a newer one: the whole of it, or what the struct of its id lacks there.
/// What is added gets a name that nothing else has.
fn add_dropped(to: &mut Vec<NestedFieldRef>, column: &NestedField) -> Result<(), KeyError> {
    let Some(known) = to.iter_mut().find(|known| known.id == column.id) else {
        let mut column = column.clone();
        column.name = format!("{}{DROPPED}{}", column.name, column.id);
        to.push(Arc::new(column));
        return Ok(());
    };
    let (Type::Struct(newer), Type::Struct(former)) =
        (known.field_type.as_ref(), column.field_type.as_ref())
    else {
        return Err(KeyError::Schema(format!(
            "the field of id {} is not of one type in all schemas of the table",
            column.id
        )));
    };
    let mut inner = newer.fields().to_vec();
    for field in former.fields() {
        add_dropped(&mut inner, field)?;
    }
    *known = Arc::new(NestedField {
        field_type: Box::new(Type::Struct(StructType::new(inner))),
        ..NestedField::clone(known)
    });
    Ok(())
}

/// The field with nothing in it but wanted fields, all of them optional: a file that was written before a column was
/// added has none. What is found is taken from `left`.
fn only(
    field: &NestedField,
    wanted: &BTreeSet<i32>,
    left: &mut BTreeSet<i32>,
) -> Option<NestedFieldRef> {
    let field_type = match field.field_type.as_ref() {
        Type::Struct(of) => {
            let inner: Vec<NestedFieldRef> = of
                .fields()
                .iter()
                .filter_map(|inner| only(inner, wanted, left))
                .collect();
            if inner.is_empty() {
                return None;
            }
            Type::Struct(StructType::new(inner))
        }
        Type::Primitive(of) if wanted.contains(&field.id) => {
            left.remove(&field.id);
            Type::Primitive(of.clone())
        }
        _ => return None,
    };
    Some(Arc::new(NestedField {
        required: false,
        field_type: Box::new(field_type),
        ..field.clone()
    }))
}
