//! Tables with a sort order: their files are written in it.

use tarn_coordinator::ErrorKind;

use crate::harness::Harness;

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_written_in_the_order_of_the_table() {
    let harness = Harness::start().await;
    harness
        .done(
            "CREATE TABLE o (id BIGINT, at DATETIME, s STRUCT<n: STRING>, p INT) PARTITION BY (p) \
             ORDER BY (day(at) DESC, s.n NULLS LAST, id)",
        )
        .await;
    // What the query says of an order does not count.
    harness
        .done(
            "INSERT INTO o SELECT * FROM (VALUES \
             (1, '2024-01-01 10:00:00', named_struct('n', 'b'), 1), (2, '2024-01-02 09:00:00', named_struct('n', 'b'), 1), \
             (3, '2024-01-02 23:00:00', named_struct('n', 'a'), 1), (4, NULL, named_struct('n', 'a'), 1), \
             (5, '2024-01-01 00:00:00', NULL, 1), (7, '2024-01-02 01:00:00', named_struct('n', 'b'), 1), \
             (6, '2024-01-02 08:00:00', named_struct('n', 'b'), 2)) v (id, at, s, p) ORDER BY id",
        )
        .await;
    // A file's rows come in the order that it holds them.
    assert_eq!(
        harness.column("SELECT id FROM o WHERE p = 1").await,
        ["3", "2", "7", "1", "5", "4"]
    );
    let files = harness
        .rows("SELECT sort_order_id, record_count FROM o$files ORDER BY 2")
        .await;
    assert_eq!(files.rows, [["1", "1"], ["1", "6"]]);
    let shown = harness.rows("SHOW CREATE TABLE o").await.rows[0][1].clone();
    assert!(
        shown.ends_with("PARTITION BY (`p`)\nORDER BY (day(`at`) DESC, `s.n` NULLS LAST, `id`)"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_type_is_sorted_as_iceberg_orders_it() {
    let harness = Harness::start().await;
    for (kind, literals) in [
        ("BOOLEAN", ["NULL", "false", "true"]),
        ("BIGINT", ["NULL", "-9223372036854775808", "7"]),
        ("DOUBLE", ["-1.5", "0.0", "CAST('NaN' AS DOUBLE)"]),
        (
            "DECIMAL(38, 2)",
            ["-999999999999999999999999.99", "0.01", "1"],
        ),
        ("DATE", ["'0001-01-01'", "'1969-12-31'", "'2024-01-01'"]),
        ("TIME", ["NULL", "'00:00:00'", "'23:59:59.999999'"]),
        ("STRING", ["''", "'Z'", "'a'"]),
        (
            "UUID",
            [
                "NULL",
                "'0fffffff-0000-0000-0000-000000000000'",
                "'f0000000-0000-0000-0000-000000000000'",
            ],
        ),
        ("FIXED(2)", ["NULL", "X'00ff'", "X'ff00'"]),
        ("BINARY", ["X''", "X'00'", "X'80'"]),
    ] {
        for (direction, expected) in [("", ["0", "1", "2"]), (" DESC", ["2", "1", "0"])] {
            harness
                .done(&format!(
                    "CREATE TABLE t (id INT, v {kind}) ORDER BY (v{direction})"
                ))
                .await;
            let [least, middle, most] = literals;
            harness
                .done(&format!(
                    "INSERT INTO t VALUES (1, {middle}), (2, {most}), (0, {least})"
                ))
                .await;
            let ids = harness.column("SELECT id FROM t").await;
            assert_eq!(ids, expected, "{kind}{direction}");
            harness.done("DROP TABLE t").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_made_of_a_query_is_sorted_too() {
    let harness = Harness::start().await;
    harness
        .done(
            "CREATE TABLE c ORDER BY (truncate(10, n) DESC, n) AS \
             SELECT n FROM (VALUES (9), (25), (11), (NULL), (20), (-1)) v (n)",
        )
        .await;
    let rows = harness
        .column("SELECT coalesce(CAST(n AS CHAR), 'none') FROM c")
        .await;
    assert_eq!(rows, ["20", "25", "11", "9", "-1", "none"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_told_as_for_other_tables() {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE e (id INT NOT NULL, s STRING) ORDER BY (s)")
        .await;
    let error = harness
        .error("INSERT INTO e VALUES (1, 'a'), (NULL, 'b')")
        .await;
    assert_eq!(error.kind, ErrorKind::NullInRequiredColumn);
    assert!(error.message.contains("row 2"), "{}", error.message);
    let error = harness.error("INSERT INTO e SELECT 1 / 0, nothing").await;
    assert_eq!(error.kind, ErrorKind::NoSuchColumn);
    assert_eq!(harness.column("SELECT count(*) FROM e").await, ["0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_no_partitioning_would_have() {
    let harness = Harness::start().await;
    for (table, order, ids, order_ids) in [
        (
            "CREATE TABLE k (id INT, at DATETIME)",
            "day(at) DESC, hour(at)",
            ["3", "2", "1"],
            "1",
        ),
        (
            "CREATE TABLE k (id INT, at DATE)",
            "year(at), month(at) DESC",
            ["1", "3", "2"],
            "1",
        ),
        // All rows are alike to it.
        (
            "CREATE TABLE k (id INT, at DATETIME)",
            "void(at)",
            ["1", "2", "3"],
            "NULL",
        ),
        (
            "CREATE TABLE k (id INT, at DATETIME)",
            "void(at), id DESC",
            ["3", "2", "1"],
            "1",
        ),
    ] {
        harness.done(&format!("{table} ORDER BY ({order})")).await;
        harness
            .done("INSERT INTO k VALUES (1, '2023-02-01 05:00:00'), (2, '2024-01-01 07:00:00'), (3, '2024-05-01 06:00:00')")
            .await;
        assert_eq!(harness.column("SELECT id FROM k").await, ids, "{order}");
        let order_id = "SELECT coalesce(CAST(sort_order_id AS CHAR), 'NULL') FROM k$files";
        assert_eq!(harness.column(order_id).await, [order_ids], "{order}");
        harness.done("DROP TABLE k").await;
    }
    // Hours of nanoseconds are not computed: the rows are written as they come.
    harness
        .done("CREATE TABLE n (id INT, at TIMESTAMPTZ_NS) ORDER BY (hour(at)) TBLPROPERTIES ('format-version' = '3')")
        .await;
    harness
        .done("INSERT INTO n VALUES (2, '2024-01-01 07:00:00'), (1, '2023-01-01 07:00:00')")
        .await;
    assert_eq!(harness.column("SELECT id FROM n").await, ["2", "1"]);
}
