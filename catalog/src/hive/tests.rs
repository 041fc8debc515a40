//! Against a metastore of a few lines: what it is asked, and how it takes commits that come at once.

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use iceberg::spec::{NestedField, PrimitiveType, Schema, Type};
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TInputProtocol, TMessageIdentifier, TMessageType,
    TOutputProtocol, TType,
};
use thrift::transport::{TBufferedReadTransport, TBufferedWriteTransport};

use super::table::{HiveTable, METADATA_LOCATION};
use super::value::{Fields, Value};
use crate::{Catalog, CatalogSettings, Catalogs, NewTable, WriteOptions};

#[derive(Default)]
struct Metastore {
    tables: BTreeMap<String, Fields>,
    locks: i64,
    /// Another writer commits right before the next change of a table.
    overtaken: bool,
}

type Shared = Arc<Mutex<Metastore>>;

/// Exceptions by their number in a call.
type Reply = Result<Option<Value>, (i16, &'static str)>;

impl Metastore {
    fn reply(&mut self, method: &str, arguments: &Fields) -> Reply {
        let text = |id| arguments.text(id).unwrap_or_default();
        match method {
            "get_all_databases" => Ok(Some(Value::List(TType::String, vec![Value::from("d")]))),
            "get_database" if text(1) == "d" => Ok(Some(Value::Struct(Fields::of([
                (1, Value::from("d")),
                (4, Value::texts([("k".to_string(), "v".to_string())])),
            ])))),
            "get_database" => Err((1, "there is no such database")),
            "get_all_tables" => {
                let names = self.tables.keys().map(|name| Value::from(name.as_str()));
                Ok(Some(Value::List(TType::String, names.collect())))
            }
            "get_table_objects_by_name_req" => {
                let tables = Value::structs(self.tables.values().cloned());
                Ok(Some(Value::Struct(Fields::of([(1, tables)]))))
            }
            "get_table" => match self.tables.get(&text(2)) {
                Some(table) => Ok(Some(Value::Struct(table.clone()))),
                None => Err((2, "there is no such table")),
            },
            "create_table" => {
                let Some(Value::Struct(table)) = arguments.0.get(&1) else {
                    return Err((3, "no table"));
                };
                let name = table.text(1).unwrap_or_default();
                if self.tables.contains_key(&name) {
                    return Err((1, "it is there"));
                }
                self.tables.insert(name, table.clone());
                Ok(None)
            }
            "lock" => {
                self.locks += 1;
                let acquired = [(1, Value::I64(self.locks)), (2, Value::I32(1))];
                Ok(Some(Value::Struct(Fields::of(acquired))))
            }
            "unlock" => {
                self.locks -= 1;
                Ok(None)
            }
            "alter_table_with_environment_context" => {
                assert_eq!(self.locks, 1, "a commit holds the lock");
                if std::mem::take(&mut self.overtaken) {
                    return Err((
                        2,
                        "The table has been modified. The parameter value for key …",
                    ));
                }
                let Some(Value::Struct(context)) = arguments.0.get(&4) else {
                    return Err((2, "no context"));
                };
                let expected = context.texts(1);
                assert_eq!(expected["expected_parameter_key"], METADATA_LOCATION);
                let now = HiveTable(self.tables[&text(2)].clone()).metadata_location();
                assert_eq!(
                    now.flatten().as_ref(),
                    expected.get("expected_parameter_value")
                );
                let Some(Value::Struct(table)) = arguments.0.get(&3) else {
                    return Err((2, "no table"));
                };
                self.tables.insert(text(2), table.clone());
                Ok(None)
            }
            "drop_table" => match self.tables.remove(&text(2)) {
                Some(_) => Ok(None),
                None => Err((1, "there is no such table")),
            },
            other => panic!("{other} is called"),
        }
    }
}

fn answer(metastore: &Shared, stream: &TcpStream) -> thrift::Result<()> {
    let mut input = TBinaryInputProtocol::new(TBufferedReadTransport::new(stream), true);
    let mut output = TBinaryOutputProtocol::new(TBufferedWriteTransport::new(stream), true);
    let message = input.read_message_begin()?;
    let arguments = Fields::read(&mut input)?;
    let reply = metastore
        .lock()
        .expect("no panic")
        .reply(&message.name, &arguments);
    let result = match reply {
        Ok(value) => Fields::of(value.map(|value| (0, value))),
        Err((number, reason)) => {
            let exception = Fields::of([(1, Value::from(reason))]);
            Fields::of([(number, Value::Struct(exception))])
        }
    };
    let number = message.sequence_number;
    output.write_message_begin(&TMessageIdentifier::new(
        message.name,
        TMessageType::Reply,
        number,
    ))?;
    result.write(&mut output)?;
    output.write_message_end()?;
    output.flush()
}

/// A metastore, and a catalog over it.
async fn catalog(dir: &tempfile::TempDir) -> (Shared, Arc<Catalog>) {
    let metastore = Shared::default();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let uri = format!("thrift://{}", listener.local_addr().expect("an address"));
    let served = Arc::clone(&metastore);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = answer(&served, &stream);
        }
    });
    let catalogs = Catalogs::open(CatalogSettings::new(dir.path()))
        .await
        .expect("opens");
    let warehouse = format!("file://{}/hive", dir.path().display());
    let properties = [("uri", uri), ("warehouse", warehouse)];
    let properties = properties.map(|(key, value)| (key.to_string(), value));
    catalogs
        .create_catalog("h", properties.into(), false)
        .await
        .expect("is made");
    (metastore, catalogs.get("h").expect("is there"))
}

fn schema() -> Schema {
    let id = NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long));
    Schema::builder()
        .with_fields([Arc::new(id)])
        .build()
        .expect("a schema")
}

async fn append(catalog: &Catalog) -> crate::error::Result<()> {
    let mut writer = catalog.append("d", "t", WriteOptions::default()).await?;
    let ids = arrow::array::Int64Array::from(vec![1]);
    let batch = arrow::array::RecordBatch::try_new(writer.arrow_schema(), vec![Arc::new(ids)])
        .expect("a batch");
    writer.write(batch).await?;
    writer.commit().await.map(|_| ())
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_made_committed_to_and_dropped() {
    let dir = tempfile::tempdir().expect("a folder");
    let (metastore, catalog) = catalog(&dir).await;
    assert_eq!(catalog.list_databases().await.expect("a list"), ["d"]);
    assert!(!catalog.database_exists("other").await.expect("an answer"));
    catalog
        .create_table("d", NewTable::new("t", schema()))
        .await
        .expect("is made");
    // A field that Hive keeps and nobody here knows.
    let owner = {
        let mut metastore = metastore.lock().expect("no panic");
        // And a table of Hive's own.
        metastore
            .tables
            .insert("plain".to_string(), Fields::of([(1, Value::from("plain"))]));
        let table = metastore.tables.get_mut("t").expect("is there");
        table.0.insert(99, Value::I32(7));
        table.text(12)
    };
    assert_eq!(owner.as_deref(), Some("EXTERNAL_TABLE"));
    append(&catalog).await.expect("is committed");
    append(&catalog).await.expect("is committed");
    let table = catalog.table("d", "t").await.expect("is there");
    let summary = table.snapshot().expect("a snapshot").summary();
    assert_eq!(summary.additional_properties["total-records"], "2");
    assert_eq!(catalog.list_tables("d").await.expect("a list"), ["t"]);
    let hive = metastore.lock().expect("no panic").tables["t"].clone();
    assert_eq!(hive.0.get(&99), Some(&Value::I32(7)));
    let parameters = hive.texts(9);
    assert_eq!(parameters["table_type"], "ICEBERG");
    assert_eq!(
        Some(parameters[METADATA_LOCATION].as_str()),
        table.metadata_location()
    );
    assert!(
        parameters["previous_metadata_location"].contains("/00001-"),
        "{parameters:?}"
    );
    let error = catalog.table("d", "plain").await.unwrap_err().to_string();
    assert!(
        error.contains("'h.d.plain' uses Hive's own format"),
        "{error}"
    );
    catalog
        .drop_table("d", "t", false, true)
        .await
        .expect("is dropped");
    assert!(catalog.table("d", "t").await.is_err());
    assert_eq!(metastore.lock().expect("no panic").locks, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_lost_is_tried_again_and_leaves_no_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let (metastore, catalog) = catalog(&dir).await;
    catalog
        .create_table("d", NewTable::new("t", schema()))
        .await
        .expect("is made");
    metastore.lock().expect("no panic").overtaken = true;
    append(&catalog)
        .await
        .expect("the second attempt is committed");
    let table = catalog.table("d", "t").await.expect("is there");
    let location = table
        .metadata()
        .location()
        .trim_start_matches("file://")
        .to_string();
    let files = std::fs::read_dir(format!("{location}/metadata")).expect("a folder");
    let metadata = files.flatten().filter(|file| {
        file.file_name()
            .to_string_lossy()
            .ends_with(".metadata.json")
    });
    assert_eq!(metadata.count(), 2, "the first one, and the one that won");
    let error = catalog
        .create_table("d", NewTable::new("t", schema()))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("already exists"), "{error}");
    assert_eq!(metastore.lock().expect("no panic").locks, 0);
}
