//! How a file's columns become the table's: which are read, and what stands for those that it lacks.
//!
//! ```text
//!   file    1 id:int   2 s<3 x, 4 y>          reads: [id, s reads [y]]
//!   table   1 id:long  2 s<4 y, 5 z>  6 n     ───►   id ← read 0, s ← read 1 <y ← read 0, z ← null>, n ← default
//! ```
//!
//! Columns are matched by field id at every level of nesting, and never by name or position.

use std::collections::HashMap;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::scalar::ScalarValue;
use iceberg::spec::{NestedField, Type};

use super::default_value::missing_value;
use super::error::FormatError;
use super::file_fields::{FileField, FileShape};

/// The fields of a struct, or the columns of a table.
#[derive(Debug)]
pub(crate) struct StructPlan {
    /// Positions of the file's fields that are read, in the order that their arrays are wanted in.
    pub(crate) reads: Vec<Read>,
    /// One for each of the table's fields.
    pub(crate) fields: Vec<FieldPlan>,
}

/// A field of the file that is read.
#[derive(Debug)]
pub(crate) struct Read {
    /// Its position among its siblings in the file.
    pub(crate) position: usize,
    pub(crate) shape: ShapePlan,
}

#[derive(Debug)]
pub(crate) enum FieldPlan {
    /// The same value in every row.
    Constant(ScalarValue),
    /// One of [`StructPlan::reads`].
    Read(usize),
}

/// What to make of one array.
#[derive(Debug)]
pub(crate) enum ShapePlan {
    /// A value of that type of the table.
    Leaf(DataType),
    Struct(StructPlan),
    List(Box<ShapePlan>),
    Map(Box<ShapePlan>, Box<ShapePlan>),
}

/// Plans the fields of one level. `constant` gives what a column has for all rows of the file if the file itself lacks
/// it; it is asked before the field's default.
pub(crate) fn plan_fields<'a>(
    wanted: impl IntoIterator<Item = (&'a NestedField, &'a DataType)>,
    file: &[FileField],
    constant: &dyn Fn(&NestedField) -> Option<ScalarValue>,
) -> Result<StructPlan, FormatError> {
    let mut by_id: HashMap<i32, usize> = HashMap::new();
    for (position, field) in file.iter().enumerate() {
        let Some(id) = field.id else { continue };
        if let Some(other) = by_id.insert(id, position) {
            return Err(FormatError::column(
                &field.name,
                format!(
                    "of the file carries the same field id {id} as column '{}'",
                    file[other].name
                ),
            ));
        }
    }
    let mut plan = StructPlan {
        reads: vec![],
        fields: vec![],
    };
    for (field, target) in wanted {
        let planned = match by_id.get(&field.id) {
            Some(position) => {
                plan.reads.push(Read {
                    position: *position,
                    shape: plan_shape(&field.name, &field.field_type, target, &file[*position])?,
                });
                FieldPlan::Read(plan.reads.len() - 1)
            }
            None => FieldPlan::Constant(match constant(field) {
                Some(value) => value,
                None => missing_value(field, target)?,
            }),
        };
        plan.fields.push(planned);
    }
    Ok(plan)
}

fn plan_shape(
    column: &str,
    of: &Type,
    target: &DataType,
    file: &FileField,
) -> Result<ShapePlan, FormatError> {
    let mismatch = || {
        FormatError::column(
            column,
            format!(
                "is {} in the file, and {of} in the table",
                file.shape.kind()
            ),
        )
    };
    Ok(match (of, target, &file.shape) {
        (Type::Primitive(_), target, FileShape::Leaf) => ShapePlan::Leaf(target.clone()),
        (Type::Struct(of), DataType::Struct(targets), FileShape::Struct(children)) => {
            // Fields without any id were written by somebody who does not keep them: null would be a guess.
            if !children.is_empty() && children.iter().all(|child| child.id.is_none()) {
                return Err(FormatError::column(
                    column,
                    "has fields in the file that carry no Iceberg field ids",
                ));
            }
            let wanted = of.fields().iter().map(AsRef::as_ref);
            ShapePlan::Struct(plan_fields(
                wanted.zip(targets.iter().map(|field| field.data_type())),
                children,
                &|_| None,
            )?)
        }
        (Type::List(of), DataType::List(element), FileShape::List(child)) => {
            ShapePlan::List(Box::new(plan_shape(
                &format!("{column}.element"),
                &of.element_field.field_type,
                element.data_type(),
                child,
            )?))
        }
        (Type::Map(of), DataType::Map(entries, _), FileShape::Map(key, value)) => {
            let [key_target, value_target] =
                entry_types(entries.data_type()).ok_or_else(mismatch)?;
            ShapePlan::Map(
                Box::new(plan_shape(
                    &format!("{column}.key"),
                    &of.key_field.field_type,
                    key_target,
                    key,
                )?),
                Box::new(plan_shape(
                    &format!("{column}.value"),
                    &of.value_field.field_type,
                    value_target,
                    value,
                )?),
            )
        }
        _ => return Err(mismatch()),
    })
}

fn entry_types(entries: &DataType) -> Option<[&DataType; 2]> {
    let DataType::Struct(fields) = entries else {
        return None;
    };
    let fields: &[FieldRef] = fields;
    let [key, value] = fields else {
        return None;
    };
    Some([key.data_type(), value.data_type()])
}

impl FileShape {
    fn kind(&self) -> &'static str {
        match self {
            FileShape::Leaf => "a single value",
            FileShape::Struct(_) => "a struct",
            FileShape::List(_) => "a list",
            FileShape::Map(..) => "a map",
        }
    }
}
