use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::metadata::{SqlInfoData, XdbcTypeInfoData};
use arrow_flight::sql::server::{DoPutError, FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionBeginSavepointRequest, ActionBeginSavepointResult, ActionBeginTransactionRequest,
    ActionBeginTransactionResult, ActionCancelQueryRequest, ActionCancelQueryResult,
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest,
    ActionCreatePreparedStatementResult, ActionEndSavepointRequest, ActionEndTransactionRequest,
    Any, Command, CommandGetCatalogs, CommandGetCrossReference, CommandGetDbSchemas,
    CommandGetExportedKeys, CommandGetImportedKeys, CommandGetPrimaryKeys, CommandGetSqlInfo,
    CommandGetTableTypes, CommandGetTables, CommandGetXdbcTypeInfo, CommandPreparedStatementQuery,
    CommandPreparedStatementUpdate, CommandStatementQuery, CommandStatementUpdate,
    DoPutPreparedStatementResult, ProstMessageExt, SqlInfo, TicketStatementQuery,
};
use arrow_flight::{
    Action, BasicAuth, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus,
    FlightDescriptor, FlightEndpoint, FlightInfo, HandshakeRequest, HandshakeResponse, IpcMessage,
    SchemaAsIpc,
};
use bytes::Bytes;
use datafusion::common::ScalarValue;
use futures::{Stream, StreamExt, stream};
use prost::Message;
use tarn_coordinator::{Error, ErrorKind, Prepared, StatementOutcome};
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status, Streaming};

use crate::login::Credentials;
use crate::outgoing::{self, DataStream};
use crate::sessions::{ClientSession, Sessions};
use crate::statements::{Handle, Ticket};
use crate::status::{cancelled, internal, invalid, status};
use crate::{browse, keys, parameters, session_options, sql_info, type_info};

/// The `CancelResult` of the older cancel action for "cancelled".
const CANCEL_RESULT_CANCELLED: i32 = 1;
/// The `CloseSessionResult.Status` for "closed".
const SESSION_CLOSED: i32 = 1;

/// The commands of Flight SQL.
pub(crate) struct Service {
    sessions: Arc<Sessions>,
    sql_info: SqlInfoData,
    type_info: XdbcTypeInfoData,
}

impl Service {
    pub fn new(sessions: Arc<Sessions>) -> Result<Self, Error> {
        let engine_settings = sessions.engine().settings();
        let fault = |status: Status| Error::new(ErrorKind::Internal, status.message());
        Ok(Self {
            sql_info: sql_info::sql_info(
                engine_settings.max_connections,
                sessions.settings().max_message_bytes,
            )
            .map_err(fault)?,
            type_info: type_info::type_info().map_err(fault)?,
            sessions,
        })
    }

    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// The columns of a statement that is not run.
    pub async fn statement_schema(
        &self,
        client: &ClientSession,
        sql: &str,
    ) -> Result<SchemaRef, Status> {
        let prepared = client.session.prepare(sql).await.map_err(|e| status(&e))?;
        Ok(result_schema(&prepared, client.view_types))
    }

    /// The columns of a prepared statement.
    pub fn prepared_schema(
        &self,
        client: &ClientSession,
        handle: &Handle,
    ) -> Result<SchemaRef, Status> {
        let statement = client.statements.prepared(handle)?;
        Ok(result_schema(&statement.prepared, client.view_types))
    }

    /// Gets a statement ready to be fetched. A query waits for its `DoGet`; anything else runs now.
    async fn ready(
        &self,
        client: &ClientSession,
        prepared: Arc<Prepared>,
        values: Vec<ScalarValue>,
        descriptor: FlightDescriptor,
    ) -> Result<Response<FlightInfo>, Status> {
        // Where the values decide the types, only running it tells the columns.
        let typed = prepared.parameter_types.iter().all(Option::is_some);
        let ticket = if prepared.schema.is_some() && typed {
            let expected = prepared.parameter_types.len();
            if values.len() != expected {
                return Err(invalid(format!(
                    "the statement has {expected} parameters, but {} values are bound",
                    values.len()
                )));
            }
            Ticket::Query { prepared, values }
        } else {
            match client.session.execute_prepared(&prepared, values).await {
                Ok(StatementOutcome::Rows(rows)) => Ticket::Rows(rows),
                Ok(StatementOutcome::Done(done)) => Ticket::Done(done),
                Err(error) => return Err(status(&error)),
            }
        };
        let schema = ticket
            .schema()
            .map_or_else(outgoing::done_schema, |schema| {
                outgoing::schema(&schema, client.view_types)
            });
        let ticket = TicketStatementQuery {
            statement_handle: client.statements.add_ticket(ticket),
        };
        info(&schema, ticket.as_any().encode_to_vec(), descriptor)
    }

    /// Runs a query and streams its rows under `handle`.
    async fn fetch(
        &self,
        client: &Arc<ClientSession>,
        handle: Handle,
        ticket: Ticket,
    ) -> Result<Response<DataStream>, Status> {
        let running = client.statements.run(handle);
        let announced = ticket.schema();
        let outcome = match ticket {
            Ticket::Done(done) => StatementOutcome::Done(done),
            Ticket::Rows(rows) => StatementOutcome::Rows(rows),
            Ticket::Query { prepared, values } => {
                let outcome = tokio::select! {
                    biased;
                    () = running.token.cancelled() => return Err(cancelled()),
                    outcome = client.session.execute_prepared(&prepared, values) => outcome,
                };
                outcome.map_err(|e| status(&e))?
            }
        };
        let stream = match outcome {
            StatementOutcome::Rows(rows) => {
                outgoing::rows(rows, announced.as_deref(), client.view_types, running)
            }
            StatementOutcome::Done(done) => outgoing::done(&done)?,
        };
        Ok(Response::new(stream))
    }

    /// Stops the query of a FlightInfo.
    fn cancel(&self, client: &ClientSession, info: &FlightInfo) -> Result<(), Status> {
        for endpoint in &info.endpoint {
            let Some(ticket) = &endpoint.ticket else {
                continue;
            };
            let any =
                Any::decode(&*ticket.ticket).map_err(|e| invalid(format!("not a ticket: {e}")))?;
            let command = Command::try_from(any).map_err(|e| invalid(e.to_string()))?;
            if let Command::TicketStatementQuery(ticket) = command
                && client.statements.cancel(&ticket.statement_handle)
            {
                return Ok(());
            }
        }
        Err(Status::not_found(
            "the query has ended, or is not one of this session",
        ))
    }
}

/// The columns that a client will see.
fn result_schema(prepared: &Prepared, view_types: bool) -> SchemaRef {
    match &prepared.schema {
        Some(schema) => outgoing::schema(schema, view_types),
        None => outgoing::done_schema(),
    }
}

/// Rows that a statement has changed.
fn affected(outcome: StatementOutcome) -> Result<i64, Status> {
    match outcome {
        StatementOutcome::Done(done) => Ok(i64::try_from(done.affected_rows).unwrap_or(i64::MAX)),
        StatementOutcome::Rows(_) => Err(invalid(
            "the statement gives rows: send it as a query, not as an update",
        )),
    }
}

fn info(
    schema: &Schema,
    ticket: Vec<u8>,
    descriptor: FlightDescriptor,
) -> Result<Response<FlightInfo>, Status> {
    let endpoint = FlightEndpoint::new().with_ticket(arrow_flight::Ticket::new(ticket));
    let info = FlightInfo::new()
        .try_with_schema(schema)
        .map_err(internal)?
        .with_endpoint(endpoint)
        .with_descriptor(descriptor)
        // All rows come from one endpoint, in their order.
        .with_ordered(true);
    Ok(Response::new(info))
}

/// The FlightInfo of a metadata command: the command itself is the ticket.
fn metadata_info(
    command: &impl ProstMessageExt,
    schema: &Schema,
    request: Request<FlightDescriptor>,
) -> Result<Response<FlightInfo>, Status> {
    info(
        schema,
        command.as_any().encode_to_vec(),
        request.into_inner(),
    )
}

fn batch_response(batch: RecordBatch) -> Response<DataStream> {
    Response::new(outgoing::one(batch))
}

fn schema_bytes(schema: &Schema) -> Result<Bytes, Status> {
    let options = IpcWriteOptions::default();
    let IpcMessage(bytes) = SchemaAsIpc::new(schema, &options)
        .try_into()
        .map_err(internal)?;
    Ok(bytes)
}

fn result_of(message: &impl Message) -> Result<arrow_flight::Result, Status> {
    Ok(arrow_flight::Result::new(message.encode_to_vec()))
}

fn no_transactions() -> Status {
    Status::unimplemented("Tarn has no transactions: every statement commits by itself")
}

type HandshakeStream =
    std::pin::Pin<Box<dyn Stream<Item = Result<HandshakeResponse, Status>> + Send>>;

#[tonic::async_trait]
impl FlightSqlService for Service {
    type FlightService = Service;

    async fn do_handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<HandshakeStream>, Status> {
        let mut credentials = Credentials::of(request.metadata())?;
        let peer = request.remote_addr();
        let (headers, _, mut messages) = request.into_parts();
        if credentials == Credentials::Anonymous
            && let Some(message) = messages.message().await?
            && !message.payload.is_empty()
        {
            // The older handshake has user and password in its message.
            let basic = BasicAuth::decode(message.payload)
                .map_err(|_| invalid("the handshake's payload is not user and password"))?;
            credentials = Credentials::Basic {
                user: basic.username,
                password: basic.password,
            };
        }
        let token = self.sessions.log_in(credentials, peer, &headers).await?;
        let header: MetadataValue<_> = format!("Bearer {token}")
            .parse()
            .map_err(|_| Status::internal("a token that is not ASCII"))?;
        let answer = HandshakeResponse {
            protocol_version: 0,
            payload: Bytes::from(token),
        };
        let mut response: Response<HandshakeStream> =
            Response::new(stream::iter([Ok(answer)]).boxed());
        response.metadata_mut().insert("authorization", header);
        Ok(response)
    }

    // Statements.

    async fn get_flight_info_statement(
        &self,
        query: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let client = self.sessions.of(&request).await?;
        let prepared = client
            .session
            .prepare(&query.query)
            .await
            .map_err(|e| status(&e))?;
        self.ready(
            &client,
            Arc::new(prepared),
            Vec::new(),
            request.into_inner(),
        )
        .await
    }

    async fn do_get_statement(
        &self,
        ticket: TicketStatementQuery,
        request: Request<arrow_flight::Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        let client = self.sessions.of(&request).await?;
        let handle = ticket.statement_handle;
        let ticket = client.statements.take_ticket(&handle)?;
        self.fetch(&client, handle, ticket).await
    }

    async fn do_put_statement_update(
        &self,
        command: CommandStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let client = self.sessions.of(&request).await?;
        let outcome = client
            .session
            .execute_sql(&command.query)
            .await
            .map_err(|e| status(&e))?;
        affected(outcome)
    }

    // Prepared statements.

    async fn do_action_create_prepared_statement(
        &self,
        query: ActionCreatePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let client = self.sessions.of(&request).await?;
        let prepared = client
            .session
            .prepare(&query.query)
            .await
            .map_err(|e| status(&e))?;
        // Nothing at all for a statement without rows: that is how drivers tell an update from a query.
        let dataset_schema = match &prepared.schema {
            Some(schema) => schema_bytes(&outgoing::schema(schema, client.view_types))?,
            None => Bytes::new(),
        };
        let parameter_schema = schema_bytes(&parameters::parameter_schema(&prepared))?;
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: client.statements.add_prepared(prepared)?,
            dataset_schema,
            parameter_schema,
        })
    }

    async fn do_put_prepared_statement_query(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<DoPutPreparedStatementResult, Status> {
        let client = self.sessions.of(&request).await?;
        let handle = query.prepared_statement_handle;
        let columns = client
            .statements
            .prepared(&handle)?
            .prepared
            .parameter_types
            .len();
        let rows = parameters::read(request.into_inner(), columns).await?;
        client.statements.bind(&handle, rows)?;
        Ok(DoPutPreparedStatementResult {
            prepared_statement_handle: Some(handle),
        })
    }

    async fn get_flight_info_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let client = self.sessions.of(&request).await?;
        let statement = client
            .statements
            .prepared(&query.prepared_statement_handle)?;
        let values = one_row(&statement.rows)?;
        self.ready(&client, statement.prepared, values, request.into_inner())
            .await
    }

    async fn do_get_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<arrow_flight::Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        let client = self.sessions.of(&request).await?;
        let handle = query.prepared_statement_handle;
        let statement = client.statements.prepared(&handle)?;
        let values = one_row(&statement.rows)?;
        let prepared = statement.prepared;
        self.fetch(&client, handle, Ticket::Query { prepared, values })
            .await
    }

    async fn do_put_prepared_statement_update(
        &self,
        query: CommandPreparedStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let client = self.sessions.of(&request).await?;
        let statement = client
            .statements
            .prepared(&query.prepared_statement_handle)?;
        let columns = statement.prepared.parameter_types.len();
        let sent = parameters::read(request.into_inner(), columns).await?;
        let rows = if sent.is_empty() {
            statement.rows.to_vec()
        } else {
            sent
        };
        // Without parameters it runs once.
        let rows = if columns == 0 { vec![Vec::new()] } else { rows };
        if rows.is_empty() {
            return Err(invalid(format!(
                "the statement has {columns} parameters, but no values are bound"
            )));
        }
        let mut total = 0;
        for values in rows {
            let outcome = client
                .session
                .execute_prepared(&statement.prepared, values)
                .await;
            total += affected(outcome.map_err(|e| status(&e))?)?;
        }
        Ok(total)
    }

    async fn do_action_close_prepared_statement(
        &self,
        query: ActionClosePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<(), Status> {
        let client = self.sessions.of(&request).await?;
        client
            .statements
            .close_prepared(&query.prepared_statement_handle);
        Ok(())
    }

    async fn do_put_error_callback(
        &self,
        _request: Request<PeekableFlightDataStream>,
        error: DoPutError,
    ) -> Result<Response<<Self as FlightService>::DoPutStream>, Status> {
        Err(invalid(error.to_string()))
    }

    // What is in the catalogs.

    async fn get_flight_info_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.sessions.of(&request).await?;
        metadata_info(&query, &query.into_builder().schema(), request)
    }

    async fn do_get_catalogs(
        &self,
        _query: CommandGetCatalogs,
        request: Request<arrow_flight::Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        self.sessions.of(&request).await?;
        Ok(batch_response(browse::catalogs(self.sessions.engine())?))
    }

    async fn get_flight_info_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.sessions.of(&request).await?;
        metadata_info(&query, &query.clone().into_builder().schema(), request)
    }

    async fn do_get_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<arrow_flight::Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        self.sessions.of(&request).await?;
        Ok(batch_response(
            browse::schemas(self.sessions.engine(), query).await?,
        ))
    }

    async fn get_flight_info_tables(
        &self,
        query: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.sessions.of(&request).await?;
        metadata_info(&query, &query.clone().into_builder().schema(), request)
    }

    async fn do_get_tables(
        &self,
        query: CommandGetTables,
        request: Request<arrow_flight::Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        self.sessions.of(&request).await?;
        Ok(batch_response(
            browse::tables(self.sessions.engine(), query).await?,
        ))
    }

    async fn get_flight_info_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.sessions.of(&request).await?;
        metadata_info(&query, &query.into_builder().schema(), request)
    }

    async fn do_get_table_types(
        &self,
        _query: CommandGetTableTypes,
        request: Request<arrow_flight::Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        self.sessions.of(&request).await?;
        Ok(batch_response(browse::table_types()?))
    }

    async fn get_flight_info_primary_keys(
        &self,
        query: CommandGetPrimaryKeys,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.sessions.of(&request).await?;
        metadata_info(&query, &keys::primary_keys().schema(), request)
    }

    async fn do_get_primary_keys(
        &self,
        _query: CommandGetPrimaryKeys,
        request: Request<arrow_flight::Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        self.sessions.of(&request).await?;
        Ok(batch_response(keys::primary_keys()))
    }

    async fn get_flight_info_exported_keys(
        &self,
        query: CommandGetExportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.sessions.of(&request).await?;
        metadata_info(&query, &keys::foreign_keys().schema(), request)
    }

    async fn do_get_exported_keys(
        &self,
        _query: CommandGetExportedKeys,
        request: Request<arrow_flight::Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        self.sessions.of(&request).await?;
        Ok(batch_response(keys::foreign_keys()))
    }

    async fn get_flight_info_imported_keys(
        &self,
        query: CommandGetImportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.sessions.of(&request).await?;
        metadata_info(&query, &keys::foreign_keys().schema(), request)
    }

    async fn do_get_imported_keys(
        &self,
        _query: CommandGetImportedKeys,
        request: Request<arrow_flight::Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        self.sessions.of(&request).await?;
        Ok(batch_response(keys::foreign_keys()))
    }

    async fn get_flight_info_cross_reference(
        &self,
        query: CommandGetCrossReference,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.sessions.of(&request).await?;
        metadata_info(&query, &keys::foreign_keys().schema(), request)
    }

    async fn do_get_cross_reference(
        &self,
        _query: CommandGetCrossReference,
        request: Request<arrow_flight::Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        self.sessions.of(&request).await?;
        Ok(batch_response(keys::foreign_keys()))
    }

    // What the server can do.

    async fn get_flight_info_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.sessions.of(&request).await?;
        metadata_info(
            &query,
            &query.clone().into_builder(&self.sql_info).schema(),
            request,
        )
    }

    async fn do_get_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<arrow_flight::Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        self.sessions.of(&request).await?;
        Ok(batch_response(
            query
                .into_builder(&self.sql_info)
                .build()
                .map_err(internal)?,
        ))
    }

    async fn get_flight_info_xdbc_type_info(
        &self,
        query: CommandGetXdbcTypeInfo,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.sessions.of(&request).await?;
        metadata_info(
            &query,
            &query.into_builder(&self.type_info).schema(),
            request,
        )
    }

    async fn do_get_xdbc_type_info(
        &self,
        query: CommandGetXdbcTypeInfo,
        request: Request<arrow_flight::Ticket>,
    ) -> Result<Response<<Self as FlightService>::DoGetStream>, Status> {
        self.sessions.of(&request).await?;
        Ok(batch_response(
            query
                .into_builder(&self.type_info)
                .build()
                .map_err(internal)?,
        ))
    }

    async fn register_sql_info(&self, _id: i32, _result: &SqlInfo) {}

    // Actions.

    async fn do_action_cancel_query(
        &self,
        query: ActionCancelQueryRequest,
        request: Request<Action>,
    ) -> Result<ActionCancelQueryResult, Status> {
        let client = self.sessions.of(&request).await?;
        let info = FlightInfo::decode(query.info)
            .map_err(|e| invalid(format!("not a FlightInfo: {e}")))?;
        self.cancel(&client, &info)?;
        Ok(ActionCancelQueryResult {
            result: CANCEL_RESULT_CANCELLED,
        })
    }

    async fn do_action_begin_transaction(
        &self,
        _query: ActionBeginTransactionRequest,
        _request: Request<Action>,
    ) -> Result<ActionBeginTransactionResult, Status> {
        Err(no_transactions())
    }

    async fn do_action_end_transaction(
        &self,
        _query: ActionEndTransactionRequest,
        _request: Request<Action>,
    ) -> Result<(), Status> {
        Err(no_transactions())
    }

    async fn do_action_begin_savepoint(
        &self,
        _query: ActionBeginSavepointRequest,
        _request: Request<Action>,
    ) -> Result<ActionBeginSavepointResult, Status> {
        Err(no_transactions())
    }

    async fn do_action_end_savepoint(
        &self,
        _query: ActionEndSavepointRequest,
        _request: Request<Action>,
    ) -> Result<(), Status> {
        Err(no_transactions())
    }

    async fn do_action_fallback(
        &self,
        request: Request<Action>,
    ) -> Result<Response<<Self as FlightService>::DoActionStream>, Status> {
        let client = self.sessions.of(&request).await?;
        let action = request.into_inner();
        let malformed = |e: prost::DecodeError| {
            invalid(format!("the {} request cannot be read: {e}", action.r#type))
        };
        let result = match action.r#type.as_str() {
            "CancelFlightInfo" => {
                let wanted =
                    CancelFlightInfoRequest::decode(action.body.clone()).map_err(malformed)?;
                let info = wanted
                    .info
                    .ok_or_else(|| invalid("CancelFlightInfo without a FlightInfo"))?;
                self.cancel(&client, &info)?;
                result_of(&CancelFlightInfoResult::new(CancelStatus::Cancelled))
            }
            "SetSessionOptions" => {
                let wanted = session_options::SetSessionOptionsRequest::decode(action.body.clone())
                    .map_err(malformed)?;
                result_of(&session_options::set(&client.session, wanted).await)
            }
            "GetSessionOptions" => result_of(&session_options::get(&client.session)),
            "CloseSession" => {
                self.sessions.close(&client);
                result_of(&session_options::CloseSessionResult {
                    status: SESSION_CLOSED,
                })
            }
            other => Err(Status::unimplemented(format!(
                "action {other} is not known"
            ))),
        }?;
        Ok(Response::new(stream::iter([Ok(result)]).boxed()))
    }
}

/// The values of a query's parameters: a query runs with one row of them.
fn one_row(rows: &[Vec<ScalarValue>]) -> Result<Vec<ScalarValue>, Status> {
    match rows {
        [] => Ok(Vec::new()),
        [row] => Ok(row.clone()),
        _ => Err(invalid(format!(
            "{} rows of parameters are bound, but a query takes one",
            rows.len()
        ))),
    }
}
