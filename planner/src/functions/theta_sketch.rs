//! Sketches of the distinct values of a column, as Iceberg's statistics files have them.
//!
//! The Puffin specification's `apache-datasketches-theta-v1`: a theta sketch with the default seed that is fed each value's bytes, as
//! Iceberg serialises single values. So sketches of Spark, Trino and Tarn over equal values are equal.

use std::mem::size_of_val;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Field, FieldRef, Float32Type,
    Float64Type, Int32Type, Int64Type, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
    TimestampNanosecondType,
};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};
use datasketches::hash::value::raw_bytes;
use datasketches::theta::{
    CompactThetaSketch, ThetaSketch, ThetaSketchBuilder, ThetaUnion, ThetaUnionBuilder,
};

/// The function's name. It is Tarn's own: `ANALYZE TABLE` calls it.
pub const THETA_SKETCH: &str = "tarn_theta_sketch";

/// `tarn_theta_sketch(x)`: a compact sketch of the distinct values of `x` that are not NULL, as bytes.
pub(crate) fn theta_sketch() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(ThetaSketchFunction {
        signature: Signature::any(1, Volatility::Immutable),
    }))
}

/// Whether the values of a type can be sketched.
pub fn has_theta_sketch(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Boolean
            | DataType::Int32
            | DataType::Int64
            | DataType::Float32
            | DataType::Float64
            | DataType::Decimal128(..)
            | DataType::Date32
            | DataType::Time64(TimeUnit::Microsecond)
            | DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _)
            | DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
    )
}

/// How many distinct values a compact sketch estimates.
///
/// # Errors
/// The bytes are no compact theta sketch with the default seed.
pub fn sketched_values(sketch: &[u8]) -> Result<u64> {
    match CompactThetaSketch::deserialize(sketch) {
        Ok(sketch) => Ok(sketch.estimate().round() as u64),
        Err(error) => exec_err!("not a theta sketch: {error}"),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ThetaSketchFunction {
    signature: Signature,
}

impl AggregateUDFImpl for ThetaSketchFunction {
    fn name(&self) -> &str {
        THETA_SKETCH
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [only] if has_theta_sketch(only) => Ok(DataType::Binary),
            _ => exec_err!("{THETA_SKETCH} takes one argument of a primitive type"),
        }
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Sketch::new()?))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let name = format!("{}[sketch]", args.name);
        Ok(vec![Arc::new(Field::new(name, DataType::Binary, true))])
    }
}

#[derive(Debug)]
struct Sketch {
    values: ThetaSketch,
    /// Of sketches that were made elsewhere.
    others: ThetaUnion,
}

impl Sketch {
    fn new() -> Result<Self> {
        match (
            ThetaSketchBuilder::default().build(),
            ThetaUnionBuilder::default().build(),
        ) {
            (Ok(values), Ok(others)) => Ok(Self { values, others }),
            (Err(error), _) | (_, Err(error)) => exec_err!("no sketch can be made: {error}"),
        }
    }

    fn add(&mut self, value: &[u8]) {
        // DataSketches for Java, which Spark and Trino feed, leaves out values without bytes.
        if !value.is_empty() {
            self.values.update(raw_bytes::from_slice(value));
        }
    }

    fn add_numbers<T: ArrowPrimitiveType, const N: usize>(
        &mut self,
        array: &ArrayRef,
        bytes: fn(T::Native) -> [u8; N],
    ) {
        let mut last = None;
        for value in array.as_primitive::<T>().iter().flatten() {
            let value = bytes(value);
            // Sorted columns repeat themselves.
            if last != Some(value) {
                self.add(&value);
                last = Some(value);
            }
        }
    }

    fn sketch(&mut self) -> Result<ScalarValue> {
        if let Err(error) = self.others.update(&self.values) {
            return exec_err!("sketches cannot be put together: {error}");
        }
        Ok(ScalarValue::Binary(Some(
            self.others.to_sketch(true).serialize(),
        )))
    }
}

impl Accumulator for Sketch {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(array) = values.first() else {
            return Ok(());
        };
        match array.data_type() {
            DataType::Boolean => {
                for value in array.as_boolean().iter().flatten() {
                    self.add(&[u8::from(value)]);
                }
            }
            DataType::Int32 => self.add_numbers::<Int32Type, 4>(array, i32::to_le_bytes),
            DataType::Int64 => self.add_numbers::<Int64Type, 8>(array, i64::to_le_bytes),
            DataType::Float32 => self.add_numbers::<Float32Type, 4>(array, f32::to_le_bytes),
            DataType::Float64 => self.add_numbers::<Float64Type, 8>(array, f64::to_le_bytes),
            DataType::Date32 => self.add_numbers::<Date32Type, 4>(array, i32::to_le_bytes),
            DataType::Time64(TimeUnit::Microsecond) => {
                self.add_numbers::<Time64MicrosecondType, 8>(array, i64::to_le_bytes);
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                self.add_numbers::<TimestampMicrosecondType, 8>(array, i64::to_le_bytes);
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                self.add_numbers::<TimestampNanosecondType, 8>(array, i64::to_le_bytes);
            }
            DataType::Decimal128(..) => {
                for value in array.as_primitive::<Decimal128Type>().iter().flatten() {
                    let bytes = value.to_be_bytes();
                    self.add(fewest_bytes(&bytes));
                }
            }
            DataType::Utf8 | DataType::LargeUtf8 => {
                return self.update_batch(&[cast(array, &DataType::Utf8View)?]);
            }
            DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_) => {
                return self.update_batch(&[cast(array, &DataType::BinaryView)?]);
            }
            DataType::Utf8View => {
                for value in array.as_string_view().iter().flatten() {
                    self.add(value.as_bytes());
                }
            }
            DataType::BinaryView => {
                for value in array.as_binary_view().iter().flatten() {
                    self.add(value);
                }
            }
            other => return exec_err!("{THETA_SKETCH} does not take values of type {other}"),
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.sketch()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.estimated_size() + self.others.estimated_size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.sketch()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(sketches) = states.first() else {
            return Ok(());
        };
        for sketch in sketches.as_binary::<i32>().iter().flatten() {
            let merged = CompactThetaSketch::deserialize(sketch)
                .and_then(|sketch| self.others.update(&sketch));
            if let Err(error) = merged {
                return exec_err!("a part's sketch cannot be read: {error}");
            }
        }
        Ok(())
    }
}

/// A number in two's complement, big-endian, in as few bytes as hold it: as Iceberg serialises decimals.
fn fewest_bytes(bytes: &[u8; 16]) -> &[u8] {
    let mut start = 0;
    while start < 15 {
        let (lead, next) = (bytes[start], bytes[start + 1]);
        let repeats = (lead == 0 && next < 0x80) || (lead == 0xff && next >= 0x80);
        if !repeats {
            break;
        }
        start += 1;
    }
    &bytes[start..]
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        BinaryArray, BooleanArray, Date32Array, Decimal128Array, Int32Array, Int64Array,
        StringArray, StringViewArray,
    };

    use super::*;

    fn sketch_of(batches: &[ArrayRef]) -> Vec<u8> {
        let mut sketch = Sketch::new().expect("a sketch");
        for batch in batches {
            sketch
                .update_batch(std::slice::from_ref(batch))
                .expect("values");
        }
        match sketch.evaluate().expect("bytes") {
            ScalarValue::Binary(Some(bytes)) => bytes,
            other => panic!("{other:?}"),
        }
    }

    fn count(batches: &[ArrayRef]) -> u64 {
        sketched_values(&sketch_of(batches)).expect("a sketch")
    }

    /// The hashes that a sketch holds, in order.
    fn hashes(array: ArrayRef) -> Vec<u64> {
        let bytes = sketch_of(&[array]);
        let sketch = CompactThetaSketch::deserialize(&bytes).expect("a sketch");
        sketch.iter().map(|entry| entry.hash()).collect()
    }

    #[test]
    fn few_values_are_counted_exactly() {
        let ints: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(1), Some(2)]));
        assert_eq!(count(&[ints.clone(), ints]), 2);
        assert_eq!(count(&[]), 0);
        let nulls: ArrayRef = Arc::new(Int32Array::from(vec![None, None]));
        assert_eq!(count(&[nulls]), 0);
        let truths: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
        assert_eq!(count(&[truths]), 2);
    }

    #[test]
    fn many_values_are_counted_within_some_percent() {
        let ints: ArrayRef = Arc::new((0..200_000).collect::<Int64Array>());
        let counted = count(&[ints]) as f64;
        // Of 4096 entries: one standard error is 1.6%.
        assert!((counted / 200_000.0 - 1.0).abs() < 0.06, "{counted}");
    }

    #[test]
    fn parts_merge_into_the_sketch_of_the_whole() {
        let part =
            |from: i32, to: i32| -> ArrayRef { Arc::new((from..to).collect::<Int32Array>()) };
        let mut whole = Sketch::new().expect("a sketch");
        for (from, to) in [(0, 600), (400, 1000), (0, 10)] {
            let mut some = Sketch::new().expect("a sketch");
            some.update_batch(&[part(from, to)]).expect("values");
            let state = some.state().expect("a state");
            let state = state[0].to_array().expect("an array");
            whole.merge_batch(&[state]).expect("merges");
        }
        let ScalarValue::Binary(Some(merged)) = whole.evaluate().expect("bytes") else {
            panic!("no bytes");
        };
        assert_eq!(merged, sketch_of(&[part(0, 1000)]));
    }

    #[test]
    fn texts_and_bytes_of_all_layouts_are_the_same_values() {
        let texts = ["a", "", "Grüße"];
        let views = hashes(Arc::new(StringViewArray::from(texts.to_vec())));
        assert_eq!(views, hashes(Arc::new(StringArray::from(texts.to_vec()))));
        let bytes: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        assert_eq!(views, hashes(Arc::new(BinaryArray::from(bytes))));
        // The empty one is left out, as Java does.
        assert_eq!(views.len(), 2);
    }

    #[test]
    fn values_are_hashed_as_iceberg_serialises_them() {
        // A date is 4 bytes like an int; a long is 8.
        let int = hashes(Arc::new(Int32Array::from(vec![34])));
        assert_eq!(int, hashes(Arc::new(Date32Array::from(vec![34]))));
        assert_ne!(int, hashes(Arc::new(Int64Array::from(vec![34]))));
        let bytes = |bytes: &[u8]| hashes(Arc::new(BinaryArray::from(vec![bytes])));
        assert_eq!(int, bytes(&[34, 0, 0, 0]));
        let decimal = |unscaled: i128| {
            let array = Decimal128Array::from(vec![unscaled]);
            hashes(Arc::new(
                array.with_precision_and_scale(38, 2).expect("fits"),
            ))
        };
        // The specification's example: 14.20 is 0x058C.
        assert_eq!(decimal(1420), bytes(&[0x05, 0x8c]));
        assert_eq!(decimal(0), bytes(&[0]));
        assert_eq!(decimal(-1), bytes(&[0xff]));
        assert_eq!(decimal(128), bytes(&[0, 0x80]));
        assert_eq!(decimal(-129), bytes(&[0xff, 0x7f]));
    }

    /// Bytes that DataSketches' own Python library (5.2) gives for the same values.
    #[test]
    fn sketches_are_those_of_other_implementations() {
        let hex =
            |bytes: Vec<u8>| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["iceberg", "Grüße"]));
        assert_eq!(
            hex(sketch_of(&[texts])),
            "02030300001acc93020000000000000019e1926a76422e039487442c55515414"
        );
        let longs: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 34, -7]));
        assert_eq!(
            hex(sketch_of(&[longs])),
            "02030300001acc93040000000000000015f97dcbbd86a105c397fc1281709d1ef8b5cad2a1d0a125d5b943d786293629"
        );
    }
}
