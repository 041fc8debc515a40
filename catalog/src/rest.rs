//! A catalog behind the Iceberg REST protocol.

mod client;
mod messages;
mod signing;
mod token;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use iceberg::spec::{MAIN_BRANCH, Snapshot, SnapshotReference, SnapshotRetention, TableMetadata};
use iceberg::{TableRequirement, TableUpdate};
use reqwest::Method;
use serde_json::json;

pub(crate) use client::RestConfig;

use self::client::{Answer, RestClient};
use self::messages::{ListNamespaces, ListTables, LoadTable, Namespace};
use crate::backend::{Backend, CommitError, StagedTable, TablePointer};
use crate::create::{NewTable, first_metadata};
use crate::error::{CatalogError, Result};
use crate::metadata_file::parse_metadata;
use crate::name::TableName;
use crate::pinned::PinnedTable;
use crate::storage::{StorageDescriptor, Stores, without_overridden};

/// See the module.
#[derive(Debug)]
pub(crate) struct RestBackend {
    client: RestClient,
    stores: Arc<Stores>,
}

impl RestBackend {
    pub(crate) fn new(config: RestConfig, stores: Arc<Stores>) -> Self {
        let client = RestClient::new(config, stores.settings().clone());
        Self { client, stores }
    }

    fn namespace_path(&self, database: &str, rest: &[&str]) -> Vec<String> {
        // Levels are joined by the unit separator, as the protocol has it.
        let mut path = vec!["namespaces".to_string(), database.replace('.', "\u{1f}")];
        path.extend(rest.iter().map(|part| part.to_string()));
        path
    }

    /// What the server says of a table's storage, less what the user has set.
    async fn storage_properties(
        &self,
        loaded: &LoadTable,
        location: &str,
    ) -> Result<BTreeMap<String, String>> {
        let user = self.client.user_properties();
        let mut properties = self.client.server_properties().await?;
        properties.extend(loaded.config.clone());
        // The longest prefix that the table's location has wins.
        let vended = loaded
            .storage_credentials
            .iter()
            .filter(|credential| location.starts_with(&credential.prefix))
            .max_by_key(|credential| credential.prefix.len());
        if let Some(vended) = vended {
            properties.extend(vended.config.clone());
        }
        Ok(without_overridden(properties, user))
    }

    fn metadata(&self, table: &TableName, loaded: &LoadTable) -> Result<TableMetadata> {
        let text = serde_json::to_vec(&loaded.metadata)
            .map_err(|e| CatalogError::Internal(format!("JSON cannot be written: {e}")))?;
        let file = loaded
            .metadata_location
            .as_deref()
            .unwrap_or("(sent by the catalog)");
        parse_metadata(table, file, &text)
    }

    fn create_request(
        &self,
        table: &TableName,
        spec: NewTable,
        stage: bool,
    ) -> Result<serde_json::Value> {
        let location = spec.location.clone();
        // The same checks as for tables of our own, and the ids that the server will give.
        let metadata = first_metadata(table, spec, location.clone().unwrap_or_default())?;
        let mut properties = metadata.properties().clone();
        properties.insert(
            "format-version".to_string(),
            (metadata.format_version() as u8).to_string(),
        );
        let mut request = json!({
            "name": table.table,
            "schema": &**metadata.current_schema(),
            "partition-spec": &**metadata.default_partition_spec(),
            "stage-create": stage,
            "properties": properties,
        });
        if let Some(location) = location {
            request["location"] = json!(location);
        }
        Ok(request)
    }

    /// Creates or stages a table.
    async fn post_table(
        &self,
        table: &TableName,
        spec: NewTable,
        stage: bool,
    ) -> Result<LoadTable> {
        let request = self.create_request(table, spec, stage)?;
        let path = self.namespace_path(&table.database, &["tables"]);
        match self
            .client
            .send(Method::POST, &path, &[], Some(&request))
            .await?
        {
            Answer::Ok(body) => self.client.decode(body),
            Answer::NotFound(_) => Err(CatalogError::NoSuchDatabase {
                catalog: table.catalog.clone(),
                database: table.database.clone(),
                similar: Vec::new(),
            }),
            Answer::Conflict(_) => Err(CatalogError::TableExists {
                table: table.clone(),
            }),
            Answer::Unknown(reason) => Err(CatalogError::CommitUnknown {
                table: table.clone(),
                reason,
            }),
        }
    }

    async fn post_commit(
        &self,
        table: &TableName,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> Result<(), CommitError> {
        let levels: Vec<&str> = table.database.split('.').collect();
        let request = json!({
            "identifier": { "namespace": levels, "name": table.table },
            "requirements": requirements,
            "updates": updates,
        });
        let path = self.namespace_path(&table.database, &["tables", &table.table]);
        match self
            .client
            .send(Method::POST, &path, &[], Some(&request))
            .await?
        {
            Answer::Ok(_) => Ok(()),
            Answer::NotFound(_) => Err(CommitError::Failed(CatalogError::NoSuchTable {
                table: table.clone(),
                similar: Vec::new(),
            })),
            Answer::Conflict(reason) => Err(CommitError::Conflict(reason)),
            Answer::Unknown(reason) => Err(CommitError::Unknown(reason)),
        }
    }
}

/// An answer that does not fit the question.
fn unexpected(client: &RestClient, answer: Answer) -> CatalogError {
    let reason = match answer {
        Answer::Ok(_) => "the answer makes no sense".to_string(),
        Answer::NotFound(reason) | Answer::Conflict(reason) | Answer::Unknown(reason) => reason,
    };
    client.refused(reason)
}

#[async_trait]
impl Backend for RestBackend {
    async fn list_databases(&self) -> Result<Vec<String>> {
        let mut databases = Vec::new();
        let mut page: Option<String> = None;
        loop {
            let query: Vec<(&str, &str)> = page
                .iter()
                .map(|token| ("pageToken", token.as_str()))
                .collect();
            let answer = self
                .client
                .send(Method::GET, &["namespaces".to_string()], &query, None)
                .await?;
            let Answer::Ok(body) = answer else {
                return Err(unexpected(&self.client, answer));
            };
            let listed: ListNamespaces = self.client.decode(body)?;
            databases.extend(listed.namespaces.iter().map(|levels| levels.join(".")));
            match listed.next_page_token {
                Some(token) if !token.is_empty() => page = Some(token),
                _ => return Ok(databases),
            }
        }
    }

    async fn database(&self, database: &str) -> Result<Option<HashMap<String, String>>> {
        let path = self.namespace_path(database, &[]);
        match self.client.send(Method::GET, &path, &[], None).await? {
            Answer::Ok(body) => Ok(Some(self.client.decode::<Namespace>(body)?.properties)),
            Answer::NotFound(_) => Ok(None),
            other => Err(unexpected(&self.client, other)),
        }
    }

    async fn create_database(
        &self,
        database: &str,
        properties: HashMap<String, String>,
    ) -> Result<bool> {
        let levels: Vec<&str> = database.split('.').collect();
        let request = json!({ "namespace": levels, "properties": properties });
        match self
            .client
            .send(
                Method::POST,
                &["namespaces".to_string()],
                &[],
                Some(&request),
            )
            .await?
        {
            Answer::Ok(_) => Ok(true),
            Answer::Conflict(_) => Ok(false),
            other => Err(unexpected(&self.client, other)),
        }
    }

    async fn drop_database(&self, database: &str) -> Result<bool> {
        let path = self.namespace_path(database, &[]);
        match self.client.send(Method::DELETE, &path, &[], None).await? {
            Answer::Ok(_) => Ok(true),
            Answer::NotFound(_) => Ok(false),
            other => Err(unexpected(&self.client, other)),
        }
    }

    async fn list_tables(&self, database: &str) -> Result<Option<Vec<String>>> {
        let path = self.namespace_path(database, &["tables"]);
        let mut tables = Vec::new();
        let mut page: Option<String> = None;
        loop {
            let query: Vec<(&str, &str)> = page
                .iter()
                .map(|token| ("pageToken", token.as_str()))
                .collect();
            let listed: ListTables =
                match self.client.send(Method::GET, &path, &query, None).await? {
                    Answer::Ok(body) => self.client.decode(body)?,
                    Answer::NotFound(_) => return Ok(None),
                    other => return Err(unexpected(&self.client, other)),
                };
            tables.extend(
                listed
                    .identifiers
                    .into_iter()
                    .map(|identifier| identifier.name),
            );
            match listed.next_page_token {
                Some(token) if !token.is_empty() => page = Some(token),
                _ => return Ok(Some(tables)),
            }
        }
    }

    async fn table(&self, table: &TableName) -> Result<Option<TablePointer>> {
        let path = self.namespace_path(&table.database, &["tables", &table.table]);
        let loaded: LoadTable = match self.client.send(Method::GET, &path, &[], None).await? {
            Answer::Ok(body) => self.client.decode(body)?,
            Answer::NotFound(_) => return Ok(None),
            other => return Err(unexpected(&self.client, other)),
        };
        let metadata = self.metadata(table, &loaded)?;
        let storage_properties = self
            .storage_properties(&loaded, metadata.location())
            .await?;
        Ok(Some(TablePointer {
            metadata_location: loaded.metadata_location,
            metadata: Some(Arc::new(metadata)),
            storage_properties,
        }))
    }

    async fn stage(&self, table: &TableName, spec: NewTable) -> Result<StagedTable> {
        let loaded = self.post_table(table, spec, true).await?;
        let metadata = self.metadata(table, &loaded)?;
        let mut properties = self.client.user_properties().clone();
        properties.extend(
            self.storage_properties(&loaded, metadata.location())
                .await?,
        );
        let descriptor = StorageDescriptor::from_properties(&properties, metadata.location())?;
        let storage = self.stores.storage(descriptor)?;
        Ok(StagedTable {
            name: table.clone(),
            metadata: Arc::new(metadata),
            storage,
        })
    }

    async fn create_empty(&self, table: &TableName, spec: NewTable) -> Result<(), CommitError> {
        self.post_table(table, spec, false).await?;
        Ok(())
    }

    async fn create(
        &self,
        staged: &StagedTable,
        snapshot: Option<Snapshot>,
    ) -> Result<(), CommitError> {
        let mut updates = creation_updates(&staged.metadata);
        if let Some(snapshot) = snapshot {
            let reference = SnapshotReference::new(
                snapshot.snapshot_id(),
                SnapshotRetention::branch(None, None, None),
            );
            updates.push(TableUpdate::AddSnapshot { snapshot });
            updates.push(TableUpdate::SetSnapshotRef {
                ref_name: MAIN_BRANCH.to_string(),
                reference,
            });
        }
        self.post_commit(&staged.name, vec![TableRequirement::NotExist], updates)
            .await
    }

    async fn commit(
        &self,
        base: &PinnedTable,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> Result<(), CommitError> {
        self.post_commit(base.name(), requirements, updates).await
    }

    async fn drop_table(&self, table: &TableName, purge: bool) -> Result<bool> {
        let path = self.namespace_path(&table.database, &["tables", &table.table]);
        let query = [("purgeRequested", if purge { "true" } else { "false" })];
        match self
            .client
            .send(Method::DELETE, &path, &query, None)
            .await?
        {
            Answer::Ok(_) => Ok(true),
            Answer::NotFound(_) => Ok(false),
            other => Err(unexpected(&self.client, other)),
        }
    }

    fn purges(&self) -> bool {
        true
    }
}

/// The updates that make a table of `metadata` out of nothing. `-1` is what was added last.
fn creation_updates(metadata: &TableMetadata) -> Vec<TableUpdate> {
    vec![
        TableUpdate::AssignUuid {
            uuid: metadata.uuid(),
        },
        TableUpdate::UpgradeFormatVersion {
            format_version: metadata.format_version(),
        },
        TableUpdate::AddSchema {
            schema: metadata.current_schema().as_ref().clone(),
        },
        TableUpdate::SetCurrentSchema { schema_id: -1 },
        TableUpdate::AddSpec {
            spec: metadata
                .default_partition_spec()
                .as_ref()
                .clone()
                .into_unbound(),
        },
        TableUpdate::SetDefaultSpec { spec_id: -1 },
        TableUpdate::AddSortOrder {
            sort_order: metadata.default_sort_order().as_ref().clone(),
        },
        TableUpdate::SetDefaultSortOrder { sort_order_id: -1 },
        TableUpdate::SetLocation {
            location: metadata.location().to_string(),
        },
        TableUpdate::SetProperties {
            updates: metadata.properties().clone(),
        },
    ]
}
