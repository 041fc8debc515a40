//! `INSERT INTO … SELECT / VALUES` and `CREATE TABLE … AS SELECT`.
//!
//! ```text
//!   query ──batches──▶ Mapping (order, casts, NULLs) ──▶ AppendWriter ──one commit──▶ snapshot
//!                         └── SortExec if the table ──▶      └── any failure, KILL or timeout: abort
//!                             has a sort order
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::arrow::array::RecordBatch;
use datafusion::error::DataFusionError;
use futures::StreamExt;
use iceberg::spec::Schema;
use tarn_catalog::{AppendSummary, AppendWriter, Catalog, NewTable, TableName, WriteOptions};
use tarn_planner::statement::{ObjectPath, Query};

use super::ddl::writable;
use super::execute::Answer;
use super::insert_mapping::Mapping;
use super::query::result_schema;
use super::sorted_rows::sorted;
use super::table_types::table_schema;
use crate::delivery::stoppable;
use crate::error::{Error, ErrorKind, Result};
use crate::outcome::Done;
use crate::planning::{Attempt, Planned, StatementContext};
use crate::processes::QueryState;
use crate::profile;
use crate::retry::Losses;

/// What opens a writer: an attempt that lost a worker starts with a new one.
enum Target<'a> {
    Append {
        catalog: Arc<Catalog>,
        name: &'a TableName,
        columns: &'a [String],
    },
    Create {
        catalog: Arc<Catalog>,
        name: &'a TableName,
        table: Box<NewTable>,
    },
}

impl Target<'_> {
    async fn open(&self, options: &WriteOptions) -> Result<AppendWriter> {
        Ok(match self {
            Self::Append { catalog, name, .. } => {
                catalog
                    .append(&name.database, &name.table, options.clone())
                    .await?
            }
            Self::Create {
                catalog,
                name,
                table,
            } => {
                catalog
                    .create_table_as(&name.database, (**table).clone(), options.clone())
                    .await?
            }
        })
    }

    fn columns(&self) -> &[String] {
        match self {
            Self::Append { columns, .. } => columns,
            Self::Create { .. } => &[],
        }
    }
}

pub(super) async fn insert(
    context: &StatementContext,
    table: ObjectPath,
    columns: Vec<String>,
    source: Query,
) -> Result<Answer> {
    let name = context.resolve(&table);
    writable(&name.catalog, &name.database)?;
    let (target, planned, attempt) = stoppable(&context.running, async {
        let catalog = context.engine.catalogs().get(&name.catalog)?;
        // A table that is not there is told before the query is planned.
        let pinned = catalog
            .table(&name.database, &name.table)
            .await
            .map_err(|error| as_version(&name).unwrap_or_else(|| error.into()))?;
        let planned = context.plan(&source).await?;
        let attempt = context.first_attempt(&planned).await?;
        Mapping::new(
            &pinned.schema(),
            &pinned.arrow_schema(),
            &columns,
            &attempt.plan.schema(),
        )?;
        let target = Target::Append {
            catalog,
            name: &name,
            columns: &columns,
        };
        Ok((target, planned, attempt))
    })
    .await?;
    write(context, &target, &planned, attempt).await
}

/// What is wrong with a target that is no table, but is written as a branch or a tag of one.
fn as_version(name: &TableName) -> Option<Error> {
    let versions = ["branch_", "tag_"];
    let is_version = versions.iter().any(|it| name.table.starts_with(it));
    is_version.then(|| {
        Error::new(
            ErrorKind::Unsupported,
            format!(
                "{}.{} cannot be written: INSERT adds rows to a table's main branch only",
                name.database, name.table
            ),
        )
    })
}

pub(super) async fn create_table_as(
    context: &StatementContext,
    name: &TableName,
    table: impl FnOnce(Schema) -> NewTable,
    columns: Option<Schema>,
    source: Query,
    if_not_exists: bool,
) -> Result<Answer> {
    let prepared = stoppable(&context.running, async {
        let catalog = context.engine.catalogs().get(&name.catalog)?;
        match catalog.table(&name.database, &name.table).await {
            Ok(_) if if_not_exists => return Ok(None),
            Ok(_) => {
                return Err(Error::new(
                    ErrorKind::TableExists,
                    format!("Table '{name}' already exists"),
                ));
            }
            Err(tarn_catalog::CatalogError::NoSuchTable { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let planned = context.plan(&source).await?;
        let attempt = context.first_attempt(&planned).await?;
        let of_query = result_schema(&planned.names, &attempt.plan.schema());
        let schema = match columns {
            Some(columns) => columns,
            None => table_schema(&of_query)?,
        };
        let target = Target::Create {
            catalog,
            name,
            table: Box::new(table(schema)),
        };
        Ok(Some((target, planned, attempt)))
    })
    .await?;
    match prepared {
        Some((target, planned, attempt)) => write(context, &target, &planned, attempt).await,
        None => Ok(Answer::Done(Done {
            info: format!("Table '{name}' already exists"),
            ..Done::default()
        })),
    }
}

/// Runs the query into a writer, and commits.
async fn write(
    context: &StatementContext,
    target: &Target<'_>,
    planned: &Planned,
    first: Attempt,
) -> Result<Answer> {
    let options = WriteOptions {
        target_file_bytes: context.variables.number("target_file_bytes").max(1),
        sorted: true,
        ..WriteOptions::default()
    };
    let running = &context.running;
    let mut losses = Losses::none(context);
    let mut attempt = first;
    let writer = loop {
        running.set_state(QueryState::Running);
        let mut writer = stoppable(running, target.open(&options)).await?;
        let written = stoppable(running, async {
            let mapping = Mapping::new(
                writer.schema(),
                &writer.arrow_schema(),
                target.columns(),
                &attempt.plan.schema(),
            )?;
            fill(context, &attempt, mapping, &mut writer).await
        })
        .await;
        let error = match written {
            Ok(Ok(())) => break writer,
            Ok(Err(error)) => error,
            Err(error) => {
                writer.abort().await;
                profile::finish(context, &planned.catalogs, &attempt.plan, 0, false).await;
                return Err(error);
            }
        };
        writer.abort().await;
        if let Err(error) = losses.after(context, error, || true) {
            profile::finish(context, &planned.catalogs, &attempt.plan, 0, false).await;
            return Err(error);
        }
        drop(attempt);
        attempt = stoppable(running, context.next_attempt(planned, losses.workers())).await?;
    };
    running.set_state(QueryState::Finishing);
    profile::finish(context, &planned.catalogs, &attempt.plan, 0, true).await;
    let summary = commit(writer).await?;
    running.rows_affected.store(summary.rows, Ordering::Relaxed);
    Ok(Answer::Done(Done {
        affected_rows: summary.rows,
        info: format!(
            "Records: {}  Files: {}  Bytes: {}",
            summary.rows, summary.files, summary.bytes
        ),
        warnings: 0,
    }))
}

/// Sends every batch of the query to the writer. The inner result is the query's own failure, which
/// may be the loss of a worker; the outer one is about its values or the table.
async fn fill(
    context: &StatementContext,
    attempt: &Attempt,
    mapping: Mapping,
    writer: &mut AppendWriter,
) -> Result<Result<(), DataFusionError>> {
    let execution = context.engine.execution();
    let (mut rows, mapping) = match writer.sort_keys() {
        None => (execution.run(attempt), Some(mapping)),
        Some(keys) => {
            let plan = sorted(&attempt.plan, mapping, keys)?;
            (execution.run(&attempt.with_plan(plan)), None)
        }
    };
    let mut rows_before = 0;
    while let Some(batch) = rows.next().await {
        let batch: RecordBatch = match batch {
            Ok(batch) => batch,
            Err(error) => return Ok(Err(error)),
        };
        if batch.num_rows() == 0 {
            continue;
        }
        let mapped = match &mapping {
            Some(mapping) => mapping.apply(&batch, rows_before)?,
            None => batch,
        };
        rows_before += mapped.num_rows();
        writer.write(mapped).await?;
    }
    Ok(Ok(()))
}

/// Commits in a task of its own: a client that goes away now does not cut a commit in two.
async fn commit(writer: AppendWriter) -> Result<AppendSummary> {
    match tokio::spawn(writer.commit()).await {
        Ok(summary) => Ok(summary?),
        Err(error) => Err(Error::new(
            ErrorKind::Internal,
            format!("the commit's task failed: {error}"),
        )),
    }
}
