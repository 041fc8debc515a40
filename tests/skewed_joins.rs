//! Shuffled joins in which one key has many of the rows, on workers.

use crate::harness::{Cluster, Settings};

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_heavy_key_are_spread_over_the_workers() {
    let cluster = Cluster::start_with(3, Settings::default().with("TARN_QUERY_SPREAD", "1")).await;
    let mut client = cluster.client().await;
    // Of 20,000 keys 8,000 are 7, 2,000 are null, the others 1000 to 1999; the other table has 0 to 1499, and 7 twice.
    client
        .query(
            "CREATE TABLE facts AS SELECT CASE WHEN value % 10 < 4 THEN 7 WHEN value % 10 = 4 THEN NULL \
             ELSE 1000 + value % 1000 END AS k, value AS v FROM range(0, 20000)",
        )
        .await;
    client
        .query("CREATE TABLE dims AS SELECT value AS k, value AS v FROM range(0, 1500) UNION ALL SELECT 7, 1500")
        .await;
    client.query("SET skew_join_min_rows = 0").await;
    let join = "SELECT count(*), max(d.v) FROM facts f JOIN [SHUFFLE] dims d ON f.k = d.k";
    let plan = format!("{:?}", client.query(&format!("EXPLAIN {join}")).await);
    assert!(
        plan.contains("rows of keys that many have are spread"),
        "{plan}"
    );
    // By hand: twice 8,000, and the 5,000 of 10,000 others that end in 000 to 499.
    let answers = [
        (join, ["21000", "1500"]),
        (
            "SELECT count(*), count(d.v) FROM facts f LEFT JOIN [SHUFFLE] dims d ON f.k = d.k",
            ["28000", "21000"],
        ),
        (
            "SELECT count(*), count(f.v) FROM dims d LEFT JOIN [SHUFFLE] facts f ON f.k = d.k",
            ["22249", "21000"],
        ),
        (
            "SELECT count(*), sum(n) FROM (SELECT f.k, count(*) AS n FROM facts f JOIN [SHUFFLE] dims d ON f.k = d.k GROUP BY f.k) x",
            ["251", "21000"],
        ),
    ];
    for filters in ["OFF", "ON"] {
        client.query("SET runtime_filter_min_rows = 0").await;
        client
            .query(&format!("SET runtime_filters = {filters}"))
            .await;
        for (sql, answer) in answers {
            for _ in 0..3 {
                assert_eq!(
                    client.query(sql).await,
                    [answer],
                    "runtime filters {filters}: {sql}"
                );
            }
        }
    }
    client.query("SET skew_joins = OFF").await;
    let plan = format!("{:?}", client.query(&format!("EXPLAIN {join}")).await);
    assert!(
        !plan.contains("spread") && !plan.contains("__salt"),
        "{plan}"
    );
    assert_eq!(client.query(join).await, [["21000", "1500"]]);
}
