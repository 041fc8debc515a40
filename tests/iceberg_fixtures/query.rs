//! The queries of `tests/fixtures/iceberg/queries.jsonl`, and what is expected of each.

use arrow::temporal_conversions::timestamp_ms_to_datetime;
use serde::Deserialize;

use super::value::{Row, Type, Value};
use crate::harness::package_root;

/// A line of the file; its README says what the fields mean.
#[derive(Deserialize)]
struct Line {
    id: String,
    namespace: String,
    table: String,
    sql: Option<String>,
    time_travel: Option<TimeTravel>,
    #[serde(default)]
    columns: Vec<Column>,
    #[serde(default)]
    rows: Vec<Vec<serde_json::Value>>,
    #[serde(default)]
    ordered: bool,
    error: Option<String>,
    metadata_table: Option<String>,
    files_total: Option<u64>,
    files_after_pruning: Option<u64>,
    manifests_scanned: Option<u64>,
    delete_files_after_pruning: Option<u64>,
    no_pruning_reference: Option<serde_json::Value>,
}

/// Their files were counted before the table was written to for the last time.
const COUNTED_EARLIER: [&str; 1] = ["evolution.defaults_all"];

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum TimeTravel {
    SnapshotId(i64),
    Ref(String),
    TimestampMs(i64),
}

impl TimeTravel {
    /// As a clause that follows a table's name.
    fn sql(&self) -> String {
        match self {
            Self::SnapshotId(id) => format!("FOR VERSION AS OF {id}"),
            Self::Ref(name) => format!("FOR VERSION AS OF '{}'", name.replace('\'', "''")),
            Self::TimestampMs(at) => {
                let at = timestamp_ms_to_datetime(*at).expect("a time");
                format!(
                    "FOR TIMESTAMP AS OF '{}'",
                    at.format("%Y-%m-%d %H:%M:%S%.3f")
                )
            }
        }
    }
}

#[derive(Deserialize)]
struct Column {
    name: String,
    r#type: String,
}

pub struct Query {
    pub id: String,
    pub table: String,
    /// Has the id in a comment behind its first word, by which the audit's record is found.
    pub sql: String,
    pub answer: Answer,
    pub files: Option<Files>,
}

pub enum Answer {
    Fails,
    Rows {
        names: Vec<String>,
        types: Vec<Type>,
        rows: Vec<Row>,
        ordered: bool,
    },
}

/// How much of the table a plan may look at.
pub struct Files {
    /// Data files of the snapshot.
    pub total: Option<u64>,
    /// How many the reference implementation keeps.
    pub kept: Option<u64>,
    pub manifests_kept: Option<u64>,
    pub delete_files_kept: Option<u64>,
}

impl From<Line> for Query {
    fn from(line: Line) -> Self {
        let sql = line.sql.expect("lines without SQL are left out");
        let name = format!("{}.{}", line.namespace, line.table);
        let sql = match &line.time_travel {
            Some(travel) => sql.replacen(&name, &format!("{name} {}", travel.sql()), 1),
            None => sql,
        };
        let types: Vec<Type> = line
            .columns
            .iter()
            .map(|column| Type::parse(&column.r#type))
            .collect();
        let answer = match line.error {
            Some(_) => Answer::Fails,
            None => Answer::Rows {
                rows: line
                    .rows
                    .iter()
                    .map(|row| {
                        let cells = row.iter().zip(&types);
                        cells.map(|(cell, of)| Value::expected(cell, of)).collect()
                    })
                    .collect(),
                names: line.columns.into_iter().map(|column| column.name).collect(),
                types,
                ordered: line.ordered,
            },
        };
        let counted = line.metadata_table.is_none() && !COUNTED_EARLIER.contains(&line.id.as_str());
        let files = counted.then_some(Files {
            total: line.files_total,
            kept: line
                .files_after_pruning
                .filter(|_| line.no_pruning_reference.is_none()),
            manifests_kept: line
                .manifests_scanned
                .filter(|_| line.no_pruning_reference.is_none()),
            delete_files_kept: line
                .delete_files_after_pruning
                .filter(|_| line.no_pruning_reference.is_none()),
        });
        Self {
            sql: sql.replacen(' ', &format!(" /* {} */ ", line.id), 1),
            id: line.id,
            table: line.table,
            answer,
            files,
        }
    }
}

/// All queries; lines that only have statistics are left out.
pub fn queries() -> Vec<Query> {
    let file = package_root().join("tests/fixtures/iceberg/queries.jsonl");
    let text = std::fs::read_to_string(&file).expect("the queries are there");
    text.lines()
        .map(|line| serde_json::from_str::<Line>(line).expect("a line is a query"))
        .filter(|line| line.sql.is_some())
        .map(Query::from)
        .collect()
}
