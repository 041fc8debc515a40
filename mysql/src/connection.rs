//! The command phase of one connection.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tarn_coordinator::{
    Engine, Error, ErrorKind, Login, Protocol, ResultRows, Session, StatementOutcome, Users,
};

use crate::channel::Channel;
use crate::error::ConnectionError;
use crate::login::{Verdict, authenticate};
use crate::parameters::to_scalar;
use crate::prepared::PreparedStatements;
use crate::result::{PendingRows, Stop, column_definitions, put_columns};
use crate::rows::RowEncoding;
use crate::settings::MysqlSettings;
use crate::wildcard::matches_wildcard;
use crate::wire::auth::Nonce;
use crate::wire::capabilities::Capabilities;
use crate::wire::column::ColumnDefinition;
use crate::wire::command::{Command, CursorType};
use crate::wire::handshake;
use crate::wire::packet::PacketError;
use crate::wire::parameter::{ParameterError, parse_parameters};
use crate::wire::response::{self, put_end, put_error, put_ok};
use crate::wire::status::Status;

/// Whether the connection goes on after a command.
#[derive(PartialEq, Eq)]
enum Next {
    Command,
    Quit,
}

/// A client that has logged in.
pub(crate) struct Connection {
    pub channel: Channel,
    pub engine: Arc<Engine>,
    pub settings: Arc<MysqlSettings>,
    pub session: Arc<Session>,
    /// What both sides can do.
    pub client: Capabilities,
    /// The nonce of the greeting, which COM_CHANGE_USER answers again.
    pub nonce: Nonce,
    /// The client's address, with and without its port.
    pub address: String,
    pub host: String,
    pub prepared: PreparedStatements,
}

impl Connection {
    /// Serves commands until the connection ends, and says why it did.
    pub async fn run(mut self) -> Result<(), ConnectionError> {
        let end = loop {
            match self.serve_command().await {
                Ok(Next::Command) => {}
                Ok(Next::Quit) => break Ok(()),
                Err(end) => break Err(end),
            }
        };
        // Cursors first, so that their queries are cancelled before the session goes.
        self.prepared.clear();
        self.session.close();
        if let Err(end) = &end {
            self.put_last_words(end);
        }
        self.channel.close().await;
        end
    }

    /// Tells the client why its connection ends, where it can still hear it.
    fn put_last_words(&mut self, end: &ConnectionError) {
        let (code, sqlstate, message) = match end {
            ConnectionError::Packet(PacketError::TooLarge { .. }) => {
                (1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes".to_owned())
            }
            ConnectionError::Packet(PacketError::OutOfOrder { .. }) => {
                (1156, "08S01", "Got packets out of order".to_owned())
            }
            ConnectionError::Killed => (1317, "70100", "Connection was killed".to_owned()),
            ConnectionError::ShuttingDown => {
                (1053, "08S01", "Server shutdown in progress".to_owned())
            }
            ConnectionError::Idle(_) => (
                4031,
                "HY000",
                "The client was disconnected by the server because of inactivity. See wait_timeout for configuring this behavior.".to_owned(),
            ),
            ConnectionError::Refused(error) => {
                (error.mysql_code(), error.sqlstate(), error.message.clone())
            }
            _ => return,
        };
        self.channel
            .put(|out| put_error(out, code, Some(sqlstate), &message));
    }

    /// A variable of this session that is a time in seconds.
    fn seconds(&self, variable: &str, default: Duration) -> Duration {
        let seconds = self
            .session
            .variable(variable)
            .and_then(|text| text.parse().ok());
        seconds.map_or(default, Duration::from_secs)
    }

    fn status(&self) -> Status {
        if self.session.autocommit() {
            Status::AUTOCOMMIT
        } else {
            Status::default()
        }
    }

    async fn serve_command(&mut self) -> Result<Next, ConnectionError> {
        let idle = self.seconds("wait_timeout", Duration::from_secs(28_800));
        self.channel
            .set_write_timeout(self.seconds("net_write_timeout", Duration::from_secs(600)));
        let payload = self.channel.read_command(idle).await?;
        let next = match Command::parse(&payload) {
            Ok(command) => self.dispatch(command).await,
            Err(malformed) => {
                Err(Error::new(ErrorKind::InvalidArgument, malformed.to_string()).into())
            }
        };
        let next = match next {
            Ok(next) => next,
            Err(Stop::Connection(end)) => return Err(end),
            Err(Stop::Statement(error)) => {
                self.put_error(&error);
                Next::Command
            }
        };
        self.channel.flush().await?;
        Ok(next)
    }

    async fn dispatch(&mut self, command: Command<'_>) -> Result<Next, Stop> {
        match command {
            Command::Quit => return Ok(Next::Quit),
            Command::Ping => self.put_ok(0, 0, ""),
            Command::InitDb(name) => {
                let session = Arc::clone(&self.session);
                self.channel
                    .watch(session.use_database(text(name)?))
                    .await??;
                self.put_ok(0, 0, "");
            }
            Command::Query(sql) => self.query(text(sql)?).await?,
            Command::FieldList { table, wildcard } => {
                self.field_list(text(table)?, text(wildcard)?).await?;
            }
            Command::Statistics => {
                let statistics = self.statistics();
                self.channel
                    .put(|out| out.extend_from_slice(statistics.as_bytes()));
            }
            Command::ProcessInfo => self.query("SHOW PROCESSLIST").await?,
            Command::ProcessKill(id) => self.query(&format!("KILL {id}")).await?,
            Command::SetMultiStatements(on) => {
                self.client = if on {
                    self.client.with(Capabilities::MULTI_STATEMENTS)
                } else {
                    self.client.without(Capabilities::MULTI_STATEMENTS)
                };
                self.put_end(self.status());
            }
            Command::ChangeUser(payload) => self.change_user(payload).await?,
            Command::ResetConnection => self.reset().await?,
            Command::Prepare(sql) => self.prepare(text(sql)?).await?,
            Command::Execute {
                statement,
                cursor,
                parameters,
            } => {
                self.execute(statement, cursor, parameters).await?;
            }
            Command::SendLongData {
                statement,
                parameter,
                data,
            } => {
                let limit = self.max_payload();
                self.prepared
                    .append_long_data(statement, parameter, data, limit);
            }
            Command::ResetStatement(id) => {
                self.prepared.get(id, "mysqld_stmt_reset")?.reset();
                self.put_ok(0, 0, "");
            }
            Command::CloseStatement(id) => self.prepared.remove(id),
            Command::Fetch { statement, rows } => self.fetch(statement, rows).await?,
            Command::Unknown(number) => {
                let message = format!("Unknown command {number}");
                self.channel
                    .put(|out| put_error(out, 1047, Some("08S01"), &message));
            }
        }
        Ok(Next::Command)
    }

    fn max_payload(&self) -> usize {
        usize::try_from(self.engine.settings().max_allowed_packet_bytes).unwrap_or(usize::MAX)
    }

    /// COM_QUERY: one statement, or several for a client that has asked for them.
    async fn query(&mut self, sql: &str) -> Result<(), Stop> {
        let session = Arc::clone(&self.session);
        let statements = session.parse(sql)?;
        if statements.is_empty() {
            return Err(Error::new(ErrorKind::EmptyStatement, "Query was empty").into());
        }
        if statements.len() > 1 && !self.client.has(Capabilities::MULTI_STATEMENTS) {
            let message =
                "several statements at once, but the client has not enabled multi-statements";
            return Err(Error::new(ErrorKind::Syntax, message).into());
        }
        let last = statements.len() - 1;
        for (index, parsed) in statements.into_iter().enumerate() {
            let outcome = self
                .channel
                .watch(session.execute(parsed.statement, &parsed.text))
                .await??;
            self.send_outcome(outcome, RowEncoding::Text, index < last)
                .await?;
        }
        Ok(())
    }

    /// Sends what a statement gave back. `more` says that another result follows.
    async fn send_outcome(
        &mut self,
        outcome: StatementOutcome,
        encoding: RowEncoding,
        more: bool,
    ) -> Result<(), Stop> {
        let with_more = |status: Status| {
            if more {
                status.with(Status::MORE_RESULTS)
            } else {
                status
            }
        };
        match outcome {
            StatementOutcome::Done(done) => {
                let ok = response::Ok {
                    affected_rows: done.affected_rows,
                    status: with_more(self.status()),
                    warnings: done.warnings,
                    info: &done.info,
                };
                self.channel.put(|out| put_ok(out, &ok));
            }
            StatementOutcome::Rows(rows) => {
                let mut pending = PendingRows::open(&mut self.channel, rows).await?;
                let status = with_more(self.status());
                pending.put_column_count(&mut self.channel);
                put_columns(&mut self.channel, self.client, pending.columns(), status);
                pending.send(&mut self.channel, encoding, None).await?;
                self.put_end(status);
            }
        }
        Ok(())
    }

    /// COM_FIELD_LIST: the columns of a table whose names match.
    async fn field_list(&mut self, table: &str, wildcard: &str) -> Result<(), Stop> {
        let sql = format!("SELECT * FROM `{}`", table.replace('`', "``"));
        let session = Arc::clone(&self.session);
        let prepared = self.channel.watch(session.prepare(&sql)).await??;
        let columns = match &prepared.schema {
            Some(schema) => column_definitions(schema)?,
            None => vec![],
        };
        let matching = columns
            .into_iter()
            .filter(|column| wildcard.is_empty() || matches_wildcard(&column.name, wildcard));
        for mut column in matching {
            column.table = table.to_owned();
            self.channel.put(|out| {
                column.put(out);
                out.push(0xfb); // the default value: NULL
            });
        }
        self.put_end(self.status());
        Ok(())
    }

    fn statistics(&self) -> String {
        let uptime = SystemTime::now()
            .duration_since(self.engine.started())
            .unwrap_or_default();
        let questions = self.engine.processes().started_count();
        format!(
            "Uptime: {}  Threads: {}  Questions: {questions}  Slow queries: 0  Opens: 0  Flush tables: 0  Open tables: 0  Queries per second avg: {:.3}",
            uptime.as_secs(),
            self.engine.processes().connection_count(),
            questions as f64 / uptime.as_secs_f64().max(1.0),
        )
    }

    /// COM_CHANGE_USER: logs in anew on the same connection. A refusal ends it.
    async fn change_user(&mut self, payload: &[u8]) -> Result<(), Stop> {
        let login = handshake::Login::parse_change_user(payload, self.client)
            .map_err(ConnectionError::from)?;
        let can_switch = self.client.has(Capabilities::PLUGIN_AUTH);
        let users = self.engine.users();
        let verdict =
            authenticate(&mut self.channel, users, &login, &self.nonce, can_switch).await?;
        if let Verdict::Denied { with_password } = verdict {
            let error = Users::access_denied(&login.user, &self.host, with_password);
            return Err(ConnectionError::Refused(error).into());
        }
        self.new_session(login.user, login.database).await
    }

    /// COM_RESET_CONNECTION: a session as it was after the login, in the same database.
    async fn reset(&mut self) -> Result<(), Stop> {
        let place = format!(
            "{}.{}",
            self.session.current_catalog(),
            self.session.current_database()
        );
        let user = self.session.user().to_owned();
        self.new_session(user, Some(place)).await
    }

    async fn new_session(&mut self, user: String, database: Option<String>) -> Result<(), Stop> {
        self.prepared.clear();
        let id = self.session.id();
        self.session.close();
        let login = Login {
            user,
            client: self.address.clone(),
            protocol: Protocol::Mysql,
            database: None,
        };
        self.session = self
            .engine
            .open_session_as(id, login)
            .map_err(ConnectionError::Refused)?;
        self.channel.set_killed(self.session.closed());
        if let Some(database) = database {
            let session = Arc::clone(&self.session);
            self.channel
                .watch(session.use_database(&database))
                .await?
                .map_err(ConnectionError::Refused)?;
        }
        self.put_ok(0, 0, "");
        Ok(())
    }

    async fn prepare(&mut self, sql: &str) -> Result<(), Stop> {
        let session = Arc::clone(&self.session);
        let prepared = self.channel.watch(session.prepare(sql)).await??;
        let columns = match &prepared.schema {
            Some(schema) => column_definitions(schema)?,
            None => vec![],
        };
        let count = |count: usize, of: &str| {
            u16::try_from(count).map_err(|_| {
                let message = format!("a statement with {count} {of}: 65535 is the most");
                Error::new(ErrorKind::InvalidArgument, message)
            })
        };
        let parameters = count(prepared.parameter_types.len(), "parameters")?;
        let column_count = count(columns.len(), "columns")?;
        let id = self
            .prepared
            .insert(prepared, self.settings.prepared_statements)?;
        self.channel.put(|out| {
            out.push(0);
            out.extend_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&column_count.to_le_bytes());
            out.extend_from_slice(&parameters.to_le_bytes());
            out.push(0);
            out.extend_from_slice(&0u16.to_le_bytes()); // warnings
        });
        let status = self.status();
        if parameters > 0 {
            let definitions = vec![ColumnDefinition::parameter(); usize::from(parameters)];
            put_columns(&mut self.channel, self.client, &definitions, status);
        }
        if !columns.is_empty() {
            put_columns(&mut self.channel, self.client, &columns, status);
        }
        Ok(())
    }

    async fn execute(
        &mut self,
        id: u32,
        cursor: CursorType,
        parameters: &[u8],
    ) -> Result<(), Stop> {
        let statement = self.prepared.get(id, "mysqld_stmt_execute")?;
        statement.cursor = None;
        if let Some(error) = statement.long_data_error.take() {
            statement.reset();
            return Err(error.into());
        }
        let prepared = statement.prepared.clone();
        let count = prepared.parameter_types.len();
        let values = parse_parameters(
            parameters,
            count,
            &mut statement.types,
            &mut statement.long_data,
        )
        .map_err(|error| {
            let kind = match error {
                ParameterError::UnknownType(_) => ErrorKind::Unsupported,
                _ => ErrorKind::WrongParameterCount,
            };
            Error::new(
                kind,
                format!("Incorrect arguments to mysqld_stmt_execute: {error}"),
            )
        })?;
        let values = values
            .into_iter()
            .zip(&prepared.parameter_types)
            .map(|(value, expected)| to_scalar(value, expected.as_ref()))
            .collect::<Result<Vec<_>, _>>()?;
        let session = Arc::clone(&self.session);
        let outcome = self
            .channel
            .watch(session.execute_prepared(&prepared, values))
            .await??;
        match (outcome, cursor) {
            (StatementOutcome::Rows(rows), CursorType::ReadOnly) => {
                self.open_cursor(id, rows).await
            }
            (outcome, _) => self.send_outcome(outcome, RowEncoding::Binary, false).await,
        }
    }

    /// Tells of the columns and keeps the rows to be fetched.
    async fn open_cursor(&mut self, id: u32, rows: ResultRows) -> Result<(), Stop> {
        let pending = PendingRows::open(&mut self.channel, rows).await?;
        pending.put_column_count(&mut self.channel);
        for column in pending.columns() {
            self.channel.put(|out| column.put(out));
        }
        // Also a client that does without EOF waits for this one: it tells that there is a cursor.
        self.put_end(self.status().with(Status::CURSOR_EXISTS));
        self.prepared.get(id, "mysqld_stmt_execute")?.cursor = Some(pending);
        Ok(())
    }

    async fn fetch(&mut self, id: u32, rows: u32) -> Result<(), Stop> {
        let status = self.status();
        let statement = self.prepared.get(id, "mysqld_stmt_fetch")?;
        let Some(mut cursor) = statement.cursor.take() else {
            let message = format!("The statement ({id}) has no open cursor.");
            self.channel
                .put(|out| put_error(out, 1421, Some("HY000"), &message));
            return Ok(());
        };
        let ended = cursor
            .send(&mut self.channel, RowEncoding::Binary, Some(rows))
            .await?;
        if ended {
            self.put_end(status.with(Status::LAST_ROW_SENT));
        } else {
            self.prepared.get(id, "mysqld_stmt_fetch")?.cursor = Some(cursor);
            self.put_end(status.with(Status::CURSOR_EXISTS));
        }
        Ok(())
    }

    pub fn put_ok(&mut self, affected_rows: u64, warnings: u16, info: &str) {
        let ok = response::Ok {
            affected_rows,
            status: self.status(),
            warnings,
            info,
        };
        self.channel.put(|out| put_ok(out, &ok));
    }

    fn put_end(&mut self, status: Status) {
        let client = self.client;
        self.channel.put(|out| put_end(out, client, status, 0));
    }

    fn put_error(&mut self, error: &Error) {
        self.channel.put(|out| {
            put_error(
                out,
                error.mysql_code(),
                Some(error.sqlstate()),
                &error.message,
            );
        });
    }
}

/// SQL and names are sent in utf8mb4.
fn text(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|error| {
        let message = format!(
            "Invalid utf8mb4 character string: byte {} is not valid",
            error.valid_up_to()
        );
        Error::new(ErrorKind::WrongValue, message)
    })
}
