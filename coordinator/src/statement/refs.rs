//! `ALTER TABLE … CREATE | REPLACE | DROP TAG | BRANCH`.

use tarn_catalog::RefChange;
use tarn_planner::statement::ObjectPath;

use super::ddl::writable;
use super::execute::Answer;
use crate::error::Result;
use crate::outcome::Done;
use crate::planning::StatementContext;

pub(super) async fn change_ref(
    context: &StatementContext,
    table: &ObjectPath,
    change: RefChange,
) -> Result<Answer> {
    let name = context.resolve(table);
    writable(&name.catalog, &name.database)?;
    let catalog = context.engine.catalogs().get(&name.catalog)?;
    // In a task of its own: a client that goes away now does not leave it unknown whether the change was made.
    let outcome = super::call::to_the_end(async move {
        catalog
            .change_ref(&name.database, &name.table, &change)
            .await
    })
    .await?;
    let info = match (outcome.changed, outcome.now) {
        (false, _) => "Nothing to do".to_owned(),
        (true, Some(snapshot)) => format!("Snapshot: {snapshot}"),
        (true, None) => String::new(),
    };
    Ok(Answer::Done(Done {
        info,
        ..Done::default()
    }))
}
