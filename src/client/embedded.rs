//! An engine inside this process.

use std::sync::Arc;

use futures::StreamExt;
use tarn_coordinator::{Engine, Login, Protocol, Session, StatementOutcome};

use super::connection::{Answer, Client, ClientError};

/// A session of an engine in this process.
pub struct EmbeddedClient {
    engine: Arc<Engine>,
    session: Arc<Session>,
    place: String,
}

impl EmbeddedClient {
    /// Opens a session; `place` tells people where the engine's data is.
    pub fn open(engine: Arc<Engine>, place: String) -> Result<Self, ClientError> {
        let login = Login {
            user: "root".to_string(),
            client: String::new(),
            protocol: Protocol::Embedded,
            database: None,
        };
        let session = engine
            .open_session(login)
            .map_err(|e| ClientError(e.message))?;
        Ok(Self {
            engine,
            session,
            place,
        })
    }
}

#[async_trait::async_trait]
impl Client for EmbeddedClient {
    async fn run(&self, sql: &str) -> Result<Answer, ClientError> {
        match self
            .session
            .execute_sql(sql)
            .await
            .map_err(|e| ClientError(e.message))?
        {
            StatementOutcome::Rows(rows) => Ok(Answer::Rows {
                schema: rows.schema,
                rows: rows
                    .stream
                    .map(|batch| batch.map_err(|e| ClientError(e.message)))
                    .boxed(),
            }),
            StatementOutcome::Done(done) => Ok(Answer::Done {
                affected_rows: done.affected_rows,
                info: done.info,
            }),
        }
    }

    async fn another(&self) -> Result<Box<dyn Client>, ClientError> {
        Ok(Box::new(Self::open(
            Arc::clone(&self.engine),
            self.place.clone(),
        )?))
    }

    async fn close(&self) {
        self.session.close();
    }

    fn cancel(&self) {
        self.session.cancel_running();
    }

    fn place(&self) -> String {
        self.place.clone()
    }
}

impl Drop for EmbeddedClient {
    fn drop(&mut self) {
        self.session.close();
    }
}
