//! Cluster membership, routing of tasks to workers, and the channels between them.
//!
//! ```text
//!  worker ──POST heartbeat──▶ api ──▶ Membership ──snapshot──▶ ClusterDispatch ──▶ a query's session
//!                                         ▲                        │  planner, routing, codec, headers
//!                                         └──── suspect ◀── WorkerChannels (gRPC, errors name the worker)
//! ```
//!
//! A query plans and routes over one [`WorkerSnapshot`]: who joins or leaves meanwhile does not change it.
//! Files meet workers by rendezvous hashing ([`routing`]), so repeated queries find warm caches.
//! [`worker_lost`] tells the loss of a worker, which the coordinator may retry, from an error of the query.

mod api;
mod channels;
mod dispatch;
mod error;
mod headers;
mod heartbeat;
mod joined_tasks;
mod lost;
mod membership;
mod planner;
pub mod routing;
mod runtime_filters;
mod snapshot;
mod watch;
mod worker_info;

pub use api::{HEARTBEAT_PATH, WORKERS_PATH, api_router};
pub use channels::{ChannelSettings, WorkerChannels};
pub use dispatch::{ClusterDispatch, ClusterSettings, Compression, QueryContext};
pub use error::ClusterError;
pub use headers::TaskHeaders;
pub use heartbeat::{Heartbeat, HeartbeatReply};
pub use lost::{LostWorker, worker_lost};
pub use membership::{Membership, MembershipSettings};
pub use planner::needs_cluster;
pub use routing::RoutingSettings;
pub use runtime_filters::{
    FilterPart, FilterWait, RUNTIME_FILTERS_PATH, RuntimeFilterGuard, RuntimeFilters,
};
pub use snapshot::WorkerSnapshot;
pub use watch::WorkerWatch;
pub use worker_info::{CacheUsage, QueryLoad, WorkerId, WorkerInfo, WorkerState};

/// Version of this engine. Plans travel between processes of the same version only.
pub const ENGINE_VERSION: &str = env!("CARGO_PKG_VERSION");
