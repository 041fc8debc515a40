//! The threads that queries are planned and run on.
//!
//! They are apart from the threads that serve the protocols: a statement that takes long to plan, or an operator that
//! computes for long between two awaits (a nested-loop join whose filter drops every row), delays other queries at
//! worst, never a login, a heartbeat, a `KILL` or a `SHOW PROCESSLIST`.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::execute_stream;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use futures::{FutureExt, StreamExt};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::task::AbortOnDropHandle;

use crate::error::{Error, ErrorKind, Result};
use crate::planning::Attempt;

/// Batches of a plan that wait for whoever takes them.
const READY_BATCHES: usize = 2;
/// Plans are as deep as statements are nested, and operators call each other as deep as the plan. Only what is
/// touched is ever committed.
const THREAD_STACK_BYTES: usize = 32 << 20;

/// The threads that queries are planned and run on, one for each core. See the [module](self).
#[derive(Debug)]
pub(crate) struct ExecutionThreads {
    handle: Handle,
    /// Taken when this is dropped.
    runtime: Option<Runtime>,
}

impl ExecutionThreads {
    /// # Errors
    /// The system gives no threads.
    pub fn start() -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .enable_all()
            .thread_name("tarn-query")
            .thread_stack_size(THREAD_STACK_BYTES)
            .build()
            .map_err(|error| {
                Error::new(
                    ErrorKind::Internal,
                    format!("the threads for queries cannot be started: {error}"),
                )
            })?;
        Ok(Self {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    /// Does work that is more than waiting. Dropped, it stops at its next await.
    ///
    /// # Errors
    /// Its own, and a panic of it.
    pub async fn compute<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let task = AbortOnDropHandle::new(self.handle.spawn(work));
        task.await.unwrap_or_else(|error| {
            Err(Error::new(
                ErrorKind::Internal,
                format!("the statement's task ended early: {error}"),
            ))
        })
    }

    /// Runs a plan; what it gives comes out in one stream. Dropping the stream stops the plan and all its tasks. A
    /// panic of the plan is the stream's error.
    pub fn run(&self, attempt: &Attempt) -> SendableRecordBatchStream {
        let plan = Arc::clone(&attempt.plan);
        let task = Arc::clone(&attempt.task);
        let mut receiver = RecordBatchReceiverStreamBuilder::new(plan.schema(), READY_BATCHES);
        let batches = receiver.tx();
        let drive = async move {
            let mut stream = execute_stream(plan, task)?;
            while let Some(batch) = stream.next().await {
                let ended = batch.is_err();
                if batches.send(batch).await.is_err() || ended {
                    break;
                }
            }
            Ok(())
        };
        let guarded = async move {
            let ended = AssertUnwindSafe(drive).catch_unwind().await;
            ended.unwrap_or_else(|_| {
                Err(DataFusionError::Internal(
                    "the query's plan panicked; the log says where".to_owned(),
                ))
            })
        };
        receiver.spawn_on(guarded, &self.handle);
        receiver.build()
    }
}

impl Drop for ExecutionThreads {
    /// The last engine may go away within a task, where waiting for threads is not allowed.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
