//! The coordinator's heart: everything that sessions share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use datafusion::execution::runtime_env::RuntimeEnv;
use parking_lot::RwLock;
use tarn_audit::AuditSink;
use tarn_catalog::Catalogs;
use tarn_planner::ScanStores;

use crate::dispatch::Dispatch;
use crate::error::{Error, ErrorKind, Result};
use crate::execution::ExecutionThreads;
use crate::processes::{ProcessList, StopReason};
use crate::profile::Profiles;
use crate::session::{Login, Session};
use crate::settings::EngineSettings;
use crate::users::Users;
use crate::variables::Variables;

/// How long a shutdown waits for stopped statements to be recorded.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);

/// What an engine is built of.
#[derive(Debug)]
pub struct EngineParts {
    pub catalogs: Arc<Catalogs>,
    pub stores: Arc<ScanStores>,
    /// Memory pool, spill disk and object stores of this process.
    pub runtime: Arc<RuntimeEnv>,
    pub dispatch: Dispatch,
    pub audit: Arc<dyn AuditSink>,
}

/// Everything that sessions share: catalogs, users, the process list and where queries run.
#[derive(Debug)]
pub struct Engine {
    settings: EngineSettings,
    parts: EngineParts,
    users: Users,
    processes: ProcessList,
    profiles: Profiles,
    globals: RwLock<Arc<Variables>>,
    execution: ExecutionThreads,
    next_connection: AtomicU32,
    stopping: AtomicBool,
    started: SystemTime,
}

impl Engine {
    /// Starts an engine.
    ///
    /// # Errors
    /// A setting is not valid, or the system gives no threads.
    pub async fn start(settings: EngineSettings, parts: EngineParts) -> Result<Arc<Self>> {
        if settings.max_connections == 0 {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "max_connections is 0: nobody could connect",
            ));
        }
        Ok(Arc::new(Self {
            users: Users::new(settings.users.clone()),
            processes: ProcessList::default(),
            profiles: Profiles::new(settings.kept_profiles),
            globals: RwLock::new(Arc::new(Variables::new(&settings))),
            execution: ExecutionThreads::start()?,
            next_connection: AtomicU32::new(1),
            stopping: AtomicBool::new(false),
            started: SystemTime::now(),
            settings,
            parts,
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

    /// What the engine is built of.
    pub fn parts(&self) -> &EngineParts {
        &self.parts
    }

    /// All catalogs, for the metadata calls of protocols.
    pub fn catalogs(&self) -> &Arc<Catalogs> {
        &self.parts.catalogs
    }

    /// Connections and running statements.
    pub fn processes(&self) -> &ProcessList {
        &self.processes
    }

    /// What finished queries did.
    pub fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    /// Where plans run.
    pub(crate) fn execution(&self) -> &ExecutionThreads {
        &self.execution
    }

    /// When the engine was started.
    pub fn started(&self) -> SystemTime {
        self.started
    }

    /// The values that new sessions start with.
    pub(crate) fn globals(&self) -> Arc<Variables> {
        Arc::clone(&self.globals.read())
    }

    pub(crate) fn change_globals(
        &self,
        change: impl FnOnce(&mut Variables) -> Result<()>,
    ) -> Result<()> {
        let mut globals = self.globals.write();
        let mut changed = Variables::clone(&globals);
        change(&mut changed)?;
        *globals = Arc::new(changed);
        Ok(())
    }

    /// Opens a session for a user whom the protocol has authenticated.
    ///
    /// `login.database` is taken as it is: call [`Session::use_database`] to have it checked.
    ///
    /// # Errors
    /// Too many connections, or the engine is stopping.
    pub fn open_session(self: &Arc<Self>, login: Login) -> Result<Arc<Session>> {
        self.open_session_as(self.reserve_connection_id(), login)
    }

    /// A connection id that no other session gets.
    ///
    /// A MySQL server tells it in its greeting, before it knows who connects, and clients send it
    /// back in `KILL QUERY`.
    pub fn reserve_connection_id(&self) -> u32 {
        self.next_connection.fetch_add(1, Ordering::Relaxed)
    }

    /// Opens a session under an id that was reserved for it.
    ///
    /// # Errors
    /// As [`Engine::open_session`].
    pub fn open_session_as(self: &Arc<Self>, id: u32, login: Login) -> Result<Arc<Session>> {
        if self.stopping.load(Ordering::Acquire) {
            return Err(Error::new(
                ErrorKind::ShuttingDown,
                "Server shutdown in progress",
            ));
        }
        if self.processes.connection_count() >= self.settings.max_connections as usize {
            return Err(Error::new(
                ErrorKind::TooManyConnections,
                format!(
                    "Too many connections: {} are open (see max_connections)",
                    self.settings.max_connections
                ),
            ));
        }
        Ok(Arc::new(Session::open(id, Arc::clone(self), login)))
    }

    /// Opens no more sessions. Those that are open go on until [`Engine::shutdown`].
    pub fn stop_accepting(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Stops every session and query, and writes out the audit.
    pub async fn shutdown(&self) {
        self.stopping.store(true, Ordering::Release);
        self.processes.stop_all(StopReason::ShuttingDown);
        let begun = Instant::now();
        while !self.processes.statements().is_empty() && begun.elapsed() < SHUTDOWN_PATIENCE {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.parts.audit.flush();
    }
}
