//! What is known of the keys of a join's build side.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::filter;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::hash_utils::create_hashes;
use datafusion::error::Result;
use datafusion::functions_aggregate::min_max::{MaxAccumulator, MinAccumulator};
use datafusion::logical_expr::{Accumulator, Operator};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, in_list, lit};
use datafusion::physical_expr::utils::conjunction;
use datafusion::physical_plan::repartition::REPARTITION_RANDOM_STATE;
use datafusion::scalar::ScalarValue;
use prost::Message;

use super::bloom::Bloom;
use crate::error::codec_error;

/// So many different values are kept one by one: what files and row groups are looked through for.
const LISTED_VALUES: usize = 512;
/// Values are counted among so many rows; a larger side has too many anyway, or repeats few of them too often.
const LISTED_ROWS: u64 = 1 << 16;
/// Above, a filter lets more than one in ten of the other keys pass.
const MOST_FILL: f64 = 0.75;
/// Longer texts are no bounds: they would be sent to every worker.
const BOUND_BYTES: usize = 256;

/// The keys of some rows: those that cannot be among them, by their hashes, bounds, or one by one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeySummary {
    /// Rows whose keys are not null.
    rows: u64,
    bloom: Bloom,
    /// Of each column of the key.
    bounds: Vec<Bounds>,
    /// All values of a key of one column, while they are few.
    values: Option<HashSet<ScalarValue>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Bounds {
    /// No value was seen.
    Empty,
    Known {
        min: ScalarValue,
        max: ScalarValue,
    },
    Unknown,
}

/// Whether keys of a type can be summed up: equal ones have equal hashes, and they have an order.
pub(crate) fn can_be_summed_up(of: &DataType) -> bool {
    of.is_integer()
        || matches!(
            of,
            DataType::Boolean
                | DataType::Decimal128(..)
                | DataType::Date32
                | DataType::Timestamp(..)
                | DataType::Time64(..)
                | DataType::Utf8
                | DataType::Utf8View
                | DataType::LargeUtf8
                | DataType::Binary
                | DataType::BinaryView
                | DataType::LargeBinary
                | DataType::FixedSizeBinary(_)
        )
}

impl KeySummary {
    /// Of no rows. All parts of one filter have the same size in bytes and number of key columns.
    pub(super) fn new(bloom_bytes: usize, columns: usize) -> Self {
        Self {
            rows: 0,
            bloom: Bloom::new(bloom_bytes),
            bounds: vec![Bounds::Empty; columns],
            values: (columns == 1).then(HashSet::new),
        }
    }

    /// Takes in the keys of a batch.
    pub(super) fn see(&mut self, keys: &[ArrayRef]) -> Result<()> {
        // A key with a null equals no other.
        let valid = valid_rows(keys);
        let keys = match &valid {
            Some(valid) if valid.null_count() > 0 => {
                let valid = BooleanArray::new(valid.inner().clone(), None);
                keys.iter()
                    .map(|key| Ok(filter(key, &valid)?))
                    .collect::<Result<Vec<_>>>()?
            }
            _ => keys.to_vec(),
        };
        let mut hashes = vec![0; keys[0].len()];
        for hash in hashes_of(&keys, &mut hashes)? {
            self.bloom.insert(*hash);
        }
        self.rows += keys[0].len() as u64;
        for (bounds, key) in self.bounds.iter_mut().zip(&keys) {
            if !key.is_empty() && *bounds != Bounds::Unknown {
                bounds.take_in(Bounds::of(key)?)?;
            }
        }
        if self.rows > LISTED_ROWS {
            self.values = None;
        }
        if let Some(values) = &mut self.values {
            for row in 0..keys[0].len() {
                values.insert(ScalarValue::try_from_array(&keys[0], row)?);
                if values.len() > LISTED_VALUES {
                    self.values = None;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Takes in what another part has seen.
    pub(super) fn add(&mut self, other: Self) -> Result<()> {
        if self.bounds.len() != other.bounds.len() || !self.bloom.add(&other.bloom) {
            return Err(codec_error("parts of a runtime filter are not alike"));
        }
        self.rows += other.rows;
        for (bounds, other) in self.bounds.iter_mut().zip(other.bounds) {
            bounds.take_in(other)?;
        }
        self.values = match (self.values.take(), other.values) {
            (Some(mut values), Some(other)) => {
                values.extend(other);
                (values.len() <= LISTED_VALUES).then_some(values)
            }
            _ => None,
        };
        Ok(())
    }

    /// What rows must fulfil whose keys may be among these: for what prunes files.
    pub(super) fn predicate(
        &self,
        keys: &[PhysicalExprRef],
        schema: &Schema,
    ) -> Result<PhysicalExprRef> {
        if self.rows == 0 {
            return Ok(lit(false));
        }
        let mut all = Vec::new();
        for (key, bounds) in keys.iter().zip(&self.bounds) {
            if let Bounds::Known { min, max } = bounds {
                for (op, bound) in [(Operator::GtEq, min), (Operator::LtEq, max)] {
                    let bound = lit(bound.clone());
                    all.push(
                        Arc::new(BinaryExpr::new(Arc::clone(key), op, bound)) as PhysicalExprRef
                    );
                }
            }
        }
        if let (Some(values), [key]) = (&self.values, keys) {
            let values = values.iter().cloned().map(lit).collect();
            all.push(in_list(Arc::clone(key), values, &false, schema)?);
        }
        Ok(conjunction(all))
    }

    /// Whether single rows are worth a look.
    pub(super) fn tells_rows_apart(&self) -> bool {
        self.bloom.fill() < MOST_FILL
    }

    /// The rows whose keys may be among these.
    pub(super) fn may_hold(&self, keys: &[ArrayRef]) -> Result<BooleanArray> {
        let mut hashes = vec![0; keys.first().map_or(0, |key| key.len())];
        let hashes = hashes_of(keys, &mut hashes)?;
        let valid = valid_rows(keys);
        Ok(hashes
            .iter()
            .enumerate()
            .map(|(row, hash)| {
                let valid = valid.as_ref().is_none_or(|valid| valid.is_valid(row));
                Some(valid && self.bloom.may_hold(*hash))
            })
            .collect())
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let message = SummaryMessage {
            rows: self.rows,
            bloom: self.bloom.to_bytes(),
            bounds: self
                .bounds
                .iter()
                .map(Bounds::to_message)
                .collect::<Result<_>>()?,
            listed: self.values.is_some(),
            values: self
                .values
                .iter()
                .flatten()
                .map(|value| value.try_into().map_err(codec_error))
                .collect::<Result<_>>()?,
        };
        Ok(message.encode_to_vec())
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let message = SummaryMessage::decode(bytes).map_err(codec_error)?;
        let values = message
            .values
            .iter()
            .map(|value| ScalarValue::try_from(value).map_err(codec_error))
            .collect::<Result<_>>()?;
        Ok(Self {
            rows: message.rows,
            bloom: Bloom::from_bytes(&message.bloom)
                .ok_or_else(|| codec_error("a runtime filter has no hashes"))?,
            bounds: message
                .bounds
                .iter()
                .map(Bounds::from_message)
                .collect::<Result<_>>()?,
            values: message.listed.then_some(values),
        })
    }
}

/// The rows in which no column is null; `None` if there is no null.
fn valid_rows(keys: &[ArrayRef]) -> Option<NullBuffer> {
    keys.iter().fold(None, |valid, key| {
        NullBuffer::union(valid.as_ref(), key.logical_nulls().as_ref())
    })
}

/// The same on all workers, which are of one version.
fn hashes_of<'a>(keys: &[ArrayRef], hashes: &'a mut Vec<u64>) -> Result<&'a Vec<u64>> {
    create_hashes(keys, REPARTITION_RANDOM_STATE.random_state(), hashes)?;
    Ok(hashes)
}

impl Bounds {
    /// Of values none of which is null.
    fn of(values: &ArrayRef) -> Result<Self> {
        let values = std::slice::from_ref(values);
        let mut least = MinAccumulator::try_new(values[0].data_type())?;
        least.update_batch(values)?;
        let mut most = MaxAccumulator::try_new(values[0].data_type())?;
        most.update_batch(values)?;
        let (min, max) = (least.evaluate()?, most.evaluate()?);
        let long = |value: &ScalarValue| value.size() > BOUND_BYTES + size_of::<ScalarValue>();
        Ok(
            match min.is_null() || max.is_null() || long(&min) || long(&max) {
                true => Self::Unknown,
                false => Self::Known { min, max },
            },
        )
    }

    fn take_in(&mut self, other: Self) -> Result<()> {
        match (&mut *self, other) {
            (Self::Unknown, _) | (_, Self::Empty) => {}
            (_, Self::Unknown) => *self = Self::Unknown,
            (Self::Empty, other) => *self = other,
            (
                Self::Known { min, max },
                Self::Known {
                    min: other_min,
                    max: other_max,
                },
            ) => {
                if other_min.try_cmp(min)?.is_lt() {
                    *min = other_min;
                }
                if other_max.try_cmp(max)?.is_gt() {
                    *max = other_max;
                }
            }
        }
        Ok(())
    }

    fn to_message(&self) -> Result<BoundsMessage> {
        let (min, max) = match self {
            Self::Known { min, max } => (
                Some(min.try_into().map_err(codec_error)?),
                Some(max.try_into().map_err(codec_error)?),
            ),
            _ => (None, None),
        };
        Ok(BoundsMessage {
            empty: *self == Self::Empty,
            min,
            max,
        })
    }

    fn from_message(message: &BoundsMessage) -> Result<Self> {
        match (&message.min, &message.max) {
            (Some(min), Some(max)) => Ok(Self::Known {
                min: min.try_into().map_err(codec_error)?,
                max: max.try_into().map_err(codec_error)?,
            }),
            _ if message.empty => Ok(Self::Empty),
            _ => Ok(Self::Unknown),
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct SummaryMessage {
    #[prost(uint64, tag = "1")]
    rows: u64,
    #[prost(bytes = "vec", tag = "2")]
    bloom: Vec<u8>,
    #[prost(message, repeated, tag = "3")]
    bounds: Vec<BoundsMessage>,
    #[prost(bool, tag = "4")]
    listed: bool,
    #[prost(message, repeated, tag = "5")]
    values: Vec<datafusion_proto::protobuf::ScalarValue>,
}

#[derive(Clone, PartialEq, Message)]
struct BoundsMessage {
    #[prost(bool, tag = "1")]
    empty: bool,
    #[prost(message, optional, tag = "2")]
    min: Option<datafusion_proto::protobuf::ScalarValue>,
    #[prost(message, optional, tag = "3")]
    max: Option<datafusion_proto::protobuf::ScalarValue>,
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, StringArray};
    use datafusion::arrow::datatypes::Field;
    use datafusion::physical_expr::expressions::col;

    use super::*;

    fn longs(values: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
        Arc::new(values.into_iter().collect::<Int64Array>())
    }

    fn summary(parts: &[&[ArrayRef]]) -> KeySummary {
        let columns = parts[0].len();
        let mut whole = KeySummary::new(1024, columns);
        for keys in parts {
            let mut part = KeySummary::new(1024, columns);
            part.see(keys).unwrap();
            whole
                .add(KeySummary::decode(&part.encode().unwrap()).unwrap())
                .unwrap();
        }
        whole
    }

    fn predicate(summary: &KeySummary, columns: &[(&str, DataType)]) -> String {
        let fields: Vec<_> = columns
            .iter()
            .map(|(name, of)| Field::new(*name, of.clone(), true))
            .collect();
        let schema = Schema::new(fields);
        let keys: Vec<_> = columns
            .iter()
            .map(|(name, _)| col(name, &schema).unwrap())
            .collect();
        summary.predicate(&keys, &schema).unwrap().to_string()
    }

    #[test]
    fn parts_make_bounds_and_a_list_of_all() {
        let whole = summary(&[&[longs([Some(7), None])], &[longs([Some(3)])], &[longs([])]]);
        let said = predicate(&whole, &[("k", DataType::Int64)]);
        assert!(
            said.starts_with("k@0 >= 3 AND k@0 <= 7 AND k@0 IN "),
            "{said}"
        );
        let rows = whole
            .may_hold(&[longs([Some(3), Some(4), None, Some(7)])])
            .unwrap();
        assert!(rows.value(0) && !rows.value(2) && rows.value(3));
    }

    #[test]
    fn no_rows_let_nothing_pass() {
        let whole = summary(&[&[longs([None])], &[longs([])]]);
        assert_eq!(predicate(&whole, &[("k", DataType::Int64)]), "false");
        assert!(!whole.may_hold(&[longs([Some(0)])]).unwrap().value(0));
    }

    #[test]
    fn many_values_are_not_listed() {
        let few: Vec<_> = (0..400).map(Some).collect();
        let more: Vec<_> = (300..800).map(Some).collect();
        let whole = summary(&[&[longs(few.clone())], &[longs(few.clone())]]);
        assert!(predicate(&whole, &[("k", DataType::Int64)]).contains(" IN "));
        let whole = summary(&[&[longs(few)], &[longs(more)]]);
        assert_eq!(
            predicate(&whole, &[("k", DataType::Int64)]),
            "k@0 >= 0 AND k@0 <= 799"
        );
    }

    #[test]
    fn keys_of_two_columns_have_bounds_each() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("b"), None, Some("a")]));
        let whole = summary(&[&[longs([Some(1), Some(100), Some(2)]), texts.clone()]]);
        assert_eq!(
            predicate(&whole, &[("k", DataType::Int64), ("t", DataType::Utf8)]),
            "k@0 >= 1 AND k@0 <= 2 AND t@1 >= a AND t@1 <= b",
            "the row with the null does not count"
        );
        let rows = whole
            .may_hold(&[longs([Some(1), Some(100), Some(2)]), texts])
            .unwrap();
        assert!(rows.value(0) && !rows.value(1) && rows.value(2));
    }

    #[test]
    fn long_texts_are_no_bounds_of_any_part() {
        let long: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1000)]));
        let short: ArrayRef = Arc::new(StringArray::from(vec!["y"]));
        let mut whole = summary(&[&[long], &[short]]);
        whole.values = None;
        assert_eq!(predicate(&whole, &[("t", DataType::Utf8)]), "true");
    }

    #[test]
    fn what_is_no_summary_is_an_error() {
        assert!(KeySummary::decode(b"\xff\xff\xff").is_err());
        assert!(KeySummary::decode(b"").is_err());
        assert!(
            KeySummary::new(1024, 1)
                .add(KeySummary::new(2048, 1))
                .is_err()
        );
        assert!(
            KeySummary::new(1024, 1)
                .add(KeySummary::new(1024, 2))
                .is_err()
        );
    }
}
