//! What clients are told when something is wrong.

use tarn_audit::Outcome;

use crate::harness::Harness;

#[tokio::test(flavor = "multi_thread")]
async fn each_mistake_has_the_code_that_drivers_test_for() {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE orders (id BIGINT, amount DOUBLE)")
        .await;
    for (sql, code, state, part) in [
        ("SELEC 1", 1064, "42000", "SELEC"),
        ("SELECT * FROM ordrs", 1146, "42S02", "'orders'"),
        ("SELECT * FROM nowhere.orders", 1049, "42000", "nowhere"),
        ("SELECT * FROM nocat.d.orders", 1049, "42000", "nocat"),
        ("SELECT amuont FROM orders", 1054, "42S22", "amount"),
        (
            "SELECT no_such_function(1)",
            1305,
            "42000",
            "no_such_function",
        ),
        (
            "SELECT @@no_such_variable",
            1193,
            "HY000",
            "no_such_variable",
        ),
        (
            "SELECT id, count(*) FROM orders",
            1055,
            "42000",
            "Column 'orders.id' must appear in the GROUP BY clause or in an aggregate function",
        ),
        (
            "SELECT id, (SELECT count(*) FROM orders o WHERE o.id < orders.id) FROM orders",
            1235,
            "42000",
            "Write it as a join",
        ),
        ("EXPLAIN FORMAT=JSON SELECT 1", 1235, "42000", "FORMAT=JSON"),
        ("CREATE TABLE orders (id INT)", 1050, "42S01", "orders"),
        ("CREATE DATABASE `default`", 1007, "HY000", "default"),
        ("KILL 4711", 1094, "HY000", "4711"),
        ("DROP TABLE no_such_table", 1146, "42S02", "no_such_table"),
        (
            "SELECT * FROM information_schema.tables_config",
            1146,
            "42S02",
            "Unknown table 'information_schema.tables_config'",
        ),
        (
            "INSERT INTO information_schema.tables VALUES (1)",
            1227,
            "42000",
            "information_schema",
        ),
    ] {
        let error = harness.error(sql).await;
        assert_eq!(
            (error.mysql_code(), error.sqlstate()),
            (code, state),
            "{sql}: {error}"
        );
        assert!(error.message.contains(part), "{sql}: {error}");
        assert!(!error.message.contains('\n'), "{sql}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_statement_leaves_one_record_whatever_its_outcome() {
    let harness = Harness::start().await;
    harness.done("CREATE TABLE t (a INT)").await;
    harness.done("INSERT INTO t VALUES (1), (2)").await;
    harness.rows("SELECT a FROM t WHERE a > 0").await;
    harness.error("SELECT b FROM t").await;
    harness.error("SELCT").await;
    harness.done("SET query_timeout = 5").await;
    for (statement, kind, outcome, rows, affected) in [
        ("CREATE TABLE t (a INT)", "CREATE TABLE", Outcome::Ok, 0, 0),
        ("INSERT INTO t VALUES (1), (2)", "INSERT", Outcome::Ok, 0, 2),
        ("SELECT a FROM t WHERE a > 0", "SELECT", Outcome::Ok, 2, 0),
        ("SELECT b FROM t", "SELECT", Outcome::Error, 0, 0),
        ("SELCT", "INVALID", Outcome::Error, 0, 0),
        ("SET query_timeout = 5", "SET", Outcome::Ok, 0, 0),
    ] {
        let records = harness.records(statement);
        assert_eq!(records.len(), 1, "{statement}");
        let record = &records[0];
        assert_eq!(
            (record.kind.as_str(), record.outcome),
            (kind, outcome),
            "{statement}"
        );
        assert_eq!(
            (record.rows_returned, record.rows_affected),
            (rows, affected),
            "{statement}"
        );
        assert_eq!(record.error.is_some(), outcome == Outcome::Error);
        assert_eq!(
            (record.user.as_str(), record.protocol.as_str()),
            ("root", "embedded")
        );
    }
    let scan = &harness.records("SELECT a FROM t WHERE")[0].scans[0];
    assert_eq!(
        (
            scan.table.as_str(),
            scan.result_data_files,
            scan.rows_in_files
        ),
        ("t", 1, 2)
    );
}
