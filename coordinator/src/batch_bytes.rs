//! How many bytes of values a batch holds.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;

/// Bytes of a view: its length, prefix and place.
const VIEW_BYTES: u64 = 16;

/// The bytes of the batch's own rows. Buffers that it shares with other batches (a slice of a
/// larger batch, strings of a file's page) count only as far as its rows use them.
pub(crate) fn batch_bytes(batch: &RecordBatch) -> u64 {
    batch.columns().iter().map(column_bytes).sum()
}

fn column_bytes(column: &ArrayRef) -> u64 {
    let views = column.len() as u64 * VIEW_BYTES;
    match column.data_type() {
        DataType::Utf8View => views + column.as_string_view().total_buffer_bytes_used() as u64,
        DataType::BinaryView => views + column.as_binary_view().total_buffer_bytes_used() as u64,
        _ => column
            .to_data()
            .get_slice_memory_size()
            .unwrap_or_else(|_| column.get_array_memory_size()) as u64,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int64Array, StringViewArray};

    use super::*;

    #[test]
    fn a_slice_counts_as_its_own_rows() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
        let batch = RecordBatch::try_from_iter([("n", numbers)]).expect("one column");
        assert_eq!(batch_bytes(&batch), 8000);
        assert_eq!(batch_bytes(&batch.slice(10, 5)), 40);
    }

    #[test]
    fn long_strings_behind_views_count() {
        let long = "a string that does not fit into a view";
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values(["short", long]));
        let batch = RecordBatch::try_from_iter([("s", texts)]).expect("one column");
        assert_eq!(batch_bytes(&batch), 2 * 16 + long.len() as u64);
    }
}
