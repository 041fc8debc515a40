use crate::error::WorkerError;
use crate::http;
use crate::report::Reporter;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use url::Url;

/// What the control thread does.
pub(crate) struct Control {
    pub(crate) reporter: Arc<Reporter>,
    pub(crate) coordinator: Url,
    pub(crate) heartbeat: Duration,
    pub(crate) http: Option<TcpListener>,
}

impl Control {
    /// Reports to the coordinator and serves HTTP until `stop`, then says good-bye.
    ///
    /// On a thread and a runtime of their own: operators may keep every thread of the tasks' runtime busy for
    /// seconds, and a worker that works hard must not be taken for dead. The receiver hears when all is done.
    pub(crate) fn start(
        self,
        stop: CancellationToken,
    ) -> Result<oneshot::Receiver<()>, WorkerError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(WorkerError::Thread)?;
        let (done, receiver) = oneshot::channel();
        std::thread::Builder::new()
            .name("tarn-control".to_string())
            .spawn(move || {
                runtime.block_on(self.run(stop));
                let _ = done.send(());
            })
            .map_err(WorkerError::Thread)?;
        Ok(receiver)
    }

    async fn run(self, stop: CancellationToken) {
        let http = async {
            let Some(listener) = self.http else { return };
            let router = http::router(Arc::clone(&self.reporter));
            let served = match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => {
                    axum::serve(listener, router)
                        .with_graceful_shutdown(stop.clone().cancelled_owned())
                        .await
                }
                Err(error) => Err(error),
            };
            if let Err(error) = served {
                tracing::error!(%error, "the worker's HTTP interface failed");
            }
        };
        let report = async {
            self.reporter
                .report(&self.coordinator, self.heartbeat, &stop)
                .await;
            self.reporter.leave(&self.coordinator).await;
        };
        let http = async {
            tokio::select! {
                () = http => {}
                // A client that keeps its connection open does not keep the worker.
                () = async { stop.cancelled().await; tokio::time::sleep(Duration::from_secs(1)).await } => {}
            }
        };
        tokio::join!(http, report);
    }
}
