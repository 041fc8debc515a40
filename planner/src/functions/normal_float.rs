//! Floats that are equal in SQL, made the same bits: `-0.0` becomes `0.0`, and every NaN the same NaN.
//!
//! Arrow compares and hashes floats by their bits. What is grouped by, joined on or compared goes through
//! `normal_float` first; the rules in [`comparisons`](crate::comparisons) see to it.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, Float32Array, Float64Array, LargeListArray,
    ListArray, MapArray, StructArray,
};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, ReturnFieldArgs, ScalarUDF};

use super::row_function::{Kind, RowFunction};

const NAME: &str = "normal_float";

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![udf()]
}

fn udf() -> Arc<ScalarUDF> {
    let returns = |args: &ReturnFieldArgs<'_>| match args.arg_fields {
        [only] => Ok(only.data_type().clone()),
        _ => exec_err!("{NAME} takes one argument"),
    };
    RowFunction::new(NAME, &[Kind::Any], returns, |args, _| normal(&args[0]))
        .preimage(preimage)
        .udf()
}

/// `expr` with floats that are equal in SQL made the same.
pub(crate) fn normal_float(expr: Expr) -> Expr {
    match &expr {
        Expr::ScalarFunction(call) if is_normal_float(&call.func) => expr,
        _ => udf().call(vec![expr]),
    }
}

pub(crate) fn is_normal_float(function: &ScalarUDF) -> bool {
    function.name() == NAME
}

/// Whether values of a type are floats, or hold some.
pub(crate) fn has_floats(of: &DataType) -> bool {
    match of {
        DataType::Float32 | DataType::Float64 => true,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            has_floats(item.data_type())
        }
        DataType::Map(entries, _) => has_floats(entries.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        _ => false,
    }
}

fn normal(array: &ArrayRef) -> Result<ArrayRef> {
    if !has_floats(array.data_type()) {
        return Ok(Arc::clone(array));
    }
    // Adding zero takes a zero's sign away.
    Ok(match array.data_type() {
        DataType::Float32 => {
            let one = |value: f32| {
                if value.is_nan() {
                    f32::NAN
                } else {
                    value + 0.0
                }
            };
            let floats: Float32Array = array.as_primitive::<Float32Type>().unary(one);
            Arc::new(floats)
        }
        DataType::Float64 => {
            let one = |value: f64| {
                if value.is_nan() {
                    f64::NAN
                } else {
                    value + 0.0
                }
            };
            let floats: Float64Array = array.as_primitive::<Float64Type>().unary(one);
            Arc::new(floats)
        }
        DataType::Struct(fields) => {
            let structs = array.as_struct();
            let columns = structs
                .columns()
                .iter()
                .map(normal)
                .collect::<Result<_>>()?;
            Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                columns,
                structs.nulls().cloned(),
                structs.len(),
            )?)
        }
        DataType::List(item) => {
            let lists = array.as_list::<i32>();
            Arc::new(ListArray::try_new(
                Arc::clone(item),
                lists.offsets().clone(),
                normal(lists.values())?,
                lists.nulls().cloned(),
            )?)
        }
        DataType::LargeList(item) => {
            let lists = array.as_list::<i64>();
            Arc::new(LargeListArray::try_new(
                Arc::clone(item),
                lists.offsets().clone(),
                normal(lists.values())?,
                lists.nulls().cloned(),
            )?)
        }
        DataType::FixedSizeList(item, size) => {
            let lists = array.as_fixed_size_list();
            Arc::new(FixedSizeListArray::try_new(
                Arc::clone(item),
                *size,
                normal(lists.values())?,
                lists.nulls().cloned(),
            )?)
        }
        DataType::Map(entries, sorted) => {
            let maps = array.as_map();
            let structs: ArrayRef = Arc::new(maps.entries().clone());
            Arc::new(MapArray::try_new(
                Arc::clone(entries),
                maps.offsets().clone(),
                normal(&structs)?.as_struct().clone(),
                maps.nulls().cloned(),
                *sorted,
            )?)
        }
        other => return exec_err!("{NAME} cannot take {other}"),
    })
}

/// The values that become the literal: one, or both zeros. Comparing with a literal that only planning finds
/// (`1 - 1`) then prunes as one that is written does.
fn preimage(args: &[Expr], literal: &Expr, _: &SimplifyContext) -> Result<PreimageResult> {
    let (lower, upper) = match literal.as_literal() {
        Some(ScalarValue::Float64(Some(of))) if of.is_finite() => {
            let lower = if *of == 0.0 { -0.0 } else { *of };
            (
                ScalarValue::Float64(Some(lower)),
                ScalarValue::Float64(Some((of + 0.0).next_up())),
            )
        }
        Some(ScalarValue::Float32(Some(of))) if of.is_finite() => {
            let lower = if *of == 0.0 { -0.0 } else { *of };
            (
                ScalarValue::Float32(Some(lower)),
                ScalarValue::Float32(Some((of + 0.0).next_up())),
            )
        }
        _ => return Ok(PreimageResult::None),
    };
    match args {
        [expr] => Ok(PreimageResult::Range {
            expr: expr.clone(),
            interval: Box::new(Interval::try_new(lower, upper)?),
        }),
        _ => Ok(PreimageResult::None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_floats_are_the_same_bits() {
        let negative_nan = f64::from_bits(0xfff8_0000_0000_0001);
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![
            Some(-0.0),
            Some(0.0),
            Some(negative_nan),
            Some(f64::NEG_INFINITY),
            None,
        ]));
        let bits = |array: &ArrayRef| -> Vec<Option<u64>> {
            let floats = array.as_primitive::<Float64Type>();
            floats.iter().map(|value| value.map(f64::to_bits)).collect()
        };
        let expected = [
            Some(0),
            Some(0),
            Some(0x7ff8_0000_0000_0000),
            Some(0xfff0_0000_0000_0000),
            None,
        ];
        assert_eq!(bits(&normal(&floats).unwrap()), expected);

        let field = Arc::new(arrow::datatypes::Field::new("f", DataType::Float64, true));
        let structs: ArrayRef = Arc::new(StructArray::from(vec![(field, floats)]));
        let structs = normal(&structs).unwrap();
        assert_eq!(bits(structs.as_struct().column(0)), expected);
    }
}
