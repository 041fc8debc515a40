use crate::ENGINE_VERSION;
use crate::heartbeat::{Heartbeat, HeartbeatReply};
use crate::snapshot::WorkerSnapshot;
use crate::worker_info::{QueryLoad, WorkerId, WorkerInfo, WorkerState};
use chrono::{DateTime, Utc};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use url::Url;

/// When the coordinator believes that a worker is there.
#[derive(Debug, Clone)]
pub struct MembershipSettings {
    /// How often workers report.
    pub heartbeat: Duration,
    /// Reports a worker may miss before it is counted as lost.
    pub missed_heartbeats: u32,
    /// How long a lost worker stays listed before it is forgotten.
    pub forget_after: Duration,
    /// The version a worker must have to be used.
    pub version: String,
}

impl Default for MembershipSettings {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(2),
            missed_heartbeats: 4,
            forget_after: Duration::from_secs(600),
            version: ENGINE_VERSION.to_string(),
        }
    }
}

/// The workers a coordinator knows, from their heartbeats alone.
///
/// Nothing is stored: a coordinator that restarts knows no worker, and each comes back with its next heartbeat.
/// Time is passed in by the `_at` functions, so that every transition can be tested without waiting.
///
/// ```text
///            heartbeat                    heartbeat(draining)
///  (unknown) ─────────▶ active ─────────────────────────────▶ draining
///                        │  ▲                                    │
///      missed, or a query│  │ heartbeat       heartbeat(lost) or │ missed
///      could not reach it▼  │                                    ▼
///                        lost ◀──────────────────────────────── lost ──forget_after──▶ (forgotten)
/// ```
#[derive(Debug)]
pub struct Membership {
    settings: MembershipSettings,
    members: RwLock<BTreeMap<WorkerId, Member>>,
}

#[derive(Debug, Clone)]
struct Member {
    info: WorkerInfo,
    heard: Instant,
    /// As of its last heartbeat, also once it is lost.
    queries: Vec<QueryLoad>,
}

/// A worker's last word on one query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastReport {
    pub(crate) heard: Instant,
    /// Whether the worker is lost since.
    pub(crate) lost: bool,
    pub(crate) has_tasks: bool,
}

impl Membership {
    /// A membership without members.
    pub fn new(settings: MembershipSettings) -> Self {
        Self {
            settings,
            members: RwLock::new(BTreeMap::new()),
        }
    }

    /// The settings in force.
    pub fn settings(&self) -> &MembershipSettings {
        &self.settings
    }

    /// Takes a heartbeat in: registers, updates, or (state `Lost`) removes the worker.
    pub fn heartbeat(&self, beat: Heartbeat) -> HeartbeatReply {
        self.heartbeat_at(beat, Instant::now(), Utc::now())
    }

    /// [`Self::heartbeat`] at a given time.
    pub fn heartbeat_at(
        &self,
        beat: Heartbeat,
        now: Instant,
        wall: DateTime<Utc>,
    ) -> HeartbeatReply {
        let mut members = self.members.write();
        if beat.state == WorkerState::Lost {
            if members.remove(&beat.id).is_some() {
                tracing::info!(worker = %beat.id, url = %beat.url, "worker left");
            }
            return self.reply(false, Some("left".to_string()));
        }

        // One process per address: whoever was there before is gone, whatever it last said.
        let replaced: Vec<WorkerId> = members
            .iter()
            .filter(|(id, member)| **id != beat.id && member.info.url == beat.url)
            .map(|(id, _)| id.clone())
            .collect();
        for id in replaced {
            members.remove(&id);
            tracing::info!(old = %id, new = %beat.id, url = %beat.url, "worker restarted");
        }

        let note = if beat.url.scheme() != "http" || beat.url.host().is_none() {
            Some(format!(
                "{} is not an address that tasks can be sent to",
                beat.url
            ))
        } else if beat.version != self.settings.version {
            Some(format!(
                "engine version {} differs from the coordinator's {}",
                beat.version, self.settings.version
            ))
        } else {
            None
        };
        let before = members.get(&beat.id).map(|member| member.info.state);
        match (before, &note) {
            (None, None) => {
                tracing::info!(worker = %beat.id, url = %beat.url, cores = beat.cores, "worker joined")
            }
            (None, Some(note)) => {
                tracing::warn!(worker = %beat.id, url = %beat.url, "worker is not used: {note}")
            }
            (Some(WorkerState::Lost), _) => {
                tracing::info!(worker = %beat.id, url = %beat.url, "worker is back")
            }
            (Some(WorkerState::Active), _) if beat.state == WorkerState::Draining => {
                tracing::info!(worker = %beat.id, url = %beat.url, "worker drains")
            }
            _ => {}
        }

        let in_service = note.is_none() && beat.state == WorkerState::Active;
        let reason = match (&note, beat.state) {
            (Some(note), _) => Some(note.clone()),
            (None, WorkerState::Draining) => Some("draining".to_string()),
            (None, _) => None,
        };
        members.insert(
            beat.id.clone(),
            Member {
                info: WorkerInfo {
                    id: beat.id,
                    url: beat.url,
                    http_url: beat.http_url,
                    version: beat.version,
                    cores: beat.cores,
                    memory_bytes: beat.memory_bytes,
                    state: beat.state,
                    running_tasks: beat.running_tasks,
                    memory_used: beat.memory_used,
                    spill_used: beat.spill_used,
                    cache: beat.cache,
                    started: DateTime::from_timestamp_millis(beat.started_ms).unwrap_or(wall),
                    last_heartbeat: wall,
                    note,
                },
                heard: now,
                queries: beat.queries,
            },
        );
        self.reply(in_service, reason)
    }

    fn reply(&self, in_service: bool, note: Option<String>) -> HeartbeatReply {
        HeartbeatReply {
            in_service,
            note,
            interval_ms: u64::try_from(self.settings.heartbeat.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Counts workers that missed their heartbeats as lost, and forgets those lost for long.
    pub fn expire(&self) {
        self.expire_at(Instant::now());
    }

    /// [`Self::expire`] at a given time.
    pub fn expire_at(&self, now: Instant) {
        let patience = self.settings.heartbeat * self.settings.missed_heartbeats.max(1);
        self.members.write().retain(|id, member| {
            let silent = now.saturating_duration_since(member.heard);
            if silent > patience && member.info.state != WorkerState::Lost {
                tracing::warn!(worker = %id, url = %member.info.url, silent_ms = silent.as_millis(), "worker missed its heartbeats");
                member.info.state = WorkerState::Lost;
                member.info.note = Some(format!("no heartbeat for {} s", silent.as_secs()));
                member.info.running_tasks = 0;
            }
            silent <= patience + self.settings.forget_after
        });
    }

    /// A query could not reach the worker at `url`: leave it out until it is heard of again.
    pub fn suspect(&self, url: &Url, reason: &str) {
        for (id, member) in self.members.write().iter_mut() {
            if member.info.url == *url && member.info.state != WorkerState::Lost {
                tracing::warn!(worker = %id, %url, reason, "worker could not be reached");
                member.info.state = WorkerState::Lost;
                member.info.note = Some(reason.to_string());
            }
        }
    }

    /// All workers, for `SHOW WORKERS`, by address.
    pub fn list(&self) -> Vec<WorkerInfo> {
        self.expire();
        let mut list: Vec<_> = self
            .members
            .read()
            .values()
            .map(|member| member.info.clone())
            .collect();
        list.sort_by(|a, b| (a.url.as_str(), &a.id).cmp(&(b.url.as_str(), &b.id)));
        list
    }

    /// The workers that take tasks now, fixed for one query.
    pub fn snapshot(&self) -> WorkerSnapshot {
        self.expire();
        WorkerSnapshot::new(
            self.members
                .read()
                .values()
                .filter(|member| {
                    member.info.state == WorkerState::Active && member.info.note.is_none()
                })
                .map(|member| (member.info.url.clone(), member.info.cores)),
        )
    }

    /// What all workers report of one query, summed. `None` while no worker has reported it.
    pub fn query_load(&self, query_id: &str) -> Option<QueryLoad> {
        let members = self.members.read();
        members
            .values()
            .filter(|member| member.info.state != WorkerState::Lost)
            .flat_map(|member| &member.queries)
            .filter(|load| load.query_id == query_id)
            .fold(None, |sum: Option<QueryLoad>, load| {
                let sum = sum.unwrap_or_default();
                Some(QueryLoad {
                    query_id: load.query_id.clone(),
                    tasks: sum.tasks + load.tasks,
                    splits_total: sum.splits_total + load.splits_total,
                    splits_done: sum.splits_done + load.splits_done,
                    rows: sum.rows + load.rows,
                    bytes: sum.bytes + load.bytes,
                    memory_bytes: sum.memory_bytes + load.memory_bytes,
                })
            })
    }

    /// The process that has an address.
    pub(crate) fn process_at(&self, url: &Url) -> Option<WorkerId> {
        let members = self.members.read();
        members
            .iter()
            .find(|(_, member)| member.info.url == *url)
            .map(|(id, _)| id.clone())
    }

    /// What a process last said of a query; `None` if it is not a member (any more).
    pub(crate) fn last_report(&self, id: &WorkerId, query_id: &str) -> Option<LastReport> {
        self.members.read().get(id).map(|member| LastReport {
            heard: member.heard,
            lost: member.info.state == WorkerState::Lost,
            has_tasks: member
                .queries
                .iter()
                .any(|load| load.query_id == query_id && load.tasks > 0),
        })
    }

    /// Why no worker can be used, in words for the person who sent the query.
    pub fn why_none(&self) -> String {
        let list = self.list();
        if list.is_empty() {
            return "no worker has registered with this coordinator: start one with `tarn worker`, \
                    its coordinator address set to this coordinator's HTTP port"
                .to_string();
        }
        let reasons: Vec<String> = list
            .iter()
            .map(|worker| match &worker.note {
                Some(note) => format!("{} is {} ({note})", worker.url, worker.state),
                None => format!("{} is {}", worker.url, worker.state),
            })
            .collect();
        format!("no worker is in service: {}", reasons.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker_info::CacheUsage;

    struct Clock {
        start: Instant,
        wall: DateTime<Utc>,
    }

    impl Clock {
        fn new() -> Self {
            Self {
                start: Instant::now(),
                wall: DateTime::from_timestamp(1_800_000_000, 0).unwrap(),
            }
        }

        fn at(&self, seconds: u64) -> Instant {
            self.start + Duration::from_secs(seconds)
        }
    }

    fn membership() -> Membership {
        Membership::new(MembershipSettings {
            heartbeat: Duration::from_secs(2),
            missed_heartbeats: 3,
            forget_after: Duration::from_secs(60),
            version: "1.0.0".to_string(),
        })
    }

    fn beat(id: &str, port: u16) -> Heartbeat {
        Heartbeat {
            id: WorkerId(id.to_string()),
            url: Url::parse(&format!("http://127.0.0.1:{port}")).unwrap(),
            http_url: None,
            version: "1.0.0".to_string(),
            cores: 4,
            memory_bytes: 1 << 30,
            state: WorkerState::Active,
            running_tasks: 0,
            memory_used: 0,
            spill_used: 0,
            cache: CacheUsage::default(),
            started_ms: 1_799_999_000_000,
            queries: Vec::new(),
        }
    }

    fn ports(membership: &Membership) -> Vec<u16> {
        let members = membership.members.read();
        let mut ports: Vec<_> = members
            .values()
            .filter(|member| member.info.state == WorkerState::Active && member.info.note.is_none())
            .filter_map(|member| member.info.url.port())
            .collect();
        ports.sort_unstable();
        ports
    }

    #[test]
    fn a_worker_registers_by_its_first_heartbeat() {
        let (clock, members) = (Clock::new(), membership());
        let reply = members.heartbeat_at(beat("a", 1), clock.at(0), clock.wall);
        assert_eq!(
            reply,
            HeartbeatReply {
                in_service: true,
                note: None,
                interval_ms: 2000
            }
        );
        assert_eq!(ports(&members), [1]);
    }

    #[test]
    fn a_silent_worker_is_lost_and_comes_back_with_a_heartbeat() {
        let (clock, members) = (Clock::new(), membership());
        members.heartbeat_at(beat("a", 1), clock.at(0), clock.wall);
        members.heartbeat_at(beat("b", 2), clock.at(5), clock.wall);
        members.expire_at(clock.at(6));
        assert_eq!(
            ports(&members),
            [1, 2],
            "three missed heartbeats are not yet over"
        );
        members.expire_at(clock.at(7));
        assert_eq!(ports(&members), [2]);
        assert!(
            members
                .heartbeat_at(beat("a", 1), clock.at(8), clock.wall)
                .in_service
        );
        assert_eq!(ports(&members), [1, 2]);
    }

    #[test]
    fn a_worker_that_is_lost_for_long_is_forgotten() {
        let (clock, members) = (Clock::new(), membership());
        members.heartbeat_at(beat("a", 1), clock.at(0), clock.wall);
        members.expire_at(clock.at(66));
        assert_eq!(members.members.read().len(), 1);
        members.expire_at(clock.at(67));
        assert!(members.members.read().is_empty());
    }

    #[test]
    fn a_restarted_worker_replaces_its_old_self_at_once() {
        let (clock, members) = (Clock::new(), membership());
        members.heartbeat_at(beat("old", 1), clock.at(0), clock.wall);
        members.heartbeat_at(beat("new", 1), clock.at(1), clock.wall);
        let members = members.members.read();
        assert_eq!(
            members.keys().map(|id| id.0.as_str()).collect::<Vec<_>>(),
            ["new"]
        );
    }

    #[test]
    fn a_draining_worker_is_listed_and_not_used() {
        let (clock, members) = (Clock::new(), membership());
        members.heartbeat_at(beat("a", 1), clock.at(0), clock.wall);
        let mut drains = beat("a", 1);
        drains.state = WorkerState::Draining;
        let reply = members.heartbeat_at(drains.clone(), clock.at(1), clock.wall);
        assert!(!reply.in_service);
        assert!(ports(&members).is_empty());
        assert_eq!(members.members.read().len(), 1);
        drains.state = WorkerState::Lost;
        members.heartbeat_at(drains, clock.at(2), clock.wall);
        assert!(members.members.read().is_empty(), "it said good-bye");
    }

    #[test]
    fn a_suspect_is_left_out_until_it_is_heard_of() {
        let (clock, members) = (Clock::new(), membership());
        members.heartbeat_at(beat("a", 1), clock.at(0), clock.wall);
        members.heartbeat_at(beat("b", 2), clock.at(0), clock.wall);
        members.suspect(&beat("a", 1).url, "connection refused");
        assert_eq!(ports(&members), [2]);
        members.heartbeat_at(beat("a", 1), clock.at(1), clock.wall);
        assert_eq!(ports(&members), [1, 2]);
    }

    #[test]
    fn another_version_is_listed_and_not_used() {
        let (clock, members) = (Clock::new(), membership());
        let mut other = beat("a", 1);
        other.version = "0.9.0".to_string();
        let reply = members.heartbeat_at(other, clock.at(0), clock.wall);
        assert!(!reply.in_service);
        assert!(reply.note.unwrap().contains("0.9.0"));
        assert!(ports(&members).is_empty());
        assert_eq!(members.members.read().len(), 1);
    }

    #[test]
    fn the_reason_why_there_is_no_worker_is_told() {
        let members = membership();
        assert!(members.why_none().contains("tarn worker"));
        members.heartbeat(beat("a", 7));
        members.suspect(&beat("a", 7).url, "connection refused");
        let why = members.why_none();
        assert!(
            why.contains("127.0.0.1:7") && why.contains("connection refused"),
            "{why}"
        );
    }

    #[test]
    fn the_progress_of_a_query_is_the_sum_over_workers() {
        let (clock, members) = (Clock::new(), membership());
        let load = |query: &str, done| QueryLoad {
            query_id: query.to_string(),
            tasks: 1,
            splits_total: 10,
            splits_done: done,
            rows: 100 * done,
            bytes: 1000 * done,
            memory_bytes: 5,
        };
        for (id, port, queries) in [
            ("a", 1, vec![load("q1", 3), load("q2", 9)]),
            ("b", 2, vec![load("q1", 4)]),
        ] {
            let mut beat = beat(id, port);
            beat.queries = queries;
            members.heartbeat_at(beat, clock.at(0), clock.wall);
        }
        let sum = members.query_load("q1").unwrap();
        assert_eq!((sum.tasks, sum.splits_total, sum.splits_done), (2, 20, 7));
        assert_eq!((sum.rows, sum.bytes, sum.memory_bytes), (700, 7000, 10));
        assert_eq!(members.query_load("q3"), None);
    }
}
