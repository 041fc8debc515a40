//! Databases, tables, rows in and rows out.

use crate::harness::Harness;

async fn with_orders() -> Harness {
    let harness = Harness::start().await;
    harness.done("CREATE DATABASE shop").await;
    harness.done("USE shop").await;
    harness
        .done(
            "CREATE TABLE orders (id BIGINT NOT NULL, customer_id INT, total DECIMAL(10,2), placed_at DATETIME, day DATE, note VARCHAR(100) COMMENT 'as typed') COMMENT 'what was ordered'",
        )
        .await;
    let done = harness
        .done(
            "INSERT INTO orders VALUES (1, 10, 12.50, '2026-01-01 10:00:00', '2026-01-01', 'first'), (2, 11, 99.99, '2026-01-02 11:30:00.5', '2026-01-02', NULL)",
        )
        .await;
    assert_eq!(done.affected_rows, 2);
    harness
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_were_inserted_are_read_back() {
    let harness = with_orders().await;
    let rows = harness
        .rows("SELECT id, total, placed_at, Note FROM orders ORDER BY id")
        .await;
    assert_eq!(rows.columns, ["id", "total", "placed_at", "Note"]);
    assert_eq!(
        rows.rows,
        [
            ["1", "12.50", "2026-01-01T10:00:00", "first"],
            ["2", "99.99", "2026-01-02T11:30:00.500", "NULL"],
        ]
    );
    assert_eq!(
        harness
            .column("SELECT count(*) FROM lake.shop.orders")
            .await,
        ["2"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn create_table_as_takes_names_and_types_from_the_query() {
    let harness = with_orders().await;
    let done = harness
        .done("CREATE TABLE per_day AS SELECT day, sum(total) AS total, count(*) AS n FROM orders GROUP BY day")
        .await;
    assert_eq!(done.affected_rows, 2);
    let rows = harness
        .rows("SELECT day, total, n FROM per_day ORDER BY day")
        .await;
    assert_eq!(
        rows.rows,
        [["2026-01-01", "12.50", "1"], ["2026-01-02", "99.99", "1"]]
    );
    let error = harness.error("CREATE TABLE per_day AS SELECT 1 AS x").await;
    assert_eq!(error.mysql_code(), 1050);
    harness
        .done("CREATE TABLE IF NOT EXISTS per_day AS SELECT 1 AS x")
        .await;
    assert_eq!(harness.column("SELECT count(*) FROM per_day").await, ["2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_that_fails_leaves_nothing() {
    let harness = with_orders().await;
    for (sql, code, column) in [
        (
            "INSERT INTO orders (id, customer_id) VALUES (3, 1), (NULL, 2)",
            1048,
            "id",
        ),
        (
            "INSERT INTO orders (id, customer_id) VALUES (3, 1), (4, 99999999999)",
            1690,
            "customer_id",
        ),
        (
            "INSERT INTO orders (id, day) VALUES (3, 'yesterday')",
            1292,
            "day",
        ),
        (
            "INSERT INTO orders (id, colour) VALUES (3, 'red')",
            1054,
            "colour",
        ),
        ("INSERT INTO orders (note) VALUES ('x')", 1048, "id"),
        ("INSERT INTO orders (id, note) VALUES (3)", 1136, ""),
    ] {
        let error = harness.error(sql).await;
        assert_eq!(error.mysql_code(), code, "{sql}: {error}");
        assert!(error.message.contains(column), "{sql}: {error}");
    }
    let error = harness
        .error("INSERT INTO orders.branch_audit VALUES (3)")
        .await;
    assert_eq!(error.mysql_code(), 1235, "{error}");
    assert!(error.message.contains("main branch"), "{error}");
    assert_eq!(harness.column("SELECT count(*) FROM orders").await, ["2"]);

    let error = harness.error("CREATE TABLE half AS SELECT id, 1 / (id - id) AS x, CAST(note AS INT) AS y FROM orders").await;
    assert!(error.mysql_code() > 0);
    assert_eq!(harness.error("SELECT * FROM half").await.mysql_code(), 1146);
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_about_the_session_change_it() {
    let harness = Harness::start().await;
    harness.done("CREATE DATABASE IF NOT EXISTS shop").await;
    assert_eq!(harness.column("SELECT DATABASE()").await, ["default"]);
    harness.done("USE shop").await;
    assert_eq!(harness.column("SELECT DATABASE()").await, ["shop"]);
    assert_eq!(harness.error("USE shp").await.mysql_code(), 1049);
    harness
        .session
        .use_database("lake.default")
        .await
        .expect("is there");
    assert_eq!(harness.session.current_database(), "default");

    harness
        .done("SET NAMES utf8mb4, autocommit = 0, @limit = 5, query_timeout = 60")
        .await;
    assert!(!harness.session.autocommit());
    assert_eq!(
        harness
            .rows("SELECT @@autocommit, @limit, @@session.query_timeout")
            .await
            .rows,
        [["0", "5", "60"]]
    );
    harness
        .done("SET sql_mode = CONCAT(@@sql_mode, ',ANSI')")
        .await;
    assert!(
        harness
            .session
            .variable("sql_mode")
            .expect("is set")
            .ends_with(",ANSI")
    );
    assert_eq!(
        harness
            .error("SET query_timeout = 'soon'")
            .await
            .mysql_code(),
        1231
    );
    assert_eq!(
        harness.error("SET no_such_thing = 1").await.mysql_code(),
        1193
    );
    for sql in [
        "BEGIN",
        "START TRANSACTION",
        "COMMIT",
        "ROLLBACK",
        "UNLOCK TABLES",
    ] {
        harness.done(sql).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn show_and_describe_speak_mysql() {
    let harness = with_orders().await;
    assert!(
        harness
            .column("SHOW DATABASES")
            .await
            .contains(&"shop".to_owned())
    );
    assert_eq!(harness.column("SHOW TABLES").await, ["orders"]);
    let full = harness
        .rows("SHOW FULL TABLES FROM `shop` LIKE 'ord%'")
        .await;
    assert_eq!(full.columns, ["Tables_in_shop", "Table_type"]);
    assert_eq!(full.rows, [["orders", "BASE TABLE"]]);

    let described = harness.rows("DESCRIBE `shop`.`orders`").await;
    assert_eq!(
        described.columns,
        ["Field", "Type", "Null", "Key", "Default", "Extra"]
    );
    let types: Vec<(&str, &str)> = described
        .rows
        .iter()
        .map(|row| (row[0].as_str(), row[1].as_str()))
        .collect();
    assert_eq!(
        types,
        [
            ("id", "bigint"),
            ("customer_id", "int"),
            ("total", "decimal(10,2)"),
            ("placed_at", "datetime(6)"),
            ("day", "date"),
            ("note", "varchar(65535)"),
        ]
    );
    let full = harness
        .rows("SHOW FULL COLUMNS FROM orders FROM shop LIKE 'note'")
        .await;
    assert_eq!(full.rows[0].last().map(String::as_str), Some("as typed"));

    let created = harness.rows("SHOW CREATE TABLE `shop`.`orders`").await;
    assert_eq!(
        created.rows[0][1].lines().collect::<Vec<_>>(),
        [
            "CREATE TABLE `orders` (",
            "  `id` bigint NOT NULL,",
            "  `customer_id` int DEFAULT NULL,",
            "  `total` decimal(10,2) DEFAULT NULL,",
            "  `placed_at` datetime(6) DEFAULT NULL,",
            "  `day` date DEFAULT NULL,",
            "  `note` varchar(65535) DEFAULT NULL COMMENT 'as typed'",
            ") ENGINE=ICEBERG DEFAULT CHARSET=utf8mb4 COMMENT='what was ordered'",
        ]
    );
    let variables = harness
        .rows("SHOW VARIABLES LIKE 'lower_case_table_names'")
        .await;
    assert_eq!(variables.rows, [["lower_case_table_names", "0"]]);
    assert_eq!(
        harness
            .column("SHOW DATABASES WHERE `Database` = 'shop'")
            .await,
        ["shop"]
    );
    assert!(
        harness
            .column("SHOW FUNCTION STATUS WHERE Db = 'shop' AND Name LIKE '%'")
            .await
            .is_empty()
    );
    let processes = harness.rows("SHOW PROCESSLIST").await;
    assert_eq!(processes.rows.len(), 1);
    assert_eq!(processes.rows[0][7], "SHOW PROCESSLIST");
    assert_eq!(harness.column("SHOW WORKERS").await, ["local"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_show_create_table_says_can_be_run() {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE events (id BIGINT NOT NULL, ts DATETIME, k VARCHAR(10)) PARTITION BY (day(ts), bucket(4, id))")
        .await;
    let text = |rows: crate::harness::Rows| rows.rows[0][1].clone();
    let first = text(harness.rows("SHOW CREATE TABLE events").await);
    assert!(
        first.ends_with("PARTITION BY (day(`ts`), bucket(4, `id`))"),
        "{first}"
    );
    harness.done("DROP TABLE events").await;
    harness.done(&first).await;
    assert_eq!(text(harness.rows("SHOW CREATE TABLE events").await), first);
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_tells_the_plan_and_what_was_pruned() {
    let harness = with_orders().await;
    let plan = harness
        .column("EXPLAIN SELECT * FROM orders WHERE day = '2026-01-01'")
        .await
        .join("\n");
    assert!(plan.contains("scan of lake.shop.orders"), "{plan}");
    assert!(plan.contains("files"), "{plan}");
    let verbose = harness
        .column("EXPLAIN VERBOSE SELECT count(*) FROM orders")
        .await
        .join("\n");
    assert!(
        verbose.contains("== optimized logical plan =="),
        "{verbose}"
    );
    let analyzed = harness
        .column("EXPLAIN ANALYZE SELECT * FROM orders")
        .await
        .join("\n");
    assert!(analyzed.starts_with("2 rows;"), "{analyzed}");
    assert!(analyzed.contains("output_rows=2"), "{analyzed}");
    let estimate = harness.rows("EXPLAIN ESTIMATE SELECT * FROM orders").await;
    assert_eq!(
        estimate.columns,
        [
            "Catalog",
            "Database",
            "Table",
            "Files",
            "Files_total",
            "Rows",
            "Bytes"
        ]
    );
    assert_eq!(
        estimate.rows[0][..6],
        ["lake", "shop", "orders", "1", "1", "2"]
    );
    assert_eq!(estimate.rows[1][2], "TOTAL");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_query_leaves_a_profile() {
    let harness = with_orders().await;
    harness.rows("SELECT id FROM orders").await;
    let profile = harness.column("SHOW PROFILE").await.join("\n");
    assert!(profile.contains("SELECT id FROM orders"), "{profile}");
    assert!(profile.contains("scan of lake.shop.orders"), "{profile}");
    let kept = harness.rows("SELECT statement, rows_returned FROM tarn.system.query_profiles WHERE statement = 'SELECT id FROM orders'").await;
    assert_eq!(kept.rows, [["SELECT id FROM orders", "2"]]);
}
