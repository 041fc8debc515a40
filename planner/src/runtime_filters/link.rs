//! The way of runtime filters between the tasks of a query.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::summary::KeySummary;

/// Carries what tasks know of one query's keys to the coordinator, and the whole back.
///
/// Filters may be lost: a query is right without them. So nothing here is an error; what went wrong is for the log.
#[async_trait]
pub trait FilterTransport: fmt::Debug + Send + Sync + 'static {
    /// Hands in the part of a filter that one of `tasks` tasks made.
    async fn publish(&self, filter: Uuid, task: usize, tasks: usize, part: Vec<u8>);

    /// Waits for the whole filter; `None` if it will not come.
    async fn receive(&self, filter: Uuid) -> Option<Vec<u8>>;
}

/// The filters of one query in one process. An extension of the session of each of its tasks.
#[derive(Debug)]
pub struct RuntimeFilterLink {
    transport: Arc<dyn FilterTransport>,
    awaited: Mutex<HashMap<Uuid, Awaited>>,
}

#[derive(Debug)]
struct Awaited {
    filter: watch::Receiver<Answer>,
    /// Asks as long as the query runs.
    _asking: AbortOnDropHandle<()>,
}

/// What is known of a filter.
#[derive(Debug, Clone, Default)]
enum Answer {
    #[default]
    Pending,
    Never,
    Here(Arc<KeySummary>),
}

impl RuntimeFilterLink {
    /// The filters of one query.
    pub fn new(transport: Arc<dyn FilterTransport>) -> Self {
        Self {
            transport,
            awaited: Mutex::default(),
        }
    }

    /// The filters of a query that runs in this process alone.
    pub(crate) fn within_process() -> Self {
        Self::new(Arc::new(WithinProcess::default()))
    }

    /// Hands in a part, meanwhile the task goes on.
    pub(super) fn publish(&self, filter: Uuid, task: usize, tasks: usize, part: &KeySummary) {
        let part = match part.encode() {
            Ok(part) => part,
            Err(error) => {
                tracing::warn!(%filter, %error, "a runtime filter cannot be sent");
                return;
            }
        };
        let transport = Arc::clone(&self.transport);
        // A stream may be dropped anywhere.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { transport.publish(filter, task, tasks, part).await });
        }
    }

    /// A filter that all tasks of this process wait for together.
    pub(super) fn expect(&self, filter: Uuid) -> ExpectedFilter {
        let mut awaited = self.awaited.lock();
        let awaited = awaited.entry(filter).or_insert_with(|| {
            let (answer, receiver) = watch::channel(Answer::Pending);
            let transport = Arc::clone(&self.transport);
            let asking = tokio::spawn(async move {
                let bytes = transport.receive(filter).await;
                let summary = bytes.and_then(|bytes| {
                    KeySummary::decode(&bytes)
                        .inspect_err(|error| {
                            tracing::warn!(%filter, %error, "a runtime filter cannot be read");
                        })
                        .ok()
                });
                let _ = answer.send(summary.map_or(Answer::Never, |it| Answer::Here(Arc::new(it))));
            });
            Awaited {
                filter: receiver,
                _asking: AbortOnDropHandle::new(asking),
            }
        });
        ExpectedFilter(awaited.filter.clone())
    }
}

/// Where there is one task, its part is the whole.
#[derive(Debug, Default)]
struct WithinProcess(Mutex<HashMap<Uuid, watch::Sender<Option<Vec<u8>>>>>);

#[async_trait]
impl FilterTransport for WithinProcess {
    async fn publish(&self, filter: Uuid, _: usize, _: usize, part: Vec<u8>) {
        let mut filters = self.0.lock();
        filters.entry(filter).or_default().send_replace(Some(part));
    }

    async fn receive(&self, filter: Uuid) -> Option<Vec<u8>> {
        let mut whole = self.0.lock().entry(filter).or_default().subscribe();
        whole.wait_for(Option::is_some).await.ok()?.clone()
    }
}

/// A filter that may come.
#[derive(Debug)]
pub(super) struct ExpectedFilter(watch::Receiver<Answer>);

impl ExpectedFilter {
    /// The filter, if it is there.
    pub(super) fn now(&self) -> Option<Arc<KeySummary>> {
        match &*self.0.borrow() {
            Answer::Here(summary) => Some(Arc::clone(summary)),
            _ => None,
        }
    }

    /// Waits until it is there or it is known that it will not come, at most so long.
    pub(super) async fn wait(&mut self, most: Duration) {
        let known = self.0.wait_for(|answer| !matches!(answer, Answer::Pending));
        let _ = tokio::time::timeout(most, known).await;
    }
}
