use crate::report::Reporter;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use std::fmt::Write;
use std::sync::Arc;
use tarn_cluster::{Heartbeat, WorkerState};

/// The worker's own HTTP interface.
pub(crate) fn router(reporter: Arc<Reporter>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .route("/api/status", get(status))
        .with_state(reporter)
}

/// 200 while the worker takes tasks; 503 while it drains, so that balancers and probes leave it alone.
async fn health(State(reporter): State<Arc<Reporter>>) -> Response {
    match reporter.state() {
        WorkerState::Active => (StatusCode::OK, "active\n").into_response(),
        state => (StatusCode::SERVICE_UNAVAILABLE, format!("{state}\n")).into_response(),
    }
}

async fn status(State(reporter): State<Arc<Reporter>>) -> Json<Heartbeat> {
    Json(reporter.heartbeat())
}

async fn metrics(State(reporter): State<Arc<Reporter>>) -> Response {
    let text = prometheus(&reporter.heartbeat(), reporter.queries.started_tasks());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

/// The heartbeat in Prometheus' text format.
fn prometheus(beat: &Heartbeat, started_tasks: u64) -> String {
    let mut out = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, values: &[(&str, u64)]| {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (label, value) in values {
            let _ = writeln!(out, "{name}{label} {value}");
        }
    };
    let draining = u64::from(beat.state == WorkerState::Draining);
    metric(
        "tarn_worker_tasks_running",
        "gauge",
        "Tasks alive.",
        &[("", beat.running_tasks)],
    );
    metric(
        "tarn_worker_tasks_started_total",
        "counter",
        "Tasks taken since the start.",
        &[("", started_tasks)],
    );
    metric(
        "tarn_worker_queries_running",
        "gauge",
        "Queries with tasks here.",
        &[("", beat.queries.len() as u64)],
    );
    metric(
        "tarn_worker_draining",
        "gauge",
        "1 while the worker drains.",
        &[("", draining)],
    );
    metric(
        "tarn_worker_memory_used_bytes",
        "gauge",
        "Bytes held in the memory pool.",
        &[("", beat.memory_used)],
    );
    metric(
        "tarn_worker_memory_limit_bytes",
        "gauge",
        "Size of the memory pool.",
        &[("", beat.memory_bytes)],
    );
    metric(
        "tarn_worker_spill_used_bytes",
        "gauge",
        "Bytes of spill files.",
        &[("", beat.spill_used)],
    );
    metric(
        "tarn_cache_reads_total",
        "counter",
        "Block reads of the DataCache by where they were answered.",
        &[
            ("{source=\"memory\"}", beat.cache.hits_memory),
            ("{source=\"disk\"}", beat.cache.hits_disk),
            ("{source=\"remote\"}", beat.cache.misses),
        ],
    );
    metric(
        "tarn_cache_read_bytes_total",
        "counter",
        "Bytes read through the DataCache by where they came from.",
        &[
            ("{source=\"memory\"}", beat.cache.bytes_memory),
            ("{source=\"disk\"}", beat.cache.bytes_disk),
            ("{source=\"remote\"}", beat.cache.bytes_remote),
        ],
    );
    out
}
