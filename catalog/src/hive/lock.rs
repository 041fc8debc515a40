//! Hive's lock on a table, which every writer of Iceberg's Java library takes for a commit.

use std::time::{Duration, Instant};

use super::HiveBackend;
use super::client::{Answer, Failure};
use super::value::{Fields, Value};
use crate::backend::CommitError;
use crate::name::TableName;

/// Numbers of `hive_metastore.thrift`.
const EXCLUSIVE: i32 = 3;
const ON_TABLE: i32 = 2;
const ACQUIRED: i32 = 1;
const WAITING: i32 = 2;

/// How long another writer's commit is waited for, and the longest pause between two looks.
const PATIENCE: Duration = Duration::from_secs(60);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A lock that is held, by its id; none where the catalog's properties say that nobody locks.
pub(super) struct HeldLock(Option<i64>);

impl HiveBackend {
    /// Locks a table. It is known to be let go only by [`unlock`](Self::unlock); one that is forgotten ends after the
    /// server's `txn.timeout`.
    pub(super) async fn lock(&self, table: &TableName) -> Result<HeldLock, CommitError> {
        let properties = &self.client.config.properties;
        let unlocked = properties
            .get("engine.hive.lock-enabled")
            .is_some_and(|value| value.eq_ignore_ascii_case("false"));
        if unlocked {
            return Ok(HeldLock(None));
        }
        let component = Fields::of([
            (1, Value::I32(EXCLUSIVE)),
            (2, Value::I32(ON_TABLE)),
            (3, Value::from(table.database.as_str())),
            (4, Value::from(table.table.as_str())),
        ]);
        let request = Fields::of([
            (1, Value::structs([component])),
            (3, Value::from("tarn")),
            (4, Value::from("tarn")),
            (5, Value::from("tarn")),
        ]);
        let request = vec![Value::Struct(request)];
        let (id, mut state) = self.lock_state("lock", request).await?;
        let started = Instant::now();
        let mut pause = Duration::from_millis(50);
        while state == WAITING && started.elapsed() < PATIENCE {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            let request = Value::Struct(Fields::of([(1, Value::I64(id))]));
            state = match self.lock_state("check_lock", vec![request]).await {
                Ok((_, state)) => state,
                Err(error) => {
                    self.unlock(HeldLock(Some(id))).await;
                    return Err(error);
                }
            };
        }
        if state == ACQUIRED {
            return Ok(HeldLock(Some(id)));
        }
        self.unlock(HeldLock(Some(id))).await;
        Err(CommitError::Conflict(format!(
            "another writer held Hive's lock on it for {} s",
            started.elapsed().as_secs()
        )))
    }

    async fn lock_state(
        &self,
        method: &'static str,
        request: Vec<Value>,
    ) -> Result<(i64, i32), CommitError> {
        let failed = |failure: Failure| CommitError::Failed(self.client.failed(failure));
        let answer = self.client.call(method, request).await.map_err(failed)?;
        let response = match answer {
            Answer::Ok(Some(Value::Struct(response))) => response,
            Answer::Ok(_) => return Err(self.senseless(method).into()),
            Answer::Thrown(_, message) => return Err(self.client.refused(message).into()),
        };
        match (response.0.get(&1), response.0.get(&2)) {
            (Some(Value::I64(id)), Some(Value::I32(state))) => Ok((*id, *state)),
            _ => Err(self.senseless(method).into()),
        }
    }

    pub(super) async fn unlock(&self, lock: HeldLock) {
        let Some(id) = lock.0 else { return };
        let request = Value::Struct(Fields::of([(1, Value::I64(id))]));
        let answered = self.client.call("unlock", vec![request]).await;
        if !matches!(answered, Ok(Answer::Ok(_))) {
            tracing::warn!(
                catalog = self.client.config.catalog,
                lock = id,
                "a lock could not be given back; the metastore lets it go after its own timeout"
            );
        }
    }
}
