//! The end of every statement: it leaves the process list and is recorded, whatever its outcome.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tarn_audit::{AuditRecord, Outcome, StatementError};

use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::processes::{RunningStatement, StopReason};

/// Keeps a statement in the process list until it ends. Dropped before
/// [`finish`](StatementGuard::finish), it counts as abandoned by its client.
#[derive(Debug)]
pub(crate) struct StatementGuard {
    engine: Arc<Engine>,
    running: Arc<RunningStatement>,
}

impl StatementGuard {
    pub fn begin(engine: Arc<Engine>, running: Arc<RunningStatement>) -> Self {
        engine.processes().begin(&running);
        Self { engine, running }
    }

    pub fn running(&self) -> &Arc<RunningStatement> {
        &self.running
    }

    /// Ends the statement without a record: it was only looked at.
    pub fn forget(&self) {
        if !self.running.recorded.swap(true, Ordering::AcqRel) {
            self.engine.processes().end(&self.running);
            self.running.release_memory();
        }
    }

    /// Ends the statement with its result.
    pub fn finish(&self, result: Result<(), &Error>) {
        if self.running.recorded.swap(true, Ordering::AcqRel) {
            return;
        }
        self.engine.processes().end(&self.running);
        self.running.release_memory();
        let outcome = outcome(result, self.running.stop_reason());
        let record = record(&self.running, outcome, result.err());
        self.engine.parts().audit.record(record);
    }
}

impl Drop for StatementGuard {
    fn drop(&mut self) {
        // A statement that ended has nothing left to stop; its token stays as it is, so that a
        // finished statement is not taken for a killed one.
        if !self.running.recorded.load(Ordering::Acquire) {
            let refused = self.running.refusal.error();
            self.running.stop(StopReason::Disconnected);
            match refused {
                Some(error) => self.finish(Err(error)),
                None => self.finish(Err(&self.running.stop_error())),
            }
        }
    }
}

fn outcome(result: Result<(), &Error>, stopped: Option<StopReason>) -> Outcome {
    let Err(error) = result else {
        return Outcome::Ok;
    };
    match (error.kind, stopped) {
        (ErrorKind::TimedOut, _) => Outcome::TimedOut,
        (ErrorKind::Killed | ErrorKind::ShuttingDown, Some(StopReason::Disconnected)) => {
            Outcome::Disconnected
        }
        (ErrorKind::Killed | ErrorKind::ShuttingDown, _) => Outcome::Killed,
        _ => Outcome::Error,
    }
}

fn record(running: &RunningStatement, outcome: Outcome, error: Option<&Error>) -> AuditRecord {
    let elapsed = running.elapsed();
    let planning = running
        .execution_started()
        .map_or(elapsed, |start| start.duration_since(running.started_at));
    AuditRecord {
        query_id: running.id.to_string(),
        connection_id: running.connection,
        protocol: running.protocol.name().to_owned(),
        user: running.user.clone(),
        client: running.client.clone(),
        catalog: running.catalog.clone(),
        database: running.database.clone(),
        kind: running.kind.to_owned(),
        statement: running.text.clone(),
        start_ms: running.start_ms(),
        end_ms: now_ms(),
        planning_ms: millis(planning),
        execution_ms: millis(elapsed.saturating_sub(planning)),
        outcome,
        // A client that went away was given no error.
        error: error
            .filter(|_| outcome != Outcome::Disconnected)
            .map(|error| StatementError {
                kind: format!("{:?}", error.kind),
                code: error.mysql_code(),
                message: error.message.clone(),
            }),
        rows_returned: running.rows.load(Ordering::Relaxed),
        bytes_returned: running.bytes.load(Ordering::Relaxed),
        rows_affected: running.rows_affected.load(Ordering::Relaxed),
        retries: running.retries.load(Ordering::Relaxed),
        workers: running.workers.load(Ordering::Relaxed),
        scans: std::mem::take(&mut *running.scans.lock()),
    }
}

pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or(0)
}
