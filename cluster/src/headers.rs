use http::{HeaderMap, HeaderName, HeaderValue};

const QUERY_ID: HeaderName = HeaderName::from_static("x-tarn-query-id");
const QUERY_MEMORY_BYTES: HeaderName = HeaderName::from_static("x-tarn-query-memory-bytes");
const BATCH_ROWS: HeaderName = HeaderName::from_static("x-tarn-batch-rows");
const TARGET_PARTITIONS: HeaderName = HeaderName::from_static("x-tarn-target-partitions");
const LATE_MATERIALIZATION: HeaderName = HeaderName::from_static("x-tarn-late-materialization");

/// What a worker must know of a query beside the plan; travels with every task as gRPC metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskHeaders {
    /// The coordinator's id of the query.
    pub query_id: String,
    /// What the query may hold of a worker's memory pool, in bytes; `None` is all of it.
    pub query_memory_bytes: Option<u64>,
    /// Rows in a record batch.
    pub batch_rows: Option<usize>,
    /// Partitions in a task.
    pub target_partitions: Option<usize>,
    /// Whether filters are evaluated inside the Parquet reader.
    pub late_materialization: bool,
}

impl TaskHeaders {
    /// The headers to send. An id that cannot be a header (it is ours, so it can) is left out.
    pub fn to_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Ok(id) = HeaderValue::from_str(&self.query_id) {
            headers.insert(QUERY_ID, id);
        }
        if let Some(bytes) = self.query_memory_bytes {
            headers.insert(QUERY_MEMORY_BYTES, HeaderValue::from(bytes));
        }
        if let Some(rows) = self.batch_rows {
            headers.insert(BATCH_ROWS, HeaderValue::from(rows));
        }
        if let Some(partitions) = self.target_partitions {
            headers.insert(TARGET_PARTITIONS, HeaderValue::from(partitions));
        }
        if self.late_materialization {
            headers.insert(LATE_MATERIALIZATION, HeaderValue::from_static("1"));
        }
        headers
    }

    /// Reads the headers of a task; what is missing or is not a number counts as not given.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        Self {
            query_id: text(&QUERY_ID).unwrap_or_default().to_string(),
            query_memory_bytes: text(&QUERY_MEMORY_BYTES).and_then(|value| value.parse().ok()),
            batch_rows: text(&BATCH_ROWS)
                .and_then(|value| value.parse().ok())
                .filter(|rows| *rows > 0),
            target_partitions: text(&TARGET_PARTITIONS)
                .and_then(|value| value.parse().ok())
                .filter(|partitions| *partitions > 0),
            late_materialization: text(&LATE_MATERIALIZATION) == Some("1"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_as_they_went() {
        let task = TaskHeaders {
            query_id: "0193-abc".to_string(),
            query_memory_bytes: Some(1 << 30),
            batch_rows: Some(8192),
            target_partitions: Some(4),
            late_materialization: true,
        };
        assert_eq!(TaskHeaders::from_headers(&task.to_headers()), task);
    }

    #[test]
    fn garbage_counts_as_not_given() {
        let mut headers = HeaderMap::new();
        headers.insert(QUERY_MEMORY_BYTES, HeaderValue::from_static("a lot"));
        headers.insert(BATCH_ROWS, HeaderValue::from_static("0"));
        assert_eq!(TaskHeaders::from_headers(&headers), TaskHeaders::default());
    }
}
