//! Tables that no catalog holds, by `iceberg_scan`.

use datafusion::common::ScalarValue;
use tarn_coordinator::ErrorKind;

use crate::harness::{Harness, collect};

/// `t(id)` of two commits: its folder, its two snapshots and its last metadata file.
async fn two_commits(harness: &Harness) -> (String, [String; 2], String) {
    harness.done("CREATE TABLE t (id BIGINT)").await;
    harness.done("INSERT INTO t VALUES (1)").await;
    harness.done("INSERT INTO t VALUES (2)").await;
    let snapshots = harness
        .column("SELECT snapshot_id FROM t$snapshots ORDER BY parent_id IS NOT NULL")
        .await;
    let files = harness
        .column("SELECT file FROM t$metadata_log_entries ORDER BY timestamp, file")
        .await;
    let file = files.last().expect("a metadata file").clone();
    let folder = file.split_once("/metadata/").expect("a table").0.to_owned();
    (folder, [snapshots[0].clone(), snapshots[1].clone()], file)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_read_by_its_folder_or_by_a_metadata_file() {
    let harness = Harness::start().await;
    let (folder, _, file) = two_commits(&harness).await;
    let path = folder.trim_start_matches("file://");
    for location in [&folder, &format!("{folder}/"), &file, path] {
        let rows = harness
            .column(&format!(
                "SELECT ID FROM iceberg_scan('{location}') ORDER BY iceberg_scan.id"
            ))
            .await;
        assert_eq!(rows, ["1", "2"], "{location}");
    }
    let joined = format!(
        "SELECT a.id, b.id FROM ICEBERG_SCAN('{folder}') a JOIN iceberg_scan(\"{file}\") AS b ON a.id + 1 = b.id"
    );
    assert_eq!(harness.rows(&joined).await.rows, [["1", "2"]]);
    harness.done("DROP TABLE t").await;
    assert_eq!(
        harness
            .column(&format!(
                "WITH c AS (SELECT * FROM iceberg_scan('{folder}')) SELECT count(*) FROM c"
            ))
            .await,
        ["2"]
    );
    harness
        .done(&format!(
            "CREATE TABLE copy AS SELECT id * 10 AS id FROM iceberg_scan('{folder}')"
        ))
        .await;
    assert_eq!(harness.column("SELECT sum(id) FROM copy").await, ["30"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_and_metadata_tables_of_a_location() {
    let harness = Harness::start().await;
    let (folder, [first, second], file) = two_commits(&harness).await;
    for (version, rows) in [
        (format!("FOR VERSION AS OF {first}"), vec!["1"]),
        (format!("FOR VERSION AS OF {second} x"), vec!["1", "2"]),
        ("FOR VERSION AS OF 'main' AS x".to_owned(), vec!["1", "2"]),
        (format!("VERSION AS OF {first}"), vec!["1"]),
        (
            "FOR TIMESTAMP AS OF now() + INTERVAL 1 DAY".to_owned(),
            vec!["1", "2"],
        ),
        (
            "FOR SYSTEM_TIME AS OF '2999-01-01' x WHERE id > 1".to_owned(),
            vec!["2"],
        ),
    ] {
        for location in [&folder, &file] {
            let query =
                format!("SELECT id FROM iceberg_scan('{location}', 'catalog' => 'lake') {version}");
            let mut found = harness.column(&query).await;
            found.sort();
            assert_eq!(found, rows, "{query}");
        }
    }
    let both = format!(
        "SELECT n.id FROM iceberg_scan('{folder}') n LEFT JOIN iceberg_scan('{folder}') FOR VERSION AS OF {first} o \
         ON n.id = o.id WHERE o.id IS NULL"
    );
    assert_eq!(harness.column(&both).await, ["2"]);
    let snapshots = format!(
        "SELECT count(*) FROM iceberg_scan('{folder}', metadata_table => 'snapshots') s WHERE s.operation = 'append'"
    );
    assert_eq!(harness.column(&snapshots).await, ["2"]);
    let files = format!(
        "SELECT sum(record_count) FROM iceberg_scan('{folder}', 'metadata_table' => 'files') FOR VERSION AS OF {first}"
    );
    assert_eq!(harness.column(&files).await, ["1"]);
    let prepared = harness
        .session
        .prepare(&format!(
            "SELECT id FROM iceberg_scan('{folder}') FOR VERSION AS OF ?"
        ))
        .await
        .expect("prepares");
    let outcome = harness
        .session
        .execute_prepared(&prepared, vec![ScalarValue::Utf8(Some(first))])
        .await
        .expect("runs");
    assert_eq!(collect(outcome).await.expect("rows").rows, [["1"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_was_made_anew_in_its_place_is_read_anew() {
    let harness = Harness::start().await;
    let (folder, _, file) = two_commits(&harness).await;
    let place = tempfile::tempdir().expect("a folder");
    let metadata = place.path().join("metadata");
    std::fs::create_dir(&metadata).expect("a folder");
    let current = |from: &str| {
        let from = from.trim_start_matches("file://");
        std::fs::copy(from, metadata.join("v1.metadata.json")).expect("a copy");
    };
    let query = format!(
        "SELECT count(*) FROM iceberg_scan('{}')",
        place.path().display()
    );
    current(&file);
    assert_eq!(harness.column(&query).await, ["2"]);
    harness.done("INSERT INTO t VALUES (3)").await;
    let newer = harness
        .column(
            "SELECT file FROM t$metadata_log_entries ORDER BY timestamp DESC, file DESC LIMIT 1",
        )
        .await;
    assert!(newer[0].starts_with(&folder));
    current(&newer[0]);
    assert_eq!(harness.column(&query).await, ["3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_scan_is_said() {
    let harness = Harness::start().await;
    let (folder, _, file) = two_commits(&harness).await;
    let snapshot = "FOR VERSION AS OF 17";
    for (from, kind, said) in [
        (
            "iceberg_scan('/nowhere/at/all')".to_owned(),
            ErrorKind::NoSuchTable,
            "there is no Iceberg table at '/nowhere/at/all'",
        ),
        (
            "iceberg_scan('/nowhere/v3.metadata.json')".to_owned(),
            ErrorKind::CorruptFile,
            "'/nowhere/v3.metadata.json' is missing",
        ),
        (
            "iceberg_scan('ftp://host/t')".to_owned(),
            ErrorKind::InvalidArgument,
            "stores of scheme 'ftp' are not supported",
        ),
        (
            "iceberg_scan()".to_owned(),
            ErrorKind::InvalidArgument,
            "iceberg_scan takes the location of a table",
        ),
        (
            "iceberg_scan(NULL)".to_owned(),
            ErrorKind::InvalidArgument,
            "'location' of iceberg_scan is a text",
        ),
        (
            "iceberg_scan('/a', '/b')".to_owned(),
            ErrorKind::InvalidArgument,
            "iceberg_scan takes one location",
        ),
        (
            format!("iceberg_scan('{folder}', 'catalog' => 'laek')"),
            ErrorKind::NoSuchCatalog,
            "did you mean 'lake'",
        ),
        (
            format!("iceberg_scan('{folder}', 's3.endpiont' => 'x')"),
            ErrorKind::InvalidArgument,
            "iceberg_scan: property 's3.endpiont' is not known; did you mean 's3.endpoint'?",
        ),
        (
            format!("iceberg_scan('{folder}', metadatatable => 'files')"),
            ErrorKind::InvalidArgument,
            "iceberg_scan: option 'metadatatable' is not known; did you mean 'metadata_table'?",
        ),
        (
            format!("iceberg_scan('{folder}', metadata_table => 'fils')"),
            ErrorKind::InvalidArgument,
            "no metadata table 'fils'",
        ),
        (
            format!("iceberg_scan('{folder}', metadata_table => 'refs') {snapshot}"),
            ErrorKind::InvalidArgument,
            "'refs' tells of the whole table",
        ),
        (
            format!("iceberg_scan('{file}') {snapshot}"),
            ErrorKind::InvalidArgument,
            "has no snapshot 17",
        ),
    ] {
        let error = harness.error(&format!("SELECT * FROM {from}")).await;
        assert_eq!(error.kind, kind, "{from}: {error:?}");
        assert!(error.message.contains(said), "{from}: {error:?}");
        // The place is named, not the name that the query is planned under.
        assert!(!error.message.contains("``"), "{from}: {error:?}");
    }
    let error = harness
        .error(&format!("SELECT * FROM iceberg_scan('{file}') {snapshot}"))
        .await;
    assert!(
        error.message.contains(&format!("table '{file}'")),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_a_scan_stay_out_of_plans_and_the_audit_log() {
    let harness = Harness::start().await;
    let (folder, ..) = two_commits(&harness).await;
    let from = format!(
        "iceberg_scan('{folder}', 's3.secret-access-key' => 'hush', 's3.access-key-id' => 'hush')"
    );
    for explain in [
        "EXPLAIN",
        "EXPLAIN VERBOSE",
        "EXPLAIN ESTIMATE",
        "EXPLAIN ANALYZE",
    ] {
        let rows = harness
            .rows(&format!(
                "{explain} SELECT a.id FROM {from} a, iceberg_scan('{folder}') b"
            ))
            .await;
        let shown = format!("{rows:?}");
        assert!(!shown.contains("hush"), "{explain}: {shown}");
    }
    assert_eq!(
        harness
            .column(&format!("SELECT count(*) FROM {from}"))
            .await,
        ["2"]
    );
    let records = harness.records("iceberg_scan");
    assert!(!records.is_empty());
    assert!(!format!("{records:?}").contains("hush"), "{records:?}");
}
