//! An engine that runs in this process, and what comes out of it as text.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use futures::TryStreamExt;
use tarn_audit::{AuditRecord, MemorySink};
use tarn_catalog::{CatalogSettings, Catalogs, StoreSettings};
use tarn_coordinator::{
    Dispatch, Done, Engine, EngineParts, EngineSettings, Error, Login, Protocol, Session,
    StatementOutcome,
};
use tarn_planner::ScanStores;
use tempfile::TempDir;

pub struct Harness {
    pub engine: Arc<Engine>,
    pub session: Arc<Session>,
    audit: Arc<MemorySink>,
    _dir: TempDir,
}

/// A result set as text.
#[derive(Debug, PartialEq, Eq)]
pub struct Rows {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Harness {
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut EngineSettings)) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let catalogs = Catalogs::open(CatalogSettings::new(dir.path()))
            .await
            .expect("opens");
        let audit = Arc::new(MemorySink::default());
        let mut settings = EngineSettings {
            data_dir: dir.path().to_owned(),
            ..EngineSettings::default()
        };
        settings.query.target_partitions = 2;
        change(&mut settings);
        let parts = EngineParts {
            catalogs,
            stores: ScanStores::new(None, StoreSettings::default()),
            runtime: RuntimeEnvBuilder::new().build_arc().expect("a runtime"),
            dispatch: Dispatch::Local,
            audit: audit.clone(),
        };
        let engine = Engine::start(settings, parts).await.expect("starts");
        let session = login(&engine, "root");
        Self {
            engine,
            session,
            audit,
            _dir: dir,
        }
    }

    pub async fn rows(&self, sql: &str) -> Rows {
        try_rows(&self.session, sql)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error:?}"))
    }

    /// The first column of a result.
    pub async fn column(&self, sql: &str) -> Vec<String> {
        self.rows(sql)
            .await
            .rows
            .into_iter()
            .map(|row| row[0].clone())
            .collect()
    }

    pub async fn done(&self, sql: &str) -> Done {
        match self.session.execute_sql(sql).await {
            Ok(StatementOutcome::Done(done)) => done,
            other => panic!("{sql}: {other:?}"),
        }
    }

    pub async fn error(&self, sql: &str) -> Error {
        match try_rows(&self.session, sql).await {
            Err(error) => error,
            Ok(rows) => panic!("{sql}: {rows:?}"),
        }
    }

    /// Records of statements whose text holds `part`.
    pub fn records(&self, part: &str) -> Vec<AuditRecord> {
        self.audit
            .records()
            .into_iter()
            .filter(|record| record.statement.contains(part))
            .collect()
    }
}

pub fn login(engine: &Arc<Engine>, user: &str) -> Arc<Session> {
    engine
        .open_session(Login {
            user: user.into(),
            client: "127.0.0.1:5555".into(),
            protocol: Protocol::Embedded,
            database: None,
        })
        .expect("a session")
}

/// Runs one statement to its end; a statement without rows gives no columns.
pub async fn try_rows(session: &Session, sql: &str) -> Result<Rows, Error> {
    let outcome = session.execute_sql(sql).await?;
    collect(outcome).await
}

pub async fn collect(outcome: StatementOutcome) -> Result<Rows, Error> {
    match outcome {
        StatementOutcome::Done(_) => Ok(Rows {
            columns: vec![],
            rows: vec![],
        }),
        StatementOutcome::Rows(rows) => {
            let columns = rows
                .schema
                .fields()
                .iter()
                .map(|field| field.name().clone())
                .collect();
            let batches: Vec<RecordBatch> = rows.stream.try_collect().await?;
            Ok(Rows {
                columns,
                rows: batches.iter().flat_map(cells).collect(),
            })
        }
    }
}

fn cells(batch: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let formatters: Vec<ArrayFormatter> = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column, &options).expect("a printable type"))
        .collect();
    (0..batch.num_rows())
        .map(|row| {
            formatters
                .iter()
                .map(|column| column.value(row).to_string())
                .collect()
        })
        .collect()
}

/// Waits until `condition` holds: for what another task does, never for time to pass.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    tokio::time::timeout(Duration::from_secs(20), async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap_or_else(|_| panic!("waited in vain until {what}"));
}

/// A query that no machine ends before somebody stops it.
pub const ENDLESS: &str =
    "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.value * b.value % 7 = 8";
