//! Every statement, sent to its family.

use futures::stream;
use futures::{FutureExt, StreamExt};
use tarn_planner::statement::Statement;
use tokio_util::sync::CancellationToken;

use super::{analyze, call, catalog_ddl, ddl, explain, insert, kill, query, refs, set, show};
use crate::batch_bytes::batch_bytes;
use crate::delivery::stoppable;
use crate::error::{Error, ErrorKind, Result};
use crate::finish::StatementGuard;
use crate::outcome::{Done, ResultRows, StatementOutcome};
use crate::planning::StatementContext;
use crate::processes::QueryState;
use crate::rows::RowSet;

/// What a statement that runs on the coordinator alone gives.
#[derive(Debug)]
pub(super) enum Answer {
    Rows(RowSet),
    Done(Done),
}

impl Answer {
    /// Success without a result set.
    pub fn ok() -> Result<Self> {
        Ok(Self::Done(Done::default()))
    }
}

/// Runs a statement; its end is recorded here, or by the stream it returns.
pub(crate) async fn execute(
    context: StatementContext,
    statement: Statement,
    guard: StatementGuard,
) -> Result<StatementOutcome> {
    // Each family's future is on the heap: what the largest needs is not what every statement should have on its stack. And
    // its type is forgotten: the compiler follows futures in futures only so deep.
    if let Statement::Query(query) = statement {
        return query::run(context, query, guard).boxed().await;
    }
    let result = match statement {
        // These stop by themselves: what they have written must be taken away again.
        Statement::Insert {
            table,
            columns,
            source,
        } => {
            insert::insert(&context, table, columns, source)
                .boxed()
                .await
        }
        Statement::CreateTable(create) => ddl::create_table(&context, *create).boxed().await,
        statement => {
            // An EXPLAIN plans first, and may then run.
            if !matches!(statement, Statement::Explain { .. }) {
                context.running.set_state(QueryState::Running);
            }
            stoppable(&context.running, answer(&context, statement))
                .boxed()
                .await
        }
    };
    let rows = match result {
        Ok(Answer::Rows(rows)) => rows,
        Ok(Answer::Done(done)) => {
            guard.finish(Ok(()));
            return Ok(StatementOutcome::Done(done));
        }
        Err(error) => {
            guard.finish(Err(&error));
            return Err(error);
        }
    };
    deliver(&context, rows, &guard)
}

/// Hands over rows that are already there.
fn deliver(
    context: &StatementContext,
    rows: RowSet,
    guard: &StatementGuard,
) -> Result<StatementOutcome> {
    use std::sync::atomic::Ordering;
    let batch = rows.batch().inspect_err(|error| guard.finish(Err(error)))?;
    let running = &context.running;
    running
        .rows
        .store(batch.num_rows() as u64, Ordering::Relaxed);
    running.bytes.store(batch_bytes(&batch), Ordering::Relaxed);
    guard.finish(Ok(()));
    let schema = batch.schema();
    let batches: Vec<_> = (batch.num_rows() > 0)
        .then_some(Ok(batch))
        .into_iter()
        .collect();
    Ok(StatementOutcome::Rows(ResultRows {
        query_id: running.id,
        schema,
        stream: stream::iter(batches).boxed(),
        refusal: running.refusal.clone(),
        failed: CancellationToken::new(),
    }))
}

async fn answer(context: &StatementContext, statement: Statement) -> Result<Answer> {
    match statement {
        Statement::Explain { mode, statement } => explain::explain(context, mode, *statement).await,
        Statement::CreateCatalog {
            name,
            properties,
            if_not_exists,
        } => catalog_ddl::create_catalog(context, &name, properties, if_not_exists).await,
        Statement::DropCatalog { name, if_exists } => {
            catalog_ddl::drop_catalog(context, &name, if_exists).await
        }
        Statement::CreateDatabase {
            name,
            properties,
            if_not_exists,
        } => ddl::create_database(context, &name, properties, if_not_exists).await,
        Statement::DropDatabase {
            name,
            if_exists,
            cascade,
        } => ddl::drop_database(context, &name, if_exists, cascade).await,
        Statement::DropTable {
            names,
            if_exists,
            purge,
        } => ddl::drop_tables(context, &names, if_exists, purge).await,
        Statement::ChangeRef { table, change } => {
            Box::pin(refs::change_ref(context, &table, change)).await
        }
        Statement::Call {
            catalog,
            procedure,
            arguments,
        } => Box::pin(call::call(context, catalog, &procedure, arguments)).await,
        Statement::Analyze(analyzed) => Box::pin(analyze::analyze(context, &analyzed)).await,
        Statement::DropView { names, if_exists } => ddl::drop_views(context, &names, if_exists),
        Statement::Use { catalog, database } => set::use_place(context, catalog, database).await,
        Statement::Set(assignments) => set::set(context, assignments).await,
        Statement::Show(show) => show::show(context, show).await,
        Statement::Kill { target, query_only } => kill::kill(context, &target, query_only),
        // Each statement commits by itself, so there is never anything to commit or take back.
        Statement::Transaction(_) | Statement::Noop { .. } => Answer::ok(),
        Statement::Unsupported { detail, .. } => Err(Error::new(ErrorKind::Unsupported, detail)),
        Statement::Query(_) | Statement::Insert { .. } | Statement::CreateTable(_) => Err(
            Error::new(ErrorKind::Internal, "a statement took the wrong path"),
        ),
    }
}
