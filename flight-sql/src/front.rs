use std::sync::Arc;

use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::{Any, Command};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo,
    HandshakeRequest, PollInfo, SchemaAsIpc, SchemaResult, Ticket,
};
use futures::{StreamExt, stream};
use prost::Message;
use tonic::{Request, Response, Status, Streaming};

use crate::service::Service;
use crate::status::{internal, invalid};

/// Actions that clients may send, with what they do.
const ACTIONS: &[(&str, &str)] = &[
    ("CreatePreparedStatement", "Prepares a statement."),
    ("ClosePreparedStatement", "Forgets a prepared statement."),
    ("CancelFlightInfo", "Stops the query of a FlightInfo."),
    (
        "CancelQuery",
        "Stops the query of a FlightInfo (the older form).",
    ),
    (
        "SetSessionOptions",
        "Sets catalog, schema, query_timeout or another session variable.",
    ),
    (
        "GetSessionOptions",
        "Gives catalog, schema and query_timeout.",
    ),
    ("CloseSession", "Closes the session and stops what it runs."),
];

/// The Flight service as it is registered: [`Service`] behind arrow-flight's dispatch of Flight SQL
/// commands, and what that leaves out, which is `GetSchema` and a true list of actions.
pub(crate) struct Front {
    service: Arc<Service>,
}

impl Front {
    pub fn new(service: Service) -> Self {
        Self {
            service: Arc::new(service),
        }
    }
}

#[tonic::async_trait]
impl FlightService for Front {
    type HandshakeStream = <Service as FlightService>::HandshakeStream;
    type ListFlightsStream = <Service as FlightService>::ListFlightsStream;
    type DoGetStream = <Service as FlightService>::DoGetStream;
    type DoPutStream = <Service as FlightService>::DoPutStream;
    type DoActionStream = <Service as FlightService>::DoActionStream;
    type ListActionsStream = <Service as FlightService>::ListActionsStream;
    type DoExchangeStream = <Service as FlightService>::DoExchangeStream;

    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        self.service.handshake(request).await
    }

    async fn list_flights(
        &self,
        _: Request<Criteria>,
    ) -> Result<Response<Self::ListFlightsStream>, Status> {
        // There are no flights but the results of statements.
        Ok(Response::new(stream::empty().boxed()))
    }

    async fn get_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.service.get_flight_info(request).await
    }

    async fn poll_flight_info(
        &self,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<PollInfo>, Status> {
        Err(Status::unimplemented(
            "PollFlightInfo is not served: a query runs when it is fetched",
        ))
    }

    async fn get_schema(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<SchemaResult>, Status> {
        let any = Any::decode(&*request.get_ref().cmd)
            .map_err(|e| invalid(format!("not a Flight SQL command: {e}")))?;
        let client = self.service.sessions().of(&request).await?;
        let schema = match Command::try_from(any).map_err(|e| invalid(e.to_string()))? {
            // A statement is planned for it, never run.
            Command::CommandStatementQuery(command) => {
                self.service
                    .statement_schema(&client, &command.query)
                    .await?
            }
            Command::CommandPreparedStatementQuery(command) => self
                .service
                .prepared_schema(&client, &command.prepared_statement_handle)?,
            _ => {
                let info = self.service.get_flight_info(request).await?.into_inner();
                return Ok(Response::new(SchemaResult {
                    schema: info.schema,
                }));
            }
        };
        let options = IpcWriteOptions::default();
        let result = SchemaAsIpc::new(&schema, &options)
            .try_into()
            .map_err(internal)?;
        Ok(Response::new(result))
    }

    async fn do_get(
        &self,
        request: Request<Ticket>,
    ) -> Result<Response<Self::DoGetStream>, Status> {
        self.service.do_get(request).await
    }

    async fn do_put(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoPutStream>, Status> {
        self.service.do_put(request).await
    }

    async fn do_exchange(
        &self,
        _: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        Err(Status::unimplemented(
            "DoExchange is not part of Flight SQL",
        ))
    }

    async fn do_action(
        &self,
        request: Request<Action>,
    ) -> Result<Response<Self::DoActionStream>, Status> {
        self.service.do_action(request).await
    }

    async fn list_actions(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<Self::ListActionsStream>, Status> {
        let actions = ACTIONS.iter().map(|(r#type, description)| {
            Ok(ActionType {
                r#type: (*r#type).to_owned(),
                description: (*description).to_owned(),
            })
        });
        Ok(Response::new(stream::iter(actions).boxed()))
    }
}
