//! Answers that need the whole statement path: what the time is, how many rows a subquery may have.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::harness::Harness;

async fn with_shops() -> Harness {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE shops (shop_id BIGINT, name VARCHAR(20), opened DATETIME)")
        .await;
    harness
        .done(
            "INSERT INTO shops VALUES (1, 'north', '2020-01-01 00:00:00'), (2, 'south', '2021-01-01 00:00:00'), (3, NULL, NULL)",
        )
        .await;
    harness
}

fn seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_has_one_time() {
    let harness = with_shops().await;
    let before = seconds();
    let told: u64 = harness.column("SELECT unix_timestamp()").await[0]
        .parse()
        .expect("whole seconds");
    assert!((before..=seconds()).contains(&told), "{before} {told}");
    for condition in [
        "unix_timestamp(now()) = unix_timestamp()",
        "current_timestamp = now()",
        "current_timestamp() = localtime()",
        "sysdate() = now()",
        "utc_timestamp() = now()",
        "now(6) = now(6)",
        "curdate() = current_date",
        "date(now()) = curdate()",
        "now(3) >= now()",
        "now(3) <= now(6)",
    ] {
        let sql = format!("SELECT {condition}");
        assert_eq!(harness.column(&sql).await, ["true"], "{sql}");
    }
    // The same in all rows and parts.
    assert_eq!(
        harness
            .column("SELECT count(DISTINCT t) FROM (SELECT now(6) t FROM shops UNION ALL SELECT now(6) FROM shops) u")
            .await,
        ["1"]
    );
    assert_eq!(
        harness
            .column("SELECT name FROM shops WHERE opened < now() AND opened < curdate() ORDER BY shop_id")
            .await,
        ["north", "south"]
    );
    harness
        .done("INSERT INTO shops VALUES (4, 'new', now())")
        .await;
    assert_eq!(
        harness
            .column("SELECT timestampdiff(MINUTE, opened, now()) FROM shops WHERE shop_id = 4")
            .await,
        ["0"]
    );
    harness
        .done("CREATE TABLE times AS SELECT now() AS t FROM shops")
        .await;
    assert_eq!(
        harness
            .column("SELECT count(DISTINCT t) FROM times WHERE t <= now()")
            .await,
        ["1"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scalar_subquery_has_one_row() {
    let harness = with_shops().await;
    for sql in [
        "SELECT count(*) FROM shops WHERE shop_id = (SELECT shop_id FROM shops)",
        "SELECT (SELECT name FROM shops)",
        "SELECT (SELECT NULL UNION ALL SELECT NULL)",
        "SELECT count(*) FROM shops GROUP BY name HAVING count(*) > (SELECT shop_id FROM shops WHERE shop_id < 3)",
        "SELECT 1 + (SELECT count(*) FROM shops GROUP BY name)",
    ] {
        let error = harness.error(sql).await;
        assert_eq!(error.mysql_code(), 1242, "{sql}: {error}");
        assert_eq!(error.message, "Subquery returns more than 1 row");
    }
    for (sql, expected) in [
        (
            "SELECT count(*) FROM shops WHERE shop_id = (SELECT shop_id FROM shops WHERE name = 'south')",
            "1",
        ),
        (
            "SELECT count(*) FROM shops WHERE shop_id = (SELECT shop_id FROM shops WHERE name = 'east')",
            "0",
        ),
        ("SELECT (SELECT name FROM shops WHERE shop_id = 9)", "NULL"),
        ("SELECT (SELECT name FROM shops WHERE shop_id = 2)", "south"),
        ("SELECT (SELECT name FROM shops WHERE shop_id = 3)", "NULL"),
        (
            "SELECT (SELECT name FROM shops ORDER BY shop_id DESC LIMIT 1 OFFSET 1)",
            "south",
        ),
        (
            "SELECT (SELECT max(shop_id) FROM shops) + (SELECT 1 FROM shops WHERE shop_id = 1)",
            "4",
        ),
        (
            "SELECT sum(n) FROM (SELECT (SELECT count(*) FROM shops b WHERE b.shop_id = a.shop_id) AS n FROM shops a) t",
            "3",
        ),
    ] {
        assert_eq!(harness.column(sql).await, [expected], "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_are_listed_and_near_names_told() {
    let harness = Harness::start().await;
    assert_eq!(
        harness.rows("SHOW FUNCTIONS LIKE 'period%'").await.rows,
        [["period_add", "scalar"], ["period_diff", "scalar"]]
    );
    for (sql, message) in [
        (
            "SELECT uper('a')",
            "FUNCTION uper does not exist; did you mean 'upper'?",
        ),
        (
            "SELECT geometry_cover('a')",
            "FUNCTION geometry_cover does not exist",
        ),
        ("SELECT st_x('a')", "FUNCTION st_x does not exist"),
    ] {
        let error = harness.error(sql).await;
        assert_eq!(error.mysql_code(), 1305, "{sql}: {error}");
        assert_eq!(error.message, message, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_that_the_engine_calls_alike_keep_their_text_as_name() {
    let harness = with_shops().await;
    let rows = harness
        .rows("SELECT shop_id, CAST(shop_id AS DOUBLE), upper(name), ucase(name) FROM shops WHERE shop_id = 2")
        .await;
    assert_eq!(
        rows.columns,
        [
            "shop_id",
            "CAST(shop_id AS DOUBLE)",
            "upper(name)",
            "ucase(name)"
        ]
    );
    assert_eq!(rows.rows, [["2", "2.0", "SOUTH", "SOUTH"]]);
}
