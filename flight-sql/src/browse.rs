//! What is in the catalogs, for clients that browse.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, Scalar, StringArray};
use arrow::compute::like;
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetTableTypes, CommandGetTables,
};
use futures::{StreamExt, stream};
use tarn_catalog::Catalog;
use tarn_coordinator::{Engine, Error};
use tonic::Status;

use crate::outgoing;
use crate::status::{internal, status};
use crate::type_info;

/// The one type of table there is.
const TABLE: &str = "TABLE";
/// Tables whose columns are read at once.
const TABLES_AT_ONCE: usize = 8;

/// All catalogs.
pub(crate) fn catalogs(engine: &Engine) -> Result<RecordBatch, Status> {
    let mut builder = CommandGetCatalogs {}.into_builder();
    for name in engine.catalogs().names() {
        builder.append(name);
    }
    builder.build().map_err(internal)
}

/// Databases, by catalog and pattern.
pub(crate) async fn schemas(
    engine: &Engine,
    query: CommandGetDbSchemas,
) -> Result<RecordBatch, Status> {
    let catalogs = selected(engine, query.catalog.as_deref());
    let named = query.catalog.is_some();
    let pattern = query.db_schema_filter_pattern.clone();
    let mut builder = query.into_builder();
    for catalog in catalogs {
        for database in databases(&catalog, pattern.as_deref(), named).await? {
            builder.append(catalog.name(), database);
        }
    }
    builder.build().map_err(internal)
}

/// Tables, by catalog and patterns, with their columns if asked.
pub(crate) async fn tables(
    engine: &Engine,
    query: CommandGetTables,
) -> Result<RecordBatch, Status> {
    let CommandGetTables {
        catalog: named,
        db_schema_filter_pattern: database_pattern,
        table_name_filter_pattern: table_pattern,
        table_types,
        include_schema,
    } = query.clone();
    let mut builder = query.into_builder();
    if !table_types.is_empty() && !table_types.iter().any(|wanted| wanted == TABLE) {
        return builder.build().map_err(internal);
    }
    for catalog in selected(engine, named.as_deref()) {
        for database in databases(&catalog, database_pattern.as_deref(), named.is_some()).await? {
            let names = match catalog.list_tables(&database).await {
                Ok(names) => matching(names, table_pattern.as_deref())?,
                // Dropped meanwhile, or not to be reached: the others are still worth listing.
                Err(error) => {
                    tracing::warn!(catalog = catalog.name(), database, %error, "tables cannot be listed");
                    continue;
                }
            };
            let mut columns = stream::iter(names)
                .map(|name| {
                    let (catalog, database) = (&catalog, &database);
                    async move {
                        let schema = if include_schema {
                            columns(catalog, database, &name).await
                        } else {
                            Schema::empty()
                        };
                        (name, schema)
                    }
                })
                .buffered(TABLES_AT_ONCE);
            while let Some((name, schema)) = columns.next().await {
                builder
                    .append(catalog.name(), &database, name, TABLE, &schema)
                    .map_err(internal)?;
            }
        }
    }
    builder.build().map_err(internal)
}

/// The types of table there are.
pub(crate) fn table_types() -> Result<RecordBatch, Status> {
    let mut builder = CommandGetTableTypes {}.into_builder();
    builder.append(TABLE);
    builder.build().map_err(internal)
}

/// The catalogs of a name, or all. A name that there is not selects none, as a filter does.
fn selected(engine: &Engine, named: Option<&str>) -> Vec<Arc<Catalog>> {
    let catalogs = engine.catalogs();
    catalogs
        .names()
        .iter()
        .filter(|name| named.is_none_or(|wanted| wanted == name.as_str()))
        .filter_map(|name| catalogs.get(name).ok())
        .collect()
}

/// A catalog's databases that match. A catalog that is down hides itself, but not when it was asked for.
async fn databases(
    catalog: &Catalog,
    pattern: Option<&str>,
    named: bool,
) -> Result<Vec<String>, Status> {
    match catalog.list_databases().await {
        Ok(names) => matching(names, pattern),
        Err(error) if named => Err(status(&Error::from(error))),
        Err(error) => {
            tracing::warn!(catalog = catalog.name(), %error, "databases cannot be listed");
            Ok(Vec::new())
        }
    }
}

/// The names that a LIKE pattern matches, in order.
fn matching(mut names: Vec<String>, pattern: Option<&str>) -> Result<Vec<String>, Status> {
    names.sort_unstable();
    let Some(pattern) = pattern else {
        return Ok(names);
    };
    let pattern = Scalar::new(StringArray::from(vec![pattern]));
    let matches = like(&StringArray::from(names.clone()), &pattern).map_err(internal)?;
    Ok(names
        .into_iter()
        .enumerate()
        .filter(|(i, _)| matches.is_valid(*i) && matches.value(*i))
        .map(|(_, name)| name)
        .collect())
}

/// A table's columns as a client gets them, described in the way that JDBC drivers read.
async fn columns(catalog: &Catalog, database: &str, table: &str) -> Schema {
    match catalog.table(database, table).await {
        Ok(pinned) => {
            let schema = outgoing::schema(&pinned.arrow_schema(), false);
            let fields: Vec<FieldRef> = schema
                .fields()
                .iter()
                .map(|field| described(field, catalog.name(), database, table))
                .collect();
            Schema::new(fields)
        }
        Err(error) => {
            // One broken table does not hide the others.
            tracing::warn!(catalog = catalog.name(), database, table, %error, "columns cannot be read");
            Schema::empty()
        }
    }
}

fn described(field: &Field, catalog: &str, database: &str, table: &str) -> FieldRef {
    let mut metadata: HashMap<String, String> = field.metadata().clone();
    let mut say = |key: &str, value: String| {
        metadata.insert(format!("ARROW:FLIGHT:SQL:{key}"), value);
    };
    say("CATALOG_NAME", catalog.to_owned());
    say("SCHEMA_NAME", database.to_owned());
    say("TABLE_NAME", table.to_owned());
    say(
        "TYPE_NAME",
        type_info::type_name(field.data_type()).to_owned(),
    );
    if let Some((precision, scale)) = type_info::precision(field.data_type()) {
        say("PRECISION", precision.to_string());
        say("SCALE", scale.to_string());
    }
    say("IS_AUTO_INCREMENT", "0".to_owned());
    say(
        "IS_CASE_SENSITIVE",
        flag(field.data_type() == &DataType::Utf8),
    );
    say("IS_READ_ONLY", "0".to_owned());
    say("IS_SEARCHABLE", "1".to_owned());
    Arc::new(field.clone().with_metadata(metadata))
}

fn flag(on: bool) -> String {
    u8::from(on).to_string()
}
