//! What the tables in FROM mean whose names say more than a table: a version, a branch, a metadata table.
//!
//! ```text
//!   shop.orders FOR VERSION AS OF 17      ─►  `lake`.`shop`.`orders FOR VERSION AS OF 17` AS orders
//!   orders.branch_audit                   ─►  `lake`.`shop`.`orders branch 'audit'`       AS orders
//!   orders$files, orders.files            ─►  `lake`.`shop`.`orders$files`                AS files
//!   iceberg_scan('s3://bucket/t')         ─►  ``.``.`s3://bucket/t`                       AS iceberg_scan
//! ```
//! The query is planned with the names on the right, which [`QueryCatalogs`] knows from here on. A table that really
//! has the name that is written goes before every other meaning.

use arrow::array::RecordBatchOptions;
use arrow::array::timezone::Tz;
use arrow::compute::kernels::cast_utils::string_to_datetime;
use arrow::datatypes::{DataType, Schema, TimeUnit};
use arrow::record_batch::RecordBatch;
use chrono::Utc;
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::ColumnarValue;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{Expr, ExprWithAlias, Statement, Value, Visit, Visitor};
use std::ops::ControlFlow;
use std::sync::Arc;
use tarn_catalog::{CatalogError, TableName, TableVersion};

use super::QueryCatalogs;
use crate::error::{PlannerError, catalog_error};
use crate::metadata_tables::MetadataTable;
use crate::statement::{NewName, WrittenTable, WrittenVersion, rename_tables, written_tables};

/// A table of a query that is more than a name of a catalog.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SelectedTable {
    pub(super) table: TableName,
    pub(super) version: TableVersion,
    pub(super) metadata: Option<MetadataTable>,
}

impl SelectedTable {
    /// The name that it is planned under, in its table's catalog and database.
    pub(super) fn key(&self) -> String {
        let mut key = self.table.table.clone();
        if let Some(metadata) = self.metadata {
            key.push_str(&format!("${}", metadata.name()));
        }
        if self.version != TableVersion::Current {
            key.push_str(&format!(" {}", self.version));
        }
        key
    }
}

/// What the last part of a name says of the table that the parts before it name. The versions are those of Spark's
/// identifiers.
#[derive(Debug, Clone, PartialEq)]
enum Selector {
    Metadata(MetadataTable),
    Version(TableVersion),
}

impl Selector {
    fn parse(part: &str) -> Option<Self> {
        if let Some(metadata) = MetadataTable::from_name(part) {
            return Some(Self::Metadata(metadata));
        }
        let number = |digits: &str| {
            digits
                .bytes()
                .all(|digit| digit.is_ascii_digit())
                .then(|| digits.parse::<i64>().ok())
                .flatten()
        };
        let (lower, rest) = (part.to_ascii_lowercase(), |prefix: &str| {
            &part[prefix.len()..]
        });
        // A branch called by its prefix alone has no name.
        Some(Self::Version(match lower.as_str() {
            name if name.len() > 7 && name.starts_with("branch_") => {
                TableVersion::Branch(rest("branch_").to_owned())
            }
            name if name.len() > 4 && name.starts_with("tag_") => {
                TableVersion::Tag(rest("tag_").to_owned())
            }
            name if name.starts_with("snapshot_id_") => {
                TableVersion::Snapshot(number(rest("snapshot_id_"))?)
            }
            name if name.starts_with("at_timestamp_") => {
                TableVersion::AsOf(number(rest("at_timestamp_"))?.checked_mul(1000)?)
            }
            _ => return None,
        }))
    }
}

/// The meanings of a name besides the plain one, with the parts that name the table.
fn selected(parts: &[String]) -> Vec<(Vec<String>, Selector)> {
    let mut meanings = Vec::new();
    let Some((last, before)) = parts.split_last() else {
        return meanings;
    };
    if !before.is_empty()
        && let Some(selector) = Selector::parse(last)
    {
        meanings.push((before.to_vec(), selector));
    }
    if let Some((table, metadata)) = last.rsplit_once('$')
        && !table.is_empty()
        && let Some(metadata) = MetadataTable::from_name(metadata)
    {
        let mut name = before.to_vec();
        name.push(table.to_owned());
        meanings.push((name, Selector::Metadata(metadata)));
    }
    meanings
}

/// Whether only a catalog can tell what a name means.
fn is_open(parts: &[String]) -> bool {
    parts.len() > 3 || !selected(parts).is_empty()
}

/// What names are resolved with.
pub struct TableNames<'a> {
    pub catalogs: &'a QueryCatalogs,
    /// Evaluates what stands behind AS OF.
    pub state: &'a SessionState,
    /// The current catalog and database.
    pub catalog: &'a str,
    pub database: &'a str,
    /// Times that are written without a zone are in this one.
    pub time_zone: &'a str,
    /// The query is only described: a version that is a parameter is not known yet, and stands for the current one.
    pub describing: bool,
}

impl TableNames<'_> {
    /// Gives the tables of a rewritten query the names they are planned under.
    pub async fn resolve(&self, statement: &mut Statement) -> Result<()> {
        let written = written_tables(statement, is_open);
        if written.is_empty() {
            return Ok(());
        }
        let mut names = Vec::with_capacity(written.len());
        for table in &written {
            // On the heap: a query that names no such table need not have room for it on its stack.
            names.push(Box::pin(self.new_name(table)).await?);
        }
        rename_tables(statement, is_open, names);
        Ok(())
    }

    async fn new_name(&self, written: &WrittenTable) -> Result<Option<NewName>> {
        let version = match &written.version {
            Some(version) => Some(self.version(version)?),
            None => None,
        };
        if let Some(scan) = &written.scan {
            return Box::pin(self.scanned(scan, version)).await.map(Some);
        }
        let shown = written.name.join(".");
        let no_version = |what: &str| match version {
            Some(_) => Err(refused(format!("{what} has no versions")).into()),
            None => Ok(None),
        };
        if written.is_function {
            return no_version(&format!("the table function '{shown}'"));
        }
        if written.is_cte {
            return no_version(&format!("the common table expression '{shown}'"));
        }
        let plain = (written.name.len() <= 3).then(|| self.full_name(&written.name));
        let mut missing = None;
        if let Some(plain) = plain {
            if self.catalogs.is_virtual(&plain) {
                return no_version(&format!("the system table '{shown}'"));
            }
            match self.catalogs.pin(&plain).await {
                Ok(_) => {
                    return match version {
                        Some(version) => self.select(plain, version, None).await.map(Some),
                        None => Ok(None),
                    };
                }
                Err(error) if is_missing(&error) => missing = Some(error),
                Err(error) => return Err(catalog_error(error)),
            }
        }
        for (name, selector) in selected(&written.name) {
            if name.len() > 3 {
                continue;
            }
            let table = self.full_name(&name);
            if self.catalogs.is_virtual(&table) {
                continue;
            }
            match self.catalogs.pin(&table).await {
                Ok(_) => {}
                Err(error) if is_missing(&error) => {
                    // Of two names that are not there, the one whose database is there says more.
                    let says_more = !matches!(missing, Some(CatalogError::NoSuchTable { .. }))
                        || written.name.last().is_some_and(|last| last.contains('$'));
                    if says_more {
                        missing = Some(error);
                    }
                    continue;
                }
                Err(error) => return Err(catalog_error(error)),
            }
            let new = match (selector, version) {
                (Selector::Metadata(metadata), version) => {
                    let version = version.unwrap_or_default();
                    if version != TableVersion::Current && !metadata.has_versions() {
                        return Err(refused(format!(
                            "'{shown}' tells of the whole table and has no versions"
                        ))
                        .into());
                    }
                    self.select(table, version, Some(metadata)).await?
                }
                (Selector::Version(_), Some(_)) => {
                    return Err(
                        refused(format!("'{shown}' says twice which version is read")).into(),
                    );
                }
                (Selector::Version(version), None) => self.select(table, version, None).await?,
            };
            return Ok(Some(new));
        }
        Err(match missing {
            Some(error) => catalog_error(error),
            None => refused(format!(
                "'{shown}' has too many parts: a table is catalog.database.table"
            ))
            .into(),
        })
    }

    async fn select(
        &self,
        table: TableName,
        version: TableVersion,
        metadata: Option<MetadataTable>,
    ) -> Result<NewName> {
        let selected = SelectedTable {
            table,
            version,
            metadata,
        };
        // An unknown version is told before anything is planned.
        let pinned = self
            .catalogs
            .pin(&selected.table)
            .await
            .map_err(catalog_error)?;
        pinned.version(&selected.version).map_err(catalog_error)?;
        let alias = match metadata {
            Some(metadata) => metadata.name().to_owned(),
            None => selected.table.table.to_lowercase(),
        };
        let parts = vec![
            selected.table.catalog.clone(),
            selected.table.database.clone(),
            selected.key(),
        ];
        self.catalogs.remember(selected);
        Ok(NewName { parts, alias })
    }

    fn full_name(&self, parts: &[String]) -> TableName {
        let part = |from_end: usize| {
            parts
                .len()
                .checked_sub(from_end)
                .and_then(|at| parts.get(at))
                .map(String::as_str)
        };
        TableName::new(
            part(3).unwrap_or(self.catalog),
            part(2).unwrap_or(self.database),
            part(1).unwrap_or_default(),
        )
    }

    fn version(&self, written: &WrittenVersion) -> Result<TableVersion> {
        let (WrittenVersion::Version(expr) | WrittenVersion::Time(expr)) = written;
        if self.describing && is_unbound(expr) {
            return Ok(TableVersion::Current);
        }
        match written {
            WrittenVersion::Version(expr) => self.snapshot_or_name(expr),
            WrittenVersion::Time(expr) => self.time(expr).map(TableVersion::AsOf),
        }
    }

    fn snapshot_or_name(&self, expr: &Expr) -> Result<TableVersion> {
        let wrong = || {
            refused(format!(
                "FOR VERSION AS OF takes a snapshot's id, or the name of a branch or tag in quotes, not {expr}"
            ))
        };
        let value = self.constant(expr).map_err(|_| wrong())?;
        if let Some(Some(name)) = value.try_as_str() {
            return Ok(TableVersion::Named(name.to_owned()));
        }
        match whole_number(&value) {
            Some(id) => Ok(TableVersion::Snapshot(id)),
            None => Err(wrong().into()),
        }
    }

    /// Microseconds since 1970 in UTC.
    fn time(&self, expr: &Expr) -> Result<i64> {
        if let Some(text) = written_time(expr) {
            return Ok(time_in_zone(text, self.time_zone)?);
        }
        let wrong = || refused(format!("FOR TIMESTAMP AS OF takes a time, not {expr}"));
        let value = self.constant(expr).map_err(|_| wrong())?;
        if let Some(Some(text)) = value.try_as_str() {
            return Ok(time_in_zone(text, self.time_zone)?);
        }
        // As in Spark, a number is seconds since 1970.
        if let Some(seconds) = whole_number(&value) {
            return seconds.checked_mul(1_000_000).ok_or_else(|| wrong().into());
        }
        let is_time = matches!(
            value.data_type(),
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64
        );
        // Functions give times in UTC.
        match value.cast_to(&DataType::Timestamp(TimeUnit::Microsecond, None)) {
            Ok(ScalarValue::TimestampMicrosecond(Some(micros), _)) if is_time => Ok(micros),
            _ => Err(wrong().into()),
        }
    }

    /// The value of an expression over no table.
    pub(super) fn constant(&self, expr: &Expr) -> Result<ScalarValue> {
        let expr = ExprWithAlias {
            expr: expr.clone(),
            alias: None,
        };
        let none = DFSchema::empty();
        let logical = self.state.create_logical_expr_from_sql_expr(expr, &none)?;
        // NOW() is known only to the simplifier; it is the statement's.
        let props = self.state.execution_props();
        let now = props.query_execution_start_time.unwrap_or_else(Utc::now);
        let simplifier = ExprSimplifier::new(
            SimplifyContext::builder()
                .with_schema(Arc::new(none.clone()))
                .with_config_options(Arc::clone(self.state.config_options()))
                .with_query_execution_start_time(Some(now))
                .build(),
        );
        let simple = simplifier.simplify(simplifier.coerce(logical, &none)?)?;
        let physical = self.state.create_physical_expr(simple, &none)?;
        let row = RecordBatch::try_new_with_options(
            Arc::new(Schema::empty()),
            vec![],
            &RecordBatchOptions::new().with_row_count(Some(1)),
        )?;
        match physical.evaluate(&row)? {
            ColumnarValue::Scalar(value) => Ok(value),
            ColumnarValue::Array(values) => ScalarValue::try_from_array(&values, 0),
        }
    }
}

/// A time that is written as text, in microseconds since 1970 in UTC. One that says no zone is in `time_zone`, a session's
/// `time_zone` as MySQL has it.
pub fn time_in_zone(text: &str, time_zone: &str) -> Result<i64, PlannerError> {
    let in_utc = ["SYSTEM", "UTC", "GMT", "Etc/UTC", "Z"]
        .iter()
        .any(|utc| utc.eq_ignore_ascii_case(time_zone));
    let offset = if in_utc { "+00:00" } else { time_zone };
    let zone: Tz = offset.parse().map_err(|_| {
        refused(format!(
            "the session's time_zone '{time_zone}' is not known; say it as an offset, such as '+02:00'"
        ))
    })?;
    string_to_datetime(&zone, text.trim())
        .map(|time| time.timestamp_micros())
        .map_err(|_| {
            refused(format!(
                "'{text}' is not a time, such as '2024-01-31 12:00:00'"
            ))
        })
}

pub(super) fn refused(reason: String) -> PlannerError {
    PlannerError::TableVersion(reason)
}

/// Whether another meaning of the name may be right. A server that refuses to say whether there is such a database
/// counts as having none.
fn is_missing(error: &CatalogError) -> bool {
    matches!(
        error,
        CatalogError::NoSuchCatalog { .. }
            | CatalogError::NoSuchDatabase { .. }
            | CatalogError::NoSuchTable { .. }
            | CatalogError::Refused { .. }
    )
}

fn whole_number(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::UInt64(Some(number)) => i64::try_from(*number).ok(),
        number if number.data_type().is_integer() => {
            match number.cast_to(&DataType::Int64).ok()? {
                ScalarValue::Int64(number) => number,
                _ => None,
            }
        }
        _ => None,
    }
}

/// The text of a time that is written as it is: `'…'`, `TIMESTAMP '…'`.
fn written_time(expr: &Expr) -> Option<&str> {
    let value = match expr {
        Expr::Value(value) => value,
        Expr::TypedString(typed) => &typed.value,
        Expr::Nested(inner) => return written_time(inner),
        _ => return None,
    };
    match &value.value {
        Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Some(text),
        _ => None,
    }
}

/// Whether an expression has a parameter, or the NULL that stands for one while a statement is described.
pub(super) fn is_unbound(expr: &Expr) -> bool {
    struct Parameters;
    impl Visitor for Parameters {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Value(value)
                    if matches!(value.value, Value::Placeholder(_) | Value::Null) =>
                {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    expr.visit(&mut Parameters).is_break()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_may_say_which_version() {
        let parse = |part: &str| Selector::parse(part);
        let version = |version| Some(Selector::Version(version));
        assert_eq!(
            parse("branch_a b"),
            version(TableVersion::Branch("a b".into()))
        );
        assert_eq!(
            parse("BRANCH_Dev"),
            version(TableVersion::Branch("Dev".into()))
        );
        assert_eq!(parse("tag_v1"), version(TableVersion::Tag("v1".into())));
        assert_eq!(parse("snapshot_id_17"), version(TableVersion::Snapshot(17)));
        assert_eq!(
            parse("at_timestamp_1500"),
            version(TableVersion::AsOf(1_500_000))
        );
        assert_eq!(
            parse("Files"),
            Some(Selector::Metadata(MetadataTable::Files))
        );
        for none in [
            "branch_",
            "tag_",
            "snapshot_id_x",
            "snapshot_id_-1",
            "at_timestamp_",
            "orders",
            "",
        ] {
            assert_eq!(parse(none), None, "{none}");
        }
    }

    #[test]
    fn times_are_in_the_sessions_zone() {
        // 2024-01-02 10:00:00 in UTC.
        const TEN: i64 = 1_704_189_600_000_000;
        for (text, zone, micros) in [
            ("2024-01-02 10:00:00", "SYSTEM", TEN),
            ("2024-01-02T10:00:00Z", "+02:00", TEN),
            ("2024-01-02 12:00:00", "+02:00", TEN),
            ("2024-01-02 12:00:00+02:00", "UTC", TEN),
            ("2024-01-02 10:00:00.000001", "utc", TEN + 1),
            ("2024-01-02", "+00:00", TEN - 36_000_000_000),
        ] {
            assert_eq!(
                time_in_zone(text, zone).expect(text),
                micros,
                "{text} {zone}"
            );
        }
        assert!(time_in_zone("yesterday", "UTC").is_err());
        assert!(time_in_zone("2024-01-02", "Nowhere/Land").is_err());
    }

    #[test]
    fn names_have_other_meanings_only_where_they_could() {
        let open = |name: &str| is_open(&name.split('.').map(str::to_owned).collect::<Vec<_>>());
        for name in [
            "t.files",
            "db.t.files",
            "c.db.t.files",
            "t$files",
            "db.t$SNAPSHOTS",
            "t.branch_x",
            "a.b.c.d",
        ] {
            assert!(open(name), "{name}");
        }
        for name in [
            "files", "t", "db.t", "c.db.t", "t$", "$files", "t$other", "branch_x",
        ] {
            assert!(!open(name), "{name}");
        }
    }
}
