//! Databases and tables: `CREATE` and `DROP`.

use std::collections::HashMap;

use tarn_catalog::NewTable;
use tarn_planner::statement::{CreateTable, DatabaseName, ObjectPath};

use super::execute::Answer;
use super::insert;
use crate::delivery::stoppable;
use crate::error::{Error, ErrorKind, Result};
use crate::error_conversion::no_such_table;
use crate::outcome::Done;
use crate::planning::StatementContext;
use crate::processes::QueryState;
use crate::system::is_system_database;

pub(super) async fn create_database(
    context: &StatementContext,
    name: &DatabaseName,
    properties: HashMap<String, String>,
    if_not_exists: bool,
) -> Result<Answer> {
    let (catalog, database) = context.resolve_database(name);
    if is_system_database(&catalog, &database) {
        if if_not_exists {
            return Answer::ok();
        }
        return Err(Error::new(
            ErrorKind::DatabaseExists,
            format!("Can't create database '{database}'; database exists"),
        ));
    }
    context
        .engine
        .catalogs()
        .get(&catalog)?
        .create_database(&database, properties, if_not_exists)
        .await?;
    Ok(Answer::Done(Done {
        affected_rows: 1,
        ..Done::default()
    }))
}

pub(super) async fn drop_database(
    context: &StatementContext,
    name: &DatabaseName,
    if_exists: bool,
    cascade: bool,
) -> Result<Answer> {
    let (catalog, database) = context.resolve_database(name);
    writable(&catalog, &database)?;
    context
        .engine
        .catalogs()
        .get(&catalog)?
        .drop_database(&database, if_exists, cascade)
        .await?;
    Answer::ok()
}

pub(super) async fn create_table(
    context: &StatementContext,
    create: CreateTable,
) -> Result<Answer> {
    let name = context.resolve(&create.name);
    writable(&name.catalog, &name.database)?;
    let table = |schema| NewTable {
        name: name.table.clone(),
        schema,
        partition: create.partition,
        order: create.order,
        properties: create.properties,
        location: create.location,
        format_version: create.format_version,
        if_not_exists: create.if_not_exists,
    };
    match (create.query, create.columns) {
        (Some(query), columns) => {
            insert::create_table_as(context, &name, table, columns, query, create.if_not_exists)
                .await
        }
        (None, Some(schema)) => {
            context.running.set_state(QueryState::Running);
            stoppable(&context.running, async {
                context
                    .engine
                    .catalogs()
                    .get(&name.catalog)?
                    .create_table(&name.database, table(schema))
                    .await?;
                Answer::ok()
            })
            .await
        }
        (None, None) => Err(Error::new(
            ErrorKind::InvalidArgument,
            "A table must have at least 1 column",
        )),
    }
}

pub(super) async fn drop_tables(
    context: &StatementContext,
    names: &[ObjectPath],
    if_exists: bool,
    purge: bool,
) -> Result<Answer> {
    for path in names {
        let name = context.resolve(path);
        writable(&name.catalog, &name.database)?;
        context
            .engine
            .catalogs()
            .get(&name.catalog)?
            .drop_table(&name.database, &name.table, if_exists, purge)
            .await?;
    }
    Answer::ok()
}

/// There are no views: none to drop is a success only with IF EXISTS.
pub(super) fn drop_views(
    context: &StatementContext,
    names: &[ObjectPath],
    if_exists: bool,
) -> Result<Answer> {
    match names.first() {
        Some(path) if !if_exists => Err(no_such_table(&context.resolve(path).to_string(), &[])),
        _ => Answer::ok(),
    }
}

/// System databases are Tarn's own.
pub(super) fn writable(catalog: &str, database: &str) -> Result<()> {
    if is_system_database(catalog, database) {
        return Err(Error::new(
            ErrorKind::NotAllowed,
            format!("Access denied: '{database}' is a system database"),
        ));
    }
    Ok(())
}
