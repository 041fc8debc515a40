//! The value of a scalar subquery: at most one row, or an error.

use std::mem::size_of_val;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::cast::as_uint64_array;
use datafusion::common::{Result, ScalarValue, exec_err, internal_datafusion_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// `single_value(x)`: the value of the only row, NULL where there is none, MySQL's error 1242 where there are several.
/// A row whose value is NULL is a row.
pub(crate) fn single_value() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(SingleValue {
        signature: Signature::any(1, Volatility::Immutable),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SingleValue {
    signature: Signature,
}

impl AggregateUDFImpl for SingleValue {
    fn name(&self) -> &str {
        "single_value"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [only] => Ok(only.clone()),
            _ => exec_err!("single_value takes one argument"),
        }
    }

    /// The column's own, which may be marked as more than its type tells.
    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        match arguments {
            [only] => Ok(Arc::new(only.as_ref().clone().with_nullable(true))),
            _ => exec_err!("single_value takes one argument"),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(SingleRow {
            rows: 0,
            value: ScalarValue::try_from(args.return_field.data_type())?,
        }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let name = |part: &str| format!("{}[{part}]", args.name);
        Ok(vec![
            Arc::new(Field::new(name("rows"), DataType::UInt64, true)),
            Arc::new(Field::new(name("value"), args.return_type().clone(), true)),
        ])
    }
}

#[derive(Debug)]
struct SingleRow {
    rows: u64,
    value: ScalarValue,
}

impl SingleRow {
    fn add(&mut self, rows: u64) -> Result<()> {
        self.rows = self.rows.saturating_add(rows);
        if self.rows > 1 {
            return exec_err!("Subquery returns more than 1 row");
        }
        Ok(())
    }
}

impl Accumulator for SingleRow {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = column(values, 0)?;
        self.add(values.len() as u64)?;
        if !values.is_empty() {
            self.value = ScalarValue::try_from_array(values, 0)?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) - size_of_val(&self.value) + self.value.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![
            ScalarValue::UInt64(Some(self.rows)),
            self.value.clone(),
        ])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let values = column(states, 1)?;
        for (part, rows) in as_uint64_array(column(states, 0)?)?.iter().enumerate() {
            let rows = rows.unwrap_or(0);
            self.add(rows)?;
            if rows == 1 {
                self.value = ScalarValue::try_from_array(values, part)?;
            }
        }
        Ok(())
    }
}

fn column(columns: &[ArrayRef], index: usize) -> Result<&ArrayRef> {
    columns
        .get(index)
        .ok_or_else(|| internal_datafusion_err!("single_value misses column {index}"))
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;

    use super::*;

    fn empty() -> SingleRow {
        SingleRow {
            rows: 0,
            value: ScalarValue::Int64(None),
        }
    }

    fn of(values: &[Option<i64>]) -> Result<SingleRow> {
        let mut row = empty();
        row.update_batch(&[Arc::new(Int64Array::from(values.to_vec()))])?;
        Ok(row)
    }

    fn merged(parts: Vec<SingleRow>) -> Result<ScalarValue> {
        let mut whole = empty();
        for mut part in parts {
            let state = part.state()?;
            let arrays = state
                .iter()
                .map(ScalarValue::to_array)
                .collect::<Result<Vec<_>>>()?;
            whole.merge_batch(&arrays)?;
        }
        whole.evaluate()
    }

    #[test]
    fn parts_merge_into_the_only_row() {
        let none = || of(&[]).unwrap();
        let five = || of(&[Some(5)]).unwrap();
        let null = || of(&[None]).unwrap();
        assert_eq!(merged(vec![]).unwrap(), ScalarValue::Int64(None));
        assert_eq!(
            merged(vec![none(), five(), none()]).unwrap(),
            ScalarValue::Int64(Some(5))
        );
        assert_eq!(
            merged(vec![null(), none()]).unwrap(),
            ScalarValue::Int64(None)
        );
        assert!(merged(vec![null(), five()]).is_err());
        assert!(of(&[Some(5), Some(5)]).is_err());
        let mut twice = five();
        assert!(
            twice
                .update_batch(&[Arc::new(Int64Array::from(vec![5]))])
                .is_err()
        );
    }
}
