//! Values of nested types as bytes that are equal where the values are.
//!
//! DataFusion counts distinct values of the types that it has no set for, structs and lists, as scalars: each holds on to the batch
//! that it was taken from, which no memory limit is told. Of bytes it keeps a set.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{Expr, ReturnFieldArgs, ScalarUDF};

use super::row_function::{Kind, RowFunction};

const NAME: &str = "row_key";

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![udf()]
}

fn udf() -> Arc<ScalarUDF> {
    let returns = |args: &ReturnFieldArgs<'_>| match args.arg_fields {
        [_] => Ok(DataType::Binary),
        _ => exec_err!("{NAME} takes one argument"),
    };
    RowFunction::new(NAME, &[Kind::Any], returns, |args, _| key(&args[0])).udf()
}

/// The bytes of `expr`; NULL where it is NULL.
pub(crate) fn row_key(expr: Expr) -> Expr {
    udf().call(vec![expr])
}

/// Whether values of a type are counted by their bytes.
pub(crate) fn has_row_key(of: &DataType) -> bool {
    of.is_nested() && RowConverter::supports_fields(&[SortField::new(of.clone())])
}

fn key(array: &ArrayRef) -> Result<ArrayRef> {
    let converter = RowConverter::new(vec![SortField::new(array.data_type().clone())])?;
    let rows = converter.convert_columns(&[Arc::clone(array)])?;
    let (offsets, bytes, _) = rows.try_into_binary()?.into_parts();
    let nulls: Option<NullBuffer> = array.logical_nulls();
    Ok(Arc::new(BinaryArray::try_new(offsets, bytes, nulls)?))
}
