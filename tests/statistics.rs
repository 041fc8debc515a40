//! Statistics that ANALYZE TABLE makes on workers.

use crate::harness::Cluster;

/// A column's row of SHOW STATS: rows, nulls, NDV, min, max, bytes, source, age.
async fn stats(client: &mut crate::harness::Client, column: &str) -> Vec<String> {
    let rows = client
        .query(&format!("SHOW STATS FOR t LIKE '{column}'"))
        .await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows[0].clone()
}

fn within(text: &str, wanted: f64, part: f64) -> bool {
    let number: f64 = text.parse().unwrap_or(f64::NAN);
    (number / wanted - 1.0).abs() <= part
}

#[tokio::test(flavor = "multi_thread")]
async fn analyze_counts_distinct_values_on_three_workers() {
    let cluster = Cluster::start(3).await;
    let mut client = cluster.client().await;
    client
        .query(
            "CREATE TABLE t AS SELECT value AS id, concat('kind ', value % 7) AS kind, \
             CAST(value % 100 AS DECIMAL(9,2)) AS price, IF(value % 4 = 0, NULL, value % 10) AS some, \
             DATE '2026-01-01' + INTERVAL (value % 365) DAY AS day FROM range(0, 10000)",
        )
        .await;
    client
        .query("INSERT INTO t SELECT value, kind, price, some, day FROM (SELECT id + 10000 AS value, kind, price, some, day FROM t) AS more")
        .await;
    let before = stats(&mut client, "kind").await;
    assert_eq!(before[7], "derived", "{before:?}");

    let done = client.query("ANALYZE TABLE t").await;
    assert_eq!(done, [["default.t", "analyze", "status", "OK"]]);
    let kind = stats(&mut client, "kind").await;
    assert_eq!(kind[1..6], ["20000", "0", "7", "kind 0", "kind 6"]);
    assert!(kind[7].starts_with("sketch of snapshot "), "{kind:?}");
    assert_eq!(kind[8], "current");
    for (column, distinct) in [("price", "100"), ("day", "365")] {
        assert_eq!(stats(&mut client, column).await[3], distinct, "{column}");
    }
    // A quarter of the rows is null; the others end in all ten digits (10, 1, 2, … 14, … 18).
    let some = stats(&mut client, "some").await;
    assert_eq!(some[2..4], ["5000", "10"]);
    let id = stats(&mut client, "id").await;
    assert!(within(&id[3], 20_000.0, 0.06), "{id:?}");

    // Half of the rows have almost all kinds and half of the keys.
    client.query("ANALYZE TABLE t (ID) SAMPLE 50 PERCENT").await;
    let id = stats(&mut client, "id").await;
    assert!(within(&id[3], 20_000.0, 0.15), "{id:?}");
    assert_eq!(stats(&mut client, "kind").await[3], "7");

    client
        .query("INSERT INTO t SELECT id, 'other', price, some, day FROM t LIMIT 10")
        .await;
    let kind = stats(&mut client, "kind").await;
    assert!(kind[8].starts_with("1 snapshot, "), "{kind:?}");
    let error = client
        .try_query("ANALYZE TABLE t (nothing)")
        .await
        .expect_err("there is no such column");
    assert!(error.contains("Unknown column 'nothing'"), "{error}");
    assert_eq!(
        client.value("SELECT count(DISTINCT kind) FROM t").await,
        "8"
    );
}
