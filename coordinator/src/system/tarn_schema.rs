//! `tarn.system`: what the engine knows of itself.

use std::time::{SystemTime, UNIX_EPOCH};

use tarn_cluster::WorkerInfo;

use super::definition::Definition;
use crate::dispatch::Dispatch;
use crate::error::Result;
use crate::planning::StatementContext;
use crate::processes::RunningStatement;
use crate::profile::Profile;
use crate::rows::{Cell, Column, float, text, time, uint};
use crate::users::Users;
use crate::variables::VariableKind;

/// Columns of `SHOW WORKERS` and `tarn.system.workers`.
pub(crate) const WORKERS: &[Column] = &[
    text("id"),
    text("url"),
    text("state"),
    text("version"),
    uint("cores"),
    uint("memory_bytes"),
    uint("memory_used_bytes"),
    uint("spill_used_bytes"),
    uint("running_tasks"),
    uint("cache_hits_memory"),
    uint("cache_hits_disk"),
    uint("cache_misses"),
    time("started"),
    time("last_heartbeat"),
    text("http_url"),
    text("note"),
];

pub(super) const SYSTEM_TABLES: &[Definition] = &[
    Definition {
        name: "catalogs",
        columns: &[text("name"), text("property"), text("value")],
    },
    Definition {
        name: "queries",
        columns: &[
            text("query_id"),
            uint("connection_id"),
            text("user"),
            text("client"),
            text("protocol"),
            text("catalog"),
            text("database"),
            text("kind"),
            text("state"),
            time("started"),
            float("elapsed_seconds"),
            uint("rows_returned"),
            uint("bytes_returned"),
            uint("splits_done"),
            uint("splits_total"),
            uint("rows_read"),
            uint("bytes_read"),
            float("progress_percent"),
            uint("memory_bytes"),
            uint("retries"),
            text("statement"),
        ],
    },
    Definition {
        name: "query_profiles",
        columns: &[
            text("query_id"),
            uint("connection_id"),
            text("user"),
            time("started"),
            uint("planning_ms"),
            uint("execution_ms"),
            uint("rows_returned"),
            uint("retries"),
            uint("workers"),
            text("statement"),
            text("plan"),
            text("scans"),
        ],
    },
    Definition {
        name: "settings",
        columns: &[text("name"), text("value"), text("unit"), text("source")],
    },
    Definition {
        name: "variables",
        columns: &[
            text("name"),
            text("value"),
            text("global_value"),
            text("type"),
            text("unit"),
            text("read_only"),
            text("help"),
        ],
    },
    Definition {
        name: "workers",
        columns: WORKERS,
    },
];

pub(super) async fn rows(context: &StatementContext, table: &str) -> Result<Vec<Vec<Cell>>> {
    match table {
        "catalogs" => catalog_rows(context),
        "queries" => Ok(query_rows(context)),
        "query_profiles" => Ok(profile_rows(context)),
        "settings" => Ok(setting_rows(context)),
        "variables" => Ok(variable_rows(context)),
        _ => Ok(worker_rows(context)),
    }
}

/// How far a query is, in this process and on the workers together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    pub splits_done: u64,
    pub splits_total: u64,
    /// Rows that scans gave.
    pub rows: u64,
    /// Bytes that scans read.
    pub bytes: u64,
    /// Memory that operators hold, in bytes.
    pub memory_bytes: u64,
}

impl Progress {
    pub(crate) fn of(context: &StatementContext, statement: &RunningStatement) -> Self {
        Self::with_dispatch(&context.engine.parts().dispatch, statement)
    }

    /// The progress of a statement, as of the last heartbeats of the workers.
    pub fn with_dispatch(dispatch: &Dispatch, statement: &RunningStatement) -> Self {
        let local = statement.progress.snapshot();
        let mut progress = Self {
            splits_done: local.splits_done,
            splits_total: local.splits_total,
            rows: local.rows,
            bytes: local.bytes,
            memory_bytes: statement.memory_bytes(),
        };
        if let Dispatch::Cluster(cluster) = dispatch
            && let Some(load) = cluster.query_load(&statement.id.to_string())
        {
            progress.splits_done += load.splits_done;
            progress.splits_total += load.splits_total;
            progress.rows += load.rows;
            progress.bytes += load.bytes;
            progress.memory_bytes += load.memory_bytes;
        }
        progress
    }

    /// From 0 to 1; `None` while nothing is known.
    pub fn fraction(&self) -> Option<f64> {
        (self.splits_total > 0)
            .then(|| (self.splits_done as f64 / self.splits_total as f64).min(1.0))
    }
}

fn catalog_rows(context: &StatementContext) -> Result<Vec<Vec<Cell>>> {
    let catalogs = context.engine.catalogs();
    let mut rows = Vec::new();
    for name in catalogs.names() {
        let properties = catalogs.get(&name)?.shown_properties();
        if properties.is_empty() {
            rows.push(vec![name.as_str().into(), Cell::Null, Cell::Null]);
        }
        for (key, value) in properties {
            rows.push(vec![name.as_str().into(), key.into(), value.into()]);
        }
    }
    Ok(rows)
}

fn query_rows(context: &StatementContext) -> Vec<Vec<Cell>> {
    context
        .engine
        .processes()
        .statements()
        .iter()
        .filter(|statement| may_see(context, &statement.user))
        .map(|statement| {
            let progress = Progress::of(context, statement);
            vec![
                statement.id.to_string().into(),
                Cell::UInt(u64::from(statement.connection)),
                statement.user.as_str().into(),
                statement.client.as_str().into(),
                statement.protocol.name().into(),
                statement.catalog.as_str().into(),
                statement.database.as_str().into(),
                statement.kind.into(),
                statement.state().name().into(),
                millis_time(statement.start_ms()),
                statement.elapsed().as_secs_f64().into(),
                statement.rows_returned().into(),
                statement.bytes_returned().into(),
                progress.splits_done.into(),
                progress.splits_total.into(),
                progress.rows.into(),
                progress.bytes.into(),
                progress.fraction().map(|done| done * 100.0).into(),
                progress.memory_bytes.into(),
                Cell::UInt(u64::from(
                    statement.retries.load(std::sync::atomic::Ordering::Relaxed),
                )),
                statement.text.as_str().into(),
            ]
        })
        .collect()
}

fn profile_rows(context: &StatementContext) -> Vec<Vec<Cell>> {
    context
        .engine
        .profiles()
        .list()
        .iter()
        .filter(|profile| may_see(context, &profile.user))
        .map(|profile| profile_row(profile))
        .collect()
}

fn profile_row(profile: &Profile) -> Vec<Cell> {
    vec![
        profile.query_id.to_string().into(),
        Cell::UInt(u64::from(profile.connection)),
        profile.user.as_str().into(),
        millis_time(profile.start_ms),
        profile.planning_ms.into(),
        profile.execution_ms.into(),
        profile.rows.into(),
        Cell::UInt(u64::from(profile.retries)),
        Cell::UInt(u64::from(profile.workers)),
        profile.text.as_str().into(),
        profile.plan.as_str().into(),
        serde_json::to_string(&profile.scans).ok().into(),
    ]
}

fn setting_rows(context: &StatementContext) -> Vec<Vec<Cell>> {
    context
        .engine
        .settings()
        .shown_settings
        .iter()
        .map(|setting| {
            vec![
                setting.name.as_str().into(),
                setting.value.as_str().into(),
                setting.unit.as_str().into(),
                setting.source.as_str().into(),
            ]
        })
        .collect()
}

fn variable_rows(context: &StatementContext) -> Vec<Vec<Cell>> {
    let globals = context.engine.globals();
    context
        .variables
        .iter()
        .map(|(variable, value)| {
            let kind = match variable.kind {
                VariableKind::Switch => "ON or OFF".to_owned(),
                VariableKind::Integer { min, max } => format!("integer from {min} to {max}"),
                VariableKind::Bytes => "bytes".to_owned(),
                VariableKind::Text => "text".to_owned(),
                VariableKind::Zone => "a name of UTC".to_owned(),
                VariableKind::Word(words) => format!("one of {}", words.join(", ")),
            };
            vec![
                variable.name.into(),
                value.into(),
                globals.text(variable.name).map(str::to_owned).into(),
                kind.into(),
                variable.unit.into(),
                if variable.read_only { "YES" } else { "NO" }.into(),
                variable.help.into(),
            ]
        })
        .collect()
}

/// The workers, or, when queries run in this process, the process itself.
pub(crate) fn worker_rows(context: &StatementContext) -> Vec<Vec<Cell>> {
    match &context.engine.parts().dispatch {
        Dispatch::Cluster(cluster) => cluster.membership().list().iter().map(worker_row).collect(),
        Dispatch::Local => vec![local_row(context)],
    }
}

fn worker_row(worker: &WorkerInfo) -> Vec<Cell> {
    vec![
        worker.id.to_string().into(),
        worker.url.to_string().into(),
        worker.state.to_string().into(),
        worker.version.as_str().into(),
        Cell::UInt(u64::from(worker.cores)),
        worker.memory_bytes.into(),
        worker.memory_used.into(),
        worker.spill_used.into(),
        worker.running_tasks.into(),
        worker.cache.hits_memory.into(),
        worker.cache.hits_disk.into(),
        worker.cache.misses.into(),
        Cell::Time(worker.started.timestamp_micros()),
        Cell::Time(worker.last_heartbeat.timestamp_micros()),
        worker.http_url.as_ref().map(ToString::to_string).into(),
        worker.note.clone().into(),
    ]
}

fn local_row(context: &StatementContext) -> Vec<Cell> {
    use datafusion::execution::memory_pool::MemoryLimit;
    let engine = &context.engine;
    let pool = &engine.parts().runtime.memory_pool;
    let limit = match pool.memory_limit() {
        MemoryLimit::Finite(bytes) => Some(bytes as u64),
        _ => None,
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    vec![
        "local".into(),
        Cell::Null,
        "active".into(),
        env!("CARGO_PKG_VERSION").into(),
        Cell::UInt(cores as u64),
        limit.into(),
        (pool.reserved() as u64).into(),
        engine.parts().runtime.disk_manager.used_disk_space().into(),
        (engine.processes().statements().len() as u64).into(),
        Cell::Null,
        Cell::Null,
        Cell::Null,
        system_time(engine.started()),
        system_time(SystemTime::now()),
        Cell::Null,
        "queries run in this process".into(),
    ]
}

fn may_see(context: &StatementContext, owner: &str) -> bool {
    let user = &context.running.user;
    user == owner || user == Users::ROOT
}

fn millis_time(millis: i64) -> Cell {
    Cell::Time(millis.saturating_mul(1000))
}

fn system_time(time: SystemTime) -> Cell {
    time.duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_micros()).ok())
        .map_or(Cell::Null, Cell::Time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_unknown_until_splits_are_and_never_past_the_end() {
        assert_eq!(Progress::default().fraction(), None);
        let progress = Progress {
            splits_done: 3,
            splits_total: 2,
            ..Progress::default()
        };
        assert_eq!(progress.fraction(), Some(1.0));
    }
}
