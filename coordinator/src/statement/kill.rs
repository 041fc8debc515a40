//! `KILL [CONNECTION | QUERY] id` and `KILL 'query id'`.

use tarn_planner::statement::KillTarget;

use super::execute::Answer;
use crate::error::Result;
use crate::planning::StatementContext;

pub(super) fn kill(
    context: &StatementContext,
    target: &KillTarget,
    query_only: bool,
) -> Result<Answer> {
    let processes = context.engine.processes();
    let user = &context.running.user;
    match target {
        KillTarget::Connection(id) => processes.kill_connection(user, *id, query_only)?,
        KillTarget::Query(id) => processes.kill_query(user, id)?,
    }
    Answer::ok()
}
