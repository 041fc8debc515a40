//! `ANALYZE TABLE`: distinct values, counted on the workers and committed as a statistics file.

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Int64Type, SchemaRef};
use datafusion::error::DataFusionError;
use futures::TryStreamExt;
use tarn_catalog::{NewSketch, PinnedTable, TableName, TableVersion};
use tarn_planner::functions::{THETA_SKETCH, has_theta_sketch, sketched_values};
use tarn_planner::statement::{Analyze, Query, Statement, parse_statement};

use super::call::to_the_end;
use super::ddl::writable;
use super::execute::Answer;
use super::show_create::quoted;
use crate::error::{Error, ErrorKind, Result};
use crate::planning::StatementContext;
use crate::processes::QueryState;
use crate::profile;
use crate::retry::Losses;
use crate::rows::{Column, RowSet, text};

/// MySQL's columns of maintenance statements.
const COLUMNS: &[Column] = &[
    text("Table"),
    text("Op"),
    text("Msg_type"),
    text("Msg_text"),
];

/// The columns of what it gives.
pub(super) fn schema() -> SchemaRef {
    RowSet::new(COLUMNS, Vec::new()).schema()
}

pub(super) async fn analyze(context: &StatementContext, analyze: &Analyze) -> Result<Answer> {
    let mut rows = Vec::new();
    for path in &analyze.tables {
        let name = context.resolve(path);
        writable(&name.catalog, &name.database)?;
        let message = analyze_table(context, &name, analyze).await?;
        rows.push(vec![
            format!("{}.{}", name.database, name.table).into(),
            "analyze".into(),
            "status".into(),
            message.into(),
        ]);
    }
    Ok(Answer::Rows(RowSet::new(COLUMNS, rows)))
}

async fn analyze_table(
    context: &StatementContext,
    name: &TableName,
    analyze: &Analyze,
) -> Result<String> {
    let catalog = context.engine.catalogs().get(&name.catalog)?;
    let described = catalog.table(&name.database, &name.table).await?;
    let columns = columns(&described, &analyze.columns)?;
    if columns.is_empty() {
        return Ok("it has no column that can be analyzed".to_owned());
    }
    if described.snapshot().is_none() {
        return Ok("it is empty".to_owned());
    }
    let query = query(name, &columns, analyze.sample_percent)?;
    let planned = context.plan(&query).await?;
    // The snapshot that the query reads, which may be newer than the one above.
    let read = planned
        .catalogs
        .iceberg_table(name, &TableVersion::Current)
        .await?;
    let pinned = read.pinned().clone();
    let mut attempt = context.first_attempt(&planned).await?;
    let mut losses = Losses::none(context);
    let batches: Vec<RecordBatch> = loop {
        context.running.set_state(QueryState::Running);
        let stream = context.engine.execution().run(&attempt);
        let result: Result<Vec<RecordBatch>, DataFusionError> = stream.try_collect().await;
        match result {
            Ok(batches) => break batches,
            Err(error) => losses.after(context, error, || true)?,
        }
        drop(attempt);
        attempt = context.next_attempt(&planned, losses.workers()).await?;
    };
    context.running.set_state(QueryState::Finishing);
    profile::finish(context, &planned.catalogs, &attempt.plan, 1, true).await;
    let sketches = sketches(&batches, &columns, &pinned, analyze.sample_percent)?;
    let counted = sketches.len();
    // In a task of its own: a client that goes away now does not cut the commit in two.
    to_the_end(async move { catalog.set_statistics(&pinned, sketches).await }).await?;
    Ok(match counted == columns.len() {
        true => "OK".to_owned(),
        false => format!("OK, {counted} of {} columns have values", columns.len()),
    })
}

/// A column to analyze.
struct Analyzed {
    name: String,
    field_id: i32,
}

fn columns(table: &PinnedTable, wanted: &[String]) -> Result<Vec<Analyzed>> {
    let schema = table.schema();
    let arrow = table.arrow_schema();
    let fields = schema.as_struct().fields().iter().zip(arrow.fields());
    if wanted.is_empty() {
        return Ok(fields
            .filter(|(_, arrow)| has_theta_sketch(arrow.data_type()))
            .map(|(field, _)| Analyzed {
                name: field.name.clone(),
                field_id: field.id,
            })
            .collect());
    }
    let fields: Vec<_> = fields.collect();
    let mut columns: Vec<Analyzed> = Vec::new();
    for name in wanted {
        let found = fields
            .iter()
            .find(|(field, _)| field.name == *name)
            .or_else(|| {
                fields
                    .iter()
                    .find(|(field, _)| field.name.to_lowercase() == name.to_lowercase())
            });
        let Some((field, arrow)) = found else {
            return Err(Error::new(
                ErrorKind::NoSuchColumn,
                format!("Unknown column '{name}' in '{}'", table.name()),
            ));
        };
        if !has_theta_sketch(arrow.data_type()) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "column '{name}' is of a nested type, whose distinct values are not counted"
                ),
            ));
        }
        if !columns.iter().any(|known| known.field_id == field.id) {
            columns.push(Analyzed {
                name: field.name.clone(),
                field_id: field.id,
            });
        }
    }
    Ok(columns)
}

fn query(name: &TableName, columns: &[Analyzed], sample_percent: Option<f64>) -> Result<Query> {
    let sketches: Vec<String> = columns
        .iter()
        .map(|column| format!("{THETA_SKETCH}({})", quoted(&column.name)))
        .collect();
    let counts: Vec<String> = columns
        .iter()
        .map(|column| format!("count({})", quoted(&column.name)))
        .collect();
    let sample = match sample_percent {
        Some(percent) => format!(" WHERE rand() < {}", percent / 100.0),
        None => String::new(),
    };
    let sql = format!(
        "SELECT {}, {} FROM {}.{}.{}{sample}",
        counts.join(", "),
        sketches.join(", "),
        quoted(&name.catalog),
        quoted(&name.database),
        quoted(&name.table),
    );
    match parse_statement(&sql) {
        Ok(parsed) => match parsed.statement {
            Statement::Query(query) => Ok(query),
            other => Err(internal(format!("it is planned as {}", other.kind()))),
        },
        Err(error) => Err(internal(error.to_string())),
    }
}

fn internal(reason: String) -> Error {
    Error::new(
        ErrorKind::Internal,
        format!("the table cannot be analyzed: {reason}"),
    )
}

/// The sketches of the one row that the query gives; columns without values have none.
fn sketches(
    batches: &[RecordBatch],
    columns: &[Analyzed],
    table: &PinnedTable,
    sample_percent: Option<f64>,
) -> Result<Vec<NewSketch>> {
    let Some(batch) = batches.iter().find(|batch| batch.num_rows() > 0) else {
        return Err(internal("its query gave no row".to_owned()));
    };
    if batch.num_columns() != 2 * columns.len() {
        return Err(internal("its query gave other columns".to_owned()));
    }
    let mut sketches = Vec::new();
    for (place, column) in columns.iter().enumerate() {
        let counts = batch.column(place).as_primitive_opt::<Int64Type>();
        let values = counts.map_or(0, |counts| counts.value(0)) as f64;
        let bytes = batch.column(columns.len() + place).as_binary_opt::<i32>();
        let Some(bytes) = bytes.filter(|bytes| bytes.is_valid(0)) else {
            return Err(internal(format!("column '{}' has no sketch", column.name)));
        };
        let sketch = bytes.value(0).to_vec();
        let seen = sketched_values(&sketch)?;
        if values < 1.0 || seen == 0 {
            continue;
        }
        let distinct = match sample_percent {
            // A sketch's estimate may be above the number of values.
            None => (seen as f64).min(values),
            Some(percent) => whole_distinct(seen as f64, percent / 100.0, values * 100.0 / percent),
        };
        tracing::debug!(table = %table.name(), column = column.name, distinct, "analyzed");
        sketches.push(NewSketch {
            field_id: column.field_id,
            distinct: distinct.round() as u64,
            sketch,
        });
    }
    Ok(sketches)
}

/// How many distinct values `rows` values have of which a part was looked at and `seen` were met, if all are equally
/// frequent: of `d` values, each is met with probability `1 - (1 - part)^(rows / d)`.
fn whole_distinct(seen: f64, part: f64, rows: f64) -> f64 {
    let (mut low, mut high) = (seen.min(rows), rows);
    for _ in 0..60 {
        let distinct = (low + high) / 2.0;
        let met = distinct * (1.0 - (1.0 - part).powf(rows / distinct));
        match met < seen {
            true => low = distinct,
            false => high = distinct,
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= b * 0.01, "{a}, not {b}");
    }

    #[test]
    fn a_sample_tells_of_the_whole() {
        // Keys: as many as rows, so a tenth of them is met.
        near(whole_distinct(1000.0, 0.1, 10_000.0), 10_000.0);
        // 50 values, all met.
        near(whole_distinct(50.0, 0.1, 1_000_000.0), 50.0);
        // 1000 values, each in 10 of 10,000 rows: 1 - 0.9^10 = 65.13% are met.
        near(whole_distinct(651.3, 0.1, 10_000.0), 1000.0);
        near(whole_distinct(100.0, 1.0, 10_000.0), 100.0);
    }
}
