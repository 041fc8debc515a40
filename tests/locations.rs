//! Tables that no catalog holds, where they are: local, on S3, behind HTTP.

use std::path::PathBuf;
use std::process::Command;

use crate::harness::{Bucket, Client, Cluster, Settings, package_root, run};

/// The metadata file of a fixture's current version.
fn current_metadata(table: &str) -> String {
    let folder = fixtures().join("warehouse").join(table).join("metadata");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the fixture is there")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".metadata.json"))
        .collect();
    names.sort();
    names.pop().expect("a metadata file")
}

fn fixtures() -> PathBuf {
    package_root().join("tests/fixtures/iceberg")
}

/// Rows of `deletes.dv`, which has deletion vectors: as Spark counts them.
async fn check_dv(client: &mut Client, from: &str) {
    let expected = dv_rows();
    assert_eq!(
        client.value(&format!("SELECT count(*) FROM {from}")).await,
        expected.to_string(),
        "{from}"
    );
}

/// How many rows Spark finds in `deletes.dv`.
fn dv_rows() -> usize {
    let text = std::fs::read_to_string(fixtures().join("queries.jsonl")).expect("the queries");
    let whole = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .find(|query| {
            let sql = query["sql"].as_str().unwrap_or_default();
            sql.starts_with("SELECT * FROM deletes.dv ORDER BY")
                || sql == "SELECT * FROM deletes.dv"
        })
        .expect("a query for the whole table");
    whole["rows"].as_array().expect("rows").len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_without_a_catalog_is_read_by_workers() {
    let bucket = Bucket::serve("fixtures", &fixtures()).await;
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("tarn.toml");
    std::fs::write(
        &config,
        format!(
            "[storage]\n\"s3.endpoint\" = \"{}\"\n\"s3.access-key-id\" = \"any\"\n\
             \"s3.secret-access-key\" = \"secret-of-the-test\"\n",
            bucket.endpoint
        ),
    )
    .expect("a file");
    // A scan of a byte or more goes to all workers.
    let settings = Settings::default()
        .with("TARN_CONFIG", config.to_str().expect("UTF-8"))
        .with("TARN_QUERY_SPREAD", "1");
    let cluster = Cluster::start_with(3, settings).await;
    let mut client = cluster.client().await;

    let file = current_metadata("deletes/dv");
    let location = format!("s3://fixtures/warehouse/deletes/dv/metadata/{file}");
    check_dv(&mut client, &format!("iceberg_scan('{location}')")).await;
    // An endpoint where nobody is, which the option replaces.
    check_dv(
        &mut client,
        &format!(
            "iceberg_scan('{location}', 's3.endpoint' => '{}')",
            bucket.endpoint
        ),
    )
    .await;

    client.query("CREATE DATABASE d").await;
    client
        .query("CREATE TABLE d.t PARTITION BY (k) AS SELECT value AS id, value % 5 AS k FROM range(0, 1000)")
        .await;
    client.query("INSERT INTO d.t VALUES (5000, 0)").await;
    let metadata = client
        .value(
            "SELECT file FROM d.t$metadata_log_entries ORDER BY timestamp DESC, file DESC LIMIT 1",
        )
        .await;
    let folder = metadata.split_once("/metadata/").expect("a table").0;
    let first = client
        .value("SELECT snapshot_id FROM d.t$snapshots WHERE parent_id IS NULL")
        .await;
    client.query("DROP TABLE d.t").await;
    for (from, rows) in [
        (format!("iceberg_scan('{folder}')"), "1001"),
        (
            format!("iceberg_scan('{metadata}') FOR VERSION AS OF {first}"),
            "1000",
        ),
    ] {
        assert_eq!(
            client
                .query(&format!(
                    "SELECT count(*), count(DISTINCT k), min(id) FROM {from} t"
                ))
                .await,
            [[rows, "5", "0"]],
            "{from}"
        );
    }
    let shown = format!(
        "{:?}",
        client
            .query("SELECT name, value FROM tarn.system.settings WHERE name LIKE 'storage%'")
            .await
    );
    assert!(
        shown.contains("s3.endpoint") && !shown.contains("secret-of-the-test"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_read_over_http() {
    // The same server, since to read S3 without a signature is to read files by GET and HEAD.
    let bucket = Bucket::serve("fixtures", &fixtures()).await;
    let cluster = Cluster::start_with(2, Settings::default().with("TARN_QUERY_SPREAD", "1")).await;
    let mut client = cluster.client().await;
    let file = current_metadata("deletes/dv");
    let folder = format!("{}/fixtures/warehouse/deletes/dv", bucket.endpoint);
    // Its metadata says s3://fixtures/warehouse/deletes/dv.
    check_dv(
        &mut client,
        &format!("iceberg_scan('{folder}/metadata/{file}', 'allow_moved_paths' => true)"),
    )
    .await;
    let error = client
        .error(&format!("SELECT count(*) FROM iceberg_scan('{folder}')"))
        .await;
    assert!(
        error.contains(&folder) && error.contains("name the metadata file"),
        "{error}"
    );
    let error = client
        .error(&format!(
            "SELECT * FROM iceberg_scan('{folder}/metadata/v7.metadata.json')"
        ))
        .await;
    assert!(error.contains("v7.metadata.json' is missing"), "{error}");
    client
        .query(&format!(
            "CREATE CATALOG web PROPERTIES ('type' = 'sql', 'uri' = 'sqlite:{}/web.db?mode=rwc', 'warehouse' = '{}/new')",
            cluster.dir().display(),
            bucket.endpoint
        ))
        .await;
    client.query("CREATE DATABASE web.d").await;
    let error = client.error("CREATE TABLE web.d.t AS SELECT 1 AS x").await;
    assert!(error.contains("read only"), "{error}");

    // A table that was copied as a whole is read where it is now.
    let copy = tempfile::tempdir().expect("a folder");
    let source = fixtures().join("warehouse/deletes/dv");
    run(Command::new("cp")
        .arg("-r")
        .arg(source)
        .arg(copy.path().join("dv")));
    let copied = copy.path().join("dv");
    check_dv(
        &mut client,
        &format!(
            "iceberg_scan('{}', allow_moved_paths => true)",
            copied.display()
        ),
    )
    .await;
}
