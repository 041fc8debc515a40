//! The process list as rows, for `SHOW PROCESSLIST` and `information_schema.processlist`.

use crate::planning::StatementContext;
use crate::processes::{Connection, RunningStatement};
use crate::rows::{Cell, Column, float, int, text, uint};
use crate::system::tarn_schema::Progress;
use crate::users::Users;

/// MySQL's columns, then Tarn's.
pub(crate) const PROCESSLIST: &[Column] = &[
    uint("ID"),
    text("USER"),
    text("HOST"),
    text("DB"),
    text("COMMAND"),
    int("TIME"),
    text("STATE"),
    text("INFO"),
    text("QUERY_ID"),
    uint("ROWS_SENT"),
    uint("BYTES_SENT"),
    float("PROGRESS"),
];

/// Statement text that `SHOW PROCESSLIST` without FULL shows, in characters.
const SHORT_TEXT: usize = 100;

/// A row per statement that runs, and one per idle connection. Users see their own; root sees all.
pub(crate) fn processlist_rows(context: &StatementContext, full: bool) -> Vec<Vec<Cell>> {
    let user = &context.running.user;
    let mut rows = Vec::new();
    for connection in context.engine.processes().connections() {
        if *user != connection.user && user != Users::ROOT {
            continue;
        }
        let statements = connection.statements();
        if statements.is_empty() {
            rows.push(idle_row(&connection));
        }
        for statement in statements {
            rows.push(statement_row(context, &connection, &statement, full));
        }
    }
    rows
}

fn idle_row(connection: &Connection) -> Vec<Cell> {
    let mut row = connection_cells(connection);
    row.extend([
        "Sleep".into(),
        seconds(connection.idle().as_secs()),
        "".into(),
    ]);
    row.resize(PROCESSLIST.len(), Cell::Null);
    row
}

fn statement_row(
    context: &StatementContext,
    connection: &Connection,
    statement: &RunningStatement,
    full: bool,
) -> Vec<Cell> {
    let progress = Progress::of(context, statement);
    let shown = match full {
        true => statement.text.clone(),
        false => statement.text.chars().take(SHORT_TEXT).collect(),
    };
    let mut row = connection_cells(connection);
    row.extend([
        "Query".into(),
        seconds(statement.elapsed().as_secs()),
        statement.state().name().into(),
        shown.into(),
        statement.id.to_string().into(),
        statement.rows_returned().into(),
        statement.bytes_returned().into(),
        progress
            .fraction()
            .map(|done| (done * 1000.0).round() / 10.0)
            .into(),
    ]);
    row
}

fn connection_cells(connection: &Connection) -> Vec<Cell> {
    let host = match connection.client.as_str() {
        "" => "localhost",
        client => client,
    };
    vec![
        Cell::UInt(u64::from(connection.id)),
        connection.user.as_str().into(),
        host.into(),
        connection.place().1.into(),
    ]
}

fn seconds(count: u64) -> Cell {
    Cell::Int(i64::try_from(count).unwrap_or(i64::MAX))
}
