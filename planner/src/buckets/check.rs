//! Whether rows are in the bucket that their file's partition says.
//!
//! A file that someone wrote into the wrong partition would give a join of buckets too few rows. The hash of each key that
//! comes out of such a scan is a small part of what the join spends on it.

use arrow::array::ArrayRef;

use super::file_buckets::FileBucket;
use super::hash::bucket;
use super::hashes::for_each_hash;

/// What is wrong with a value, for an error about its file; `None` if all are in their bucket.
pub(crate) fn misplaced(values: &ArrayRef, of: &FileBucket) -> Option<String> {
    let count = of.count;
    let Some(wanted) = of.bucket else {
        return (values.null_count() < values.len()).then(|| {
            format!(
                "it holds values though its partition is the bucket of nulls (of {count} buckets)"
            )
        });
    };
    let mut right = values.null_count() == 0;
    let known = right
        && for_each_hash(values, |_, hash| {
            right = bucket(hash, count) == wanted;
            right
        });
    (!known || !right).then(|| {
        format!(
            "it holds rows of other buckets than number {wanted} of {count}, which its partition says it is"
        )
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int32Array, Int64Array, StringViewArray};

    use super::*;

    fn of(count: u32, bucket: Option<u32>) -> FileBucket {
        FileBucket {
            column: 0,
            count,
            bucket,
        }
    }

    // By the specification's hashes: 34 is 2017239379, "iceberg" is 1210000089.
    #[test]
    fn rows_of_another_bucket_are_found() {
        let right = Some(2017239379 % 16);
        let long: ArrayRef = Arc::new(Int64Array::from(vec![34, 34]));
        assert_eq!(misplaced(&long, &of(16, right)), None);
        let int: ArrayRef = Arc::new(Int32Array::from(vec![34]));
        assert_eq!(misplaced(&int, &of(16, right)), None);
        let wrong: ArrayRef = Arc::new(Int64Array::from(vec![34, 34, 35]));
        let message = misplaced(&wrong, &of(16, right)).expect("35 is in another bucket");
        assert!(message.contains("number 3 of 16"), "{message}");
        let text: ArrayRef = Arc::new(StringViewArray::from(vec!["iceberg"]));
        assert_eq!(misplaced(&text, &of(8, Some(1210000089 % 8))), None);
        assert!(misplaced(&text, &of(8, Some(1210000090 % 8))).is_some());
    }

    #[test]
    fn nulls_have_a_partition_of_their_own() {
        let nulls: ArrayRef = Arc::new(Int64Array::from(vec![None, None::<i64>]));
        assert_eq!(misplaced(&nulls, &of(4, None)), None);
        assert!(misplaced(&nulls, &of(4, Some(0))).is_some());
        let mixed: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(34)]));
        assert!(misplaced(&mixed, &of(4, None)).is_some());
        assert!(misplaced(&mixed, &of(4, Some(3))).is_some());
    }
}
