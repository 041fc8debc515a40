//! Runs the queries on one cluster by both protocols, and compares.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value as Json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::query::{Answer, Query};
use super::value::{Row, Value};
use crate::harness::{Bucket, Cluster, Settings, eventually, package_root, python};

/// Every query by both protocols on both topologies, which takes twice the time.
const IN_FULL: &str = "FIXTURES_IN_FULL";

/// Queries that run at the same time by one protocol.
const CONNECTIONS: usize = 4;

/// What is wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An error where rows were right.
    Refused,
    /// Other rows than the reference's, or rows where an error was right.
    Wrong,
    /// More files or manifests than the reference keeps.
    Files,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused => "REFUSED",
            Self::Wrong => "WRONG",
            Self::Files => "FILES",
        }
    }
}

#[derive(Debug)]
pub struct Failure {
    pub id: String,
    pub kind: Kind,
    /// Topology and protocol.
    pub place: String,
    pub reason: String,
}

/// An answer by one of the protocols.
type Found = Result<(Vec<String>, Vec<Row>), String>;

/// All failures of a cluster of that many workers (0 is one process) over the fixtures.
pub async fn run_all(
    queries: &[Query],
    bucket: &Bucket,
    workers: usize,
    settings: Settings,
    first: &[&str],
) -> Vec<Failure> {
    let copy = tempfile::tempdir().expect("a temporary folder");
    let cluster = match workers {
        0 => Cluster::server_with(settings),
        _ => Cluster::start_with(workers, settings).await,
    };
    make_catalog(&cluster, &copy, bucket).await;
    let mut client = cluster.client().await;
    for statement in first {
        client.query(statement).await;
    }
    let topology = match workers {
        0 => "server",
        _ => "workers",
    };
    // What a protocol does to values does not depend on where they come from: each query goes by one protocol to one
    // topology, and by the other to the other.
    let in_full = std::env::var_os(IN_FULL).is_some();
    let [flight, mysql] = [0, 1].map(|protocol| -> Vec<&Query> {
        let asked = queries.iter().enumerate().filter(|(at, _)| {
            let by_flight = (at % 2 == 0) == (workers == 0);
            in_full || by_flight == (protocol == 0)
        });
        asked.map(|(_, query)| query).collect()
    });
    let (by_flight, by_mysql) = tokio::join!(
        flight_answers(&cluster, &flight),
        mysql_answers(&cluster, &mysql)
    );
    let mut failures = vec![];
    for (protocol, asked, answers) in [("flight", &flight, by_flight), ("mysql", &mysql, by_mysql)]
    {
        for query in asked {
            let found = answers
                .get(&query.id)
                .unwrap_or_else(|| panic!("no answer to {} by {protocol}", query.id));
            if let Some((kind, reason)) = difference(query, found) {
                failures.push(Failure {
                    id: query.id.clone(),
                    kind,
                    place: format!("{topology} {protocol}"),
                    reason,
                });
            }
        }
    }
    failures.extend(files_failures(&cluster, queries, topology).await);
    failures
}

/// A catalog over a copy of the fixtures' SQLite file.
async fn make_catalog(cluster: &Cluster, copy: &TempDir, bucket: &Bucket) {
    let file = copy.path().join("catalog.db");
    let fixture = package_root().join("tests/fixtures/iceberg/catalog.db");
    std::fs::copy(fixture, &file).expect("the catalog is copied");
    let mut client = cluster.client().await;
    client
        .query(&format!(
            "CREATE CATALOG fixtures PROPERTIES ('type' = 'sql', 'uri' = 'sqlite:{}', 'catalog-name' = 'lake', \
             'warehouse' = 's3://fixtures/warehouse', 's3.endpoint' = '{}', 's3.access-key-id' = 'any', \
             's3.secret-access-key' = 'any', 's3.region' = 'us-east-1', 's3.path-style-access' = 'true')",
            file.display(),
            bucket.endpoint
        ))
        .await;
}

async fn flight_answers(cluster: &Cluster, queries: &[&Query]) -> HashMap<String, Found> {
    let next = AtomicUsize::new(0);
    let connection = async || {
        let mut client = cluster.client().await;
        client.query("SET CATALOG fixtures").await;
        let mut answers = vec![];
        while let Some(query) = queries.get(next.fetch_add(1, Ordering::Relaxed)) {
            let batches = client.batches(&query.sql).await;
            answers.push((
                query.id.clone(),
                batches.and_then(|b| of_batches(query, &b)),
            ));
        }
        answers
    };
    let connections = (0..CONNECTIONS).map(|_| connection());
    let answers = futures::future::join_all(connections).await;
    answers.into_iter().flatten().collect()
}

fn of_batches(query: &Query, batches: &[arrow::array::RecordBatch]) -> Found {
    let Answer::Rows { types, .. } = &query.answer else {
        return Ok((vec![], vec![]));
    };
    let (mut names, mut rows) = (vec![], vec![]);
    for batch in batches {
        names = batch
            .schema()
            .fields()
            .iter()
            .map(|f| f.name().clone())
            .collect();
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().zip(types);
            rows.push(
                cells
                    .map(|(column, of)| Value::of_arrow(column, row, of))
                    .collect::<Result<_, _>>()?,
            );
        }
    }
    Ok((names, rows))
}

async fn mysql_answers(cluster: &Cluster, queries: &[&Query]) -> HashMap<String, Found> {
    let mut child = tokio::process::Command::new(python())
        .arg(package_root().join("tests/clients/mysql_queries.py"))
        .args([cluster.mysql_port().to_string(), CONNECTIONS.to_string()])
        .arg("SET CATALOG fixtures")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("Python starts");
    let asked: String = queries
        .iter()
        .map(|query| serde_json::json!({"id": query.id, "sql": query.sql}).to_string() + "\n")
        .collect();
    let mut input = child.stdin.take().expect("piped");
    let mut output = child.stdout.take().expect("piped");
    input.write_all(asked.as_bytes()).await.expect("it reads");
    drop(input);
    let mut printed = String::new();
    output
        .read_to_string(&mut printed)
        .await
        .expect("it writes");
    assert!(child.wait().await.expect("it ends").success(), "{printed}");
    let by_id: HashMap<&str, &Query> = queries.iter().map(|q| (q.id.as_str(), *q)).collect();
    printed
        .lines()
        .map(|line| {
            let answer: Json = serde_json::from_str(line).expect("a line is JSON");
            let id = answer["id"].as_str().expect("an id");
            (id.to_owned(), of_printed(by_id[id], &answer))
        })
        .collect()
}

fn of_printed(query: &Query, answer: &Json) -> Found {
    if let Some(error) = answer["error"].as_str() {
        return Err(error.to_owned());
    }
    let Answer::Rows { types, .. } = &query.answer else {
        return Ok((vec![], vec![]));
    };
    let names = answer["columns"].as_array().into_iter().flatten();
    let rows = answer["rows"].as_array().into_iter().flatten();
    Ok((
        names
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect(),
        rows.map(|row| {
            let cells = row.as_array().into_iter().flatten().zip(types);
            cells.map(|(cell, of)| Value::of_mysql(cell, of)).collect()
        })
        .collect::<Result<_, String>>()?,
    ))
}

fn difference(query: &Query, found: &Found) -> Option<(Kind, String)> {
    match (&query.answer, found) {
        (Answer::Fails, Err(_)) => None,
        (Answer::Fails, Ok(_)) => Some((Kind::Wrong, "should fail".to_owned())),
        (Answer::Rows { .. }, Err(error)) => Some((Kind::Refused, error.clone())),
        (
            Answer::Rows {
                names,
                rows,
                ordered,
                ..
            },
            Ok((found_names, found_rows)),
        ) => {
            if !found_names.is_empty() && names != found_names {
                let reason = format!("columns {found_names:?}, not {names:?}");
                return Some((Kind::Wrong, reason));
            }
            let (mut expected, mut found) = (rows.clone(), found_rows.clone());
            if !ordered {
                expected.sort();
                found.sort();
            }
            (expected != found).then(|| (Kind::Wrong, first_difference(&expected, &found)))
        }
    }
}

fn first_difference(expected: &[Row], found: &[Row]) -> String {
    let at = expected
        .iter()
        .zip(found)
        .position(|(expected, found)| expected != found)
        .unwrap_or(expected.len().min(found.len()));
    format!(
        "{} rows, not {}; the first that differs, {at}, is {:?}, not {:?}",
        found.len(),
        expected.len(),
        found.get(at),
        expected.get(at)
    )
}

/// Plans that keep more than the reference does, by the scan reports in the audit.
async fn files_failures(cluster: &Cluster, queries: &[Query], topology: &str) -> Vec<Failure> {
    // An answer is there before its record is written, and a statement that was refused may have none.
    let mut audit = vec![];
    eventually("the audit has come to rest", async || {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let before = std::mem::replace(&mut audit, cluster.audit());
        audit.len() == before.len()
    })
    .await;
    let by_id: HashMap<&str, &Json> = audit
        .iter()
        .filter(|record| record["outcome"] == "ok")
        .filter_map(|record| Some((id_of(record)?, record)))
        .collect();
    let mut failures = vec![];
    for query in queries {
        let (Some(files), Some(record)) = (&query.files, by_id.get(query.id.as_str())) else {
            continue;
        };
        let scans = record["scans"].as_array().into_iter().flatten();
        let Some(scan) = scans
            .into_iter()
            .find(|scan| scan["table"] == query.table.as_str())
        else {
            continue;
        };
        for (what, found, most) in [
            ("files in all", &scan["files"]["total"], files.total),
            ("files", &scan["files"]["kept"], files.kept),
            (
                "manifests",
                &scan["manifests"]["kept"],
                files.manifests_kept,
            ),
            (
                "delete files",
                &scan["deleteFiles"]["kept"],
                files.delete_files_kept,
            ),
        ] {
            if let (Some(found), Some(most)) = (found.as_u64(), most)
                && found > most
            {
                failures.push(Failure {
                    id: query.id.clone(),
                    kind: Kind::Files,
                    place: topology.to_owned(),
                    reason: format!(
                        "{found} {what}, the reference has {most}: {}",
                        scan["filter"]
                    ),
                });
            }
        }
    }
    failures
}

/// The id in the comment of a statement.
fn id_of(record: &Json) -> Option<&str> {
    let (_, rest) = record["statement"].as_str()?.split_once("/* ")?;
    Some(rest.split_once(" */")?.0)
}
