//! What Tarn writes, as others read it.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{Client, Cluster, package_root, run_python};

/// Makes a table of all types that SQL engines share, partitioned by every transform, with three rows: extremes, ordinary
/// values, and nulls.
async fn write_all_types(client: &mut Client, table: &str, version: u8) {
    client
        .query(&format!(
            "CREATE TABLE {table} (id BIGINT NOT NULL, ok BOOLEAN, i INT, f FLOAT, d DOUBLE, small DECIMAL(9,2), \
             large DECIMAL(38,10), day DATE, at TIMESTAMP, tz TIMESTAMP WITH TIME ZONE, s STRING, u UUID, x FIXED(4), b BINARY, \
             list ARRAY<INT>, pairs MAP<STRING, BIGINT>, nested STRUCT<a: INT, b: STRUCT<c: STRING>>) \
             PARTITION BY (ok, bucket(4, id), truncate(2, s), year(day), month(at), hour(tz)) \
             TBLPROPERTIES ('format-version' = '{version}')"
        ))
        .await;
    client
        .query(&format!(
            "INSERT INTO {table} VALUES \
             (1, true, -2147483648, CAST('-Infinity' AS FLOAT), CAST('NaN' AS DOUBLE), -9999999.99, \
              -1234567890123456789012345678.0123456789, '0001-01-01', '1969-12-31 23:59:59.999999', \
              '1969-12-31 23:00:00', 'ärger', '00000000-0000-0000-0000-0000000000ff', X'00ff00ff', X'', \
              make_array(1, NULL, 3), map(make_array('k'), make_array(7)), \
              named_struct('a', 1, 'b', named_struct('c', 'deep'))), \
             (2, false, 2147483647, 1.5, -0.25, 0.01, 0.0000000001, '2024-02-29', '2024-02-29 12:34:56.000001', \
              '2024-02-29 12:34:56', 'alps', 'ffffffff-ffff-ffff-ffff-ffffffffffff', X'01020304', X'0102', \
              make_array(2), map(make_array('l'), make_array(8)), \
              named_struct('a', 2, 'b', named_struct('c', 'deeper'))), \
             (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
        ))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_version_three_are_written_and_their_rows_numbered() {
    let server = Cluster::server();
    let mut client = server.client().await;
    client.query("CREATE DATABASE d").await;
    client
        .query(
            "CREATE TABLE d.t (id BIGINT, at TIMESTAMP_NS, tz TIMESTAMPTZ_NS) PARTITION BY (day(at)) \
             ORDER BY (at, bucket(4, id) DESC) TBLPROPERTIES ('format-version' = '3')",
        )
        .await;
    client
        .query(
            "INSERT INTO d.t VALUES (1, '2024-02-29 12:34:56.123456789', '1969-12-31 23:59:59.999999999'), (2, NULL, NULL)",
        )
        .await;
    client
        .query("INSERT INTO d.t (id) SELECT id + 10 FROM d.t")
        .await;
    assert_eq!(
        client
            .query("SELECT id, CAST(at AS CHAR), CAST(tz AS CHAR) FROM d.t WHERE at IS NOT NULL")
            .await,
        [[
            "1",
            "2024-02-29 12:34:56.123456789",
            "1969-12-31 23:59:59.999999999Z"
        ]]
    );
    let rows = client
        .query("SELECT id, _row_id, _last_updated_sequence_number FROM d.t ORDER BY id")
        .await;
    let numbered: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row[0].as_str(), row[2].as_str()))
        .collect();
    assert_eq!(numbered, [("1", "1"), ("2", "1"), ("11", "2"), ("12", "2")]);
    let mut row_ids: Vec<&str> = rows.iter().map(|row| row[1].as_str()).collect();
    // Each commit numbers on from the last.
    row_ids[..2].sort_unstable();
    row_ids[2..].sort_unstable();
    assert_eq!(row_ids, ["0", "1", "2", "3"]);

    let read = run_python(
        "other_readers.py",
        &[server.dir().to_str().expect("UTF-8"), "d.t", "id"],
    );
    let read: Value = serde_json::from_str(&read).expect("JSON");
    assert_eq!(
        read["rows"],
        json!([
            [
                "1",
                "2024-02-29 12:34:56.123456789",
                "1969-12-31 23:59:59.999999999"
            ],
            ["2", null, null],
            ["11", null, null],
            ["12", null, null],
        ])
    );
    assert_eq!(
        read["order"],
        "[\n  2 ASC NULLS FIRST\n  bucket[4](1) DESC NULLS LAST\n]"
    );
    for file in read["files"].as_array().expect("a list") {
        assert_eq!(file["order"], 1, "{file}");
    }
}

/// Needs Spark (4.1.4, from PyPI), the Iceberg runtime and the SQLite driver (from Maven): `TARN_TEST_SPARK` is a folder with
/// a Python environment `venv` and the jars in `jars`.
///
/// ```text
/// python3 -m venv $TARN_TEST_SPARK/venv
/// $TARN_TEST_SPARK/venv/bin/pip install -r tests/clients/spark_requirements.txt
/// for artifact in org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0 org.xerial:sqlite-jdbc:3.49.1.0; do
///   mvn -B dependency:copy -Dartifact=$artifact -DoutputDirectory=$TARN_TEST_SPARK/jars
/// done
/// ```
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Spark: run by hand, as its comment says"]
async fn spark_reads_what_tarn_wrote() {
    let server = Cluster::server();
    let mut client = server.client().await;
    client.query("CREATE DATABASE d").await;
    for version in [1, 2, 3] {
        write_all_types(&mut client, &format!("d.v{version}"), version).await;
    }
    let mut queries = Vec::new();
    for version in [1, 2, 3] {
        let table = format!("lake.d.v{version}");
        queries.push(format!("SELECT * FROM {table} ORDER BY id"));
        // Spark prunes by the metrics and partition values that Tarn wrote.
        for filter in [
            "ok",
            "NOT ok",
            "i < 0",
            "small = 0.01BD",
            "day = DATE '2024-02-29'",
            "at < TIMESTAMP_NTZ '1970-01-01 00:00:00'",
            "tz = TIMESTAMP '2024-02-29 12:34:56Z'",
            "s LIKE 'är%'",
            "d < 0",
            "isnan(d)",
            "i IS NULL",
        ] {
            queries.push(format!("SELECT id FROM {table} WHERE {filter} ORDER BY id"));
        }
        queries.push(format!(
            "SELECT sum(record_count), count(DISTINCT partition) FROM {table}.files"
        ));
    }
    queries.push(
        "SELECT id, _row_id, _last_updated_sequence_number FROM lake.d.v3 ORDER BY _row_id"
            .to_string(),
    );
    let answers = spark(&server, &queries);

    let per_version = answers.len() / 3;
    for version in 0..3 {
        let of_version = &answers[version * per_version..][..per_version];
        let nulls: Vec<Value> = [json!("3")]
            .into_iter()
            .chain(vec![Value::Null; 16])
            .collect();
        assert_eq!(
            of_version[0],
            json!([
                [
                    "1",
                    "True",
                    "-2147483648",
                    "-inf",
                    "nan",
                    "-9999999.99",
                    "-1234567890123456789012345678.0123456789",
                    "0001-01-01",
                    "1969-12-31 23:59:59.999999",
                    "1969-12-31 23:00:00",
                    "ärger",
                    "00000000-0000-0000-0000-0000000000ff",
                    "00ff00ff",
                    "",
                    "[1, None, 3]",
                    "{'k': 7}",
                    "Row(a=1, b=Row(c='deep'))"
                ],
                [
                    "2",
                    "False",
                    "2147483647",
                    "1.5",
                    "-0.25",
                    "0.01",
                    "0.0000000001",
                    "2024-02-29",
                    "2024-02-29 12:34:56.000001",
                    "2024-02-29 12:34:56",
                    "alps",
                    "ffffffff-ffff-ffff-ffff-ffffffffffff",
                    "01020304",
                    "0102",
                    "[2]",
                    "{'l': 8}",
                    "Row(a=2, b=Row(c='deeper'))"
                ],
                nulls,
            ]),
            "version {}",
            version + 1
        );
        let ids = ["1", "2", "1", "2", "2", "1", "2", "1", "2", "1", "3"];
        for (n, id) in ids.into_iter().enumerate() {
            assert_eq!(
                of_version[n + 1],
                json!([[id]]),
                "{}",
                queries[version * per_version + n + 1]
            );
        }
        assert_eq!(of_version[per_version - 1], json!([["3", "3"]]));
    }
    let numbered = answers.last().expect("answers");
    let row_ids: Vec<&Value> = numbered
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| &row[1])
        .collect();
    assert_eq!(row_ids, ["0", "1", "2"]);
}

/// Spark's answers to queries, all values as text.
fn spark(server: &Cluster, queries: &[String]) -> Vec<Value> {
    let folder = std::env::var("TARN_TEST_SPARK").expect("TARN_TEST_SPARK names a folder");
    let jars: Vec<String> = std::fs::read_dir(format!("{folder}/jars"))
        .expect("the folder has jars")
        .map(|jar| jar.expect("a jar").path().display().to_string())
        .collect();
    let mut process = Command::new(format!("{folder}/venv/bin/python"))
        .arg(package_root().join("tests/clients/spark_reads.py"))
        .arg(server.dir())
        .arg(jars.join(","))
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let text = serde_json::to_vec(queries).expect("JSON");
    let mut input = process.stdin.take().expect("it is piped");
    input.write_all(&text).expect("queries are sent");
    drop(input);
    let output = process.wait_with_output().expect("Spark ends");
    assert!(
        output.status.success(),
        "Spark ended with {}",
        output.status
    );
    serde_json::from_slice(&output.stdout).expect("JSON")
}
