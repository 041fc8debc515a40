//! `CREATE CATALOG` and `DROP CATALOG`.

use std::collections::BTreeMap;

use super::execute::Answer;
use crate::error::{Error, ErrorKind, Result};
use crate::planning::StatementContext;
use crate::system::{SYSTEM_CATALOG, is_system_schema};
use crate::users::Users;

pub(super) async fn create_catalog(
    context: &StatementContext,
    name: &str,
    properties: BTreeMap<String, String>,
    if_not_exists: bool,
) -> Result<Answer> {
    root_only(context, "create a catalog")?;
    if name.eq_ignore_ascii_case(SYSTEM_CATALOG) || is_system_schema(name) {
        return Err(Error::new(
            ErrorKind::CatalogExists,
            format!("catalog name '{name}' is taken by Tarn's own tables"),
        ));
    }
    context
        .engine
        .catalogs()
        .create_catalog(name, properties, if_not_exists)
        .await?;
    Answer::ok()
}

pub(super) async fn drop_catalog(
    context: &StatementContext,
    name: &str,
    if_exists: bool,
) -> Result<Answer> {
    root_only(context, "drop a catalog")?;
    context
        .engine
        .catalogs()
        .drop_catalog(name, if_exists)
        .await?;
    Answer::ok()
}

/// Catalogs hold credentials and belong to everybody: only root changes them.
fn root_only(context: &StatementContext, what: &str) -> Result<()> {
    if context.running.user == Users::ROOT || context.engine.users().get(Users::ROOT).is_none() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::NotAllowed,
        format!("Access denied: only root may {what}"),
    ))
}
