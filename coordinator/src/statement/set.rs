//! `SET` and `USE`.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::physical_plan::collect;
use tarn_planner::statement::{Assignment, Query, SessionValue, SetValue, VariableScope};

use super::execute::Answer;
use crate::error::{Error, ErrorKind, Result};
use crate::planning::StatementContext;
use crate::system::is_system_database;
use crate::users::Users;
use crate::variables::{NewValue, Variables};

/// All assignments of a SET, or none: values are checked before the first one holds.
pub(super) async fn set(
    context: &StatementContext,
    assignments: Vec<Assignment>,
) -> Result<Answer> {
    let mut context = context.clone();
    let mut variables = Variables::clone(&context.variables);
    let mut user_variables = HashMap::clone(&context.user_variables);
    let mut globals: Vec<(String, NewValue)> = Vec::new();
    for assignment in assignments {
        match assignment {
            Assignment::Variable { scope, name, value } => {
                let value = new_value(&context, value).await?;
                if scope == VariableScope::Global {
                    root_only(&context, &name)?;
                    // Checked now; it holds for sessions that are opened from now on.
                    Variables::clone(&context.engine.globals()).set(&name, value.clone())?;
                    globals.push((name, value));
                } else {
                    variables.set(&name, value)?;
                }
            }
            Assignment::UserVariable { name, value } => {
                let value = match value {
                    SetValue::Default => SessionValue::Null,
                    SetValue::Value(value) => value,
                    SetValue::Expression(query) => evaluate(&context, &query).await?,
                };
                user_variables.insert(name, value);
            }
            Assignment::Names { charset, collation } => {
                names(&mut variables, charset, collation)?;
            }
            Assignment::CharacterSet { charset } => names(&mut variables, charset, None)?,
            Assignment::Transaction {
                isolation,
                read_only,
                ..
            } => {
                if let Some(isolation) = isolation {
                    variables.set("transaction_isolation", NewValue::Text(isolation))?;
                }
                if let Some(read_only) = read_only {
                    let value = NewValue::Integer(i64::from(read_only));
                    variables.set("transaction_read_only", value)?;
                }
            }
        }
        // Later assignments see earlier ones.
        context.variables = Arc::new(variables.clone());
        context.user_variables = Arc::new(user_variables.clone());
    }
    if !globals.is_empty() {
        context.engine.change_globals(|variables| {
            globals
                .into_iter()
                .try_for_each(|(name, value)| variables.set(&name, value))
        })?;
    }
    let mut state = context.session.state.lock();
    state.variables = context.variables;
    state.user_variables = context.user_variables;
    drop(state);
    Answer::ok()
}

fn root_only(context: &StatementContext, name: &str) -> Result<()> {
    if context.running.user == Users::ROOT || context.engine.users().get(Users::ROOT).is_none() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::NotAllowed,
        format!("Access denied: only root may SET GLOBAL {name}"),
    ))
}

fn names(
    variables: &mut Variables,
    charset: Option<String>,
    collation: Option<String>,
) -> Result<()> {
    let value = charset.map_or(NewValue::Default, NewValue::Text);
    for name in [
        "character_set_client",
        "character_set_connection",
        "character_set_results",
    ] {
        variables.set(name, value.clone())?;
    }
    if let Some(collation) = collation {
        variables.set("collation_connection", NewValue::Text(collation))?;
    }
    Ok(())
}

async fn new_value(context: &StatementContext, value: SetValue) -> Result<NewValue> {
    let value = match value {
        SetValue::Default => return Ok(NewValue::Default),
        SetValue::Value(value) => value,
        SetValue::Expression(query) => evaluate(context, &query).await?,
    };
    Ok(match value {
        SessionValue::Null => NewValue::Null,
        SessionValue::Integer(number) => NewValue::Integer(number),
        SessionValue::Float(number) => NewValue::Float(number),
        SessionValue::Text(text) => NewValue::Text(text),
    })
}

/// The one value of `SELECT <expression>`.
async fn evaluate(context: &StatementContext, query: &Query) -> Result<SessionValue> {
    let planned = context.plan(query).await?;
    let attempt = context.first_attempt(&planned).await?;
    let batches = collect(attempt.plan, attempt.task).await?;
    let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    let Some(batch) = batches.iter().find(|batch| batch.num_rows() > 0) else {
        return Ok(SessionValue::Null);
    };
    if rows > 1 || batch.num_columns() != 1 {
        return Err(Error::new(
            ErrorKind::SubqueryReturnsMoreThanOneRow,
            "the value of a variable is one row with one column",
        ));
    }
    session_value(&ScalarValue::try_from_array(batch.column(0), 0)?)
}

fn session_value(value: &ScalarValue) -> Result<SessionValue> {
    if value.is_null() {
        return Ok(SessionValue::Null);
    }
    if let ScalarValue::Boolean(Some(truth)) = value {
        return Ok(SessionValue::Integer(i64::from(*truth)));
    }
    let data_type = value.data_type();
    if data_type.is_integer()
        && let ScalarValue::Int64(Some(number)) = value.cast_to(&DataType::Int64)?
    {
        return Ok(SessionValue::Integer(number));
    }
    if data_type.is_floating()
        && let ScalarValue::Float64(Some(number)) = value.cast_to(&DataType::Float64)?
    {
        return Ok(SessionValue::Float(number));
    }
    match value.cast_to(&DataType::Utf8)? {
        ScalarValue::Utf8(Some(text)) => Ok(SessionValue::Text(text)),
        other => Ok(SessionValue::Text(other.to_string())),
    }
}

/// `USE database`, `USE catalog.database`, `SET CATALOG catalog`.
pub(super) async fn use_place(
    context: &StatementContext,
    catalog: Option<String>,
    database: Option<String>,
) -> Result<Answer> {
    let (catalog, database) = match (catalog, database) {
        (Some(catalog), Some(database)) => (catalog, database),
        (None, Some(database)) => (context.catalog.clone(), database),
        // A catalog alone: its database `default` if it has one, else its first.
        (Some(catalog), None) => {
            let database = first_database(context, &catalog).await?;
            (catalog, database)
        }
        (None, None) => return Answer::ok(),
    };
    if !is_system_database(&catalog, &database) {
        let known = context.engine.catalogs().get(&catalog)?;
        if !known.database_exists(&database).await? {
            return Err(no_such_database(&known, &database).await);
        }
    }
    context.session.connection.move_to(catalog, database);
    Answer::ok()
}

async fn first_database(context: &StatementContext, catalog: &str) -> Result<String> {
    if catalog.eq_ignore_ascii_case(crate::system::SYSTEM_CATALOG) {
        return Ok(crate::system::SYSTEM_DATABASE.to_owned());
    }
    let databases = context
        .engine
        .catalogs()
        .get(catalog)?
        .list_databases()
        .await?;
    let default = tarn_catalog::DEFAULT_DATABASE;
    if databases.iter().any(|name| name == default) {
        return Ok(default.to_owned());
    }
    Ok(databases
        .into_iter()
        .next()
        .unwrap_or_else(|| crate::system::INFORMATION_SCHEMA.to_owned()))
}

/// The error for a database that is not there, with near names.
pub(super) async fn no_such_database(catalog: &tarn_catalog::Catalog, database: &str) -> Error {
    let databases = catalog.list_databases().await.unwrap_or_default();
    let similar = tarn_catalog::near_names(database, databases.iter().map(String::as_str));
    Error::new(
        ErrorKind::NoSuchDatabase,
        format!(
            "Unknown database '{database}'{}",
            crate::error_conversion::did_you_mean(&similar)
        ),
    )
}

/// Makes the database called `database` or `catalog.database` the current one. A database whose
/// own name holds a dot wins over the other reading.
pub(crate) async fn use_named(context: &StatementContext, name: &str) -> Result<()> {
    let name = name.trim().trim_matches('`');
    let whole = use_place(context, None, Some(name.to_owned())).await;
    let (Err(error), Some((catalog, database))) = (&whole, name.split_once('.')) else {
        return whole.map(|_| ());
    };
    if error.kind != ErrorKind::NoSuchDatabase {
        return whole.map(|_| ());
    }
    let parts = [catalog, database].map(|part| part.trim_matches('`').to_owned());
    let [catalog, database] = parts;
    use_place(context, Some(catalog), Some(database))
        .await
        .map(|_| ())
}
