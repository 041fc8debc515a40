//! Arithmetic of whole numbers and decimals that rounds and overflows as MySQL's does. The rules in
//! [`exact_arithmetic`](crate::exact_arithmetic) put these functions where DataFusion's operators would
//!
//! | | DataFusion | here |
//! |---|---|---|
//! | `9223372036854775807 + 1` | -9223372036854775808 | an error |
//! | `2.00 / 3` | 0.666666 | 0.666667 |
//! | `CAST(1.255 AS DECIMAL(3,2)) = 1.255` | true | false |

use std::any::Any;
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Datum, Decimal128Array};
use arrow::compute::kernels::numeric;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL128_MAX_SCALE, DataType, Decimal128Type, DecimalType, Field,
    FieldRef, i256,
};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, lit,
};
use datafusion::physical_expr_common::datum::apply;

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    [
        Exact::Plus,
        Exact::Minus,
        Exact::Times,
        Exact::Divide,
        Exact::Round,
    ]
    .map(|what| Arc::new(udf(what)))
    .to_vec()
}

fn udf(what: Exact) -> ScalarUDF {
    ScalarUDF::from(ExactFunction {
        what,
        signature: Signature::user_defined(Volatility::Immutable),
    })
}

/// Whether a function is one of these.
pub(crate) fn is_exact(function: &ScalarUDF) -> bool {
    (function.inner().as_ref() as &dyn Any).is::<ExactFunction>()
}

/// `left op right`, or an error where the whole number that it gives does not fit. Both are of one type.
pub(crate) fn checked(left: Expr, op: Operator, right: Expr) -> Option<Expr> {
    let what = match op {
        Operator::Plus => Exact::Plus,
        Operator::Minus => Exact::Minus,
        Operator::Multiply => Exact::Times,
        _ => return None,
    };
    Some(udf(what).call(vec![left, right]))
}

/// `left / right` of decimals, rounded half away from zero; null for a divisor of zero.
pub(crate) fn divided(left: Expr, right: Expr) -> Expr {
    udf(Exact::Divide).call(vec![left, right])
}

/// A decimal as `DECIMAL(precision, scale)`, rounded half away from zero.
pub(crate) fn rounded(decimal: Expr, precision: u8, scale: i8) -> Expr {
    let arguments = vec![decimal, lit(i64::from(precision)), lit(i64::from(scale))];
    udf(Exact::Round).call(arguments)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Exact {
    Plus,
    Minus,
    Times,
    Divide,
    Round,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactFunction {
    what: Exact,
    signature: Signature,
}

impl ExactFunction {
    fn result(
        &self,
        arguments: &[&DataType],
        literals: &[Option<&ScalarValue>],
    ) -> Result<DataType> {
        match (self.what, arguments) {
            // An empty group's result, which planning works out beforehand.
            (_, [left, right, ..]) if left.is_null() || right.is_null() => Ok(DataType::Null),
            (Exact::Plus | Exact::Minus | Exact::Times, [left, right]) if left == right => {
                Ok((*left).clone())
            }
            (
                Exact::Divide,
                [
                    DataType::Decimal128(precision, scale),
                    DataType::Decimal128(_, divisor_scale),
                ],
            ) => Ok(quotient_type(*precision, *scale, *divisor_scale)),
            (Exact::Round, [DataType::Decimal128(..), _, _]) => {
                let literal = |index: usize| match literals.get(index) {
                    Some(Some(ScalarValue::Int64(Some(number)))) => Some(*number),
                    _ => None,
                };
                let precision = literal(1).and_then(|number| u8::try_from(number).ok());
                let scale = literal(2).and_then(|number| i8::try_from(number).ok());
                match (precision, scale) {
                    (Some(precision), Some(scale)) => Ok(DataType::Decimal128(precision, scale)),
                    _ => plan_err!("{} takes literals for precision and scale", self.name()),
                }
            }
            _ => plan_err!("{} cannot take {arguments:?}", self.name()),
        }
    }
}

impl ScalarUDFImpl for ExactFunction {
    fn name(&self) -> &str {
        match self.what {
            Exact::Plus => "checked_add",
            Exact::Minus => "checked_subtract",
            Exact::Times => "checked_multiply",
            Exact::Divide => "decimal_divide",
            Exact::Round => "decimal_round",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        // They are put into plans whose types are made alike.
        Ok(types.to_vec())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.result(&types.iter().collect::<Vec<_>>(), &[])
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<&DataType> = args
            .arg_fields
            .iter()
            .map(|field| field.data_type())
            .collect();
        let of = self.result(&types, args.scalar_arguments)?;
        let nullable =
            self.what == Exact::Divide || args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), of, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right, ..] = args.args.as_slice() else {
            return exec_err!("{} takes two arguments", self.name());
        };
        let of = args.return_field.data_type();
        if of.is_null() {
            return Ok(ColumnarValue::Scalar(ScalarValue::Null));
        }
        match self.what {
            Exact::Plus => apply(left, right, numeric::add).map_err(|e| overflow(e, of)),
            Exact::Minus => apply(left, right, numeric::sub).map_err(|e| overflow(e, of)),
            Exact::Times => apply(left, right, numeric::mul).map_err(|e| overflow(e, of)),
            Exact::Divide => apply(left, right, |left, right| divide(left, right, of))
                .map_err(|e| overflow(e, of)),
            Exact::Round => match left {
                ColumnarValue::Array(array) => Ok(ColumnarValue::Array(round(array, of)?)),
                ColumnarValue::Scalar(value) => {
                    let array = round(&value.to_array()?, of)?;
                    Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                        &array, 0,
                    )?))
                }
            },
        }
    }
}

/// The error in MySQL's words, number 1690.
fn overflow(error: DataFusionError, of: &DataType) -> DataFusionError {
    let DataFusionError::ArrowError(inner, _) = &error else {
        return error;
    };
    let ArrowError::ArithmeticOverflow(text) = inner.as_ref() else {
        return error;
    };
    // A division's says it already.
    if text.contains("out of range") {
        return DataFusionError::Execution(text.clone());
    }
    let name = match of {
        DataType::UInt64 => "BIGINT UNSIGNED",
        _ => "BIGINT",
    };
    let operation = text.trim_start_matches("Overflow happened on: ");
    DataFusionError::Execution(format!("{name} value is out of range in '{operation}'"))
}

fn round(array: &ArrayRef, of: &DataType) -> Result<ArrayRef> {
    let strict = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    Ok(cast_with_options(array, of, &strict)?)
}

/// MySQL's: four digits more than the dividend has. The same type as Arrow's division gives.
fn quotient_type(precision: u8, scale: i8, divisor_scale: i8) -> DataType {
    let of = scale.saturating_add(4).min(DECIMAL128_MAX_SCALE);
    let digits = i16::from(precision) + i16::from(of) - i16::from(scale) + i16::from(divisor_scale);
    let digits = digits.clamp(1, i16::from(DECIMAL128_MAX_PRECISION));
    DataType::Decimal128(u8::try_from(digits).unwrap_or(DECIMAL128_MAX_PRECISION), of)
}

fn divide(left: &dyn Datum, right: &dyn Datum, of: &DataType) -> Result<ArrayRef, ArrowError> {
    let ((left, left_scalar), (right, right_scalar)) = (left.get(), right.get());
    let (left, right) = (
        left.as_primitive::<Decimal128Type>(),
        right.as_primitive::<Decimal128Type>(),
    );
    let DataType::Decimal128(precision, scale) = *of else {
        return Err(ArrowError::ComputeError(format!(
            "a quotient cannot be {of}"
        )));
    };
    // left / 10^ls / (right / 10^rs), times 10^scale.
    let shift = i32::from(scale) - i32::from(left.scale()) + i32::from(right.scale());
    let (up, down) = match u32::try_from(shift) {
        Ok(shift) => (10i128.checked_pow(shift), Some(1)),
        Err(_) => (Some(1), 10i128.checked_pow(shift.unsigned_abs())),
    };
    let (Some(up), Some(down)) = (up, down) else {
        return Err(ArrowError::ArithmeticOverflow(format!(
            "DECIMAL value is out of range in a division of {} by {}",
            left.data_type(),
            right.data_type()
        )));
    };
    let quotient = |left: i128, right: i128| -> Result<Option<i128>, ArrowError> {
        if right == 0 {
            return Ok(None);
        }
        let found = match (left.checked_mul(up), right.checked_mul(down)) {
            (Some(left), Some(right)) => Some(half_away(left, right)),
            _ => half_away_wide(left, up, right, down),
        };
        match found.filter(|found| Decimal128Type::is_valid_decimal_precision(*found, precision)) {
            Some(found) => Ok(Some(found)),
            None => Err(ArrowError::ArithmeticOverflow(format!(
                "DECIMAL({precision},{scale}) value is out of range in a division"
            ))),
        }
    };
    let rows = match (left_scalar, right_scalar) {
        (true, false) => right.len(),
        _ => left.len(),
    };
    let at = |array: &Decimal128Array, scalar: bool, row: usize| {
        let row = if scalar { 0 } else { row };
        array.is_valid(row).then(|| array.value(row))
    };
    let mut quotients = arrow::array::Decimal128Builder::with_capacity(rows);
    for row in 0..rows {
        let found = match (at(left, left_scalar, row), at(right, right_scalar, row)) {
            (Some(left), Some(right)) => quotient(left, right)?,
            _ => None,
        };
        quotients.append_option(found);
    }
    let quotients = quotients
        .finish()
        .with_precision_and_scale(precision, scale)?;
    Ok(Arc::new(quotients))
}

/// `left / right`, rounded half away from zero. The divisor is not zero.
fn half_away(left: i128, right: i128) -> i128 {
    // The only quotient that does not fit is that of the least number, which no decimal is.
    let (quotient, rest) = (left.wrapping_div(right), left.wrapping_rem(right));
    // As large as half of the divisor, without doubling what may not fit.
    if rest.unsigned_abs() >= right.unsigned_abs() - rest.unsigned_abs() {
        quotient + if (left < 0) == (right < 0) { 1 } else { -1 }
    } else {
        quotient
    }
}

/// `left * up / (right * down)` in 256 bits; none if the result does not fit into 128.
fn half_away_wide(left: i128, up: i128, right: i128, down: i128) -> Option<i128> {
    let wide = i256::from_i128;
    let (left_wide, right_wide) = (
        wide(left).checked_mul(wide(up))?,
        wide(right).checked_mul(wide(down))?,
    );
    let quotient = left_wide.checked_div(right_wide)?;
    let rest = left_wide.checked_rem(right_wide)?;
    let away = rest.checked_abs()? >= right_wide.checked_abs()?.checked_sub(rest.checked_abs()?)?;
    let quotient = match (away, (left < 0) == (right < 0)) {
        (false, _) => quotient,
        (true, true) => quotient.checked_add(i256::ONE)?,
        (true, false) => quotient.checked_sub(i256::ONE)?,
    };
    quotient.to_i128()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_round_half_away_from_zero() {
        for (left, right, quotient) in [
            (2, 3, 1),
            (1, 3, 0),
            (1, 2, 1),
            (-1, 2, -1),
            (1, -2, -1),
            (-1, -2, 1),
            (5, 2, 3),
            (-5, 2, -3),
            (4, 2, 2),
            (0, 7, 0),
            (i128::MAX, 1, i128::MAX),
            (i128::MAX, i128::MAX, 1),
        ] {
            assert_eq!(half_away(left, right), quotient, "{left} / {right}");
            assert_eq!(
                half_away_wide(left, 1, right, 1),
                Some(quotient),
                "{left} / {right}"
            );
        }
        // 10^38 - 1 times 10^4, by 10^4.
        let large = 10i128.pow(38) - 1;
        assert_eq!(half_away_wide(large, 10_000, 1, 10_000), Some(large));
        assert_eq!(half_away_wide(large, 10_000, 1, 1), None);
    }

    #[test]
    fn the_type_of_a_quotient_is_arrows() {
        for (precision, scale, divisor, divisor_scale) in [
            (10, 2, 5, 1),
            (38, 0, 38, 0),
            (38, 38, 38, 38),
            (12, 10, 30, 29),
            (3, 0, 20, 0),
        ] {
            let ours = quotient_type(precision, scale, divisor_scale);
            let one = |precision, scale| {
                Decimal128Array::from(vec![0])
                    .with_precision_and_scale(precision, scale)
                    .unwrap()
            };
            let none = |precision, scale| {
                Decimal128Array::from(vec![None::<i128>])
                    .with_precision_and_scale(precision, scale)
                    .unwrap()
            };
            let arrows =
                numeric::div(&one(precision, scale), &none(divisor, divisor_scale)).unwrap();
            assert_eq!(&ours, arrows.data_type());
        }
    }
}
