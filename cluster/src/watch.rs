//! Noticing that a worker is gone while nobody reads what it sends.
//!
//! A broken connection is an error of the stream that is read next. Where the client reads slowly no stream is read
//! for minutes, neither here nor on the workers between, so a query watches the processes that run it as well.

use crate::lost::LostWorkerError;
use crate::membership::Membership;
use crate::worker_info::WorkerId;
use datafusion::error::DataFusionError;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::{Host, Url};

/// Heartbeats that must be missing before a worker is called upon.
const MISSED_BEFORE_CALL: u32 = 2;

/// The worker processes that run one query, from its start on.
#[derive(Debug)]
pub struct WorkerWatch {
    membership: Arc<Membership>,
    query_id: String,
    connect_timeout: Duration,
    since: Instant,
    workers: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    id: WorkerId,
    url: Url,
    /// Whether it had tasks of the query when it last reported; `None` before its first report.
    has_tasks: Option<bool>,
}

/// What the membership says of a watched worker.
#[derive(Debug, PartialEq, Eq)]
enum Sight {
    Well,
    /// Silent, or another query could not reach it: whether it is gone a connection tells.
    Doubtful,
    /// Another process has its address.
    Replaced,
    /// It left, its tasks done.
    Left,
}

impl WorkerWatch {
    pub(crate) fn new(
        membership: Arc<Membership>,
        query_id: String,
        connect_timeout: Duration,
        urls: &[Url],
        since: Instant,
    ) -> Self {
        let workers = urls
            .iter()
            .filter_map(|url| {
                Some(Watched {
                    id: membership.process_at(url)?,
                    url: url.clone(),
                    has_tasks: None,
                })
            })
            .collect();
        Self {
            membership,
            query_id,
            connect_timeout,
            since,
            workers,
        }
    }

    /// Comes back when a process is gone that ran, for all that is known, tasks of the query: with the error that
    /// [`crate::worker_lost`] reads. Two missed heartbeats and a connection that cannot be made tell that, or a new
    /// process at the same address. A worker that is busy, that leaves with its tasks done or that has none is no loss.
    pub async fn lost(mut self) -> DataFusionError {
        loop {
            tokio::time::sleep(self.membership.settings().heartbeat).await;
            for (worker, sight) in self.look_at(Instant::now()) {
                let reason = match sight {
                    Sight::Replaced => "another process was started in its place".to_owned(),
                    _ => match self.call(&worker).await {
                        Ok(()) => continue,
                        Err(reason) => reason,
                    },
                };
                return DataFusionError::External(Box::new(LostWorkerError {
                    url: worker,
                    reason,
                }));
            }
        }
    }

    /// The workers that may be lost.
    fn look_at(&mut self, now: Instant) -> Vec<(Url, Sight)> {
        let mut doubts = Vec::new();
        self.workers.retain_mut(|worker| {
            let sight = match self.membership.last_report(&worker.id, &self.query_id) {
                Some(report) => {
                    if report.heard > self.since {
                        worker.has_tasks = Some(report.has_tasks);
                    }
                    let silent = now.saturating_duration_since(report.heard);
                    let patience = self.membership.settings().heartbeat * MISSED_BEFORE_CALL;
                    match report.lost || silent > patience {
                        true => Sight::Doubtful,
                        false => Sight::Well,
                    }
                }
                None if self.membership.process_at(&worker.url).is_some() => Sight::Replaced,
                None => Sight::Left,
            };
            let stays = sight != Sight::Left;
            if stays && sight != Sight::Well && worker.has_tasks != Some(false) {
                doubts.push((worker.url.clone(), sight));
            }
            stays
        });
        doubts
    }

    /// Whether anyone listens where the worker did.
    async fn call(&self, url: &Url) -> Result<(), String> {
        let port = url.port_or_known_default().unwrap_or(80);
        let connecting = async {
            match url.host() {
                Some(Host::Domain(name)) => TcpStream::connect((name, port)).await,
                Some(Host::Ipv4(address)) => TcpStream::connect((address, port)).await,
                Some(Host::Ipv6(address)) => TcpStream::connect((address, port)).await,
                None => Err(std::io::ErrorKind::AddrNotAvailable.into()),
            }
        };
        match timeout(self.connect_timeout, connecting).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!(
                "it accepted no connection for {} ms",
                self.connect_timeout.as_millis()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heartbeat::Heartbeat;
    use crate::membership::MembershipSettings;
    use crate::worker_info::{CacheUsage, QueryLoad, WorkerState};
    use chrono::Utc;

    const BEAT: Duration = Duration::from_secs(2);

    struct World {
        start: Instant,
        membership: Arc<Membership>,
    }

    impl World {
        /// A worker `a` that reported before the query began, at the start.
        fn new() -> Self {
            let world = Self {
                start: Instant::now(),
                membership: Arc::new(Membership::new(MembershipSettings {
                    heartbeat: BEAT,
                    version: "1".to_string(),
                    ..MembershipSettings::default()
                })),
            };
            world.report("a", &[], WorkerState::Active, 0);
            world
        }

        fn at(&self, seconds: u64) -> Instant {
            self.start + Duration::from_secs(seconds)
        }

        fn report(&self, id: &str, queries: &[&str], state: WorkerState, seconds: u64) {
            let beat = Heartbeat {
                id: WorkerId(id.to_string()),
                url: url(),
                http_url: None,
                version: "1".to_string(),
                cores: 2,
                memory_bytes: 1,
                state,
                running_tasks: 0,
                memory_used: 0,
                spill_used: 0,
                cache: CacheUsage::default(),
                started_ms: 0,
                queries: queries
                    .iter()
                    .map(|query| QueryLoad {
                        query_id: query.to_string(),
                        tasks: 1,
                        ..QueryLoad::default()
                    })
                    .collect(),
            };
            self.membership
                .heartbeat_at(beat, self.at(seconds), Utc::now());
        }

        /// The watch of a query that began after one second.
        fn watch(&self) -> WorkerWatch {
            WorkerWatch::new(
                Arc::clone(&self.membership),
                "q".to_string(),
                Duration::from_secs(1),
                &[url()],
                self.at(1),
            )
        }
    }

    fn url() -> Url {
        Url::parse("http://127.0.0.1:9").unwrap()
    }

    #[test]
    fn a_silent_worker_is_doubted_if_it_ran_the_query() {
        let world = World::new();
        let mut watch = world.watch();
        world.report("a", &["q"], WorkerState::Active, 2);
        assert_eq!(watch.look_at(world.at(6)), [], "two beats are not over yet");
        assert_eq!(watch.look_at(world.at(7)), [(url(), Sight::Doubtful)]);
        world.report("a", &["q"], WorkerState::Active, 8);
        assert_eq!(watch.look_at(world.at(8)), []);
        world.report("a", &["other"], WorkerState::Active, 10);
        assert_eq!(watch.look_at(world.at(60)), [], "its tasks were done");
    }

    #[test]
    fn a_worker_that_never_reported_the_query_is_doubted() {
        let world = World::new();
        assert_eq!(
            world.watch().look_at(world.at(7)),
            [(url(), Sight::Doubtful)]
        );
    }

    #[test]
    fn a_worker_lost_to_another_query_is_doubted_at_once() {
        let world = World::new();
        let mut watch = world.watch();
        world.report("a", &["q"], WorkerState::Active, 2);
        world.membership.suspect(&url(), "connection refused");
        assert_eq!(watch.look_at(world.at(3)), [(url(), Sight::Doubtful)]);
    }

    #[test]
    fn a_new_process_at_its_address_means_that_it_is_gone() {
        let world = World::new();
        let mut watch = world.watch();
        world.report("a", &["q"], WorkerState::Active, 2);
        assert_eq!(watch.look_at(world.at(2)), []);
        world.report("b", &[], WorkerState::Active, 3);
        assert_eq!(watch.look_at(world.at(3)), [(url(), Sight::Replaced)]);
    }

    #[test]
    fn a_worker_that_leaves_is_no_loss() {
        let world = World::new();
        let mut watch = world.watch();
        world.report("a", &["q"], WorkerState::Draining, 2);
        assert_eq!(watch.look_at(world.at(2)), []);
        world.report("a", &[], WorkerState::Lost, 3);
        assert_eq!(watch.look_at(world.at(3)), []);
        world.report("b", &[], WorkerState::Active, 4);
        assert_eq!(watch.look_at(world.at(4)), []);
    }

    #[tokio::test]
    async fn whoever_listens_is_there_and_a_closed_port_is_nobody() {
        let watch = World::new().watch();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let url = Url::parse(&url).unwrap();
        assert_eq!(watch.call(&url).await, Ok(()));
        drop(listener);
        let refused = watch.call(&url).await.unwrap_err();
        assert!(refused.contains("refused"), "{refused}");
    }
}
