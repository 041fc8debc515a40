//! One value for each group, folded over the group's rows: what sums and extremes have in common.

use std::fmt;
use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{ArrowPrimitiveType, DataType};
use datafusion::common::{DataFusionError, Result, internal_datafusion_err};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::NullState;

/// The state of a group is of the values' type: the value so far, null as long as there was none.
pub(super) struct FoldGroups<T: ArrowPrimitiveType, F> {
    values: Vec<T::Native>,
    nulls: NullState,
    data_type: DataType,
    start: T::Native,
    /// Takes a value in; false if the result does not fit into the type.
    fold: F,
    /// Whether a group's value may be given away.
    fits: fn(&DataType, &PrimitiveArray<T>) -> bool,
    /// What is said where it does not fit.
    overflow: fn(&DataType) -> DataFusionError,
}

impl<T, F> FoldGroups<T, F>
where
    T: ArrowPrimitiveType,
    F: Fn(&mut T::Native, T::Native) -> bool + Send + Sync + 'static,
{
    /// A fold whose results always fit.
    pub(super) fn new(data_type: &DataType, start: T::Native, fold: F) -> Self {
        Self {
            values: Vec::new(),
            nulls: NullState::new(),
            data_type: data_type.clone(),
            start,
            fold,
            fits: |_, _| true,
            overflow: |of| internal_datafusion_err!("a value of {of} does not fit"),
        }
    }

    pub(super) fn checked(
        mut self,
        fits: fn(&DataType, &PrimitiveArray<T>) -> bool,
        overflow: fn(&DataType) -> DataFusionError,
    ) -> Self {
        self.fits = fits;
        self.overflow = overflow;
        self
    }

    fn take(&mut self, emit_to: EmitTo) -> PrimitiveArray<T> {
        let values = emit_to.take_needed(&mut self.values);
        let nulls = self.nulls.build(emit_to);
        PrimitiveArray::<T>::new(values.into(), nulls).with_data_type(self.data_type.clone())
    }
}

impl<T: ArrowPrimitiveType, F> fmt::Debug for FoldGroups<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoldGroups")
            .field("data_type", &self.data_type)
            .field("groups", &self.values.len())
            .finish_non_exhaustive()
    }
}

impl<T, F> GroupsAccumulator for FoldGroups<T, F>
where
    T: ArrowPrimitiveType + Send,
    F: Fn(&mut T::Native, T::Native) -> bool + Send + Sync + 'static,
{
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let values = column::<T>(values)?;
        self.values.resize(total_num_groups, self.start);
        let (groups, fold) = (&mut self.values, &self.fold);
        let mut all_fit = true;
        self.nulls.accumulate(
            group_indices,
            values,
            opt_filter,
            total_num_groups,
            |group, value| all_fit &= fold(&mut groups[group], value),
        );
        match all_fit {
            true => Ok(()),
            false => Err((self.overflow)(&self.data_type)),
        }
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let values = self.take(emit_to);
        match (self.fits)(&self.data_type, &values) {
            true => Ok(Arc::new(values)),
            false => Err((self.overflow)(&self.data_type)),
        }
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![Arc::new(self.take(emit_to))])
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.update_batch(values, group_indices, opt_filter, total_num_groups)
    }

    /// A row that is a group of its own is its own state.
    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let values = column::<T>(values)?.clone();
        let (_, buffer, nulls) = values.into_parts();
        let kept = opt_filter.map(|filter| {
            let kept = match filter.nulls() {
                Some(known) => filter.values() & known.inner(),
                None => filter.values().clone(),
            };
            NullBuffer::new(kept)
        });
        let nulls = NullBuffer::union(nulls.as_ref(), kept.as_ref());
        let state =
            PrimitiveArray::<T>::try_new(buffer, nulls)?.with_data_type(self.data_type.clone());
        Ok(vec![Arc::new(state)])
    }

    fn supports_convert_to_state(&self) -> bool {
        true
    }

    fn size(&self) -> usize {
        self.values.capacity() * size_of::<T::Native>() + self.nulls.size()
    }
}

fn column<T: ArrowPrimitiveType>(values: &[ArrayRef]) -> Result<&PrimitiveArray<T>> {
    values
        .first()
        .and_then(|values| values.as_primitive_opt::<T>())
        .ok_or_else(|| {
            internal_datafusion_err!("an aggregate takes one column of {}", T::DATA_TYPE)
        })
}
