//! `tarn server` and `tarn coordinator`: the same front ends over an engine in this process or over workers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tarn_coordinator::Engine;
use tarn_mysql::MysqlSettings;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::Settings;
use crate::service::{
    Placement, ServiceError, announce, bind, coordinator_router, shutdown_signal, start_engine,
    with_stdin,
};

/// How often a stopping process looks whether its queries have ended.
const DRAIN_PERIOD: Duration = Duration::from_millis(50);
/// How long the front ends may take to close their connections once no query runs.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves until told to leave.
pub async fn serve(
    settings: &Settings,
    placement: Placement,
    stop_with_stdin: bool,
) -> Result<(), ServiceError> {
    let told = shutdown_signal()?;
    if stop_with_stdin {
        with_stdin(&told);
    }
    let mysql = bind(settings, "coordinator.mysql_listen").await?;
    let flight = bind(settings, "coordinator.flight_listen").await?;
    let http = bind(settings, "coordinator.http_listen").await?;

    let engine = start_engine(settings, placement).await?;
    say_who_may_enter(settings);
    announce(&[("mysql", &mysql), ("flight", &flight), ("http", &http)]);

    // Cancelled once the running queries have ended.
    let close = CancellationToken::new();
    let router = coordinator_router(Arc::clone(&engine), told.clone());
    let mut servers: JoinSet<Result<(), ServiceError>> = JoinSet::new();
    let (shared, token) = (Arc::clone(&engine), close.clone());
    servers.spawn(async move {
        let served = tarn_mysql::serve(mysql, shared, MysqlSettings::default(), token).await;
        served.map_err(|e| ServiceError::Served {
            protocol: "MySQL",
            reason: e.to_string(),
        })
    });
    let flight_settings = settings.flight();
    let (shared, token) = (Arc::clone(&engine), close.clone());
    servers.spawn(async move {
        let served = tarn_flight_sql::serve(flight, shared, flight_settings, token).await;
        served.map_err(|e| ServiceError::Served {
            protocol: "Flight SQL",
            reason: e.to_string(),
        })
    });
    let token = close.clone();
    servers.spawn(async move {
        let served = axum::serve(http, router)
            .with_graceful_shutdown(token.cancelled_owned())
            .await;
        served.map_err(|e| ServiceError::Served {
            protocol: "HTTP",
            reason: e.to_string(),
        })
    });

    let failed = tokio::select! {
        () = told.cancelled() => None,
        // None of them ends by itself unless it failed.
        Some(ended) = servers.join_next() => Some(ended),
    };
    if failed.is_none() {
        engine.stop_accepting();
        drain(&engine, settings.duration("coordinator.shutdown_timeout")).await;
    }
    engine.shutdown().await;
    close.cancel();
    let closed = async { while servers.join_next().await.is_some() {} };
    if tokio::time::timeout(CLOSE_TIMEOUT, closed).await.is_err() {
        tracing::warn!("connections did not close in time");
    }
    match failed {
        None => {
            tracing::info!("stopped");
            Ok(())
        }
        Some(Ok(result)) => result,
        Some(Err(e)) => Err(ServiceError::Served {
            protocol: "front end",
            reason: e.to_string(),
        }),
    }
}

/// Waits for the statements that run, but not for ever.
async fn drain(engine: &Engine, patience: Duration) {
    let begun = Instant::now();
    let running = || engine.processes().statements().len();
    if running() > 0 {
        tracing::info!(statements = running(), "waiting for running statements");
    }
    while running() > 0 {
        if begun.elapsed() > patience {
            tracing::warn!(
                statements = running(),
                "statements did not end in time: they are stopped"
            );
            return;
        }
        tokio::time::sleep(DRAIN_PERIOD).await;
    }
}

fn say_who_may_enter(settings: &Settings) {
    let listens = [
        "coordinator.mysql_listen",
        "coordinator.flight_listen",
        "coordinator.http_listen",
    ]
    .map(|s| settings.address(s));
    let loopback = listens.iter().all(|address| address.ip().is_loopback());
    let open = settings.open_users().join(", ");
    if open.is_empty() {
        return;
    }
    if loopback {
        tracing::info!(
            "only this machine can connect; no password is needed by: {open} ([[users]] in the configuration sets one)"
        );
    } else {
        tracing::warn!(
            "other machines can connect, and no password is needed by: {open}; set one in [[users]] of the configuration"
        );
    }
}
