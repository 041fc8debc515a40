//! `SHOW STATS FOR`: what the optimiser knows of a table's columns.

use std::sync::Arc;

use tarn_catalog::{ColumnSketch, PinnedTable, TableVersion};
use tarn_planner::statement::ObjectPath;
use tarn_planner::{ColumnStats, DistinctSource, QueryCatalogs, SessionOptions, session_builder};

use crate::error::Result;
use crate::planning::StatementContext;
use crate::rows::{Cell, Column, RowSet, text, uint};
use crate::system::SystemSchemas;

const COLUMNS: &[Column] = &[
    text("Column"),
    uint("Rows"),
    uint("Nulls"),
    uint("NDV"),
    text("Min"),
    text("Max"),
    uint("Bytes"),
    text("Source"),
    text("Age"),
];

pub(super) async fn stats(context: &StatementContext, path: &ObjectPath) -> Result<RowSet> {
    let parts = context.engine.parts();
    let catalogs = QueryCatalogs::new(
        Arc::clone(&parts.catalogs),
        Arc::clone(&parts.stores),
        Arc::new(SystemSchemas::new(context.clone())),
    );
    let state = session_builder(
        &SessionOptions::default(),
        Arc::clone(&parts.runtime),
        Arc::clone(&catalogs),
        &context.catalog,
        &context.database,
    )?
    .build();
    let name = context.resolve(path);
    let work = async move {
        let table = catalogs
            .iceberg_table(&name, &TableVersion::Current)
            .await?;
        let stats = table.column_stats(&state).await?;
        Ok((table.pinned().clone(), stats))
    };
    let (pinned, stats) = context.engine.execution().compute(work).await?;
    let rows = stats
        .into_iter()
        .map(|column| row(&pinned, column))
        .collect();
    Ok(RowSet::new(COLUMNS, rows))
}

fn row(table: &PinnedTable, stats: ColumnStats) -> Vec<Cell> {
    let (source, age) = match &stats.source {
        DistinctSource::Sketch(sketch) => (
            format!("sketch of snapshot {}", sketch.snapshot_id).into(),
            age(table, sketch).into(),
        ),
        DistinctSource::Derived => ("derived".into(), Cell::Null),
        DistinctSource::Unknown => (Cell::Null, Cell::Null),
    };
    vec![
        stats.column.into(),
        stats.rows.into(),
        stats.nulls.into(),
        stats.distinct.into(),
        stats.min.into(),
        stats.max.into(),
        stats.bytes.into(),
        source,
        age,
    ]
}

/// How much older than the current snapshot a sketch is: `current`, or `2 snapshots, 3.5 hours`.
fn age(table: &PinnedTable, sketch: &ColumnSketch) -> String {
    let now = table
        .snapshot()
        .map_or(sketch.timestamp_ms, |snapshot| snapshot.timestamp_ms());
    age_text(
        sketch.snapshots_since,
        now.saturating_sub(sketch.timestamp_ms),
    )
}

fn age_text(snapshots: usize, millis: i64) -> String {
    let hours = millis.max(0) as f64 / 3_600_000.0;
    let time = match hours {
        hours if hours >= 48.0 => format!("{:.1} days", hours / 24.0),
        hours if hours >= 1.0 => format!("{hours:.1} hours"),
        hours => format!("{:.0} minutes", hours * 60.0),
    };
    match snapshots {
        0 => "current".to_owned(),
        1 => format!("1 snapshot, {time}"),
        more => format!("{more} snapshots, {time}"),
    }
}

#[cfg(test)]
mod tests {
    use super::age_text;

    #[test]
    fn ages_are_told_in_snapshots_and_time() {
        assert_eq!(age_text(0, 0), "current");
        assert_eq!(age_text(1, 90_000), "1 snapshot, 2 minutes");
        assert_eq!(age_text(3, 12_600_000), "3 snapshots, 3.5 hours");
        assert_eq!(age_text(9, 864_000_000), "9 snapshots, 10.0 days");
    }
}
