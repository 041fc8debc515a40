//! Joins of tables that are in one partition of the plan, and read by several workers.

use crate::harness::{Cluster, Settings};

#[tokio::test(flavor = "multi_thread")]
async fn small_tables_meet_in_one_task_or_are_shuffled() {
    // Nothing is small enough to be broadcast, and every file may go to another worker.
    let settings = Settings::default()
        .with("TARN_QUERY_SPREAD", "1")
        .with("TARN_QUERY_BROADCAST", "1");
    let cluster = Cluster::start_with(3, settings).await;
    let mut client = cluster.client().await;
    for table in ["a", "b"] {
        client
            .query(&format!("CREATE TABLE {table} (k BIGINT, v BIGINT)"))
            .await;
        for file in 0..5 {
            let rows: Vec<String> = (0..10)
                .map(|n| format!("({}, {n})", file * 10 + n))
                .collect();
            client
                .query(&format!("INSERT INTO {table} VALUES {}", rows.join(", ")))
                .await;
        }
    }
    client
        .query("INSERT INTO b VALUES (7, 100), (NULL, 7)")
        .await;
    client
        .query("CREATE TABLE one AS SELECT 7 AS k, 1 AS v")
        .await;
    client.query("CREATE TABLE few AS SELECT * FROM b").await;
    // Both tables have the keys 0 to 49; b has 7 once more, and a row without a key.
    for (sql, answer) in [
        (
            "SELECT count(*), sum(b.v) FROM a JOIN b ON a.k = b.k",
            ["51", "325"],
        ),
        (
            "SELECT count(*), min(a.k) FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
            ["0", "NULL"],
        ),
        (
            "SELECT count(*), min(v) FROM b WHERE NOT EXISTS (SELECT 1 FROM a WHERE b.k = a.k)",
            ["1", "7"],
        ),
        (
            "SELECT count(*), sum(b.v) FROM a FULL JOIN b ON a.k = b.k",
            ["52", "332"],
        ),
        (
            "SELECT count(*), max(a.k) FROM a WHERE a.v = 1 OR EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v > a.v)",
            ["6", "41"],
        ),
        (
            "SELECT count(*), sum(b.v) FROM (SELECT k, max(v) AS v FROM one GROUP BY k) o JOIN b ON o.k = b.k",
            ["2", "107"],
        ),
        (
            "SELECT count(*), sum(c.v) FROM a JOIN b ON a.k = b.k JOIN a c ON c.k = b.k",
            ["51", "232"],
        ),
        // One file each.
        (
            "SELECT count(*), sum(x.v) FROM few x JOIN one y ON x.k = y.k",
            ["2", "107"],
        ),
        (
            "SELECT count(*), sum(b.v) FROM (SELECT k, max(v) AS v FROM one GROUP BY k) o JOIN one b ON o.k = b.k",
            ["1", "1"],
        ),
        (
            "SELECT count(*), min(x.v) FROM few x WHERE NOT EXISTS (SELECT 1 FROM few y WHERE y.k = x.k)",
            ["1", "7"],
        ),
    ] {
        for _ in 0..3 {
            assert_eq!(client.query(sql).await, [answer], "{sql}");
        }
    }
}
