//! A file's values, made to be of the table's type: at any depth, by name, with defaults for what the file lacks.
//!
//! DataFusion's adapter casts structs, too, yet it fills what is missing with null only, refuses a struct none of whose
//! fields are left, and goes by position inside maps.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, ListArray, MapArray, RecordBatch, StructArray, make_array,
    new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use arrow::error::ArrowError;
use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::scalar::ScalarValue;
use iceberg::spec::{Literal, NestedField, NestedFieldRef, StructType, Type};
use tarn_catalog::NewerType;

use super::variant_text::variant_text;
use crate::formats::FormatError;
use crate::prune::scalar;

/// A value that does not fit is an error, not null.
const STRICT: CastOptions<'static> = CastOptions {
    safe: false,
    format_options: arrow::util::display::FormatOptions::new(),
};

/// The value of a field in files that were written before the field was there: its `initial-default`. `None` if that
/// is null. An error if it is of another type than the field, or nested.
pub(crate) fn initial_default(
    field: &NestedField,
    arrow: &DataType,
) -> Result<Option<ScalarValue>> {
    let Some(default) = &field.initial_default else {
        return Ok(None);
    };
    let value = match (default, field.field_type.as_ref()) {
        (Literal::Primitive(value), Type::Primitive(of)) => scalar(value, of, arrow),
        _ => None,
    };
    value.map(Some).ok_or_else(|| {
        exec_datafusion_err!(
            "the default value of column '{}' cannot be read as {}",
            field.name,
            field.field_type
        )
    })
}

/// `array`, of `field` as a file has it, as `target`, the type that scans give the field.
pub(crate) fn conform(
    array: &ArrayRef,
    target: &DataType,
    field: &NestedField,
) -> Result<ArrayRef> {
    if array.data_type() == target {
        return Ok(Arc::clone(array));
    }
    match (array.data_type(), target, field.field_type.as_ref()) {
        (DataType::Struct(_), _, _) if NewerType::of(field) == Some(NewerType::Variant) => {
            variant_text(array, target)
        }
        (DataType::Struct(_), DataType::Struct(targets), Type::Struct(fields)) => {
            conform_struct(array.as_struct(), targets, fields)
        }
        (DataType::List(_), DataType::List(element), Type::List(list)) => {
            let array = array.as_list::<i32>();
            let values = conform(array.values(), element.data_type(), &list.element_field)?;
            Ok(Arc::new(ListArray::try_new(
                Arc::clone(element),
                array.offsets().clone(),
                values,
                array.nulls().cloned(),
            )?))
        }
        (DataType::Map(..), DataType::Map(entries, sorted), Type::Map(map)) => {
            let DataType::Struct(targets) = entries.data_type() else {
                return Err(exec_datafusion_err!(
                    "a map's entries are {}",
                    entries.data_type()
                ));
            };
            let [key, value] = targets.as_ref() else {
                return Err(exec_datafusion_err!(
                    "a map's entries are {}",
                    entries.data_type()
                ));
            };
            let array = array.as_map();
            let columns = vec![
                conform(array.keys(), key.data_type(), &map.key_field)?,
                conform(array.values(), value.data_type(), &map.value_field)?,
            ];
            Ok(Arc::new(MapArray::try_new(
                Arc::clone(entries),
                array.offsets().clone(),
                StructArray::try_new(targets.clone(), columns, None)?,
                array.nulls().cloned(),
                *sorted,
            )?))
        }
        _ => Ok(cast_with_options(array, target, &STRICT)?),
    }
}

fn conform_struct(array: &StructArray, targets: &Fields, fields: &StructType) -> Result<ArrayRef> {
    let children = targets.iter().zip(fields.fields()).map(|(target, field)| {
        match array.column_by_name(target.name()) {
            Some(child) => conform(child, target.data_type(), field),
            None => {
                let values = missing(target, field, array.len())?;
                Ok(under(array.nulls(), values)?)
            }
        }
    });
    Ok(Arc::new(StructArray::try_new_with_length(
        targets.clone(),
        children.collect::<Result<_>>()?,
        array.nulls().cloned(),
        array.len(),
    )?))
}

/// A field of structs, null where the struct is: whoever takes the field alone sees no struct around it.
pub(crate) fn under(structs: Option<&NullBuffer>, field: ArrayRef) -> Result<ArrayRef, ArrowError> {
    if structs.is_none_or(|nulls| nulls.null_count() == 0) || field.data_type().is_null() {
        return Ok(field);
    }
    let nulls = NullBuffer::union(structs, field.nulls());
    Ok(make_array(
        field.to_data().into_builder().nulls(nulls).build()?,
    ))
}

/// The values of a field that the file does not have.
fn missing(target: &Field, field: &NestedField, rows: usize) -> Result<ArrayRef> {
    match initial_default(field, target.data_type())? {
        Some(value) => value.to_array_of_size(rows),
        None if target.is_nullable() => Ok(new_null_array(target.data_type(), rows)),
        None => Err(exec_datafusion_err!(
            "the required column '{}' is not in the file, and has no default value",
            field.name
        )),
    }
}

/// A column of a file, as the table has it.
#[derive(Debug, Clone)]
pub(crate) struct ConformExpr {
    input: Arc<dyn PhysicalExpr>,
    target: FieldRef,
    field: NestedFieldRef,
}

impl ConformExpr {
    pub(crate) fn new(
        input: Arc<dyn PhysicalExpr>,
        target: FieldRef,
        field: NestedFieldRef,
    ) -> Self {
        Self {
            input,
            target,
            field,
        }
    }
}

impl fmt::Display for ConformExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CONFORM({})", self.input)
    }
}

impl PartialEq for ConformExpr {
    fn eq(&self, other: &Self) -> bool {
        self.input.eq(&other.input) && self.target == other.target && self.field == other.field
    }
}

impl Eq for ConformExpr {}

impl Hash for ConformExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.input.hash(state);
        self.target.hash(state);
    }
}

impl PhysicalExpr for ConformExpr {
    fn data_type(&self, _input_schema: &Schema) -> Result<DataType> {
        Ok(self.target.data_type().clone())
    }

    fn nullable(&self, _input_schema: &Schema) -> Result<bool> {
        Ok(self.target.is_nullable())
    }

    fn return_field(&self, _input_schema: &Schema) -> Result<FieldRef> {
        Ok(Arc::clone(&self.target))
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let array = self.input.evaluate(batch)?.into_array(batch.num_rows())?;
        let conformed = conform(&array, self.target.data_type(), &self.field);
        // The file's fault, not that of the query's expression around it.
        conformed
            .map(ColumnarValue::Array)
            .map_err(|error| FormatError::Value(error.strip_backtrace()).into())
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.input]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let input = children
            .pop()
            .ok_or_else(|| exec_datafusion_err!("an expression lost its input"))?;
        Ok(Arc::new(Self {
            input,
            ..self.as_ref().clone()
        }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.input.fmt_sql(f)
    }
}
