//! Batches on their way from the execution to the client.
//!
//! ```text
//!   plan ──stream──▶ driver task ──bounded channel──▶ ResultRows ──▶ protocol
//!                     │  ▲                               │
//!                     │  └── deadline, token             ├── counts rows and bytes
//!                     └── a worker is lost: plan anew,   └── dropped: the token is cancelled,
//!                         if no row was delivered            the driver and its plan go
//! ```
//!
//! The channel holds a few batches, so a client that reads slowly stops the plan. An error overtakes the batches that
//! wait. A driver that ends without saying how is an error: the rows so far are never taken for the whole answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::batch_bytes::batch_bytes;
use crate::dispatch::Dispatch;
use crate::error::{Error, ErrorKind, Result};
use crate::finish::StatementGuard;
use crate::planning::{Attempt, Planned, StatementContext};
use crate::processes::{QueryState, RunningStatement, StopReason};
use crate::profile;
use crate::retry::Losses;

/// Which attempt the client sees rows of.
#[derive(Debug, Default)]
struct Delivery {
    attempt: u32,
    /// A row of this attempt has left for the client: from now on there is no other attempt.
    started: bool,
}

/// A batch and the attempt that made it.
type Item = (u32, RecordBatch);

/// Starts the first attempt and returns the stream of what it gives. `failed` is cancelled when it is to end with an
/// error.
pub(crate) fn deliver(
    context: StatementContext,
    planned: Planned,
    attempt: Attempt,
    schema: SchemaRef,
    guard: StatementGuard,
    failed: CancellationToken,
) -> BoxStream<'static, Result<RecordBatch>> {
    let queue = usize::try_from(context.variables.number("result_queue_batches")).unwrap_or(4);
    let (batches, received) = mpsc::channel(queue.max(1));
    let (done, result) = oneshot::channel();
    let delivery = Arc::new(Mutex::new(Delivery::default()));
    let driver = Driver {
        context,
        planned,
        batches,
        delivery: Arc::clone(&delivery),
    };
    let fails = failed.clone();
    let task = tokio::spawn(async move {
        let result = driver.run(attempt).await;
        let has_failed = result.is_err();
        let _ = done.send(result);
        if has_failed {
            fails.cancel();
        }
    });
    let consumer = Consumer {
        guard,
        schema,
        received,
        failed,
        result: Some(result),
        delivery,
        _driver: AbortOnDropHandle::new(task),
    };
    stream::unfold(consumer, Consumer::next).boxed()
}

/// Waits for `work` until the statement is stopped or its time is up.
pub(crate) async fn stoppable<T>(
    running: &RunningStatement,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let deadline = running
        .timeout
        .map(|timeout| timeout.saturating_sub(running.elapsed()));
    tokio::select! {
        biased;
        () = running.token.cancelled() => Err(running.stop_error()),
        () = sleep(deadline) => {
            running.stop(StopReason::TimedOut);
            Err(running.stop_error())
        }
        result = work => result,
    }
}

async fn sleep(span: Option<Duration>) {
    match span {
        Some(span) => tokio::time::sleep(span).await,
        None => std::future::pending().await,
    }
}

/// Runs the plan, and plans anew when a worker is lost.
struct Driver {
    context: StatementContext,
    planned: Planned,
    batches: mpsc::Sender<Item>,
    delivery: Arc<Mutex<Delivery>>,
}

impl Driver {
    async fn run(self, first: Attempt) -> Result<()> {
        let running = Arc::clone(&self.context.running);
        stoppable(&running, self.attempts(first)).await
    }

    async fn attempts(self, first: Attempt) -> Result<()> {
        let running = &self.context.running;
        let mut losses = Losses::none(&self.context);
        let mut attempt = first;
        loop {
            running.set_state(QueryState::Running);
            let number = self.delivery.lock().attempt;
            let mut rows = 0;
            let error = match self.pump(&attempt, number, &mut rows).await {
                Ok(()) => {
                    running.set_state(QueryState::Finishing);
                    profile::finish(
                        &self.context,
                        &self.planned.catalogs,
                        &attempt.plan,
                        rows,
                        true,
                    )
                    .await;
                    return Ok(());
                }
                Err(error) => error,
            };
            if let Err(error) = losses.after(&self.context, error, || self.start_over()) {
                profile::finish(
                    &self.context,
                    &self.planned.catalogs,
                    &attempt.plan,
                    rows,
                    false,
                )
                .await;
                return Err(error);
            }
            // What the lost attempt holds is freed before the next one starts.
            drop(attempt);
            attempt = self
                .context
                .next_attempt(&self.planned, losses.workers())
                .await?;
        }
    }

    /// Whether no row has left yet; if so, batches of the attempt that failed no longer count.
    fn start_over(&self) -> bool {
        let mut delivery = self.delivery.lock();
        if delivery.started {
            return false;
        }
        delivery.attempt += 1;
        true
    }

    /// Runs an attempt to its end or until a worker is lost; `rows` counts what it gave.
    async fn pump(
        &self,
        attempt: &Attempt,
        number: u32,
        rows: &mut u64,
    ) -> Result<(), DataFusionError> {
        let watch = match &self.context.engine.parts().dispatch {
            Dispatch::Cluster(cluster) => {
                let id = self.context.running.id.to_string();
                cluster.watch(&id, &attempt.plan, &attempt.task)
            }
            Dispatch::Local => None,
        };
        let lost = async {
            match watch {
                Some(watch) => watch.lost().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            result = self.pass_on(attempt, number, rows) => result,
            error = lost => Err(error),
        }
    }

    /// Hands the batches of an attempt to the client, at its pace.
    async fn pass_on(
        &self,
        attempt: &Attempt,
        number: u32,
        rows: &mut u64,
    ) -> Result<(), DataFusionError> {
        let mut stream = self.context.engine.execution().run(attempt);
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            *rows += batch.num_rows() as u64;
            if batch.num_rows() > 0 && self.batches.send((number, batch)).await.is_err() {
                // The client is gone; its guard records that.
                return Ok(());
            }
        }
        Ok(())
    }
}

/// The client's end of the channel.
struct Consumer {
    guard: StatementGuard,
    schema: SchemaRef,
    received: mpsc::Receiver<Item>,
    failed: CancellationToken,
    /// How the driver ended; `None` once the client was told.
    result: Option<oneshot::Receiver<Result<()>>>,
    delivery: Arc<Mutex<Delivery>>,
    _driver: AbortOnDropHandle<()>,
}

impl Consumer {
    async fn next(mut self) -> Option<(Result<RecordBatch>, Self)> {
        self.result.as_ref()?;
        let running = Arc::clone(self.guard.running());
        loop {
            let received = tokio::select! {
                biased;
                () = running.token.cancelled() => {
                    return self.fail(running.stop_error());
                }
                () = self.failed.cancelled() => return self.end().await,
                received = self.received.recv() => received,
            };
            let Some((attempt, batch)) = received else {
                return self.end().await;
            };
            {
                let mut delivery = self.delivery.lock();
                if delivery.attempt != attempt {
                    continue;
                }
                delivery.started = true;
            }
            return match renamed(batch, &self.schema) {
                Ok(batch) => {
                    running
                        .rows
                        .fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
                    running
                        .bytes
                        .fetch_add(batch_bytes(&batch), Ordering::Relaxed);
                    Some((Ok(batch), self))
                }
                Err(error) => self.fail(error),
            };
        }
    }

    async fn end(mut self) -> Option<(Result<RecordBatch>, Self)> {
        let result = match self.result.take() {
            Some(result) => result.await.unwrap_or_else(|_| {
                Err(Error::new(
                    ErrorKind::Internal,
                    "the query's task ended without a result",
                ))
            }),
            None => Ok(()),
        };
        match result {
            Ok(()) => {
                self.guard.finish(Ok(()));
                None
            }
            Err(error) => self.fail(error),
        }
    }

    fn fail(mut self, error: Error) -> Option<(Result<RecordBatch>, Self)> {
        self.result = None;
        self.guard.finish(Err(&error));
        // Whatever is still running belongs to nobody now.
        self.guard.running().token.cancel();
        self.received.close();
        Some((Err(error), self))
    }
}

/// The batch under the client's names. The arrays are shared, not copied.
fn renamed(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if Arc::ptr_eq(batch.schema_ref(), schema) {
        return Ok(batch);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        batch.columns().to_vec(),
        &options,
    )?)
}
