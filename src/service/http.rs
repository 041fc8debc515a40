//! The coordinator's HTTP interface: health, metrics, and the cluster API that workers report to.

use std::fmt::Write;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tarn_cluster::{ClusterDispatch, WorkerState};
use tarn_coordinator::{Dispatch, Engine};
use tokio_util::sync::CancellationToken;

#[derive(Clone)]
struct Coordinator {
    engine: Arc<Engine>,
    stopping: CancellationToken,
}

/// The routes; with everything in one process there is no cluster API.
pub fn coordinator_router(engine: Arc<Engine>, stopping: CancellationToken) -> Router {
    let cluster_api = cluster(&engine).map(|cluster| {
        tarn_cluster::api_router(
            Arc::clone(cluster.membership()),
            Arc::clone(cluster.filters()),
        )
    });
    let own = Router::new()
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .with_state(Coordinator { engine, stopping });
    own.merge(cluster_api.unwrap_or_default())
}

fn cluster(engine: &Engine) -> Option<&ClusterDispatch> {
    match &engine.parts().dispatch {
        Dispatch::Cluster(cluster) => Some(cluster),
        Dispatch::Local => None,
    }
}

/// 200 while clients are taken; 503 while the process stops, so that balancers leave it alone.
async fn health(State(coordinator): State<Coordinator>) -> Response {
    if coordinator.stopping.is_cancelled() {
        (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response()
    } else {
        (StatusCode::OK, "active\n").into_response()
    }
}

async fn metrics(State(coordinator): State<Coordinator>) -> Response {
    let processes = coordinator.engine.processes();
    let mut out = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, value: u64| {
        let _ = write!(
            out,
            "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n"
        );
    };
    metric(
        "tarn_connections",
        "gauge",
        "Clients connected.",
        processes.connection_count() as u64,
    );
    metric(
        "tarn_statements_running",
        "gauge",
        "Statements running.",
        processes.statements().len() as u64,
    );
    metric(
        "tarn_statements_total",
        "counter",
        "Statements begun since the start.",
        processes.started_count(),
    );
    if let Some(cluster) = cluster(&coordinator.engine) {
        let active = cluster
            .membership()
            .list()
            .iter()
            .filter(|w| w.state == WorkerState::Active)
            .count();
        metric(
            "tarn_workers_active",
            "gauge",
            "Workers that take tasks.",
            active as u64,
        );
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], out).into_response()
}
