//! Accepts connections and takes each through its connection phase.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tarn_coordinator::{Engine, Login, Protocol, SERVER_VERSION, Session, Users};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::channel::Channel;
use crate::connection::Connection;
use crate::error::{ConnectionError, MysqlError};
use crate::login::{Verdict, authenticate};
use crate::prepared::PreparedStatements;
use crate::settings::MysqlSettings;
use crate::wire::auth::{Nonce, random_nonce};
use crate::wire::capabilities::Capabilities;
use crate::wire::handshake::{self, FirstAnswer, Greeting};
use crate::wire::response::{self, put_error, put_ok};
use crate::wire::status::Status;

/// The most a client may send before it has logged in.
const LOGIN_BYTES: usize = 128 * 1024;
/// How long connections may take to end when the server stops.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait when the system has no more file descriptors, say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves MySQL clients until `shutdown`.
///
/// # Errors
/// The listener cannot accept connections any more.
pub async fn serve(
    listener: TcpListener,
    engine: Arc<Engine>,
    settings: MysqlSettings,
    shutdown: CancellationToken,
) -> Result<(), MysqlError> {
    let settings = Arc::new(settings);
    // Also clients that have not logged in count, or they could take every file descriptor.
    let slots = Arc::new(Semaphore::new(engine.settings().max_connections as usize));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => break,
            // Forgets the connections that have ended.
            Some(_) = connections.join_next() => continue,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_fatal(&error) => return Err(MysqlError::Accept(error)),
            Err(error) => {
                warn!(%error, "cannot accept a MySQL connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (engine, settings) = (Arc::clone(&engine), Arc::clone(&settings));
        let shutdown = shutdown.clone();
        match Arc::clone(&slots).try_acquire_owned() {
            Ok(slot) => connections.spawn(async move {
                serve_client(stream, peer, engine, settings, shutdown).await;
                drop(slot);
            }),
            Err(_) => connections.spawn(refuse(stream, peer, settings, shutdown)),
        };
    }
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if timeout(SHUTDOWN_PATIENCE, all_ended).await.is_err() {
        connections.abort_all();
    }
    Ok(())
}

fn is_fatal(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::InvalidInput | std::io::ErrorKind::NotConnected
    )
}

fn channel(stream: TcpStream, settings: &MysqlSettings, shutdown: CancellationToken) -> Channel {
    // Results are sent in large pieces; what is small is an answer that somebody waits for.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "cannot set TCP_NODELAY");
    }
    let (reader, writer) = stream.into_split();
    let (buffer, patience) = (settings.send_buffer_bytes, settings.connect_timeout);
    Channel::new(reader, writer, LOGIN_BYTES, buffer, patience, shutdown)
}

/// Tells a client that there is no room for it.
async fn refuse(
    stream: TcpStream,
    peer: SocketAddr,
    settings: Arc<MysqlSettings>,
    shutdown: CancellationToken,
) {
    warn!(%peer, "refused a MySQL connection: too many connections");
    let mut channel = channel(stream, &settings, shutdown);
    channel.put(|out| put_error(out, 1040, None, "Too many connections"));
    channel.close().await;
}

/// Serves one client to the end of its connection.
async fn serve_client(
    stream: TcpStream,
    peer: SocketAddr,
    engine: Arc<Engine>,
    settings: Arc<MysqlSettings>,
    shutdown: CancellationToken,
) {
    let mut channel = channel(stream, &settings, shutdown);
    let (session, client, nonce) = match connect(&mut channel, peer, &engine, &settings).await {
        Ok(connected) => connected,
        Err(end) => {
            put_refusal(&mut channel, &end);
            match end {
                // A probe of the port, by a load balancer say.
                ConnectionError::ClientGone => debug!(%peer, "{end}"),
                _ => info!(%peer, "MySQL connection refused: {end}"),
            }
            channel.close().await;
            return;
        }
    };
    debug!(%peer, connection = session.id(), user = session.user(), "MySQL client connected");
    let connection = Connection {
        channel,
        engine,
        settings,
        session,
        client,
        nonce,
        address: peer.to_string(),
        host: peer.ip().to_string(),
        prepared: PreparedStatements::default(),
    };
    match connection.run().await {
        Ok(()) | Err(ConnectionError::ClientGone) => debug!(%peer, "MySQL client disconnected"),
        Err(end) => info!(%peer, "MySQL connection ended: {end}"),
    }
}

/// The connection phase: greets, authenticates, opens the session in the database asked for.
async fn connect(
    channel: &mut Channel,
    peer: SocketAddr,
    engine: &Arc<Engine>,
    settings: &MysqlSettings,
) -> Result<(Arc<Session>, Capabilities, Nonce), ConnectionError> {
    let id = engine.reserve_connection_id();
    let nonce = random_nonce();
    let patience = settings.connect_timeout;
    let (client, login) = timeout(patience, greet(channel, peer, engine, id, &nonce))
        .await
        .map_err(|_| ConnectionError::LoginTooSlow(patience))??;
    let session = engine
        .open_session_as(
            id,
            Login {
                user: login.user,
                client: peer.to_string(),
                protocol: Protocol::Mysql,
                database: None,
            },
        )
        .map_err(ConnectionError::Refused)?;
    channel.set_killed(session.closed());
    if let Some(database) = login.database {
        // Its catalog may be slow; that is not the client's fault.
        let used = channel.watch(session.use_database(&database)).await?;
        used.map_err(ConnectionError::Refused)?;
    }
    let most = usize::try_from(engine.settings().max_allowed_packet_bytes).unwrap_or(usize::MAX);
    channel.set_max_payload(most);
    let ok = response::Ok {
        status: Status::AUTOCOMMIT,
        ..response::Ok::default()
    };
    channel.put(|out| put_ok(out, &ok));
    channel.flush().await?;
    Ok((session, client, nonce))
}

/// Greets a client and checks who it is. Returns what it can do, and its login.
async fn greet(
    channel: &mut Channel,
    peer: SocketAddr,
    engine: &Engine,
    id: u32,
    nonce: &Nonce,
) -> Result<(Capabilities, handshake::Login), ConnectionError> {
    let offered = Capabilities::OFFERED;
    let greeting = Greeting {
        server_version: SERVER_VERSION,
        connection_id: id,
        nonce,
        capabilities: offered,
    };
    channel.put(|out| greeting.put(out));
    channel.flush().await?;
    let answer = channel.read_answer().await?;
    let FirstAnswer {
        capabilities,
        login,
    } = FirstAnswer::parse(&answer, offered)?;
    let can_switch = capabilities.has(Capabilities::PLUGIN_AUTH);
    match authenticate(channel, engine.users(), &login, nonce, can_switch).await? {
        Verdict::Welcome => Ok((capabilities, login)),
        Verdict::Denied { with_password } => {
            let host = peer.ip().to_string();
            let error = Users::access_denied(&login.user, &host, with_password);
            Err(ConnectionError::Refused(error))
        }
    }
}

/// Tells a client why it is not let in.
fn put_refusal(channel: &mut Channel, end: &ConnectionError) {
    match end {
        ConnectionError::Refused(error) => channel.put(|out| {
            put_error(
                out,
                error.mysql_code(),
                Some(error.sqlstate()),
                &error.message,
            );
        }),
        ConnectionError::Packet(_) | ConnectionError::Malformed(_) => {
            channel.put(|out| put_error(out, 1043, Some("08S01"), "Bad handshake"));
        }
        ConnectionError::ShuttingDown => {
            channel.put(|out| put_error(out, 1053, Some("08S01"), "Server shutdown in progress"));
        }
        _ => {}
    }
}
