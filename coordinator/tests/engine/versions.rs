//! Time travel, branches and tags, and metadata tables, as a session has them.

use datafusion::common::ScalarValue;
use tarn_coordinator::ErrorKind;

use crate::harness::{Harness, collect};

/// `t(id)` of two commits, and their snapshots.
async fn two_commits(harness: &Harness) -> (String, String) {
    harness.done("CREATE TABLE t (id BIGINT)").await;
    harness.done("INSERT INTO t VALUES (1)").await;
    harness.done("INSERT INTO t VALUES (2)").await;
    let snapshots = harness
        .column("SELECT snapshot_id FROM t$snapshots ORDER BY parent_id IS NOT NULL")
        .await;
    (snapshots[0].clone(), snapshots[1].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_may_be_a_parameter_or_a_variable() {
    let harness = Harness::start().await;
    let (first, second) = two_commits(&harness).await;
    let prepared = harness
        .session
        .prepare("SELECT max(id) FROM t FOR VERSION AS OF ? WHERE id > ?")
        .await
        .expect("prepares");
    assert_eq!(prepared.parameter_types.len(), 2);
    for (version, id) in [
        (ScalarValue::Utf8(Some(first.clone())), "1"),
        (ScalarValue::Int64(second.parse().ok()), "2"),
        (ScalarValue::Utf8(Some("main".into())), "2"),
    ] {
        let outcome = harness
            .session
            .execute_prepared(&prepared, vec![version, ScalarValue::Int64(Some(0))])
            .await
            .expect("runs");
        assert_eq!(collect(outcome).await.expect("rows").rows, [[id]]);
    }
    let nothing = vec![ScalarValue::Null, ScalarValue::Int64(Some(0))];
    let error = harness
        .session
        .execute_prepared(&prepared, nothing)
        .await
        .expect_err("NULL is no version");
    assert_eq!(error.kind, ErrorKind::InvalidArgument);

    harness.done(&format!("SET @v = '{first}'")).await;
    assert_eq!(
        harness
            .column("SELECT ID FROM t FOR VERSION AS OF @v")
            .await,
        ["1"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_may_come_from_another_version() {
    let harness = Harness::start().await;
    let (first, _) = two_commits(&harness).await;
    harness
        .done(&format!(
            "CREATE TABLE old AS SELECT id + 10 AS id FROM t FOR VERSION AS OF {first}"
        ))
        .await;
    harness
        .done(&format!(
            "INSERT INTO t SELECT id + 2 FROM t FOR VERSION AS OF {first}"
        ))
        .await;
    assert_eq!(
        harness
            .column("SELECT id FROM old UNION ALL SELECT id FROM t ORDER BY 1")
            .await,
        ["1", "2", "3", "11"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_tells_of_the_version_that_is_read() {
    let harness = Harness::start().await;
    let (first, second) = two_commits(&harness).await;
    let query = format!(
        "SELECT a.id FROM t FOR VERSION AS OF {first} a JOIN t FOR VERSION AS OF {second} b ON a.id = b.id"
    );
    let estimate = harness.rows(&format!("EXPLAIN ESTIMATE {query}")).await;
    let files: Vec<&str> = estimate.rows.iter().map(|row| row[3].as_str()).collect();
    assert_eq!(files, ["1", "2", "3"], "of the two scans, and in total");
    let plan = harness.column(&format!("EXPLAIN {query}")).await.join("\n");
    assert!(
        plan.contains(&format!("snapshot {first}")) && plan.contains(&format!("snapshot {second}")),
        "{plan}"
    );
    // Metadata answers both, and both are in the audit.
    let counts = format!(
        "SELECT (SELECT count(*) FROM t FOR VERSION AS OF {first}) a, (SELECT count(*) FROM t FOR VERSION AS OF {second}) b"
    );
    assert_eq!(harness.rows(&counts).await.rows, [["1", "2"]]);
    assert_eq!(harness.records(&counts)[0].scans.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn references_and_procedures_are_statements() {
    let harness = Harness::start().await;
    let (first, second) = two_commits(&harness).await;
    harness
        .done(&format!(
            "ALTER TABLE t CREATE TAG `v 1` AS OF VERSION {first} RETAIN 7 DAYS"
        ))
        .await;
    harness
        .done("ALTER TABLE t CREATE BRANCH b WITH SNAPSHOT RETENTION 2 SNAPSHOTS 1 HOURS")
        .await;
    assert_eq!(
        harness
            .rows(
                "SELECT name, type, max_reference_age_in_ms, min_snapshots_to_keep, max_snapshot_age_in_ms FROM t.refs \
                 ORDER BY name"
            )
            .await
            .rows,
        [
            ["b", "BRANCH", "NULL", "2", "3600000"],
            ["main", "BRANCH", "NULL", "NULL", "NULL"],
            ["v 1", "TAG", "604800000", "NULL", "NULL"],
        ]
    );
    let called = harness
        .rows(&format!(
            "CALL system.rollback_to_snapshot('default.t', {first})"
        ))
        .await;
    assert_eq!(
        called.columns,
        ["previous_snapshot_id", "current_snapshot_id"]
    );
    assert_eq!(called.rows, [[second.clone(), first.clone()]]);
    assert_eq!(harness.column("SELECT id FROM t").await, ["1"]);
    harness
        .rows("CALL lake.system.set_current_snapshot(table => 't', ref => 'b')")
        .await;
    assert_eq!(
        harness.column("SELECT id FROM t ORDER BY id").await,
        ["1", "2"]
    );
    harness.done("ALTER TABLE t DROP TAG `v 1`").await;
    for (sql, kind) in [
        ("ALTER TABLE t DROP TAG `v 1`", ErrorKind::InvalidArgument),
        ("ALTER TABLE nothing CREATE TAG x", ErrorKind::NoSuchTable),
        ("ALTER TABLE t ADD COLUMN x INT", ErrorKind::Unsupported),
        (
            "CALL system.rollback_to_snapshot('t', 1)",
            ErrorKind::InvalidArgument,
        ),
        (
            "CALL system.rollback_to_snapshot('t')",
            ErrorKind::InvalidArgument,
        ),
        ("CALL system.rolback('t', 1)", ErrorKind::Unsupported),
        (
            "SELECT * FROM information_schema.tables FOR VERSION AS OF 1",
            ErrorKind::InvalidArgument,
        ),
        (
            "SELECT * FROM t FOR TIMESTAMP AS OF '1999-01-01'",
            ErrorKind::InvalidArgument,
        ),
    ] {
        assert_eq!(harness.error(sql).await.kind, kind, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_is_in_utc() {
    let harness = Harness::start().await;
    two_commits(&harness).await;
    let at = harness
        .column("SELECT DATE_FORMAT(max(committed_at), '%Y-%m-%d %H:%i:%s.%f') FROM t$snapshots")
        .await;
    let sql = format!("SELECT count(*) FROM t FOR TIMESTAMP AS OF '{}'", at[0]);
    for zone in ["SYSTEM", "UTC", "+00:00", "GMT", "Etc/UTC", "Z"] {
        harness.done(&format!("SET time_zone = '{zone}'")).await;
        assert_eq!(harness.column(&sql).await, ["2"], "{zone}");
    }
    // No other zone is taken, so that no time is read or shown in a zone it is not in.
    let error = harness.error("SET time_zone = '+02:00'").await;
    assert_eq!((error.mysql_code(), error.sqlstate()), (1298, "HY000"));
    assert!(error.message.contains("use CONVERT_TZ"), "{error}");
    assert_eq!(harness.column("SELECT @@time_zone").await, ["Z"]);
}
