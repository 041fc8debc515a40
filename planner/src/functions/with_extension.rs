//! Values as they are, marked as what Arrow's types do not tell: `as_uuid` and `as_json`.
//!
//! The rule in [`extension_types`](crate::extension_types) puts them where DataFusion loses the mark.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, LargeListArray, ListArray};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err, internal_err};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use tarn_catalog::Extension;

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    Extension::ALL.map(udf).to_vec()
}

fn udf(extension: Extension) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(WithExtension {
        extension,
        signature: Signature::any(1, Volatility::Immutable),
    }))
}

/// `expr`, or the items of its lists, marked.
pub(crate) fn with_extension(expr: Expr, extension: Extension) -> Expr {
    udf(extension).call(vec![expr])
}

/// The extension of a field, or of the items of its lists.
pub(crate) fn extension_of(field: &Field) -> Option<Extension> {
    match field.data_type() {
        DataType::List(item) | DataType::LargeList(item) => extension_of(item),
        _ => Extension::of(field),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WithExtension {
    extension: Extension,
    signature: Signature,
}

impl WithExtension {
    /// The field, marked where values of its type can be.
    fn marked(&self, field: &FieldRef) -> FieldRef {
        match field.data_type() {
            DataType::List(item) => {
                let of = DataType::List(self.marked(item));
                Arc::new(field.as_ref().clone().with_data_type(of))
            }
            DataType::LargeList(item) => {
                let of = DataType::LargeList(self.marked(item));
                Arc::new(field.as_ref().clone().with_data_type(of))
            }
            of if self.extension.fits(of) => Arc::new(self.extension.mark(field.as_ref().clone())),
            _ => Arc::clone(field),
        }
    }
}

impl ScalarUDFImpl for WithExtension {
    fn name(&self) -> &str {
        match self.extension {
            Extension::Uuid => "as_uuid",
            Extension::Json => "as_json",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("{} gives a field", self.name())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields {
            [only] => Ok(self.marked(only)),
            _ => exec_err!("{} takes one argument", self.name()),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let to = args.return_field.data_type();
        match args.args.as_slice() {
            [value] if value.data_type() == *to => Ok(value.clone()),
            [ColumnarValue::Array(array)] => Ok(ColumnarValue::Array(retyped(array, to)?)),
            [ColumnarValue::Scalar(scalar)] => {
                let array = retyped(&scalar.to_array()?, to)?;
                let scalar = ScalarValue::try_from_array(&array, 0)?;
                Ok(ColumnarValue::Scalar(scalar))
            }
            _ => exec_err!("{} takes one argument", self.name()),
        }
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        match inputs {
            [only] => Ok(only.sort_properties),
            _ => Ok(SortProperties::Unordered),
        }
    }

    fn preserves_lex_ordering(&self, _: &[ExprProperties]) -> Result<bool> {
        Ok(true)
    }
}

/// An array whose lists' items have another field.
fn retyped(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    match (array.data_type(), to) {
        (of, to) if of == to => Ok(Arc::clone(array)),
        (DataType::List(_), DataType::List(item)) => {
            let lists = array.as_list::<i32>();
            Ok(Arc::new(ListArray::try_new(
                Arc::clone(item),
                lists.offsets().clone(),
                retyped(lists.values(), item.data_type())?,
                lists.nulls().cloned(),
            )?))
        }
        (DataType::LargeList(_), DataType::LargeList(item)) => {
            let lists = array.as_list::<i64>();
            Ok(Arc::new(LargeListArray::try_new(
                Arc::clone(item),
                lists.offsets().clone(),
                retyped(lists.values(), item.data_type())?,
                lists.nulls().cloned(),
            )?))
        }
        (of, to) => exec_err!("values of type {of} cannot be marked as {to}"),
    }
}
