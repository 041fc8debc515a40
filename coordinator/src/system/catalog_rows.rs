//! Databases, tables and columns of a catalog, as `information_schema` and `SHOW` list them.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use tarn_catalog::{Catalog, PinnedTable, field_comment};

use super::definition::Definition;
use super::schemas::{databases_of, definitions, is_system_database};
use super::wanted::Wanted;
use crate::error::Result;
use crate::planning::StatementContext;
use crate::rows::Column;
use crate::type_names::MysqlType;

/// Tables whose metadata is loaded at the same time.
const LOADED_AT_ONCE: usize = 16;

/// A database and its tables, as far as they were wanted.
#[derive(Debug)]
pub(crate) struct DatabaseTables {
    pub database: String,
    pub tables: Vec<ListedTable>,
}

/// One table of a list.
#[derive(Debug)]
pub(crate) enum ListedTable {
    /// A table of a catalog; `None` when its metadata was not asked for or could not be read.
    Iceberg {
        name: String,
        table: Option<PinnedTable>,
    },
    System(&'static Definition),
}

impl ListedTable {
    pub fn name(&self) -> &str {
        match self {
            Self::Iceberg { name, .. } => name,
            Self::System(definition) => definition.name,
        }
    }
}

/// One column of a table.
#[derive(Debug)]
pub(crate) struct ListedColumn {
    pub name: String,
    pub mysql_type: MysqlType,
    pub nullable: bool,
    pub comment: String,
}

/// The databases of a catalog, its system databases among them.
pub(crate) async fn databases(
    context: &StatementContext,
    catalog: &str,
    wanted: &Wanted,
) -> Result<Vec<String>> {
    let mut names: Vec<String> = databases_of(catalog)
        .into_iter()
        .map(str::to_owned)
        .collect();
    if let Ok(catalog) = real_catalog(context, catalog) {
        match wanted.named_databases() {
            Some(named) => {
                for name in named {
                    if !names.contains(name) && catalog.database_exists(name).await? {
                        names.push(name.clone());
                    }
                }
            }
            None => names.extend(catalog.list_databases().await?),
        }
    }
    names.retain(|name| wanted.database(name));
    names.sort();
    names.dedup();
    Ok(names)
}

fn real_catalog(context: &StatementContext, catalog: &str) -> Result<Arc<Catalog>> {
    Ok(context.engine.catalogs().get(catalog)?)
}

/// The tables of the wanted databases; with `load`, their metadata.
pub(crate) async fn tables(
    context: &StatementContext,
    catalog: &str,
    wanted: &Wanted,
    load: bool,
) -> Result<Vec<DatabaseTables>> {
    let mut all = Vec::new();
    for database in databases(context, catalog, wanted).await? {
        let tables = if is_system_database(catalog, &database) {
            definitions(catalog, &database)
                .iter()
                .filter(|definition| wanted.table(definition.name))
                .map(ListedTable::System)
                .collect()
        } else {
            iceberg_tables(context, catalog, &database, wanted, load).await?
        };
        all.push(DatabaseTables { database, tables });
    }
    Ok(all)
}

async fn iceberg_tables(
    context: &StatementContext,
    catalog: &str,
    database: &str,
    wanted: &Wanted,
    load: bool,
) -> Result<Vec<ListedTable>> {
    let catalog = real_catalog(context, catalog)?;
    let mut names = catalog.list_tables(database).await?;
    names.retain(|name| wanted.table(name));
    if !load {
        return Ok(names
            .into_iter()
            .map(|name| ListedTable::Iceberg { name, table: None })
            .collect());
    }
    stream::iter(names)
        .map(|name| {
            let catalog = Arc::clone(&catalog);
            async move {
                // One table that cannot be read does not hide the others.
                let table = match catalog.table(database, &name).await {
                    Ok(table) => Some(table),
                    Err(error) => {
                        tracing::warn!(table = %name, %error, "a listed table cannot be read");
                        None
                    }
                };
                Ok(ListedTable::Iceberg { name, table })
            }
        })
        .buffered(LOADED_AT_ONCE)
        .try_collect()
        .await
}

/// The columns of a listed table; none where its metadata is not there.
pub(crate) fn columns(table: &ListedTable) -> Vec<ListedColumn> {
    match table {
        ListedTable::System(definition) => system_columns(definition.columns),
        ListedTable::Iceberg { table, .. } => {
            table.as_ref().map(iceberg_columns).unwrap_or_default()
        }
    }
}

/// The columns of a table of a catalog.
pub(crate) fn iceberg_columns(table: &PinnedTable) -> Vec<ListedColumn> {
    table
        .schema()
        .as_struct()
        .fields()
        .iter()
        .map(|field| ListedColumn {
            name: field.name.clone(),
            mysql_type: MysqlType::from_field(field),
            nullable: !field.required,
            comment: field_comment(field).to_owned(),
        })
        .collect()
}

/// The columns of a system table.
pub(crate) fn system_columns(columns: &[Column]) -> Vec<ListedColumn> {
    columns
        .iter()
        .map(|column| ListedColumn {
            name: column.name.to_owned(),
            mysql_type: MysqlType::from_arrow(&column.kind.data_type()),
            nullable: true,
            comment: String::new(),
        })
        .collect()
}

/// A number of the current snapshot's summary, e.g. `total-records`.
pub(crate) fn summary_number(table: &PinnedTable, key: &str) -> Option<u64> {
    let Some(snapshot) = table.snapshot() else {
        return Some(0);
    };
    snapshot
        .summary()
        .additional_properties
        .get(key)?
        .parse()
        .ok()
}

/// The table's COMMENT.
pub(crate) fn comment(table: &PinnedTable) -> String {
    table
        .metadata()
        .properties()
        .get("comment")
        .cloned()
        .unwrap_or_default()
}
