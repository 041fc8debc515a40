//! A server on a free loopback port, and arrow-flight's own client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use arrow::ipc::convert::try_schema_from_ipc_buffer;
use arrow::util::pretty::pretty_format_batches;
use arrow_flight::error::FlightError;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{
    CommandGetDbSchemas, CommandGetImportedKeys, CommandGetPrimaryKeys, CommandGetTables,
    CommandGetXdbcTypeInfo, CommandStatementQuery, ProstMessageExt, SqlInfo,
};
use arrow_flight::{Action, CancelFlightInfoRequest, FlightDescriptor, FlightInfo};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use futures::TryStreamExt;
use prost::Message;
use tarn_audit::NoSink;
use tarn_catalog::{CatalogSettings, Catalogs, StoreSettings};
use tarn_coordinator::{Dispatch, Engine, EngineParts, EngineSettings, User};
use tarn_planner::ScanStores;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

use crate::session_options::{
    GetSessionOptionsResult, OptionValue, SetSessionOptionsRequest, SetSessionOptionsResult, Value,
};
use crate::{FlightSettings, serve};

/// Rows that no test waits for.
const ENDLESS: &str = "SELECT a.value FROM range(1000000000) a";

struct Server {
    address: SocketAddr,
    engine: Arc<Engine>,
    stop: CancellationToken,
    task: JoinHandle<Result<(), tarn_coordinator::Error>>,
    _dir: TempDir,
}

type Client = FlightSqlServiceClient<Channel>;

impl Server {
    async fn start() -> Self {
        Self::with(FlightSettings::default(), Vec::new()).await
    }

    async fn with(settings: FlightSettings, users: Vec<User>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut engine_settings = EngineSettings {
            data_dir: dir.path().to_owned(),
            users,
            ..EngineSettings::default()
        };
        engine_settings.query.target_partitions = 2;
        let parts = EngineParts {
            catalogs: Catalogs::open(CatalogSettings::new(dir.path()))
                .await
                .unwrap(),
            stores: ScanStores::new(None, StoreSettings::default()),
            runtime: RuntimeEnvBuilder::new().build_arc().unwrap(),
            dispatch: Dispatch::Local,
            audit: Arc::new(NoSink),
        };
        let engine = Engine::start(engine_settings, parts).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let task = tokio::spawn(serve(listener, Arc::clone(&engine), settings, stop.clone()));
        Self {
            address,
            engine,
            stop,
            task,
            _dir: dir,
        }
    }

    /// A client of its own connection that has not logged in.
    async fn connect(&self) -> Client {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).unwrap();
        FlightSqlServiceClient::new(endpoint.connect().await.unwrap())
    }

    async fn log_in(&self) -> Client {
        let mut client = self.connect().await;
        client.handshake("root", "").await.unwrap();
        assert!(client.token().is_some());
        client
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

async fn query(client: &mut Client, sql: &str) -> Vec<RecordBatch> {
    let info = client
        .execute(sql.to_owned(), None)
        .await
        .unwrap_or_else(|e| panic!("{sql}: {e}"));
    fetch(client, &info)
        .await
        .unwrap_or_else(|e| panic!("{sql}: {e}"))
}

async fn fetch(client: &mut Client, info: &FlightInfo) -> Result<Vec<RecordBatch>, FlightError> {
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let stream = client.do_get(ticket).await?;
    let announced = info.clone().try_decode_schema().unwrap();
    let batches: Vec<_> = stream.try_collect().await?;
    for batch in &batches {
        assert_eq!(
            *batch.schema(),
            announced,
            "the stream has the columns that were announced"
        );
    }
    Ok(batches)
}

/// The status that a client saw.
fn status(error: FlightError) -> (Code, String) {
    match error {
        FlightError::Tonic(status) => (status.code(), status.message().to_owned()),
        other => panic!("not a status: {other}"),
    }
}

fn text(batches: &[RecordBatch]) -> String {
    pretty_format_batches(batches).unwrap().to_string()
}

fn column(batches: &[RecordBatch], name: &str) -> Vec<String> {
    batches
        .iter()
        .flat_map(|batch| {
            let values = batch.column_by_name(name).unwrap().as_string::<i32>();
            values
                .iter()
                .map(|value| value.unwrap_or("NULL").to_owned())
                .collect::<Vec<_>>()
        })
        .collect()
}

fn numbers(batches: &[RecordBatch]) -> Vec<i64> {
    batches
        .iter()
        .flat_map(|batch| {
            batch
                .column(0)
                .as_primitive::<Int64Type>()
                .values()
                .to_vec()
        })
        .collect()
}

/// Waits for something that another task is about to bring about.
async fn until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_made_filled_and_read() {
    let server = Server::start().await;
    let mut client = server.log_in().await;
    let made = query(
        &mut client,
        "CREATE TABLE t (id BIGINT, name STRING, price DECIMAL(10,2))",
    )
    .await;
    assert_eq!(made[0].schema().field(0).name(), "affected_rows");
    let inserted = client
        .execute_update(
            "INSERT INTO t VALUES (1, 'a', 1.10), (2, NULL, 2.20)".into(),
            None,
        )
        .await
        .unwrap();
    assert_eq!(inserted, 2);
    let rows = query(&mut client, "SELECT id, name, price FROM t ORDER BY id").await;
    assert_eq!(rows[0].schema().field(1).data_type(), &DataType::Utf8);
    assert_eq!(
        rows[0].schema().field(2).data_type(),
        &DataType::Decimal128(10, 2)
    );
    assert!(rows[0].schema().field(0).metadata().is_empty());
    let expected = "\
+----+------+-------+
| id | name | price |
+----+------+-------+
| 1  | a    | 1.10  |
| 2  |      | 2.20  |
+----+------+-------+";
    assert_eq!(text(&rows), expected);
    // An empty result has columns.
    let info = client
        .execute("SELECT id FROM t WHERE id > 100".into(), None)
        .await
        .unwrap();
    assert_eq!(
        info.clone().try_decode_schema().unwrap().field(0).name(),
        "id"
    );
    assert_eq!(
        fetch(&mut client, &info)
            .await
            .unwrap()
            .iter()
            .map(RecordBatch::num_rows)
            .sum::<usize>(),
        0
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_that_are_no_queries_may_be_sent_as_one() {
    let server = Server::start().await;
    let mut client = server.log_in().await;
    query(&mut client, "CREATE DATABASE sales").await;
    query(&mut client, "USE sales").await;
    query(&mut client, "CREATE TABLE t (id BIGINT)").await;
    let inserted = query(&mut client, "INSERT INTO t VALUES (1), (2), (3)").await;
    assert_eq!(numbers(&inserted), [3]);
    query(&mut client, "SET query_timeout = 77").await;
    for sql in [
        "SHOW TABLES",
        "SHOW CATALOGS",
        "DESCRIBE t",
        "SHOW VARIABLES LIKE 'query_timeout'",
        "EXPLAIN SELECT * FROM t",
    ] {
        let rows = query(&mut client, sql).await;
        assert!(
            rows.iter().map(RecordBatch::num_rows).sum::<usize>() > 0,
            "{sql}"
        );
    }
    // The session keeps its place: the name needs no database.
    assert_eq!(
        numbers(&query(&mut client, "SELECT count(*) FROM t").await),
        [3]
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prepared_statements_take_parameters() {
    let server = Server::start().await;
    let mut client = server.log_in().await;
    client
        .execute_update("CREATE TABLE t (id BIGINT, name STRING)".into(), None)
        .await
        .unwrap();

    let mut insert = client
        .prepare("INSERT INTO t VALUES (?, ?)".into(), None)
        .await
        .unwrap();
    assert!(insert.dataset_schema().unwrap().fields().is_empty());
    assert_eq!(insert.parameter_schema().unwrap().fields().len(), 2);
    let values = RecordBatch::try_from_iter(vec![
        (
            "a",
            Arc::new(Int64Array::from(vec![1, 2, 3])) as Arc<dyn Array>,
        ),
        (
            "b",
            Arc::new(StringArray::from(vec![Some("x"), None, Some("z")])) as _,
        ),
    ])
    .unwrap();
    insert.set_parameters(values).unwrap();
    assert_eq!(insert.execute_update().await.unwrap(), 3);
    insert.close().await.unwrap();

    let mut select = client
        .prepare("SELECT name FROM t WHERE id >= ? ORDER BY id".into(), None)
        .await
        .unwrap();
    assert_eq!(select.dataset_schema().unwrap().field(0).name(), "name");
    assert_eq!(
        select.parameter_schema().unwrap().field(0).data_type(),
        &DataType::Int64
    );
    for (from, expected) in [(2i64, vec!["NULL", "z"]), (3, vec!["z"])] {
        let values = RecordBatch::try_from_iter(vec![(
            "p",
            Arc::new(Int64Array::from(vec![from])) as Arc<dyn Array>,
        )]);
        select.set_parameters(values.unwrap()).unwrap();
        let info = select.execute().await.unwrap();
        assert_eq!(
            column(&fetch(&mut client, &info).await.unwrap(), "name"),
            expected
        );
    }
    // Where the value decides the type, the columns are those of the value.
    let mut echo = client.prepare("SELECT ? AS v".into(), None).await.unwrap();
    let value: Arc<dyn Array> = Arc::new(Int64Array::from(vec![42]));
    echo.set_parameters(RecordBatch::try_from_iter(vec![("p", value)]).unwrap())
        .unwrap();
    let info = echo.execute().await.unwrap();
    assert_eq!(numbers(&fetch(&mut client, &info).await.unwrap()), [42]);

    let none: Arc<dyn Array> = Arc::new(Int64Array::from(Vec::<i64>::new()));
    select
        .set_parameters(RecordBatch::try_from_iter(vec![("p", none)]).unwrap())
        .unwrap();
    let (code, message) = status(select.execute().await.map(|_| ()).unwrap_err());
    assert_eq!(code, Code::InvalidArgument);
    assert!(message.contains("1 parameters"), "{message}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_browse_catalogs_databases_and_tables() {
    let server = Server::start().await;
    let mut client = server.log_in().await;
    for sql in [
        "CREATE DATABASE sales",
        "CREATE DATABASE stock",
        "CREATE TABLE sales.orders (id BIGINT, name STRING)",
        "CREATE TABLE sales.items (id BIGINT)",
        "CREATE TABLE stock.items (id BIGINT)",
    ] {
        client.execute_update(sql.into(), None).await.unwrap();
    }
    let info = client.get_catalogs().await.unwrap();
    assert!(
        column(&fetch(&mut client, &info).await.unwrap(), "catalog_name")
            .contains(&"lake".to_owned())
    );

    let wanted = CommandGetDbSchemas {
        catalog: Some("lake".into()),
        db_schema_filter_pattern: Some("s%".into()),
    };
    let info = client.get_db_schemas(wanted).await.unwrap();
    assert_eq!(
        column(&fetch(&mut client, &info).await.unwrap(), "db_schema_name"),
        ["sales", "stock"]
    );

    let wanted = CommandGetTables {
        catalog: None,
        db_schema_filter_pattern: Some("s%".into()),
        table_name_filter_pattern: Some("item_".into()),
        table_types: vec!["TABLE".into()],
        include_schema: false,
    };
    let info = client.get_tables(wanted.clone()).await.unwrap();
    let tables = fetch(&mut client, &info).await.unwrap();
    assert_eq!(column(&tables, "db_schema_name"), ["sales", "stock"]);
    assert_eq!(column(&tables, "table_name"), ["items", "items"]);

    let with_columns = CommandGetTables {
        table_name_filter_pattern: Some("orders".into()),
        include_schema: true,
        ..wanted.clone()
    };
    let info = client.get_tables(with_columns).await.unwrap();
    let tables = fetch(&mut client, &info).await.unwrap();
    let schema = tables[0]
        .column_by_name("table_schema")
        .unwrap()
        .as_binary::<i32>()
        .value(0);
    let schema = try_schema_from_ipc_buffer(schema).unwrap();
    assert_eq!(
        schema
            .fields()
            .iter()
            .map(|f| f.name().as_str())
            .collect::<Vec<_>>(),
        ["id", "name"]
    );
    assert_eq!(
        schema.field(0).metadata()["ARROW:FLIGHT:SQL:TYPE_NAME"],
        "BIGINT"
    );

    let views = CommandGetTables {
        table_types: vec!["VIEW".into()],
        ..wanted
    };
    let info = client.get_tables(views).await.unwrap();
    assert!(column(&fetch(&mut client, &info).await.unwrap(), "table_name").is_empty());
    let info = client.get_table_types().await.unwrap();
    assert_eq!(
        column(&fetch(&mut client, &info).await.unwrap(), "table_type"),
        ["TABLE"]
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_learn_what_the_server_can_do() {
    let server = Server::start().await;
    let mut client = server.log_in().await;
    let info = client
        .get_sql_info(vec![SqlInfo::FlightSqlServerName])
        .await
        .unwrap();
    assert!(text(&fetch(&mut client, &info).await.unwrap()).contains("Tarn"));
    let info = client.get_sql_info(Vec::new()).await.unwrap();
    assert!(fetch(&mut client, &info).await.unwrap()[0].num_rows() > 80);
    let info = client
        .get_xdbc_type_info(CommandGetXdbcTypeInfo { data_type: None })
        .await
        .unwrap();
    assert!(
        column(&fetch(&mut client, &info).await.unwrap(), "type_name")
            .contains(&"DECIMAL".to_owned())
    );
    let keys = CommandGetPrimaryKeys {
        table: "t".into(),
        ..Default::default()
    };
    let info = client.get_primary_keys(keys).await.unwrap();
    assert!(
        fetch(&mut client, &info)
            .await
            .unwrap()
            .iter()
            .all(|b| b.num_rows() == 0)
    );
    let keys = CommandGetImportedKeys {
        table: "t".into(),
        ..Default::default()
    };
    let info = client.get_imported_keys(keys).await.unwrap();
    assert!(
        fetch(&mut client, &info)
            .await
            .unwrap()
            .iter()
            .all(|b| b.num_rows() == 0)
    );
    let (code, message) = match client.begin_transaction().await {
        Err(FlightError::Tonic(status)) => (status.code(), status.message().to_owned()),
        other => panic!("{other:?}"),
    };
    assert_eq!(code, Code::Unimplemented);
    assert!(message.contains("no transactions"), "{message}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_are_checked() {
    let users = vec![
        User::with_password("root", "secret"),
        User::with_password("ann", "a"),
    ];
    let server = Server::with(FlightSettings::default(), users).await;
    let mut client = server.connect().await;
    let refused = client
        .handshake("root", "wrong")
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("denied"), "{refused}");
    let (code, _) = status(client.execute("SELECT 1".into(), None).await.unwrap_err());
    assert_eq!(code, Code::Unauthenticated);
    client.set_token("made-up".into());
    let (code, message) = status(client.execute("SELECT 1".into(), None).await.unwrap_err());
    assert_eq!(code, Code::Unauthenticated);
    assert!(message.contains("not known"), "{message}");
    client.clear_token();
    client.handshake("ann", "a").await.unwrap();
    assert_eq!(numbers(&query(&mut client, "SELECT 1").await), [1]);

    // Basic credentials on each call do without a handshake.
    let mut basic = server.connect().await;
    basic.set_header("authorization", "Basic YW5uOmE=");
    assert_eq!(numbers(&query(&mut basic, "SELECT 2").await), [2]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn root_without_a_password_needs_no_handshake_and_leaves_with_its_connection() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client
        .execute_update("CREATE DATABASE d".into(), None)
        .await
        .unwrap();
    client.execute_update("USE d".into(), None).await.unwrap();
    // The calls of a connection are one session.
    assert_eq!(
        column(&query(&mut client, "SELECT DATABASE() AS d").await, "d"),
        ["d"]
    );
    assert_eq!(server.engine.processes().connections().len(), 1);
    drop(client);
    until("the session is closed", || {
        server.engine.processes().connections().is_empty()
    })
    .await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_have_their_codes_and_one_sentence() {
    let server = Server::start().await;
    let mut client = server.log_in().await;
    client
        .execute_update("CREATE TABLE orders (id BIGINT)".into(), None)
        .await
        .unwrap();
    for (sql, expected, part) in [
        ("SELEC 1", Code::InvalidArgument, "SELEC"),
        ("SELECT * FROM ordrs", Code::NotFound, "orders"),
        ("SELECT ida FROM orders", Code::InvalidArgument, "id"),
        (
            "CREATE TABLE orders (id BIGINT)",
            Code::AlreadyExists,
            "orders",
        ),
        ("SELECT 1; SELECT 2", Code::InvalidArgument, ""),
        (
            "SELECT * FROM orders WHERE id = ?",
            Code::InvalidArgument,
            "1 parameters",
        ),
    ] {
        let (code, message) = status(client.execute(sql.into(), None).await.unwrap_err());
        assert_eq!(code, expected, "{sql}: {message}");
        assert!(
            message.contains(part) && !message.contains('\n'),
            "{sql}: {message}"
        );
    }
    let (code, message) = match client.execute_update("SELECT 1".into(), None).await {
        Err(FlightError::Tonic(status)) => (status.code(), status.message().to_owned()),
        other => panic!("{other:?}"),
    };
    assert_eq!(code, Code::InvalidArgument, "{message}");
    // A ticket is good for one fetch, in its own session.
    let info = client.execute("SELECT 1".into(), None).await.unwrap();
    let mut other = server.log_in().await;
    assert_eq!(
        status(fetch(&mut other, &info).await.unwrap_err()).0,
        Code::NotFound
    );
    fetch(&mut client, &info).await.unwrap();
    assert_eq!(
        status(fetch(&mut client, &info).await.unwrap_err()).0,
        Code::NotFound
    );
    // And the session is none the worse for it.
    assert_eq!(numbers(&query(&mut client, "SELECT 3").await), [3]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_is_cancelled_by_its_flight_info() {
    let server = Server::start().await;
    let mut client = server.log_in().await;
    let info = client.execute(ENDLESS.into(), None).await.unwrap();
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let mut rows = client.do_get(ticket).await.unwrap();
    assert!(rows.try_next().await.unwrap().is_some());
    assert_eq!(server.engine.processes().statements().len(), 1);

    let body = CancelFlightInfoRequest::new(info.clone()).encode_to_vec();
    action(&mut client, "CancelFlightInfo", body).await.unwrap();
    let error = loop {
        match rows.try_next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("a cancelled query ended as if it were whole"),
            Err(error) => break error,
        }
    };
    assert_eq!(status(error).0, Code::Cancelled);
    until("the query is gone", || {
        server.engine.processes().statements().is_empty()
    })
    .await;

    let body = CancelFlightInfoRequest::new(info).encode_to_vec();
    let error = action(&mut client, "CancelFlightInfo", body)
        .await
        .unwrap_err();
    assert_eq!(status(error).0, Code::NotFound);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stops_reading_stops_the_query() {
    let server = Server::start().await;
    let mut client = server.log_in().await;
    let info = client.execute(ENDLESS.into(), None).await.unwrap();
    let mut rows = client
        .do_get(info.endpoint[0].ticket.clone().unwrap())
        .await
        .unwrap();
    assert!(rows.try_next().await.unwrap().is_some());
    drop(rows);
    until("the query is gone", || {
        server.engine.processes().statements().is_empty()
    })
    .await;
    assert_eq!(numbers(&query(&mut client, "SELECT 1").await), [1]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_session_is_told_so() {
    let server = Server::start().await;
    let (mut victim, mut other) = (server.log_in().await, server.log_in().await);
    let id = numbers(&query(&mut victim, "SELECT CAST(CONNECTION_ID() AS BIGINT)").await)[0];
    other
        .execute_update(format!("KILL {id}"), None)
        .await
        .unwrap();
    let (code, message) = status(victim.execute("SELECT 1".into(), None).await.unwrap_err());
    assert_eq!(code, Code::Unauthenticated);
    assert!(message.contains("closed"), "{message}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn session_options_are_set_and_given() {
    let server = Server::start().await;
    let mut client = server.log_in().await;
    client
        .execute_update("CREATE DATABASE sales".into(), None)
        .await
        .unwrap();
    let option = |value| OptionValue { value: Some(value) };
    let wanted = SetSessionOptionsRequest {
        session_options: [
            ("catalog".to_owned(), option(Value::Text("lake".into()))),
            ("schema".to_owned(), option(Value::Text("sales".into()))),
            ("query_timeout".to_owned(), option(Value::Integer(9))),
            ("no_such_option".to_owned(), option(Value::Bool(true))),
        ]
        .into(),
    };
    let answer = action(&mut client, "SetSessionOptions", wanted.encode_to_vec())
        .await
        .unwrap();
    let answer = SetSessionOptionsResult::decode(answer.as_slice()).unwrap();
    assert_eq!(answer.errors.keys().collect::<Vec<_>>(), ["no_such_option"]);
    let answer = action(&mut client, "GetSessionOptions", Vec::new())
        .await
        .unwrap();
    let given = GetSessionOptionsResult::decode(answer.as_slice())
        .unwrap()
        .session_options;
    assert_eq!(given["schema"], option(Value::Text("sales".into())));
    assert_eq!(given["query_timeout"], option(Value::Integer(9)));

    // The catalog alone, being current, leaves the schema.
    let wanted = SetSessionOptionsRequest {
        session_options: [("catalog".to_owned(), option(Value::Text("lake".into())))].into(),
    };
    action(&mut client, "SetSessionOptions", wanted.encode_to_vec())
        .await
        .unwrap();
    assert_eq!(
        column(&query(&mut client, "SELECT DATABASE() AS d").await, "d"),
        ["sales"]
    );

    action(&mut client, "CloseSession", Vec::new())
        .await
        .unwrap();
    assert_eq!(
        status(client.execute("SELECT 1".into(), None).await.unwrap_err()).0,
        Code::Unauthenticated
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_bounded_and_the_idlest_gives_way() {
    let settings = FlightSettings {
        max_sessions: 2,
        ..FlightSettings::default()
    };
    let server = Server::with(settings, Vec::new()).await;
    let mut first = server.log_in().await;
    let mut second = server.log_in().await;
    assert_eq!(numbers(&query(&mut first, "SELECT 1").await), [1]);
    let mut third = server.log_in().await;
    assert_eq!(
        status(second.execute("SELECT 1".into(), None).await.unwrap_err()).0,
        Code::Unauthenticated
    );
    assert_eq!(numbers(&query(&mut first, "SELECT 1").await), [1]);
    assert_eq!(numbers(&query(&mut third, "SELECT 1").await), [1]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_is_given_without_running_anything() {
    let server = Server::start().await;
    let mut client = server.log_in().await;
    for (sql, column) in [
        ("SELECT 1 AS one", "one"),
        ("CREATE TABLE never (id BIGINT)", "affected_rows"),
    ] {
        let command = CommandStatementQuery {
            query: sql.into(),
            transaction_id: None,
        };
        let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
        let mut request = tonic::Request::new(descriptor);
        let token = format!("Bearer {}", client.token().unwrap())
            .parse()
            .unwrap();
        request.metadata_mut().insert("authorization", token);
        let answer = client
            .inner_mut()
            .get_schema(request)
            .await
            .unwrap()
            .into_inner();
        let schema = arrow::datatypes::Schema::try_from(&answer).unwrap();
        assert_eq!(schema.field(0).name(), column);
    }
    let (code, _) = status(
        client
            .execute("SELECT * FROM never".into(), None)
            .await
            .unwrap_err(),
    );
    assert_eq!(code, Code::NotFound);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_on_the_port_is_shown_the_door() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let server = Server::start().await;
    let mut raw = tokio::net::TcpStream::connect(server.address)
        .await
        .unwrap();
    raw.write_all(&[b'x'; 4096]).await.unwrap();
    let mut answer = Vec::new();
    // Closed, whether politely or not.
    let _ = tokio::time::timeout(Duration::from_secs(10), raw.read_to_end(&mut answer))
        .await
        .unwrap();
    let mut client = server.log_in().await;
    assert_eq!(numbers(&query(&mut client, "SELECT 1").await), [1]);
    server.stop().await;
}

async fn action(client: &mut Client, name: &str, body: Vec<u8>) -> Result<Vec<u8>, FlightError> {
    let mut request = tonic::Request::new(Action::new(name, body));
    if let Some(token) = client.token() {
        let value = format!("Bearer {token}").parse().unwrap();
        request.metadata_mut().insert("authorization", value);
    }
    let mut answers = client.inner_mut().do_action(request).await?.into_inner();
    let first = answers.message().await?;
    Ok(first.map(|answer| answer.body.to_vec()).unwrap_or_default())
}
