//! Readers that panic on a damaged file end with an error instead, so that the file can be named.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;

use arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};

/// A reader panicked.
#[derive(Debug, thiserror::Error)]
#[error("its reader gave up: {0}")]
struct GaveUp(String);

/// The outcome of the function, or an error if it panics.
pub(crate) fn caught<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    std::panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(as_error(panic)))
}

/// The outcome of the future, or an error if it panics.
pub(crate) async fn caught_future<T>(run: impl Future<Output = Result<T>>) -> Result<T> {
    let outcome = AssertUnwindSafe(run).catch_unwind().await;
    outcome.unwrap_or_else(|panic| Err(as_error(panic)))
}

/// The stream, which ends with an error if it panics: what panicked is not polled again.
pub(crate) fn caught_stream(
    stream: BoxStream<'static, Result<RecordBatch>>,
) -> BoxStream<'static, Result<RecordBatch>> {
    AssertUnwindSafe(stream)
        .catch_unwind()
        .map(|outcome| outcome.unwrap_or_else(|panic| Err(as_error(panic))))
        .boxed()
}

fn as_error(panic: Box<dyn Any + Send>) -> DataFusionError {
    let reason = panic
        .downcast_ref::<&str>()
        .map(|reason| (*reason).to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    let reason = reason.unwrap_or_else(|| "for no reason that it told".to_string());
    DataFusionError::External(Box::new(GaveUp(reason)))
}
