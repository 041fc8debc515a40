//! Which system schemas and tables there are, and who makes their rows.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::datasource::TableProvider;
use tarn_planner::VirtualSchemas;

use super::definition::{Definition, find};
use super::information_schema;
use super::information_schema_tables::INFORMATION_SCHEMA_TABLES;
use super::mysql_schema::MYSQL_TABLES;
use super::provider::SystemTable;
use super::tarn_schema::{self, SYSTEM_TABLES};
use super::wanted::Wanted;
use crate::error::{Error, ErrorKind, Result};
use crate::error_conversion::did_you_mean;
use crate::planning::StatementContext;
use crate::rows::Cell;

/// The catalog of Tarn's own tables.
pub(crate) const SYSTEM_CATALOG: &str = "tarn";
/// Its database.
pub(crate) const SYSTEM_DATABASE: &str = "system";
/// In every catalog.
pub(crate) const INFORMATION_SCHEMA: &str = "information_schema";
/// In every catalog: the few tables of MySQL's that clients ask for.
pub(crate) const MYSQL_SCHEMA: &str = "mysql";

/// The system schemas as one statement sees them.
#[derive(Debug)]
pub(crate) struct SystemSchemas {
    context: StatementContext,
}

impl SystemSchemas {
    pub fn new(context: StatementContext) -> Self {
        Self { context }
    }
}

/// Whether a database of this name is Tarn's in every catalog.
pub(crate) fn is_system_schema(database: &str) -> bool {
    [INFORMATION_SCHEMA, MYSQL_SCHEMA]
        .iter()
        .any(|name| name.eq_ignore_ascii_case(database))
}

/// Whether a database holds system tables only.
pub(crate) fn is_system_database(catalog: &str, database: &str) -> bool {
    is_system_schema(database)
        || catalog.eq_ignore_ascii_case(SYSTEM_CATALOG)
            && database.eq_ignore_ascii_case(SYSTEM_DATABASE)
}

/// The system table of this name, if it is one, with its database's own name.
pub(crate) fn system_table(
    catalog: &str,
    database: &str,
    table: &str,
) -> Option<(&'static str, &'static Definition)> {
    let (database, tables) = tables_of(catalog, database)?;
    find(tables, table).map(|definition| (database, definition))
}

fn tables_of(catalog: &str, database: &str) -> Option<(&'static str, &'static [Definition])> {
    if database.eq_ignore_ascii_case(INFORMATION_SCHEMA) {
        return Some((INFORMATION_SCHEMA, INFORMATION_SCHEMA_TABLES));
    }
    if database.eq_ignore_ascii_case(MYSQL_SCHEMA) {
        return Some((MYSQL_SCHEMA, MYSQL_TABLES));
    }
    is_system_database(catalog, database).then_some((SYSTEM_DATABASE, SYSTEM_TABLES))
}

/// The system databases of a catalog.
pub(super) fn databases_of(catalog: &str) -> Vec<&'static str> {
    let mut names = vec![INFORMATION_SCHEMA];
    if catalog.eq_ignore_ascii_case(SYSTEM_CATALOG) {
        names.push(SYSTEM_DATABASE);
    } else {
        names.push(MYSQL_SCHEMA);
    }
    names
}

/// The tables of a system database.
pub(super) fn definitions(catalog: &str, database: &str) -> &'static [Definition] {
    tables_of(catalog, database).map_or(&[], |(_, tables)| tables)
}

/// The rows of a system table.
pub(super) async fn rows(
    context: &StatementContext,
    catalog: &str,
    database: &str,
    table: &'static Definition,
    wanted: &Wanted,
) -> Result<Vec<Vec<Cell>>> {
    match database {
        INFORMATION_SCHEMA => information_schema::rows(context, catalog, table.name, wanted).await,
        SYSTEM_DATABASE => tarn_schema::rows(context, table.name).await,
        _ => Ok(super::mysql_schema::rows(context, table.name)),
    }
}

#[async_trait]
impl VirtualSchemas for SystemSchemas {
    fn catalogs(&self) -> Vec<String> {
        vec![SYSTEM_CATALOG.to_owned()]
    }

    fn schemas(&self, catalog: &str) -> Vec<String> {
        databases_of(catalog)
            .into_iter()
            .map(str::to_owned)
            .collect()
    }

    fn tables(&self, catalog: &str, schema: &str) -> Vec<String> {
        definitions(catalog, schema)
            .iter()
            .map(|table| table.name.to_owned())
            .collect()
    }

    async fn table(
        &self,
        catalog: &str,
        schema: &str,
        table: &str,
    ) -> datafusion::error::Result<Option<Arc<dyn TableProvider>>> {
        let Some((database, tables)) = tables_of(catalog, schema) else {
            return Ok(None);
        };
        let Some(definition) = find(tables, table) else {
            let names = tables.iter().map(|table| table.name);
            let similar = tarn_catalog::near_names(&table.to_ascii_lowercase(), names);
            // In the words that the starrocks dialect of SQLAlchemy looks for.
            return Err(datafusion::error::DataFusionError::External(Box::new(
                Error::new(
                    ErrorKind::NoSuchTable,
                    format!(
                        "Unknown table '{database}.{table}'{}",
                        did_you_mean(&similar)
                    ),
                ),
            )));
        };
        let catalog = match catalog {
            // A catalog that does not exist has no `information_schema` either.
            name if name.eq_ignore_ascii_case(SYSTEM_CATALOG) => SYSTEM_CATALOG.to_owned(),
            name => self
                .context
                .engine
                .catalogs()
                .get(name)
                .map_err(|error| datafusion::error::DataFusionError::External(Box::new(error)))?
                .name()
                .to_owned(),
        };
        Ok(Some(Arc::new(SystemTable::new(
            self.context.clone(),
            catalog,
            database,
            definition,
        ))))
    }
}
