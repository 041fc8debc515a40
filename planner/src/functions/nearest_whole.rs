//! The whole number next to a double, the even one of two, as MySQL takes it for an integer.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, ReturnFieldArgs, ScalarUDF, cast};

use super::row_function::{Kind, RowFunction};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![udf()]
}

fn udf() -> Arc<ScalarUDF> {
    let returns = |_: &ReturnFieldArgs<'_>| Ok(DataType::Float64);
    RowFunction::new("nearest_whole", &[Kind::Number], returns, evaluate).udf()
}

/// A float without its fraction.
pub(crate) fn nearest_whole(float: Expr) -> Expr {
    udf().call(vec![cast(float, DataType::Float64)])
}

fn evaluate(args: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let numbers = args[0].as_primitive::<Float64Type>();
    let whole: Float64Array = numbers.unary(f64::round_ties_even);
    Ok(Arc::new(whole))
}
