//! `SELECT`: plan, run, and stream the rows to the client.

use tarn_planner::statement::Query;

use crate::delivery::{deliver, stoppable};
use crate::error::Result;
use crate::finish::StatementGuard;
use crate::outcome::{ResultRows, StatementOutcome};
use crate::planning::StatementContext;

/// Plans a query and starts it.
pub(super) async fn run(
    context: StatementContext,
    query: Query,
    guard: StatementGuard,
) -> Result<StatementOutcome> {
    let planned = stoppable(&context.running, async {
        let planned = context.plan(&query).await?;
        let attempt = context.first_attempt(&planned).await?;
        Ok((planned, attempt))
    })
    .await
    .inspect_err(|error| guard.finish(Err(error)))?;
    let (planned, attempt) = planned;
    let schema = result_schema(&planned.names, &attempt.plan.schema());
    let (query_id, refusal) = (context.running.id, context.running.refusal.clone());
    let failed = context.running.token.child_token();
    let stream = deliver(
        context,
        planned,
        attempt,
        schema.clone(),
        guard,
        failed.clone(),
    );
    Ok(StatementOutcome::Rows(ResultRows {
        query_id,
        schema,
        stream,
        refusal,
        failed,
    }))
}

/// The columns as the client sees them: under the names it wrote, or, for a `*` over a system
/// table, under MySQL's own spelling.
pub(super) fn result_schema(
    names: &tarn_planner::statement::OutputNames,
    schema: &datafusion::arrow::datatypes::Schema,
) -> datafusion::arrow::datatypes::SchemaRef {
    names.apply(&crate::system::shown_names(schema))
}
