//! `SHOW …` and `DESCRIBE`.

use std::time::SystemTime;

use tarn_planner::QueryId;
use tarn_planner::functions::function_names;
use tarn_planner::statement::{DatabaseName, ObjectPath, Show};

use super::execute::Answer;
use super::set::no_such_database;
use super::show_create;
use super::show_filter::filtered;
use super::show_stats;
use crate::error::{Error, ErrorKind, Result};
use crate::planning::StatementContext;
use crate::profile::Profile;
use crate::rows::{Cell, Column, RowSet, int, text, time, uint};
use crate::system::{
    COLLATIONS, ENGINES, ListedColumn, ListedTable, PROCESSLIST, SYSTEM_CATALOG, WORKERS, Wanted,
    character_set_rows, collation_rows, databases, engine_rows, iceberg_columns,
    is_system_database, processlist_rows, system_columns, system_table, table_status, tables,
    worker_rows,
};

pub(super) async fn show(context: &StatementContext, show: Show) -> Result<Answer> {
    let (rows, filter) = match show {
        Show::Catalogs { filter } => (catalogs(context), filter),
        Show::Databases { catalog, filter } => (show_databases(context, catalog).await?, filter),
        Show::Tables {
            database,
            full,
            filter,
        } => (show_tables(context, database, full).await?, filter),
        Show::TableStatus { database, filter } => {
            (status_of_tables(context, database).await?, filter)
        }
        Show::Columns {
            table,
            full,
            filter,
        } => (show_columns(context, &table, full).await?, filter),
        Show::Indexes { table } => {
            columns_of(context, &table).await?;
            (RowSet::new(INDEXES, Vec::new()), None)
        }
        Show::CreateTable { table } => (show_create::create_table(context, &table).await?, None),
        Show::CreateView { view } => (show_create::create_view(context, &view).await?, None),
        Show::CreateDatabase { database } => (
            show_create::create_database(context, &database).await?,
            None,
        ),
        Show::CreateCatalog { catalog } => (show_create::create_catalog(context, &catalog)?, None),
        Show::Processlist { full } => (processlist(context, full), None),
        Show::Variables { global, filter } => (variables(context, global), filter),
        Show::Status { filter, .. } => (status(context), filter),
        Show::Functions { filter } => (functions(), filter),
        Show::Stats { table, filter } => (show_stats::stats(context, &table).await?, filter),
        Show::Workers => (RowSet::new(WORKERS, worker_rows(context)), None),
        Show::Profile { query_id } => (profile(context, query_id)?, None),
        Show::Warnings { count } | Show::Errors { count } => (warnings(context, count), None),
        Show::Engines => (
            titled(
                RowSet::new(ENGINES, engine_rows()),
                &[
                    "Engine",
                    "Support",
                    "Comment",
                    "Transactions",
                    "XA",
                    "Savepoints",
                ],
            ),
            None,
        ),
        Show::Plugins => (
            RowSet::new(
                &[
                    text("Name"),
                    text("Status"),
                    text("Type"),
                    text("Library"),
                    text("License"),
                ],
                Vec::new(),
            ),
            None,
        ),
        Show::Privileges => (
            RowSet::new(
                &[text("Privilege"), text("Context"), text("Comment")],
                Vec::new(),
            ),
            None,
        ),
        Show::Grants { user } => (grants(context, user)?, None),
        Show::CharacterSet { filter } => {
            // Of information_schema.character_sets, in SHOW's own order.
            let rows = character_set_rows()
                .into_iter()
                .map(|row| reordered(row, &[0, 2, 1, 3]))
                .collect();
            let columns = [
                text("Charset"),
                text("Description"),
                text("Default collation"),
                uint("Maxlen"),
            ];
            (RowSet::new(&columns, rows), filter)
        }
        Show::Collation { filter } => (
            titled(
                RowSet::new(COLLATIONS, collation_rows()),
                &[
                    "Collation",
                    "Charset",
                    "Id",
                    "Default",
                    "Compiled",
                    "Sortlen",
                    "Pad_attribute",
                ],
            ),
            filter,
        ),
        Show::FunctionStatus { filter } | Show::ProcedureStatus { filter } => {
            (RowSet::new(ROUTINES, Vec::new()), filter)
        }
        Show::Triggers { filter, .. } => (RowSet::new(TRIGGERS, Vec::new()), filter),
        Show::Events { filter, .. } => (RowSet::new(EVENTS, Vec::new()), filter),
        Show::OpenTables { filter, .. } => (
            RowSet::new(
                &[
                    text("Database"),
                    text("Table"),
                    int("In_use"),
                    int("Name_locked"),
                ],
                Vec::new(),
            ),
            filter,
        ),
        Show::FrontendConfig { filter } => (frontend_config(context), filter),
    };
    Ok(Answer::Rows(filtered(context, rows, filter).await?))
}

const COLUMNS: &[Column] = &[
    text("Field"),
    text("Type"),
    text("Null"),
    text("Key"),
    text("Default"),
    text("Extra"),
];

const FULL_COLUMNS: &[Column] = &[
    text("Field"),
    text("Type"),
    text("Collation"),
    text("Null"),
    text("Key"),
    text("Default"),
    text("Extra"),
    text("Privileges"),
    text("Comment"),
];

const INDEXES: &[Column] = &[
    text("Table"),
    int("Non_unique"),
    text("Key_name"),
    uint("Seq_in_index"),
    text("Column_name"),
    text("Collation"),
    uint("Cardinality"),
    uint("Sub_part"),
    text("Packed"),
    text("Null"),
    text("Index_type"),
    text("Comment"),
    text("Index_comment"),
    text("Visible"),
    text("Expression"),
];

const ROUTINES: &[Column] = &[
    text("Db"),
    text("Name"),
    text("Type"),
    text("Definer"),
    time("Modified"),
    time("Created"),
    text("Security_type"),
    text("Comment"),
    text("character_set_client"),
    text("collation_connection"),
    text("Database Collation"),
];

const TRIGGERS: &[Column] = &[
    text("Trigger"),
    text("Event"),
    text("Table"),
    text("Statement"),
    text("Timing"),
    time("Created"),
    text("sql_mode"),
    text("Definer"),
    text("character_set_client"),
    text("collation_connection"),
    text("Database Collation"),
];

const EVENTS: &[Column] = &[
    text("Db"),
    text("Name"),
    text("Definer"),
    text("Time zone"),
    text("Type"),
    time("Execute at"),
    text("Interval value"),
    text("Interval field"),
    time("Starts"),
    time("Ends"),
    text("Status"),
    int("Originator"),
    text("character_set_client"),
    text("collation_connection"),
    text("Database Collation"),
];

fn titled(mut rows: RowSet, names: &[&str]) -> RowSet {
    for (index, name) in names.iter().enumerate() {
        rows = rows.named(index, *name);
    }
    rows
}

fn reordered(row: Vec<Cell>, order: &[usize]) -> Vec<Cell> {
    order
        .iter()
        .map(|index| row.get(*index).cloned().unwrap_or(Cell::Null))
        .collect()
}

fn catalogs(context: &StatementContext) -> RowSet {
    let mut names = context.engine.catalogs().names();
    names.push(SYSTEM_CATALOG.to_owned());
    names.sort();
    let rows = names
        .into_iter()
        .map(|name| {
            let kind = match context.engine.catalogs().get(&name) {
                Ok(catalog) => catalog
                    .properties()
                    .get("type")
                    .cloned()
                    .unwrap_or_else(|| "embedded".to_owned()),
                Err(_) => "system".to_owned(),
            };
            vec![name.into(), kind.into()]
        })
        .collect();
    RowSet::new(&[text("Catalog"), text("Type")], rows)
}

fn functions() -> RowSet {
    let rows = function_names()
        .into_iter()
        .map(|(name, kind)| vec![name.into(), kind.into()])
        .collect();
    RowSet::new(&[text("Function"), text("Kind")], rows)
}

async fn show_databases(context: &StatementContext, catalog: Option<String>) -> Result<RowSet> {
    let catalog = known_catalog(context, catalog.as_deref().unwrap_or(&context.catalog))?;
    let names = databases(context, &catalog, &Wanted::default()).await?;
    let rows = names.into_iter().map(|name| vec![name.into()]).collect();
    Ok(RowSet::new(&[text("Database")], rows))
}

/// The catalog's own name, or the error that suggests near ones.
fn known_catalog(context: &StatementContext, name: &str) -> Result<String> {
    if name.eq_ignore_ascii_case(SYSTEM_CATALOG) {
        return Ok(SYSTEM_CATALOG.to_owned());
    }
    Ok(context.engine.catalogs().get(name)?.name().to_owned())
}

/// The place a SHOW is about, checked to be there.
async fn place(
    context: &StatementContext,
    database: Option<DatabaseName>,
) -> Result<(String, String)> {
    let (catalog, database) = match database {
        Some(name) => context.resolve_database(&name),
        None => (context.catalog.clone(), context.database.clone()),
    };
    let catalog = known_catalog(context, &catalog)?;
    if is_system_database(&catalog, &database) {
        return Ok((catalog, database.to_lowercase()));
    }
    let known = context.engine.catalogs().get(&catalog)?;
    match known.database_exists(&database).await? {
        true => Ok((catalog, database)),
        false => Err(no_such_database(&known, &database).await),
    }
}

async fn show_tables(
    context: &StatementContext,
    database: Option<DatabaseName>,
    full: bool,
) -> Result<RowSet> {
    let (catalog, database) = place(context, database).await?;
    let listed = tables(context, &catalog, &Wanted::one_database(&database), false).await?;
    let rows = listed
        .iter()
        .flat_map(|listed| &listed.tables)
        .map(|table| {
            let mut row = vec![table.name().into()];
            if full {
                row.push(match table {
                    ListedTable::Iceberg { .. } => "BASE TABLE".into(),
                    ListedTable::System(_) => "SYSTEM VIEW".into(),
                });
            }
            row
        })
        .collect();
    let columns = [text("Tables"), text("Table_type")];
    let columns = columns.get(..if full { 2 } else { 1 }).unwrap_or(&columns);
    Ok(RowSet::new(columns, rows).named(0, format!("Tables_in_{database}")))
}

async fn status_of_tables(
    context: &StatementContext,
    database: Option<DatabaseName>,
) -> Result<RowSet> {
    let (catalog, database) = place(context, database).await?;
    let rows = table_status(context, &catalog, &Wanted::one_database(&database)).await?;
    // Of information_schema.tables: the name, then everything from the engine on.
    let order = [
        2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
    ];
    let rows = rows.into_iter().map(|row| reordered(row, &order)).collect();
    let columns = [
        text("Name"),
        text("Engine"),
        uint("Version"),
        text("Row_format"),
        uint("Rows"),
        uint("Avg_row_length"),
        uint("Data_length"),
        uint("Max_data_length"),
        uint("Index_length"),
        uint("Data_free"),
        uint("Auto_increment"),
        time("Create_time"),
        time("Update_time"),
        time("Check_time"),
        text("Collation"),
        uint("Checksum"),
        text("Create_options"),
        text("Comment"),
    ];
    Ok(RowSet::new(&columns, rows))
}

async fn columns_of(context: &StatementContext, path: &ObjectPath) -> Result<Vec<ListedColumn>> {
    let name = context.resolve(path);
    if let Some((_, definition)) = system_table(&name.catalog, &name.database, &name.table) {
        return Ok(system_columns(definition.columns));
    }
    let catalog = context.engine.catalogs().get(&name.catalog)?;
    Ok(iceberg_columns(
        &catalog.table(&name.database, &name.table).await?,
    ))
}

async fn show_columns(context: &StatementContext, path: &ObjectPath, full: bool) -> Result<RowSet> {
    let rows = columns_of(context, path)
        .await?
        .into_iter()
        .map(|column| {
            let null: Cell = if column.nullable { "YES" } else { "NO" }.into();
            let collation = column.mysql_type.is_text().then_some("utf8mb4_0900_ai_ci");
            let mut row = vec![column.name.into(), column.mysql_type.column_type.into()];
            if full {
                row.push(collation.into());
            }
            row.extend([null, "".into(), Cell::Null, "".into()]);
            if full {
                row.extend(["select,insert".into(), column.comment.into()]);
            }
            row
        })
        .collect();
    Ok(RowSet::new(if full { FULL_COLUMNS } else { COLUMNS }, rows))
}

fn processlist(context: &StatementContext, full: bool) -> RowSet {
    titled(
        RowSet::new(PROCESSLIST, processlist_rows(context, full)),
        &[
            "Id",
            "User",
            "Host",
            "db",
            "Command",
            "Time",
            "State",
            "Info",
            "Query_id",
            "Rows_sent",
            "Bytes_sent",
            "Progress",
        ],
    )
}

fn variables(context: &StatementContext, global: bool) -> RowSet {
    let globals = context.engine.globals();
    let values = if global { &globals } else { &context.variables };
    let rows = values
        .iter()
        .map(|(variable, value)| vec![variable.name.into(), value.into()])
        .collect();
    RowSet::new(&[text("Variable_name"), text("Value")], rows)
}

fn status(context: &StatementContext) -> RowSet {
    let engine = &context.engine;
    let uptime = SystemTime::now()
        .duration_since(engine.started())
        .unwrap_or_default();
    let audit = engine.parts().audit.stats();
    let rows = [
        ("Audit_records_dropped", audit.dropped),
        ("Audit_records_written", audit.written),
        (
            "Memory_used",
            engine.parts().runtime.memory_pool.reserved() as u64,
        ),
        ("Questions", engine.processes().started_count()),
        ("Queries", engine.processes().started_count()),
        (
            "Spill_used",
            engine.parts().runtime.disk_manager.used_disk_space(),
        ),
        (
            "Threads_connected",
            engine.processes().connection_count() as u64,
        ),
        (
            "Threads_running",
            engine.processes().statements().len() as u64,
        ),
        ("Uptime", uptime.as_secs()),
    ];
    let rows = rows
        .into_iter()
        .map(|(name, value)| vec![name.into(), value.to_string().into()])
        .collect();
    RowSet::new(&[text("Variable_name"), text("Value")], rows)
}

fn profile(context: &StatementContext, query_id: Option<String>) -> Result<RowSet> {
    let profiles = context.engine.profiles();
    let found = match &query_id {
        Some(text) => text.parse::<QueryId>().ok().and_then(|id| profiles.get(id)),
        None => profiles.last_of(context.running.connection),
    };
    let user = &context.running.user;
    let found = found.filter(|profile| profile.user == *user || *user == crate::users::Users::ROOT);
    let Some(found) = found else {
        let what = match query_id {
            Some(id) => format!("there is no profile of query '{id}'"),
            None => "this session has not run a query yet".to_owned(),
        };
        let kept = context.engine.settings().kept_profiles;
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("{what}; the last {kept} queries are kept"),
        ));
    };
    let rows = profile_lines(&found)
        .into_iter()
        .map(|line| vec![line.into()])
        .collect();
    Ok(RowSet::new(&[text("Profile")], rows))
}

fn profile_lines(profile: &Profile) -> Vec<String> {
    let mut lines = vec![
        format!("query      {}", profile.query_id),
        format!("statement  {}", profile.text),
        format!(
            "planning   {} ms, execution {} ms, {} rows, {} workers, {} retries{}",
            profile.planning_ms,
            profile.execution_ms,
            profile.rows,
            profile.workers,
            profile.retries,
            if profile.complete {
                ""
            } else {
                " (did not finish)"
            }
        ),
    ];
    lines.extend(profile.scans.iter().flat_map(super::explain::scan_lines));
    lines.push(String::new());
    lines.extend(profile.plan.lines().map(str::to_owned));
    lines
}

fn warnings(context: &StatementContext, count: bool) -> RowSet {
    let error = context.session.state.lock().last_error.clone();
    if count {
        let count = u64::from(error.is_some());
        return RowSet::new(&[uint("@@session.warning_count")], vec![vec![count.into()]]);
    }
    let rows = error
        .into_iter()
        .map(|error| {
            vec![
                "Error".into(),
                Cell::Int(i64::from(error.mysql_code())),
                error.message.into(),
            ]
        })
        .collect();
    RowSet::new(&[text("Level"), int("Code"), text("Message")], rows)
}

fn grants(context: &StatementContext, user: Option<String>) -> Result<RowSet> {
    let user = user.unwrap_or_else(|| context.running.user.clone());
    let user = user
        .split('@')
        .next()
        .unwrap_or_default()
        .trim_matches(['\'', '`', '"'])
        .to_owned();
    if context.engine.users().get(&user).is_none() {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("There is no such grant defined for user '{user}'"),
        ));
    }
    Ok(RowSet::new(
        &[text("Grants")],
        vec![vec![
            format!("GRANT ALL PRIVILEGES ON *.* TO `{user}`@`%`").into(),
        ]],
    )
    .named(0, format!("Grants for {user}@%")))
}

/// StarRocks' clients ask whether storage and compute are apart: in Tarn they are.
fn frontend_config(context: &StatementContext) -> RowSet {
    let mut rows = vec![config_row("run_mode", "shared_data", "string", false)];
    rows.extend(
        context
            .variables
            .iter()
            .filter(|(v, _)| v.tarn)
            .map(|(variable, value)| {
                config_row(variable.name, value, "string", !variable.read_only)
            }),
    );
    RowSet::new(
        &[
            text("Key"),
            text("AliasNames"),
            text("Value"),
            text("Type"),
            text("IsMutable"),
            text("Comment"),
        ],
        rows,
    )
}

fn config_row(name: &str, value: &str, kind: &str, mutable: bool) -> Vec<Cell> {
    vec![
        name.into(),
        "[]".into(),
        value.into(),
        kind.into(),
        if mutable { "true" } else { "false" }.into(),
        "".into(),
    ]
}
