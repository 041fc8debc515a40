//! Arrays as a file has them, made into the table's by a [`StructPlan`].

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray};
use arrow::datatypes::{DataType, FieldRef, Fields};

use super::column_plan::{FieldPlan, ShapePlan, StructPlan};
use super::error::FormatError;
use super::leaf::to_table_type;
use crate::scan::under;

/// The table's fields from the arrays of [`StructPlan::reads`]. `name` is what errors call the level.
pub(crate) fn shape_fields(
    plan: &StructPlan,
    reads: &[ArrayRef],
    targets: &Fields,
    rows: usize,
) -> Result<Vec<ArrayRef>, FormatError> {
    plan.fields
        .iter()
        .zip(targets)
        .map(|(field, target)| match field {
            FieldPlan::Constant(value) => Ok(value.to_array_of_size(rows)?),
            FieldPlan::Read(read) => {
                let (Some(array), Some(planned)) = (reads.get(*read), plan.reads.get(*read)) else {
                    return Err(FormatError::column(target.name(), "was not read"));
                };
                shape_array(target.name(), &planned.shape, array, target.data_type())
            }
        })
        .collect()
}

fn shape_array(
    column: &str,
    plan: &ShapePlan,
    array: &ArrayRef,
    target: &DataType,
) -> Result<ArrayRef, FormatError> {
    let mismatch = || {
        FormatError::column(
            column,
            format!(
                "is of type {} in the file, which cannot be read as the table's {target}",
                array.data_type()
            ),
        )
    };
    match (plan, target) {
        (ShapePlan::Leaf(target), _) => to_table_type(column, array, target),
        (ShapePlan::Struct(plan), DataType::Struct(targets)) => {
            let of = array.as_struct_opt().ok_or_else(mismatch)?;
            let nulls = of.nulls().cloned();
            if targets.is_empty() {
                return Ok(Arc::new(StructArray::new_empty_fields(of.len(), nulls)));
            }
            let fields = shape_fields(plan, of.columns(), targets, of.len())?
                .into_iter()
                .map(|field| under(nulls.as_ref(), field))
                .collect::<Result<Vec<_>, _>>()?;
            Ok(Arc::new(StructArray::try_new(
                targets.clone(),
                fields,
                nulls,
            )?))
        }
        (ShapePlan::List(plan), DataType::List(element)) => {
            let of: &ListArray = array.as_list_opt().ok_or_else(mismatch)?;
            let values = shape_array(column, plan, of.values(), element.data_type())?;
            Ok(Arc::new(ListArray::try_new(
                Arc::clone(element),
                of.offsets().clone(),
                values,
                of.nulls().cloned(),
            )?))
        }
        (ShapePlan::Map(key, value), DataType::Map(entries, sorted)) => {
            // Avro writes maps whose keys are not strings as lists of key and value.
            let (of, offsets, nulls) = match (array.as_map_opt(), array.as_list_opt::<i32>()) {
                (Some(map), _) => (map.entries(), map.offsets(), map.nulls()),
                (None, Some(list)) => (
                    list.values().as_struct_opt().ok_or_else(mismatch)?,
                    list.offsets(),
                    list.nulls(),
                ),
                (None, None) => return Err(mismatch()),
            };
            let (DataType::Struct(targets), [keys, values]) = (entries.data_type(), of.columns())
            else {
                return Err(mismatch());
            };
            let fields: &[FieldRef] = targets;
            let [key_target, value_target] = fields else {
                return Err(mismatch());
            };
            let keys = shape_array(column, key, keys, key_target.data_type())?;
            let values = shape_array(column, value, values, value_target.data_type())?;
            let pairs = StructArray::try_new(targets.clone(), vec![keys, values], None)?;
            Ok(Arc::new(MapArray::try_new(
                Arc::clone(entries),
                offsets.clone(),
                pairs,
                nulls.cloned(),
                *sorted,
            )?))
        }
        _ => Err(mismatch()),
    }
}
