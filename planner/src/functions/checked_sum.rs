//! `SUM` that says so where a sum does not fit, where DataFusion's wraps around.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowNativeTypeOp, AsArray, PrimitiveArray};
use arrow::compute::sum_checked;
use arrow::datatypes::{
    ArrowNumericType, ArrowPrimitiveType, DataType, Decimal128Type, DecimalType, FieldRef,
    Int64Type, UInt64Type, i256,
};
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_datafusion_err};
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Expr, GroupsAccumulator, Operator,
    ReversedUDAF, SetMonotonicity, Signature,
};

use super::fold_groups::FoldGroups;

pub(crate) fn checked_sum() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(CheckedSum { inner: Sum::new() }))
}

/// DataFusion's function, but for whole numbers and decimals.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedSum {
    inner: Sum,
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let of = args.return_field.data_type().clone();
        if args.is_distinct {
            let inner = self.inner.accumulator(args)?;
            return Ok(match is_checked(&of) {
                true => Box::new(DistinctTotal { inner, of }),
                false => inner,
            });
        }
        match total(&of) {
            Some(total) => Ok(total),
            None => self.inner.accumulator(args),
        }
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        let total = match args.is_distinct {
            true => None,
            false => total(args.return_field.data_type()),
        };
        match total {
            Some(total) => Ok(total),
            None => self.inner.create_sliding_accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match args.return_field.data_type() {
            of @ DataType::Int64 => Ok(groups::<Int64Type>(of)),
            of @ DataType::UInt64 => Ok(groups::<UInt64Type>(of)),
            of @ DataType::Decimal128(..) => Ok(groups::<Decimal128Type>(of)),
            _ => self.inner.create_groups_accumulator(args),
        }
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.inner.reverse_expr()
    }

    fn set_monotonicity(&self, of: &DataType) -> SetMonotonicity {
        self.inner.set_monotonicity(of)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn simplify_expr_op_literal(
        &self,
        function: &AggregateFunction,
        argument: &Expr,
        op: Operator,
        literal: &Expr,
        argument_is_left: bool,
    ) -> Result<Option<Expr>> {
        // The literal times the number of rows, which the inner function would add, is not checked.
        match literal {
            Expr::Literal(value, _) if value.data_type().is_integer() => Ok(None),
            _ => self.inner.simplify_expr_op_literal(
                function,
                argument,
                op,
                literal,
                argument_is_left,
            ),
        }
    }
}

fn is_checked(of: &DataType) -> bool {
    matches!(
        of,
        DataType::Int64 | DataType::UInt64 | DataType::Decimal128(..)
    )
}

fn total(of: &DataType) -> Option<Box<dyn Accumulator>> {
    Some(match of {
        DataType::Int64 => Box::new(Total::<Int64Type>::new(of)),
        DataType::UInt64 => Box::new(Total::<UInt64Type>::new(of)),
        DataType::Decimal128(..) => Box::new(Total::<Decimal128Type>::new(of)),
        _ => return None,
    })
}

fn groups<T>(of: &DataType) -> Box<dyn GroupsAccumulator>
where
    T: ArrowNumericType + Summed + Send,
{
    let fold = |so_far: &mut T::Native, value: T::Native| match so_far.add_checked(value) {
        Ok(sum) => {
            *so_far = sum;
            true
        }
        Err(_) => false,
    };
    Box::new(FoldGroups::<T, _>::new(of, T::Native::ZERO, fold).checked(T::fit, out_of_range))
}

/// MySQL's error 1690.
fn out_of_range(of: &DataType) -> DataFusionError {
    let name = match of {
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::UInt64 => "BIGINT UNSIGNED".to_owned(),
        DataType::Decimal128(precision, scale) => format!("DECIMAL({precision},{scale})"),
        other => other.to_string(),
    };
    DataFusionError::Execution(format!("{name} value is out of range in 'sum'"))
}

trait Summed: ArrowPrimitiveType + Sized {
    /// Whether sums that the native type holds are of the SQL type.
    fn fit(of: &DataType, sums: &PrimitiveArray<Self>) -> bool;

    fn wide(value: Self::Native) -> i256;

    /// None if it does not fit.
    fn narrow(value: i256) -> Option<Self::Native>;
}

impl Summed for Int64Type {
    fn fit(_: &DataType, _: &PrimitiveArray<Self>) -> bool {
        true
    }

    fn wide(value: i64) -> i256 {
        i256::from_i128(value.into())
    }

    fn narrow(value: i256) -> Option<i64> {
        value.to_i128()?.try_into().ok()
    }
}

impl Summed for UInt64Type {
    fn fit(_: &DataType, _: &PrimitiveArray<Self>) -> bool {
        true
    }

    fn wide(value: u64) -> i256 {
        i256::from_i128(value.into())
    }

    fn narrow(value: i256) -> Option<u64> {
        value.to_i128()?.try_into().ok()
    }
}

impl Summed for Decimal128Type {
    fn fit(of: &DataType, sums: &PrimitiveArray<Self>) -> bool {
        match of {
            DataType::Decimal128(precision, _) => sums
                .iter()
                .flatten()
                .all(|sum| Self::is_valid_decimal_precision(sum, *precision)),
            _ => false,
        }
    }

    fn wide(value: i128) -> i256 {
        i256::from_i128(value)
    }

    fn narrow(value: i256) -> Option<i128> {
        value.to_i128()
    }
}

/// The sum of all rows, or of those in a window's frame. It is wider than its type, so that what is too large on the way
/// does not matter.
struct Total<T> {
    sum: i256,
    /// Values in the sum; the sum of none is null.
    count: u64,
    of: DataType,
    /// The type of the values.
    values: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for Total<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Total({})", self.of)
    }
}

impl<T: ArrowNumericType + Summed> Total<T> {
    fn new(of: &DataType) -> Self {
        Self {
            sum: i256::ZERO,
            count: 0,
            of: of.clone(),
            values: PhantomData,
        }
    }

    /// The sum of a batch, and how many values it has.
    fn part(&self, values: &[ArrayRef]) -> Result<(i256, u64)> {
        let values = values
            .first()
            .and_then(|values| values.as_primitive_opt::<T>())
            .ok_or_else(|| internal_datafusion_err!("a sum takes one column of {}", self.of))?;
        let sum = match sum_checked(values) {
            Ok(sum) => sum.map_or(i256::ZERO, T::wide),
            Err(_) => values
                .iter()
                .flatten()
                .fold(i256::ZERO, |sum, value| sum.wrapping_add(T::wide(value))),
        };
        Ok((sum, (values.len() - values.null_count()) as u64))
    }

    fn array(&self) -> Result<PrimitiveArray<T>> {
        let sum = match self.count {
            0 => None,
            _ => Some(T::narrow(self.sum).ok_or_else(|| out_of_range(&self.of))?),
        };
        Ok(PrimitiveArray::<T>::from_iter([sum]).with_data_type(self.of.clone()))
    }
}

impl<T: ArrowNumericType + Summed> Accumulator for Total<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (sum, count) = self.part(values)?;
        self.sum = self.sum.wrapping_add(sum);
        self.count += count;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (sum, count) = self.part(values)?;
        self.sum = self.sum.wrapping_sub(sum);
        self.count -= count;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.array()?;
        match T::fit(&self.of, &sum) {
            true => ScalarValue::try_from_array(&sum, 0),
            false => Err(out_of_range(&self.of)),
        }
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::try_from_array(&self.array()?, 0)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The sum of values that differ, which DataFusion's function keeps, and adds up without looking at overflows.
#[derive(Debug)]
struct DistinctTotal {
    inner: Box<dyn Accumulator>,
    of: DataType,
}

impl Accumulator for DistinctTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let state = self.inner.state()?;
        let Some(ScalarValue::List(values)) = state.first() else {
            return Err(internal_datafusion_err!("a sum keeps no list of values"));
        };
        let mut total = total(&self.of)
            .ok_or_else(|| internal_datafusion_err!("a sum of {} is not checked", self.of))?;
        total.update_batch(&[Arc::clone(values.values())])?;
        total.evaluate()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }
}
