//! `MIN` and `MAX`, with floats in SQL's order: NaN is larger than all numbers.
//!
//! DataFusion's own, in groups, begin with the greatest and the least finite number, which then stand where a group has
//! nothing but infinities, and take NaN or not by the order in which rows come.

use std::fmt;
use std::sync::Arc;

use arrow::array::ArrowNativeTypeOp;
use arrow::datatypes::{ArrowPrimitiveType, DataType, Float32Type, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};

use super::fold_groups::FoldGroups;

pub(super) fn functions() -> Vec<Arc<AggregateUDF>> {
    [
        AggregateUDF::from(Extreme {
            inner: Min::new(),
            larger: false,
        }),
        AggregateUDF::from(Extreme {
            inner: Max::new(),
            larger: true,
        }),
    ]
    .map(Arc::new)
    .to_vec()
}

/// DataFusion's function, but for groups of floats.
#[derive(PartialEq, Eq, Hash)]
struct Extreme<I> {
    inner: I,
    larger: bool,
}

impl<I> fmt::Debug for Extreme<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.larger { "Max" } else { "Min" })
    }
}

impl<I: AggregateUDFImpl + PartialEq + Eq + std::hash::Hash> AggregateUDFImpl for Extreme<I> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arguments)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(args)
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        self.inner.create_sliding_accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match args.return_field.data_type() {
            DataType::Float32 => Ok(float_groups::<Float32Type>(self.larger)),
            DataType::Float64 => Ok(float_groups::<Float64Type>(self.larger)),
            _ => self.inner.create_groups_accumulator(args),
        }
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.inner.reverse_expr()
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner.is_descending()
    }

    fn value_from_stats(&self, args: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.inner.value_from_stats(args)
    }

    fn set_monotonicity(&self, of: &DataType) -> SetMonotonicity {
        self.inner.set_monotonicity(of)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

/// Begins with the value that every other replaces: `-Infinity` for the largest, NaN for the least.
fn float_groups<T>(larger: bool) -> Box<dyn GroupsAccumulator>
where
    T: ArrowPrimitiveType + Send,
    T::Native: Float,
{
    if larger {
        Box::new(FoldGroups::<T, _>::new(
            &T::DATA_TYPE,
            T::Native::LEAST,
            move |so_far, value| {
                if value > *so_far || value.is_nan() {
                    *so_far = value;
                }
                true
            },
        ))
    } else {
        Box::new(FoldGroups::<T, _>::new(
            &T::DATA_TYPE,
            T::Native::LARGEST,
            move |so_far, value| {
                if value < *so_far || so_far.is_nan() {
                    *so_far = value;
                }
                true
            },
        ))
    }
}

/// Ends of the order of floats.
trait Float: ArrowNativeTypeOp {
    const LEAST: Self;
    const LARGEST: Self;

    /// Whatever its sign.
    fn is_nan(self) -> bool;
}

impl Float for f32 {
    const LEAST: f32 = f32::NEG_INFINITY;
    const LARGEST: f32 = f32::NAN;

    fn is_nan(self) -> bool {
        f32::is_nan(self)
    }
}

impl Float for f64 {
    const LEAST: f64 = f64::NEG_INFINITY;
    const LARGEST: f64 = f64::NAN;

    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
    use datafusion::logical_expr::EmitTo;

    use super::*;

    /// The extremes of three groups: as they are, and merged from parts of one row.
    fn extremes(larger: bool, rows: &[(usize, Option<f64>)]) -> Vec<Option<f64>> {
        let groups: Vec<usize> = rows.iter().map(|(group, _)| *group).collect();
        let values: ArrayRef = Arc::new(
            rows.iter()
                .map(|(_, value)| *value)
                .collect::<Float64Array>(),
        );
        let mut whole = float_groups::<Float64Type>(larger);
        whole
            .update_batch(&[Arc::clone(&values)], &groups, None, 3)
            .unwrap();
        let whole = whole.evaluate(EmitTo::All).unwrap();
        let mut merged = float_groups::<Float64Type>(larger);
        for (row, group) in groups.iter().enumerate() {
            let state = merged
                .convert_to_state(&[values.slice(row, 1)], None)
                .unwrap();
            merged
                .merge_batch(&state, &[*group], None, group + 1)
                .unwrap();
        }
        let merged = merged.evaluate(EmitTo::All).unwrap();
        let list = |array: &ArrayRef| -> Vec<Option<f64>> {
            array.as_primitive::<Float64Type>().iter().collect()
        };
        assert_eq!(
            format!("{:?}", list(&whole)),
            format!("{:?}", list(&merged))
        );
        list(&whole)
    }

    #[test]
    fn infinities_and_nan_are_values_like_others() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let rows = [
            (0, Some(inf)),
            (0, None),
            (1, Some(-inf)),
            (1, Some(nan)),
            (1, Some(3.0)),
            (2, None),
        ];
        assert_eq!(
            format!("{:?}", extremes(false, &rows)),
            "[Some(inf), Some(-inf), None]"
        );
        assert_eq!(
            format!("{:?}", extremes(true, &rows)),
            "[Some(inf), Some(NaN), None]"
        );
        // NaN is the least of nothing but NaN, whatever its sign.
        let only = [
            (0, Some(-nan)),
            (1, Some(-inf)),
            (1, Some(-inf)),
            (2, Some(nan)),
            (2, Some(1.0)),
        ];
        assert_eq!(
            format!("{:?}", extremes(false, &only)),
            "[Some(NaN), Some(-inf), Some(1.0)]"
        );
        assert_eq!(
            format!("{:?}", extremes(true, &only)),
            "[Some(NaN), Some(-inf), Some(NaN)]"
        );
    }
}
