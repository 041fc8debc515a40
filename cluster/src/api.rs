use crate::heartbeat::{Heartbeat, HeartbeatReply};
use crate::membership::Membership;
use crate::runtime_filters::{self, RuntimeFilters};
use crate::worker_info::WorkerInfo;
use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use std::sync::Arc;

/// Where workers post their heartbeats at the coordinator.
pub const HEARTBEAT_PATH: &str = "/cluster/v1/heartbeat";
/// Where the coordinator lists its workers.
pub const WORKERS_PATH: &str = "/cluster/v1/workers";

/// The cluster's part of the coordinator's HTTP interface.
pub fn api_router(membership: Arc<Membership>, filters: Arc<RuntimeFilters>) -> Router {
    Router::new()
        .route(HEARTBEAT_PATH, post(heartbeat))
        .route(WORKERS_PATH, get(workers))
        .with_state(membership)
        .merge(runtime_filters::router(filters))
}

async fn heartbeat(
    State(membership): State<Arc<Membership>>,
    Json(beat): Json<Heartbeat>,
) -> Json<HeartbeatReply> {
    Json(membership.heartbeat(beat))
}

async fn workers(State(membership): State<Arc<Membership>>) -> Json<Vec<WorkerInfo>> {
    Json(membership.list())
}
