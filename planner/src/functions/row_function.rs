//! The shape that all functions here share: arguments made into a few kinds, then one plain function over arrays.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// What an argument is made into before the function sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `Date32`, `Timestamp(Microsecond, …)`, or `Utf8` that is read as MySQL reads a date.
    Datetime,
    /// `Utf8`.
    Text,
    /// `Int64`.
    Integer,
    /// `Float64`.
    Number,
    /// `Int64`, `Float64` or `Utf8`: the amount of an interval.
    Amount,
    /// As it comes.
    Any,
}

pub(super) type Returns = fn(&ReturnFieldArgs<'_>) -> Result<DataType>;
pub(super) type Evaluate = fn(&[ArrayRef], &DataType) -> Result<ArrayRef>;
pub(super) type Preimage = fn(&[Expr], &Expr, &SimplifyContext) -> Result<PreimageResult>;

/// A scalar function, row by row.
pub(super) struct RowFunction {
    name: &'static str,
    signature: Signature,
    parameters: &'static [Kind],
    /// How many of the last parameters may be left out.
    optional: usize,
    returns: Returns,
    evaluate: Evaluate,
    preimage: Option<Preimage>,
}

impl RowFunction {
    pub(super) fn new(
        name: &'static str,
        parameters: &'static [Kind],
        returns: Returns,
        evaluate: Evaluate,
    ) -> RowFunction {
        RowFunction {
            name,
            signature: Signature::user_defined(Volatility::Immutable),
            parameters,
            optional: 0,
            returns,
            evaluate,
            preimage: None,
        }
    }

    pub(super) fn optional(mut self, optional: usize) -> RowFunction {
        self.optional = optional;
        self
    }

    pub(super) fn preimage(mut self, preimage: Preimage) -> RowFunction {
        self.preimage = Some(preimage);
        self
    }

    pub(super) fn udf(self) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(self))
    }
}

impl std::fmt::Debug for RowFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowFunction")
            .field("name", &self.name)
            .finish()
    }
}

// A name stands for one function: there is one list of them.
impl PartialEq for RowFunction {
    fn eq(&self, other: &RowFunction) -> bool {
        self.name == other.name
    }
}

impl Eq for RowFunction {}

impl Hash for RowFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for RowFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let (most, least) = (self.parameters.len(), self.parameters.len() - self.optional);
        if types.len() < least || types.len() > most {
            return plan_err!(
                "Incorrect parameter count in the call to native function '{}'",
                self.name
            );
        }
        types
            .iter()
            .zip(self.parameters)
            .map(|(data_type, kind)| coerce(self.name, data_type, *kind))
            .collect()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let fields: Vec<FieldRef> = types
            .iter()
            .map(|data_type| Arc::new(Field::new("argument", data_type.clone(), true)))
            .collect();
        (self.returns)(&ReturnFieldArgs {
            arg_fields: &fields,
            scalar_arguments: &vec![None; fields.len()],
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        // What cannot be read as a date or a number is NULL, so every result may be.
        Ok(Arc::new(Field::new(
            self.name,
            (self.returns)(&args)?,
            true,
        )))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = args
            .args
            .iter()
            .all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let result = (self.evaluate)(&arrays, args.return_field.data_type())?;
        if scalar && !args.args.is_empty() {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                &result, 0,
            )?));
        }
        Ok(ColumnarValue::Array(result))
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        match self.preimage {
            Some(preimage) => preimage(args, literal, info),
            None => Ok(PreimageResult::None),
        }
    }
}

fn coerce(function: &str, data_type: &DataType, kind: Kind) -> Result<DataType> {
    let text = matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    );
    Ok(match kind {
        Kind::Any => data_type.clone(),
        Kind::Text => DataType::Utf8,
        Kind::Integer => DataType::Int64,
        Kind::Number => DataType::Float64,
        Kind::Amount if text => DataType::Utf8,
        Kind::Amount if data_type.is_integer() || data_type.is_null() => DataType::Int64,
        Kind::Amount if data_type.is_numeric() => DataType::Float64,
        Kind::Datetime => match data_type {
            DataType::Date32 => DataType::Date32,
            DataType::Date64 => DataType::Timestamp(TimeUnit::Microsecond, None),
            DataType::Timestamp(_, zone) => {
                DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
            }
            DataType::Null => DataType::Timestamp(TimeUnit::Microsecond, None),
            // 20240131 is a date in MySQL.
            other if text || other.is_integer() => DataType::Utf8,
            other => {
                return plan_err!("{function} takes a date, a timestamp or a text, not {other}");
            }
        },
        Kind::Amount => return plan_err!("{function} takes a number, not {data_type}"),
    })
}

/// The argument's array as the type its kind promises.
pub(super) fn typed<A: Any>(array: &ArrayRef) -> Result<&A> {
    match array.as_any().downcast_ref::<A>() {
        Some(typed) => Ok(typed),
        None => exec_err!("unexpected argument of type {}", array.data_type()),
    }
}

pub(super) fn returns_integer(_: &ReturnFieldArgs<'_>) -> Result<DataType> {
    Ok(DataType::Int64)
}

pub(super) fn returns_text(_: &ReturnFieldArgs<'_>) -> Result<DataType> {
    Ok(DataType::Utf8)
}

pub(super) fn returns_date(_: &ReturnFieldArgs<'_>) -> Result<DataType> {
    Ok(DataType::Date32)
}

pub(super) fn returns_datetime(_: &ReturnFieldArgs<'_>) -> Result<DataType> {
    Ok(DataType::Timestamp(TimeUnit::Microsecond, None))
}
