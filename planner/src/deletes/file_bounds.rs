//! What is known of one column's values in a file, to tell whether two files can have one in common.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::UInt64Type;
use datafusion::scalar::ScalarValue;

use crate::prune::ColumnBounds;

/// Bounds and nulls of a column in a data file or delete file. The default: nothing is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ValueRange {
    pub lower: Option<ScalarValue>,
    pub upper: Option<ScalarValue>,
    pub nulls: Nulls,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Nulls {
    None,
    All,
    /// Some, or unknown.
    #[default]
    Maybe,
}

impl ValueRange {
    /// That of one of a manifest's files.
    pub(crate) fn of(bounds: &ColumnBounds, index: usize, rows: u64) -> Self {
        let value = |array: &ArrayRef| {
            ScalarValue::try_from_array(array, index)
                .ok()
                .filter(|value| !value.is_null())
        };
        let nulls = match bounds.null_counts.as_primitive_opt::<UInt64Type>() {
            Some(counts) if counts.is_valid(index) => match counts.value(index) {
                0 => Nulls::None,
                n if n >= rows => Nulls::All,
                _ => Nulls::Maybe,
            },
            _ => Nulls::Maybe,
        };
        Self {
            lower: value(&bounds.lower),
            upper: value(&bounds.upper),
            nulls,
        }
    }

    /// Whether a value, or null, may be in both.
    pub(crate) fn may_meet(&self, other: &Self) -> bool {
        let null_in_both = self.nulls != Nulls::None && other.nulls != Nulls::None;
        let value_in_both = self.nulls != Nulls::All
            && other.nulls != Nulls::All
            && !lies_below(self, other)
            && !lies_below(other, self);
        null_in_both || value_in_both
    }
}

/// Whether all values of the first are certainly smaller than all of the second.
fn lies_below(low: &ValueRange, high: &ValueRange) -> bool {
    match (&low.upper, &high.lower) {
        (Some(upper), Some(lower)) => upper.partial_cmp(lower) == Some(Ordering::Less),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(lower: Option<i64>, upper: Option<i64>, nulls: Nulls) -> ValueRange {
        let value = |v: Option<i64>| v.map(|v| ScalarValue::Int64(Some(v)));
        ValueRange {
            lower: value(lower),
            upper: value(upper),
            nulls,
        }
    }

    #[test]
    fn ranges_meet_unless_it_is_certain_that_they_do_not() {
        use Nulls::{All, Maybe, None as No};
        let unknown = ValueRange::default();
        for (a, b, meet) in [
            (
                range(Some(1), Some(5), No),
                range(Some(5), Some(9), No),
                true,
            ),
            (
                range(Some(1), Some(4), No),
                range(Some(5), Some(9), No),
                false,
            ),
            (range(Some(1), None, No), range(Some(5), Some(9), No), true),
            (range(None, Some(4), No), range(Some(5), None, No), false),
            (range(None, None, No), range(Some(5), Some(9), No), true),
            // Null meets null, whatever the bounds.
            (
                range(Some(1), Some(4), Maybe),
                range(Some(5), Some(9), Maybe),
                true,
            ),
            (
                range(Some(1), Some(4), Maybe),
                range(Some(5), Some(9), No),
                false,
            ),
            (range(None, None, All), range(Some(5), Some(9), No), false),
            (range(None, None, All), range(Some(5), Some(9), Maybe), true),
            (range(None, None, All), range(None, None, All), true),
            (unknown.clone(), range(None, None, All), true),
            (unknown.clone(), unknown.clone(), true),
            (unknown, range(Some(1), Some(1), No), true),
        ] {
            assert_eq!(a.may_meet(&b), meet, "{a:?} {b:?}");
            assert_eq!(b.may_meet(&a), meet, "{b:?} {a:?}");
        }
        // Values that cannot be compared say nothing.
        let text = ValueRange {
            lower: Some(ScalarValue::Utf8(Some("a".into()))),
            upper: Some(ScalarValue::Utf8(Some("b".into()))),
            nulls: No,
        };
        assert!(text.may_meet(&range(Some(1), Some(2), No)));
    }
}
