//! Scans learn the keys of a shuffled join's other side from the workers that read it.

use crate::harness::{Client, Cluster, Settings, eventually};

/// `facts`: 100,000 rows in twenty files, each with 5,000 keys in a row; `dims`: the same keys, a thousand in each group. `facts_b` and
/// `dims_b` are the same by buckets of `k`.
async fn start() -> Cluster {
    // No side is small enough to be broadcast.
    let settings = Settings::default()
        .with("TARN_QUERY_SPREAD", "1")
        .with("TARN_QUERY_BROADCAST", "1");
    let cluster = Cluster::start_with(3, settings).await;
    fill(&mut cluster.client().await).await;
    cluster
}

async fn fill(client: &mut Client) {
    for (facts, partition) in [("facts", ""), ("facts_b", "PARTITION BY (bucket(4, k))")] {
        client
            .query(&format!(
                "CREATE TABLE {facts} (k BIGINT, t STRING, v BIGINT) {partition}"
            ))
            .await;
        for file in 0..20 {
            let (from, to) = (file * 5_000, (file + 1) * 5_000);
            client
                .query(&format!(
                    "INSERT INTO {facts} SELECT value, CONCAT('key', value), value * 2 FROM range({from}, {to})"
                ))
                .await;
        }
    }
    for (dims, partition) in [("dims", ""), ("dims_b", "PARTITION BY (bucket(8, k))")] {
        client
            .query(&format!(
                "CREATE TABLE {dims} {partition} AS \
                 SELECT value AS k, CONCAT('key', value) AS t, value DIV 1000 AS g FROM range(0, 100000)"
            ))
            .await;
    }
}

async fn set(client: &mut Client, variables: &[(&str, &str)]) {
    for (name, value) in variables {
        client.query(&format!("SET {name} = {value}")).await;
    }
}

/// The record of the last run of a statement.
async fn record(cluster: &Cluster, sql: &str) -> serde_json::Value {
    let mut found = None;
    eventually("the query is recorded", async || {
        found = cluster
            .audit()
            .into_iter()
            .rev()
            .find(|record| record["statement"] == sql);
        found.is_some()
    })
    .await;
    found.expect("found above")
}

fn rows_read(record: &serde_json::Value, table: &str) -> u64 {
    let scans = record["scans"].as_array().expect("scans");
    let scan = scans.iter().find(|scan| scan["table"] == table);
    scan.and_then(|scan| scan["rowsRead"].as_u64())
        .expect("rows that were read")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_reads_the_files_that_the_other_side_of_a_shuffled_join_asks_for() {
    let cluster = start().await;
    let mut client = cluster.client().await;
    // Enough for any machine: the scan is to wait until the filter is there.
    set(
        &mut client,
        &[
            ("runtime_filter_min_rows", "1000"),
            ("runtime_filter_wait_ms", "60000"),
        ],
    )
    .await;
    // Keys 42,000 to 42,999 are in one of the files; by Gauss their sum is 42,499,500. As texts they are also between the
    // least and the greatest of the first file, key0 and key999.
    for (on, at_most) in [
        ("f.k = d.k", 5_000),
        ("f.t = d.t", 10_000),
        ("f.k = d.k AND f.t = d.t", 5_000),
    ] {
        let sql = format!(
            "SELECT count(*), sum(f.k) FROM facts f JOIN [SHUFFLE] dims d ON {on} WHERE d.g = 42"
        );
        let plan = format!("{:?}", client.query(&format!("EXPLAIN {sql}")).await);
        assert!(plan.contains("RuntimeFilterTarget"), "{plan}");
        assert_eq!(client.query(&sql).await, [["1000", "42499500"]], "{on}");
        let record = record(&cluster, &sql).await;
        let read = rows_read(&record, "facts");
        assert!(read <= at_most, "{on}: {read} of 100,000 rows were read");
    }
    // Without, the other side's filter is of no use to the scan.
    set(&mut client, &[("runtime_filters", "OFF")]).await;
    let sql = "SELECT count(*), sum(f.k) FROM facts f JOIN [SHUFFLE] dims d ON f.k = d.k WHERE d.g = 42 AND 1 = 1";
    assert_eq!(client.query(sql).await, [["1000", "42499500"]]);
    assert_eq!(rows_read(&record(&cluster, sql).await, "facts"), 100_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn so_does_a_scan_by_buckets() {
    let cluster = start().await;
    let server = Cluster::server();
    fill(&mut server.client().await).await;
    for (workers, cluster) in [(3, cluster), (0, server)] {
        let mut client = cluster.client().await;
        set(
            &mut client,
            &[
                ("runtime_filter_min_rows", "1000"),
                ("runtime_filter_wait_ms", "60000"),
            ],
        )
        .await;
        for (facts, hint, dims) in [
            ("facts_b", "COLOCATE", "dims_b"),
            ("facts_b", "BUCKET", "dims"),
            ("facts", "BUCKET", "dims_b"),
        ] {
            // A single key leaves all buckets but its own without rows, and joins drop the other side of those unread.
            for (group, row) in [
                ("d.g = 42", ["1000", "42499500"]),
                ("d.t = 'key42'", ["1", "42"]),
            ] {
                let sql = format!(
                    "SELECT count(*), sum(f.k) FROM {facts} f JOIN [{hint}] {dims} d ON f.k = d.k WHERE {group}"
                );
                let plan = format!("{:?}", client.query(&format!("EXPLAIN {sql}")).await);
                assert!(plan.contains("RuntimeFilterTarget"), "{workers}: {plan}");
                assert_eq!(client.query(&sql).await, [row], "{workers}: {sql}");
                let read = rows_read(&record(&cluster, &sql).await, facts);
                assert!(
                    read <= 5_000,
                    "{workers}: {sql}: {read} of 100,000 rows were read"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn joins_of_every_kind_answer_alike_whenever_the_filter_comes() {
    let cluster = start().await;
    let mut client = cluster.client().await;
    client
        .query("CREATE TABLE few AS SELECT * FROM (VALUES (7, 'a'), (70007, 'b'), (NULL, 'c'), (200000, 'd')) x(k, name)")
        .await;
    client
        .query("CREATE TABLE few_b PARTITION BY (bucket(2, k)) AS SELECT * FROM few")
        .await;
    for facts in ["facts", "facts_b"] {
        client
            .query(&format!("INSERT INTO {facts} VALUES (NULL, NULL, 1)"))
            .await;
    }
    // `few` has two keys that are in `facts`, one that is not, and a NULL that equals none.
    let answers = [
        (
            "SELECT count(*), sum(f.v) FROM facts f JOIN [SHUFFLE] few x ON f.k = x.k",
            ["2", "140028"],
        ),
        (
            "SELECT count(*), count(f.k) FROM few x LEFT JOIN [SHUFFLE] facts f ON f.k = x.k",
            ["4", "2"],
        ),
        (
            "SELECT count(*), count(x.k) FROM facts f LEFT JOIN [SHUFFLE] few x ON f.k = x.k",
            ["100001", "2"],
        ),
        (
            "SELECT count(*), count(x.name) FROM facts f FULL JOIN [SHUFFLE] few x ON f.k = x.k",
            ["100003", "4"],
        ),
        (
            "SELECT count(*), max(name) FROM few x WHERE EXISTS (SELECT 1 FROM facts f WHERE f.k = x.k)",
            ["2", "b"],
        ),
        (
            "SELECT count(*), max(name) FROM few x WHERE NOT EXISTS (SELECT 1 FROM facts f WHERE f.k = x.k)",
            ["2", "d"],
        ),
        (
            "SELECT count(*), sum(v) FROM facts f WHERE f.k IN (SELECT k FROM few)",
            ["2", "140028"],
        ),
        (
            "SELECT count(*), sum(v) FROM facts f WHERE NOT EXISTS (SELECT 1 FROM few x WHERE f.k = x.k)",
            ["99999", "9999759973"],
        ),
        (
            "SELECT count(*), min(v) FROM facts f WHERE f.k NOT IN (SELECT k FROM few)",
            ["0", "NULL"],
        ),
        (
            "SELECT count(*), max(f.v) FROM facts f JOIN [SHUFFLE] few x ON f.k <=> x.k",
            ["3", "140014"],
        ),
        (
            "SELECT count(*), max(f.v) FROM facts f JOIN [SHUFFLE] few x ON f.k = x.k AND f.v > 20",
            ["1", "140014"],
        ),
        (
            "SELECT count(*), max(f.v) FROM facts f JOIN [SHUFFLE] (SELECT k FROM few WHERE k > 300000) x ON f.k = x.k",
            ["0", "NULL"],
        ),
        (
            "SELECT count(*), max(f.k) FROM facts f JOIN [SHUFFLE] (SELECT k FROM dims ORDER BY k LIMIT 3) x ON f.k = x.k",
            ["3", "2"],
        ),
        (
            "SELECT count(*), sum(d.g) FROM few x JOIN [SHUFFLE] facts f ON f.k = x.k JOIN [SHUFFLE] dims d ON d.k = f.k",
            ["2", "70"],
        ),
    ];
    for wait in ["0", "5000"] {
        set(
            &mut client,
            &[
                ("runtime_filter_min_rows", "0"),
                ("runtime_filter_wait_ms", wait),
            ],
        )
        .await;
        let mut by_buckets = 0;
        for (sql, answer) in answers {
            assert_eq!(client.query(sql).await, [answer], "wait {wait}: {sql}");
            let bucketed = [
                ("facts f", "facts_b f"),
                ("few x", "few_b x"),
                ("dims d", "dims_b d"),
            ];
            let few = bucketed[..1].iter().chain(&bucketed[2..]);
            for pairs in [bucketed.iter().collect::<Vec<_>>(), few.collect()] {
                let mut sql = sql.replace("[SHUFFLE] ", "");
                for (plain, bucketed) in pairs {
                    sql = sql.replace(plain, bucketed);
                }
                assert_eq!(client.query(&sql).await, [answer], "wait {wait}: {sql}");
                let plan = format!("{:?}", client.query(&format!("EXPLAIN {sql}")).await);
                by_buckets += usize::from(
                    plan.contains("BucketJoinExec") && plan.contains("RuntimeFilterTarget"),
                );
            }
        }
        assert!(by_buckets >= 10, "only {by_buckets} were joined by buckets");
    }
}

/// A join whose left side has no row in a bucket drops the right side of that bucket unread. What is below is still to know that
/// nobody will ask: a filter of which that is a part, a broadcast join that is made of all partitions.
#[tokio::test(flavor = "multi_thread")]
async fn no_filter_waits_for_a_bucket_that_is_not_read() {
    let settings = Settings::default().with("TARN_QUERY_SPREAD", "1");
    let cluster = Cluster::start_with(3, settings).await;
    let mut client = cluster.client().await;
    set(
        &mut client,
        &[
            ("runtime_filter_min_rows", "0"),
            // Far longer than the query may take.
            ("runtime_filter_wait_ms", "3600000"),
            ("max_execution_time", "120000"),
        ],
    )
    .await;
    for (table, partition) in [("a", "PARTITION BY (bucket(4, k))"), ("b", "")] {
        client
            .query(&format!(
                "CREATE TABLE {table} (k BIGINT, j INT, g INT, v BIGINT) {partition}"
            ))
            .await;
    }
    for sql in [
        "INSERT INTO a SELECT 7, value % 12, value % 3, value FROM range(0, 25)",
        "INSERT INTO b SELECT CASE WHEN value % 5 = 0 THEN 7 END, value % 12, value % 3, value FROM range(0, 21)",
        "CREATE TABLE c PARTITION BY (bucket(4, k)) AS SELECT value AS k FROM range(0, 10000)",
        "CREATE TABLE one PARTITION BY (bucket(4, k)) AS SELECT 7 AS k",
    ] {
        client.query(sql).await;
    }
    // Of the 25 rows of `a` all have the key 7, and one has v = 1; of them 12 are distinct without v. `b` has five rows of that key, with
    // v = 0, 5, 10, 15 and 20: 24 x 12 x 5 rows, of which z.v is 10 on average.
    for (sql, row, nodes) in [
        (
            "SELECT count(*), sum(y.v), sum(z.v) FROM a x LEFT JOIN (SELECT DISTINCT k, j, g, 1 AS v FROM a) y \
             ON x.k = y.k AND x.v <> y.v JOIN b z ON x.k = z.k AND y.v <> z.v",
            ["1440", "1440", "14400"],
            ["BucketJoinExec", "RuntimeFilterTarget", "SharedBuildExec"],
        ),
        (
            "SELECT count(*), sum(y.v), sum(z.v) FROM one x JOIN (SELECT DISTINCT k, 1 AS v FROM c) y ON x.k = y.k \
             JOIN b z ON x.k = z.k AND y.v <= z.v",
            ["4", "4", "50"],
            ["BucketJoinExec", "RuntimeFilterTarget", "HashJoinExec"],
        ),
    ] {
        let plan = format!("{:?}", client.query(&format!("EXPLAIN {sql}")).await);
        for node in nodes {
            assert!(plan.contains(node), "{node}: {plan}");
        }
        assert_eq!(client.query(sql).await, [row], "{sql}");
    }
}
