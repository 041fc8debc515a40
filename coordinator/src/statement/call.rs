//! `CALL [catalog.]system.…`: the procedures of Iceberg's Spark extensions that change which snapshot is current.

use std::collections::HashMap;
use std::future::Future;

use tarn_catalog::{CatalogError, RefChange, RefOutcome, TableName, near_names};
use tarn_planner::statement::{CallArgument, CallValue};
use tarn_planner::time_in_zone;

use super::ddl::writable;
use super::execute::Answer;
use crate::error::{Error, ErrorKind, Result};
use crate::error_conversion::did_you_mean;
use crate::planning::StatementContext;
use crate::rows::{Column, RowSet, int};

/// The procedures, each with the names of its arguments in order.
const PROCEDURES: [(&str, &[&str]); 3] = [
    ("rollback_to_snapshot", &["table", "snapshot_id"]),
    ("rollback_to_timestamp", &["table", "timestamp"]),
    ("set_current_snapshot", &["table", "snapshot_id", "ref"]),
];

const COLUMNS: &[Column] = &[int("previous_snapshot_id"), int("current_snapshot_id")];

/// The columns of what a procedure gives.
pub(super) fn schema() -> datafusion::arrow::datatypes::SchemaRef {
    RowSet::new(COLUMNS, Vec::new()).schema()
}

pub(super) async fn call(
    context: &StatementContext,
    catalog: Option<String>,
    procedure: &str,
    arguments: Vec<CallArgument>,
) -> Result<Answer> {
    let Some((_, names)) = PROCEDURES.iter().find(|(name, _)| *name == procedure) else {
        let similar = near_names(procedure, PROCEDURES.iter().map(|(name, _)| *name));
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "there is no procedure 'system.{procedure}'{}",
                did_you_mean(&similar)
            ),
        ));
    };
    let mut given = assign(procedure, names, arguments)?;
    let missing = |name: &str| {
        wrong(format!(
            "procedure 'system.{procedure}' needs the argument '{name}'"
        ))
    };
    let table = match given.remove("table").ok_or_else(|| missing("table"))? {
        CallValue::Text(text) => table_name(context, catalog, &text)?,
        CallValue::Number(number) => return Err(wrong(format!("{number} is not a table's name"))),
    };
    let change = match procedure {
        "rollback_to_snapshot" => RefChange::RollbackTo {
            snapshot: snapshot_id(given.remove("snapshot_id"))?
                .ok_or_else(|| missing("snapshot_id"))?,
        },
        "rollback_to_timestamp" => {
            let time = given
                .remove("timestamp")
                .ok_or_else(|| missing("timestamp"))?;
            RefChange::RollbackToTime {
                micros: micros(context, time)?,
            }
        }
        _ => match (
            snapshot_id(given.remove("snapshot_id"))?,
            given.remove("ref"),
        ) {
            (Some(snapshot), None) => RefChange::SetCurrent { snapshot },
            (None, Some(CallValue::Text(name))) => RefChange::SetCurrentToRef { name },
            (None, Some(CallValue::Number(number))) => {
                return Err(wrong(format!(
                    "{number} is not the name of a branch or tag"
                )));
            }
            _ => {
                return Err(wrong(format!(
                    "procedure 'system.{procedure}' needs either 'snapshot_id' or 'ref'"
                )));
            }
        },
    };
    writable(&table.catalog, &table.database)?;
    let catalog = context.engine.catalogs().get(&table.catalog)?;
    let outcome: RefOutcome = to_the_end(async move {
        catalog
            .change_ref(&table.database, &table.table, &change)
            .await
    })
    .await?;
    Ok(Answer::Rows(RowSet::new(
        COLUMNS,
        vec![vec![outcome.previous.into(), outcome.now.into()]],
    )))
}

/// Runs a commit in a task of its own, so that a KILL or a client that goes away does not cut it in two.
pub(super) async fn to_the_end<T: Send + 'static>(
    commit: impl Future<Output = Result<T, CatalogError>> + Send + 'static,
) -> Result<T> {
    match tokio::spawn(commit).await {
        Ok(result) => Ok(result?),
        Err(error) => Err(Error::new(
            ErrorKind::Internal,
            format!("a commit stopped: {error}"),
        )),
    }
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, message)
}

/// Arguments by their names: those without one come first, in the procedure's order.
fn assign(
    procedure: &str,
    names: &[&'static str],
    arguments: Vec<CallArgument>,
) -> Result<HashMap<&'static str, CallValue>> {
    let mut given = HashMap::new();
    let mut named = false;
    for (place, argument) in arguments.into_iter().enumerate() {
        let name = match &argument.name {
            Some(name) => {
                named = true;
                names.iter().find(|known| *known == name).ok_or_else(|| {
                    let similar = near_names(name, names.iter().copied());
                    wrong(format!(
                        "procedure 'system.{procedure}' has no argument '{name}'{}",
                        did_you_mean(&similar)
                    ))
                })?
            }
            None if named => {
                return Err(wrong(
                    "arguments without a name come before those with one".to_owned(),
                ));
            }
            None => names.get(place).ok_or_else(|| {
                wrong(format!(
                    "procedure 'system.{procedure}' takes at most {} arguments",
                    names.len()
                ))
            })?,
        };
        if given.insert(*name, argument.value).is_some() {
            return Err(wrong(format!("the argument '{name}' is given twice")));
        }
    }
    Ok(given)
}

fn snapshot_id(value: Option<CallValue>) -> Result<Option<i64>> {
    match value {
        None => Ok(None),
        Some(CallValue::Number(id)) => Ok(Some(id)),
        Some(CallValue::Text(text)) => match text.trim().parse() {
            Ok(id) => Ok(Some(id)),
            Err(_) => Err(wrong(format!("'{text}' is not a snapshot's id"))),
        },
    }
}

/// Microseconds since 1970 in UTC. A number is milliseconds, as in Spark's procedure.
fn micros(context: &StatementContext, time: CallValue) -> Result<i64> {
    match time {
        CallValue::Text(text) => {
            let zone = context.variables.text("time_zone").unwrap_or("SYSTEM");
            time_in_zone(&text, zone).map_err(|error| wrong(error.to_string()))
        }
        CallValue::Number(millis) => millis
            .checked_mul(1000)
            .ok_or_else(|| wrong(format!("the time {millis} is out of range"))),
    }
}

/// `[[catalog.]database.]table` in a text. The procedure's catalog is the table's, if it says none.
fn table_name(
    context: &StatementContext,
    catalog: Option<String>,
    text: &str,
) -> Result<TableName> {
    let parts: Vec<&str> = text
        .split('.')
        .map(|part| part.trim().trim_matches('`'))
        .collect();
    let catalog = catalog.unwrap_or_else(|| context.catalog.clone());
    match parts.as_slice() {
        [table] => Ok(TableName::new(catalog, context.database.as_str(), *table)),
        [database, table] => Ok(TableName::new(catalog, *database, *table)),
        [own, database, table] => Ok(TableName::new(*own, *database, *table)),
        _ => Err(wrong(format!("'{text}' is not a table's name"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(name: Option<&str>, number: i64) -> CallArgument {
        CallArgument {
            name: name.map(str::to_owned),
            value: CallValue::Number(number),
        }
    }

    #[test]
    fn arguments_find_their_names() {
        let names: &[&str] = &["table", "snapshot_id"];
        let given = assign(
            "p",
            names,
            vec![argument(None, 1), argument(Some("snapshot_id"), 2)],
        )
        .expect("they fit");
        assert_eq!(given["table"], CallValue::Number(1));
        assert_eq!(given["snapshot_id"], CallValue::Number(2));
        for wrong in [
            vec![argument(Some("tabel"), 1)],
            vec![argument(None, 1), argument(None, 2), argument(None, 3)],
            vec![argument(Some("table"), 1), argument(None, 2)],
            vec![argument(None, 1), argument(Some("table"), 2)],
        ] {
            assert!(assign("p", names, wrong).is_err());
        }
    }
}
