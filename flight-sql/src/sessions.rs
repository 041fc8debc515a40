use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tarn_coordinator::{Engine, Login, Protocol, Session, Users};
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};
use uuid::Uuid;

use crate::FlightSettings;
use crate::login::{Credentials, wanted_database};
use crate::statements::Statements;
use crate::status::status;

/// The user of a client that says nothing about itself.
const ANONYMOUS_USER: &str = "root";

/// A session of the coordinator as Flight SQL clients hold it: across calls, and maybe connections.
#[derive(Debug)]
pub(crate) struct ClientSession {
    pub session: Arc<Session>,
    pub statements: Statements,
    /// The client reads Arrow's view types; most do not.
    pub view_types: bool,
    use_of: Mutex<Usage>,
}

#[derive(Debug)]
struct Usage {
    last: Instant,
    /// Connections that have used the session and are still open.
    peers: HashSet<SocketAddr>,
    /// Since when there is none.
    orphaned: Option<Instant>,
}

impl ClientSession {
    fn touch(&self, peer: Option<SocketAddr>) {
        let mut usage = self.use_of.lock();
        usage.last = Instant::now();
        usage.orphaned = None;
        usage.peers.extend(peer);
    }

    fn is_busy(&self) -> bool {
        self.statements.is_running() || !self.session.running().is_empty()
    }
}

/// What a session is found by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    /// The token that a handshake gave out.
    Token(String),
    /// A connection whose calls name the user, or nobody.
    Peer(Option<SocketAddr>, String),
}

/// The sessions of all clients.
#[derive(Debug)]
pub(crate) struct Sessions {
    engine: Arc<Engine>,
    settings: FlightSettings,
    open: Mutex<HashMap<Key, Arc<ClientSession>>>,
}

impl Sessions {
    pub fn new(engine: Arc<Engine>, settings: FlightSettings) -> Self {
        Self {
            engine,
            settings,
            open: Mutex::default(),
        }
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub fn settings(&self) -> &FlightSettings {
        &self.settings
    }

    /// The session of a call, opened if the call brings its own credentials.
    pub async fn of<T>(&self, request: &Request<T>) -> Result<Arc<ClientSession>, Status> {
        let peer = request.remote_addr();
        let key = match Credentials::of(request.metadata())? {
            Credentials::Token(token) => {
                let key = Key::Token(token);
                return match self.find(&key, peer) {
                    Found::Open(client) => Ok(client),
                    Found::Closed => Err(Status::unauthenticated(
                        "the session was closed; connect again",
                    )),
                    Found::Unknown => Err(Status::unauthenticated(
                        "the session is not known or has expired; connect again",
                    )),
                };
            }
            Credentials::Basic { user, password } => {
                self.verify(&user, &password, peer)?;
                Key::Peer(peer, user)
            }
            Credentials::Anonymous => Key::Peer(peer, self.anonymous()?.to_owned()),
        };
        if let Found::Open(client) = self.find(&key, peer) {
            return Ok(client);
        }
        let Key::Peer(_, user) = &key else {
            return Err(Status::internal("a token cannot open a session"));
        };
        let client = self.open(user, peer, request.metadata()).await?;
        // Two first calls of a connection may come together: the first one to get here wins.
        let mut open = self.open.lock();
        if let Some(other) = open
            .get(&key)
            .filter(|other| !other.session.closed().is_cancelled())
        {
            let other = Arc::clone(other);
            drop(open);
            client.session.close();
            return Ok(other);
        }
        open.insert(key, Arc::clone(&client));
        Ok(client)
    }

    /// Opens a session and gives its token.
    pub async fn log_in(
        &self,
        credentials: Credentials,
        peer: Option<SocketAddr>,
        headers: &MetadataMap,
    ) -> Result<String, Status> {
        let user = match credentials {
            // A second handshake with a token that is still good keeps it.
            Credentials::Token(token) => {
                return match self.find(&Key::Token(token.clone()), peer) {
                    Found::Open(_) => Ok(token),
                    _ => Err(Status::unauthenticated(
                        "the session is not known or has expired",
                    )),
                };
            }
            Credentials::Basic { user, password } => {
                self.verify(&user, &password, peer)?;
                user
            }
            Credentials::Anonymous => self.anonymous()?.to_owned(),
        };
        let client = self.open(&user, peer, headers).await?;
        let token = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        self.open.lock().insert(Key::Token(token.clone()), client);
        Ok(token)
    }

    fn verify(&self, user: &str, password: &str, peer: Option<SocketAddr>) -> Result<(), Status> {
        self.engine
            .users()
            .verify_plain(user, password)
            .map_err(|error| {
                tracing::info!(user, ?peer, "Flight SQL login refused");
                status(&error)
            })
    }

    fn anonymous(&self) -> Result<&'static str, Status> {
        match self.engine.users().get(ANONYMOUS_USER) {
            Some(user) if !user.has_password() => Ok(ANONYMOUS_USER),
            _ => Err(status(&Users::access_denied("", "", false))),
        }
    }

    async fn open(
        &self,
        user: &str,
        peer: Option<SocketAddr>,
        headers: &MetadataMap,
    ) -> Result<Arc<ClientSession>, Status> {
        self.make_room()?;
        let login = Login {
            user: user.to_owned(),
            client: peer.map(|peer| peer.to_string()).unwrap_or_default(),
            protocol: Protocol::FlightSql,
            database: None,
        };
        let session = self.engine.open_session(login).map_err(|e| status(&e))?;
        if let Some(database) = wanted_database(headers)
            && let Err(error) = session.use_database(&database).await
        {
            session.close();
            return Err(status(&error));
        }
        let view_types = headers
            .get("x-tarn-view-types")
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"));
        Ok(Arc::new(ClientSession {
            session,
            statements: Statements::default(),
            view_types,
            use_of: Mutex::new(Usage {
                last: Instant::now(),
                peers: peer.into_iter().collect(),
                orphaned: None,
            }),
        }))
    }

    fn find(&self, key: &Key, peer: Option<SocketAddr>) -> Found {
        let mut open = self.open.lock();
        let Some(client) = open.get(key) else {
            return Found::Unknown;
        };
        if client.session.closed().is_cancelled() {
            open.remove(key);
            return Found::Closed;
        }
        let client = Arc::clone(client);
        drop(open);
        client.touch(peer);
        Found::Open(client)
    }

    /// Closes the session that has been idle longest if there are too many.
    fn make_room(&self) -> Result<(), Status> {
        let mut open = self.open.lock();
        if open.len() < self.settings.max_sessions {
            return Ok(());
        }
        let idle = open
            .iter()
            .filter(|(_, client)| !client.is_busy())
            .min_by_key(|(_, client)| client.use_of.lock().last)
            .map(|(key, _)| key.clone());
        match idle.and_then(|key| open.remove(&key)) {
            Some(client) => {
                drop(open);
                client.session.close();
                Ok(())
            }
            None => Err(Status::resource_exhausted(format!(
                "{} Flight SQL sessions are open and busy; close one or raise the limit",
                self.settings.max_sessions
            ))),
        }
    }

    /// Closes a session at its client's wish.
    pub fn close(&self, client: &Arc<ClientSession>) {
        self.open
            .lock()
            .retain(|_, other| !Arc::ptr_eq(other, client));
        client.session.close();
    }

    /// A connection is gone: with it go the sessions that only it could find.
    pub fn disconnected(&self, peer: SocketAddr) {
        let mut gone = Vec::new();
        self.open.lock().retain(|key, client| {
            if *key == Key::Peer(Some(peer), client.session.user().to_owned()) {
                gone.push(Arc::clone(client));
                return false;
            }
            let mut usage = client.use_of.lock();
            if usage.peers.remove(&peer) && usage.peers.is_empty() {
                usage.orphaned = Some(Instant::now());
            }
            true
        });
        for client in gone {
            client.session.close();
        }
    }

    /// Closes what is idle, orphaned or killed.
    pub fn sweep(&self) {
        let now = Instant::now();
        let mut gone = Vec::new();
        self.open.lock().retain(|_, client| {
            let over = {
                let usage = client.use_of.lock();
                let idle = now.duration_since(usage.last) >= self.settings.session_idle;
                let orphaned = usage
                    .orphaned
                    .is_some_and(|since| now.duration_since(since) >= self.settings.orphan_grace);
                idle || orphaned
            };
            let over = client.session.closed().is_cancelled() || over && !client.is_busy();
            if over {
                gone.push(Arc::clone(client));
            }
            !over
        });
        for client in gone {
            client.session.close();
        }
    }

    /// Closes all sessions.
    pub fn close_all(&self) {
        let all: Vec<_> = self.open.lock().drain().map(|(_, client)| client).collect();
        for client in all {
            client.session.close();
        }
    }
}

enum Found {
    Open(Arc<ClientSession>),
    Closed,
    Unknown,
}
