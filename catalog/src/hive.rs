//! A catalog in a Hive Metastore, shared with Spark, Trino, Flink and Hive itself.
//!
//! A table's parameter `metadata_location` points to its current metadata file. A commit writes a new file and changes the
//! table under Hive's own lock, and tells the server which value it expects there: servers that know that (HIVE-26882)
//! refuse a change that would undo another's, and writers that lock keep out of each other's way on all.

mod client;
mod lock;
mod table;
mod value;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use iceberg::spec::Snapshot;
use iceberg::{TableRequirement, TableUpdate};
use thrift::protocol::TType;

pub(crate) use self::client::HiveConfig;

use self::client::{Answer, Failure, HiveClient};
use self::table::{HiveTable, METADATA_LOCATION};
use self::value::{Fields, Value};
use crate::backend::{Backend, CommitError, StagedTable, TablePointer};
use crate::create::NewTable;
use crate::error::{CatalogError, Result};
use crate::metadata_pointer::{MetadataFiles, new_location};
use crate::name::TableName;
use crate::pinned::PinnedTable;
use crate::storage::{StoreSettings, TableStorage, delete_files};

/// Tables that are asked for at once.
const TABLES_AT_ONCE: usize = 200;

/// See the module.
#[derive(Debug)]
pub(crate) struct HiveBackend {
    client: Arc<HiveClient>,
    files: MetadataFiles,
}

impl HiveBackend {
    pub(crate) fn new(config: HiveConfig, settings: StoreSettings, files: MetadataFiles) -> Self {
        Self {
            client: Arc::new(HiveClient::new(config, settings)),
            files,
        }
    }

    fn text(text: &str) -> Value {
        Value::from(text)
    }

    /// The value of a call that only reads; `None` if it threw the exception `missing`.
    async fn ask(
        &self,
        method: &'static str,
        arguments: Vec<Value>,
        missing: Option<i16>,
    ) -> Result<Option<Value>> {
        match self.client.call(method, arguments).await {
            Ok(Answer::Ok(Some(value))) => Ok(Some(value)),
            Ok(Answer::Ok(None)) => Err(self.client.refused(format!("{method} gave no value"))),
            Ok(Answer::Thrown(number, _)) if Some(number) == missing => Ok(None),
            Ok(Answer::Thrown(_, message)) => Err(self.client.refused(message)),
            Err(failure) => Err(self.client.failed(failure)),
        }
    }

    fn senseless(&self, method: &str) -> CatalogError {
        self.client
            .refused(format!("the value of {method} makes no sense"))
    }

    async fn texts(&self, method: &'static str, arguments: Vec<Value>) -> Result<Vec<String>> {
        let value = self.ask(method, arguments, None).await?;
        let texts = value.as_ref().and_then(Value::list_of_texts);
        texts.ok_or_else(|| self.senseless(method))
    }

    /// The table, whatever it is.
    async fn hive_table(&self, table: &TableName) -> Result<Option<HiveTable>> {
        const METHOD: &str = "get_table";
        let arguments = || vec![Self::text(&table.database), Self::text(&table.table)];
        // Of the exceptions, the second says that there is no such table.
        let value = match self.client.call(METHOD, arguments()).await {
            // Servers may have only its successor.
            Err(Failure::Refused(_)) => {
                let request = Fields::of((1..).zip(arguments()));
                let asked = vec![Value::Struct(request)];
                match self.ask("get_table_req", asked, Some(2)).await? {
                    Some(Value::Struct(result)) => result.0.get(&1).cloned(),
                    Some(_) => return Err(self.senseless("get_table_req")),
                    None => return Ok(None),
                }
            }
            Ok(Answer::Ok(value)) => value,
            Ok(Answer::Thrown(2, _)) => return Ok(None),
            Ok(Answer::Thrown(_, message)) => return Err(self.client.refused(message)),
            Err(failure) => return Err(self.client.failed(failure)),
        };
        match value {
            Some(Value::Struct(fields)) => Ok(Some(HiveTable(fields))),
            _ => Err(self.senseless(METHOD)),
        }
    }

    /// The metadata file of an Iceberg table.
    fn pointer(&self, table: &TableName, found: &HiveTable) -> Result<Option<String>> {
        found
            .metadata_location()
            .ok_or_else(|| CatalogError::Unsupported {
                table: table.clone(),
                feature: "Hive's own format".to_string(),
            })
    }

    /// Deletes a metadata file that no table points to.
    async fn abandon(
        &self,
        base: &PinnedTable,
        location: &str,
        error: CommitError,
    ) -> Result<(), CommitError> {
        delete_files(&*base.storage().store, [location.to_string()]).await;
        Err(error)
    }

    /// After a call that points a table to `location`: what became of it? A file that the table may point to, now or
    /// later, is not deleted.
    async fn settle(
        &self,
        table: &TableName,
        storage: &TableStorage,
        location: String,
        answered: Result<Answer, Failure>,
    ) -> Result<(), CommitError> {
        let (error, may_have_run) = match answered {
            Ok(Answer::Ok(_)) => return Ok(()),
            Ok(Answer::Thrown(_, message)) => (self.client.refused(message), false),
            Err(failure) => {
                let lost = matches!(failure, Failure::Lost(_));
                (self.client.failed(failure), lost)
            }
        };
        // A server that dies of the answer may have done it, and one that throws may have before.
        let now = match self.hive_table(table).await {
            Ok(found) => found.and_then(|found| found.metadata_location().flatten()),
            Err(_) => return Err(CommitError::Unknown(error.to_string())),
        };
        if now.as_deref() == Some(location.as_str()) {
            return Ok(());
        }
        if may_have_run {
            return Err(CommitError::Unknown(error.to_string()));
        }
        delete_files(&*storage.store, [location]).await;
        Err(error.into())
    }
}

#[async_trait]
impl Backend for HiveBackend {
    async fn list_databases(&self) -> Result<Vec<String>> {
        self.texts("get_all_databases", vec![]).await
    }

    async fn database(&self, database: &str) -> Result<Option<HashMap<String, String>>> {
        const METHOD: &str = "get_database";
        match self
            .ask(METHOD, vec![Self::text(database)], Some(1))
            .await?
        {
            None => Ok(None),
            Some(Value::Struct(found)) => {
                let mut properties: HashMap<String, String> = found.texts(4).into_iter().collect();
                properties.extend(found.text(2).map(|text| ("comment".to_string(), text)));
                properties.extend(found.text(3).map(|text| ("location".to_string(), text)));
                Ok(Some(properties))
            }
            Some(_) => Err(self.senseless(METHOD)),
        }
    }

    async fn create_database(
        &self,
        database: &str,
        mut properties: HashMap<String, String>,
    ) -> Result<bool> {
        let warehouse = self.client.config.warehouse.as_deref();
        let below = warehouse.map(|place| format!("{}/{database}.db", place.trim_end_matches('/')));
        let location = properties.remove("location").or(below);
        let comment = properties.remove("comment");
        let mut fields = vec![(1, Self::text(database)), (4, Value::texts(properties))];
        fields.extend(comment.map(|comment| (2, Self::text(&comment))));
        fields.extend(location.map(|location| (3, Self::text(&location))));
        let request = Value::Struct(Fields::of(fields));
        match self.client.call("create_database", vec![request]).await {
            Ok(Answer::Ok(_)) => Ok(true),
            Ok(Answer::Thrown(1, _)) => Ok(false),
            Ok(Answer::Thrown(_, message)) => Err(self.client.refused(message)),
            Err(failure) => Err(self.client.failed(failure)),
        }
    }

    async fn drop_database(&self, database: &str) -> Result<bool> {
        // Neither its files nor tables that may have been made meanwhile.
        let arguments = vec![Self::text(database), Value::Bool(false), Value::Bool(false)];
        match self.client.call("drop_database", arguments).await {
            Ok(Answer::Ok(_)) => Ok(true),
            Ok(Answer::Thrown(1, _)) => Ok(false),
            Ok(Answer::Thrown(_, message)) => Err(self.client.refused(message)),
            Err(failure) => Err(self.client.failed(failure)),
        }
    }

    async fn list_tables(&self, database: &str) -> Result<Option<Vec<String>>> {
        if self.database(database).await?.is_none() {
            return Ok(None);
        }
        let names = self
            .texts("get_all_tables", vec![Self::text(database)])
            .await?;
        let mut tables = Vec::new();
        // Hive's own tables are there, too.
        for names in names.chunks(TABLES_AT_ONCE) {
            let wanted = names.iter().map(|name| Self::text(name)).collect();
            let wanted = Value::List(TType::String, wanted);
            let request = Fields::of([(1, Self::text(database)), (2, wanted)]);
            let result = self
                .ask(
                    "get_table_objects_by_name_req",
                    vec![Value::Struct(request)],
                    None,
                )
                .await?;
            let Some(Value::Struct(result)) = result else {
                return Err(self.senseless("get_table_objects_by_name_req"));
            };
            let Some(Value::List(_, found)) = result.0.get(&1) else {
                return Err(self.senseless("get_table_objects_by_name_req"));
            };
            tables.extend(found.iter().filter_map(|table| match table {
                Value::Struct(fields) => {
                    let table = HiveTable(fields.clone());
                    table.metadata_location().and_then(|_| table.name())
                }
                _ => None,
            }));
        }
        Ok(Some(tables))
    }

    async fn table(&self, table: &TableName) -> Result<Option<TablePointer>> {
        let Some(found) = self.hive_table(table).await? else {
            return Ok(None);
        };
        Ok(Some(TablePointer {
            metadata_location: self.pointer(table, &found)?,
            metadata: None,
            storage_properties: BTreeMap::new(),
        }))
    }

    async fn stage(&self, table: &TableName, spec: NewTable) -> Result<StagedTable> {
        let config = &self.client.config;
        let database = self.database(&table.database).await?.unwrap_or_default();
        let location = new_location(table, &spec, &database, config.warehouse.as_deref())?;
        self.files.stage(table, spec, location, &config.properties)
    }

    async fn create(
        &self,
        staged: &StagedTable,
        snapshot: Option<Snapshot>,
    ) -> Result<(), CommitError> {
        let (location, metadata) = self.files.write_first(staged, snapshot).await?;
        let (name, storage) = (&staged.name, &staged.storage);
        let table = HiveTable::new(name, &metadata, &location);
        let request = vec![Value::Struct(table.0)];
        let answered = self.client.call("create_table", request).await;
        if let Ok(Answer::Thrown(1, _)) = answered {
            delete_files(&*storage.store, [location]).await;
            return Err(CatalogError::TableExists {
                table: name.clone(),
            }
            .into());
        }
        self.settle(name, storage, location, answered).await
    }

    async fn commit(
        &self,
        base: &PinnedTable,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> Result<(), CommitError> {
        let name = base.name();
        let current = base.pointer()?;
        let written = self.files.write_next(base, &requirements, updates);
        let (location, metadata) = written.await?;
        let lock = match self.lock(name).await {
            Ok(lock) => lock,
            Err(error) => {
                delete_files(&*base.storage().store, [location]).await;
                return Err(error);
            }
        };
        let committed = async {
            let mut table = match self.hive_table(name).await {
                Ok(Some(table)) => table,
                Ok(None) => {
                    let similar = Vec::new();
                    let table = name.clone();
                    let error = CatalogError::NoSuchTable { table, similar };
                    return self.abandon(base, &location, error.into()).await;
                }
                Err(error) => return self.abandon(base, &location, error.into()).await,
            };
            let changed = || CommitError::Conflict("the table was changed meanwhile".to_string());
            if table.metadata_location().flatten().as_deref() != Some(current) {
                return self.abandon(base, &location, changed()).await;
            }
            table.point_to(Some((current, base.metadata())), &metadata, &location);
            let context = Fields::of([(
                1,
                Value::texts(
                    [
                        ("expected_parameter_key", METADATA_LOCATION),
                        ("expected_parameter_value", current),
                        ("DO_NOT_UPDATE_STATS", "true"),
                    ]
                    .map(|(key, value)| (key.to_string(), value.to_string())),
                ),
            )]);
            let arguments = vec![
                Self::text(&name.database),
                Self::text(&name.table),
                Value::Struct(table.0),
                Value::Struct(context),
            ];
            let answered = self
                .client
                .call("alter_table_with_environment_context", arguments)
                .await;
            if let Ok(Answer::Thrown(_, message)) = &answered
                && message.contains("has been modified")
            {
                return self.abandon(base, &location, changed()).await;
            }
            self.settle(name, base.storage(), location.clone(), answered)
                .await
        }
        .await;
        self.unlock(lock).await;
        committed
    }

    async fn drop_table(&self, table: &TableName, _purge: bool) -> Result<bool> {
        let Some(found) = self.hive_table(table).await? else {
            return Ok(false);
        };
        self.pointer(table, &found)?;
        let arguments = vec![
            Self::text(&table.database),
            Self::text(&table.table),
            Value::Bool(false),
        ];
        match self.client.call("drop_table", arguments).await {
            Ok(Answer::Ok(_)) => Ok(true),
            Ok(Answer::Thrown(1, _)) => Ok(false),
            Ok(Answer::Thrown(_, message)) => Err(self.client.refused(message)),
            Err(failure) => Err(self.client.failed(failure)),
        }
    }

    fn purges(&self) -> bool {
        false
    }
}
