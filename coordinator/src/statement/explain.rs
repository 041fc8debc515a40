//! `EXPLAIN` and its forms.
//!
//! All but ESTIMATE give text, a row per line: the plan (every stage of it, when it is distributed), then for each
//! scan of a table what pruning by metadata left of it.

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion_distributed::{DistributedMetricsFormat, display_plan_ascii};
use futures::StreamExt;
use tarn_audit::{Counts, ScanReport};
use tarn_planner::statement::{ExplainMode, Query, Statement};
use tarn_planner::{JoinDistribution, finish_scan_reports};

use super::execute::Answer;
use crate::error::{Error, ErrorKind, Result};
use crate::planning::{Attempt, Planned, StatementContext, planned_reports};
use crate::processes::QueryState;
use crate::profile;
use crate::retry::Losses;
use crate::rows::{Cell, Column, RowSet, text, uint};

pub(super) async fn explain(
    context: &StatementContext,
    mode: ExplainMode,
    statement: Statement,
) -> Result<Answer> {
    let query = match statement {
        Statement::Query(query) => query,
        // What an INSERT or a CREATE TABLE AS would run; nothing is written.
        Statement::Insert { source, .. } => source,
        Statement::CreateTable(create) => match create.query {
            Some(query) => query,
            None => return Err(no_plan("CREATE TABLE")),
        },
        other => return Err(no_plan(other.kind())),
    };
    let rows = match mode {
        ExplainMode::Plan => lines(plan(context, &query).await?),
        ExplainMode::Verbose => lines(verbose(context, &query).await?),
        ExplainMode::Analyze { verbose } => lines(analyze(context, &query, verbose).await?),
        ExplainMode::Estimate => estimated(context, &query).await?,
    };
    Ok(Answer::Rows(rows))
}

fn no_plan(kind: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("{kind} has no plan: EXPLAIN takes a query, an INSERT or a CREATE TABLE AS"),
    )
}

fn lines(text_lines: Vec<String>) -> RowSet {
    let rows = text_lines
        .into_iter()
        .map(|line| vec![line.into()])
        .collect();
    RowSet::new(&[text("Plan")], rows)
}

async fn plan(context: &StatementContext, query: &Query) -> Result<Vec<String>> {
    let planned = context.plan(query).await?;
    let attempt = context.first_plan(&planned).await?;
    let mut lines = plan_lines(attempt.plan.as_ref(), false);
    lines.extend(join_lines(&context.joins(&attempt.plan)));
    lines.extend(pruning_lines(&planned_reports(
        &planned.catalogs,
        &attempt.plan,
    )));
    Ok(lines)
}

async fn verbose(context: &StatementContext, query: &Query) -> Result<Vec<String>> {
    let planned = context.plan(query).await?;
    let optimized = context.optimized(&planned).await?;
    let attempt = context.first_plan(&planned).await?;
    let mut lines = Vec::new();
    let mut section = |title: &str, body: String| {
        lines.push(format!("== {title} =="));
        lines.extend(body.lines().map(str::to_owned));
        lines.push(String::new());
    };
    section(
        "logical plan",
        planned.logical.display_indent_schema().to_string(),
    );
    section(
        "optimized logical plan",
        optimized.display_indent_schema().to_string(),
    );
    section(
        "physical plan",
        plan_lines(attempt.plan.as_ref(), false).join("\n"),
    );
    section(
        "physical plan with statistics",
        displayable(attempt.plan.as_ref())
            .set_show_statistics(true)
            .set_show_schema(true)
            .indent(true)
            .to_string(),
    );
    lines.extend(join_lines(&context.joins(&attempt.plan)));
    lines.extend(pruning_lines(&planned_reports(
        &planned.catalogs,
        &attempt.plan,
    )));
    Ok(lines)
}

async fn analyze(context: &StatementContext, query: &Query, per_task: bool) -> Result<Vec<String>> {
    let planned = context.plan(query).await?;
    let first = context.first_attempt(&planned).await?;
    let (attempt, rows) = run_to_end(context, &planned, first).await?;
    let executed = profile::with_metrics(&attempt.plan, format(per_task), true).await;
    // The reports need the sums over all tasks, whatever form is shown.
    let summed = profile::with_metrics(&attempt.plan, format(false), true).await;
    let reports =
        profile::with_answered_by_metadata(finish_scan_reports(&summed), &planned.catalogs);
    *context.running.scans.lock() = reports.clone();
    let planning = context
        .running
        .execution_started()
        .map_or(context.running.elapsed(), |start| {
            start.duration_since(context.running.started_at)
        });
    let execution = context.running.elapsed().saturating_sub(planning);
    let mut lines = vec![format!(
        "{rows} rows; planning {:.1} ms, execution {:.1} ms, {} retries",
        planning.as_secs_f64() * 1000.0,
        execution.as_secs_f64() * 1000.0,
        context
            .running
            .retries
            .load(std::sync::atomic::Ordering::Relaxed),
    )];
    lines.extend(plan_lines(executed.as_ref(), true));
    lines.extend(join_lines(&context.joins(&attempt.plan)));
    lines.extend(pruning_lines(&reports));
    Ok(lines)
}

fn format(per_task: bool) -> DistributedMetricsFormat {
    match per_task {
        true => DistributedMetricsFormat::PerTask,
        false => DistributedMetricsFormat::Aggregated,
    }
}

/// Runs the query and counts its rows; they go nowhere, so a lost worker can always be made up for.
async fn run_to_end(
    context: &StatementContext,
    planned: &Planned,
    first: Attempt,
) -> Result<(Attempt, usize)> {
    let mut losses = Losses::none(context);
    let mut attempt = first;
    loop {
        context.running.set_state(QueryState::Running);
        let mut rows = 0;
        let result = async {
            let mut stream = context.engine.execution().run(&attempt);
            while let Some(batch) = stream.next().await {
                rows += batch?.num_rows();
            }
            Ok(())
        }
        .await;
        match result {
            Ok(()) => {
                context.running.set_state(QueryState::Finishing);
                return Ok((attempt, rows));
            }
            Err(error) => losses.after(context, error, || true)?,
        }
        drop(attempt);
        attempt = context.next_attempt(planned, losses.workers()).await?;
    }
}

fn plan_lines(plan: &dyn ExecutionPlan, metrics: bool) -> Vec<String> {
    display_plan_ascii(plan, metrics)
        .lines()
        .map(str::to_owned)
        .collect()
}

/// How the rows of each join meet.
fn join_lines(joins: &[JoinDistribution]) -> Vec<String> {
    let mut lines = Vec::new();
    for join in joins {
        let on = match join.on.is_empty() {
            true => String::new(),
            false => format!(" on {}", join.on),
        };
        let moved = match join.moved_bytes {
            Some(0) => "nothing is sent".to_owned(),
            Some(count) => format!("about {} are sent", bytes(count)),
            None => "how much is sent is not known".to_owned(),
        };
        lines.extend([
            String::new(),
            format!("join of {} and {}{on}", join.left, join.right),
            format!("  distribution  {}: {}", join.distribution, join.reason),
            format!("  network       {moved}"),
        ]);
    }
    lines
}

fn pruning_lines(reports: &[ScanReport]) -> Vec<String> {
    let mut lines = Vec::new();
    for report in reports {
        lines.push(String::new());
        lines.extend(scan_lines(report));
    }
    lines
}

/// What one scan looked at and could leave out.
pub(super) fn scan_lines(report: &ScanReport) -> Vec<String> {
    let snapshot = match report.snapshot_id {
        Some(id) => format!("snapshot {id}"),
        None => "no snapshot".to_owned(),
    };
    let mut lines = vec![
        format!(
            "scan of {}.{}.{} ({snapshot})",
            report.catalog, report.database, report.table
        ),
        format!("  manifests   {}", counted(report.manifests)),
        format!(
            "  files       {}, {} rows, {}",
            counted(report.files),
            report.rows_in_files,
            bytes(report.data_in_bytes)
        ),
    ];
    if report.files_answered > 0 {
        lines.push(format!(
            "  answered    {} files from metadata",
            report.files_answered
        ));
    }
    if report.delete_files.total > 0 {
        let mut line = format!("  deletes     {}", counted(report.delete_files));
        if report.rows_deleted > 0 {
            line += &format!(", {} rows left out", report.rows_deleted);
        }
        lines.push(line);
    }
    if report.row_groups.total > 0 {
        lines.push(format!("  row groups  {}", counted(report.row_groups)));
    }
    if report.page_rows_skipped > 0 {
        lines.push(format!(
            "  pages       {} rows skipped by the page index",
            report.page_rows_skipped
        ));
    }
    if report.rows_read > 0 || report.bytes_read > 0 {
        lines.push(format!(
            "  read        {} rows, {}, {} files opened",
            report.rows_read,
            bytes(report.bytes_read),
            report.files_opened
        ));
    }
    if !report.filter.is_empty() {
        lines.push(format!("  filter      {}", report.filter));
    }
    if !report.non_part_filter_cols.is_empty() {
        lines.push(format!(
            "  not by partition: {}",
            report.non_part_filter_cols.join(", ")
        ));
    }
    lines
}

fn counted(counts: Counts) -> String {
    format!(
        "{} of {} kept, {} skipped",
        counts.kept, counts.total, counts.skipped
    )
}

/// A size for people: `512 B`, `1.5 MiB`.
fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut size = count as f64;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{count} B"),
        _ => format!("{size:.1} {}", UNITS[unit]),
    }
}

const ESTIMATE: &[Column] = &[
    text("Catalog"),
    text("Database"),
    text("Table"),
    uint("Files"),
    uint("Files_total"),
    uint("Rows"),
    uint("Bytes"),
];

/// The columns of an EXPLAIN, known before it runs.
pub(super) fn schema(mode: ExplainMode) -> SchemaRef {
    match mode {
        ExplainMode::Estimate => RowSet::new(ESTIMATE, Vec::new()).schema(),
        _ => lines(Vec::new()).schema(),
    }
}

/// A row per scanned table and the totals, from metadata alone: no worker is needed.
async fn estimated(context: &StatementContext, query: &Query) -> Result<RowSet> {
    let planned = context.plan_locally(query).await?;
    let attempt = context.first_plan(&planned).await?;
    let scans = planned_reports(&planned.catalogs, &attempt.plan);
    let mut totals = [0_u64; 4];
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for scan in scans {
        let numbers = [
            scan.files.kept.saturating_sub(scan.files_answered),
            scan.files.total,
            scan.rows_in_files,
            scan.data_in_bytes,
        ];
        for (total, number) in totals.iter_mut().zip(numbers) {
            *total += number;
        }
        let mut row = vec![scan.catalog.into(), scan.database.into(), scan.table.into()];
        row.extend(numbers.map(Cell::UInt));
        rows.push(row);
    }
    let mut total = vec![Cell::Null, Cell::Null, "TOTAL".into()];
    total.extend(totals.map(Cell::UInt));
    rows.push(total);
    Ok(RowSet::new(ESTIMATE, rows))
}

#[cfg(test)]
mod tests {
    use tarn_planner::Distribution;

    use super::*;

    #[test]
    fn joins_are_told_with_their_reason_and_their_bytes() {
        let join = JoinDistribution {
            distribution: Distribution::BucketShuffle,
            left: "users".into(),
            right: "events".into(),
            on: "id@0 = user_id@1".into(),
            reason: "events is read by 16 buckets of its keys".into(),
            moved_bytes: Some(2048),
            group: 1,
        };
        assert_eq!(
            join_lines(&[join]),
            [
                "",
                "join of users and events on id@0 = user_id@1",
                "  distribution  BUCKET_SHUFFLE: events is read by 16 buckets of its keys",
                "  network       about 2.0 KiB are sent",
            ]
        );
    }

    #[test]
    fn pruning_is_told_level_by_level() {
        let report = ScanReport {
            catalog: "lake".into(),
            database: "redbi".into(),
            table: "events".into(),
            snapshot_id: Some(7),
            manifests: Counts::kept_of(1, 3),
            files: Counts::kept_of(2, 14),
            delete_files: Counts::kept_of(1, 4),
            rows_deleted: 20,
            rows_in_files: 5000,
            data_in_bytes: 1_572_864,
            filter: "day = '2026-01-01'".into(),
            ..ScanReport::default()
        };
        assert_eq!(
            scan_lines(&report),
            [
                "scan of lake.redbi.events (snapshot 7)",
                "  manifests   1 of 3 kept, 2 skipped",
                "  files       2 of 14 kept, 12 skipped, 5000 rows, 1.5 MiB",
                "  deletes     1 of 4 kept, 3 skipped, 20 rows left out",
                "  filter      day = '2026-01-01'",
            ]
        );
    }
}
