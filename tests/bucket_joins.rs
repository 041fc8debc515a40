//! Joins of tables that are bucketed by what they are joined on.

use crate::harness::{Client, Cluster, Settings, run_python};

/// Small as they are, scans run on all workers.
fn spread() -> Settings {
    Settings::default().with("TARN_QUERY_SPREAD", "1")
}

/// `events` (1,000 rows, keys 0 to 299 three times and 0 to 99 once more; every tenth key null), `users` (keys 0 to 199, in
/// twice as many buckets) and `items` (keys 100 to 109, which leaves buckets empty), and copies without buckets.
async fn fill(client: &mut Client) {
    client.query("CREATE TABLE digits (d BIGINT)").await;
    client
        .query("INSERT INTO digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)")
        .await;
    let thousand = "SELECT a.d * 100 + b.d * 10 + c.d AS n FROM digits a, digits b, digits c";
    let tables = [
        (
            "events",
            "bucket(8, k)",
            format!(
                "SELECT CASE WHEN n % 10 = 9 THEN NULL ELSE n % 300 END AS k, n AS v FROM ({thousand}) t"
            ),
        ),
        (
            "users",
            "bucket(16, k)",
            format!("SELECT n AS k, n * 2 AS v FROM ({thousand}) t WHERE n < 200"),
        ),
        (
            "items",
            "bucket(8, k)",
            format!("SELECT n AS k, n * 3 AS v FROM ({thousand}) t WHERE n BETWEEN 100 AND 109"),
        ),
    ];
    for (name, partition, rows) in tables {
        client
            .query(&format!(
                "CREATE TABLE {name} (k BIGINT, v BIGINT) PARTITION BY ({partition})"
            ))
            .await;
        client.query(&format!("INSERT INTO {name} {rows}")).await;
        client
            .query(&format!(
                "CREATE TABLE plain_{name} AS SELECT * FROM {name}"
            ))
            .await;
    }
}

const JOINS: &[&str] = &[
    "SELECT a.k, a.v, b.v FROM events a JOIN users b ON a.k = b.k",
    "SELECT a.k, a.v, b.v FROM events a LEFT JOIN users b ON a.k = b.k",
    "SELECT b.k, a.v, b.v FROM events a RIGHT JOIN items b ON a.k = b.k",
    "SELECT a.v, b.v FROM events a FULL JOIN items b ON a.k = b.k",
    "SELECT a.v FROM events a WHERE EXISTS (SELECT 1 FROM users b WHERE b.k = a.k)",
    "SELECT a.v FROM events a WHERE NOT EXISTS (SELECT 1 FROM users b WHERE b.k = a.k)",
    "SELECT a.v, b.v FROM events a JOIN events b ON a.k = b.k",
    "SELECT a.v, b.v, c.v FROM events a JOIN users b ON a.k = b.k JOIN items c ON a.k = c.k",
    "SELECT a.v, b.v FROM events a JOIN users b ON a.k = b.k WHERE a.k = 42",
    "SELECT a.k, count(*), sum(b.v) FROM events a JOIN users b ON a.k = b.k GROUP BY a.k",
];

fn plain(sql: &str) -> String {
    ["events", "users", "items"]
        .iter()
        .fold(sql.to_owned(), |sql, table| {
            sql.replace(&format!(" {table} "), &format!(" plain_{table} "))
        })
}

async fn sorted(client: &mut Client, sql: &str) -> Vec<Vec<String>> {
    let mut rows = client.query(sql).await;
    rows.sort();
    rows
}

async fn explain(client: &mut Client, sql: &str) -> String {
    let lines = client.query(&format!("EXPLAIN {sql}")).await;
    let lines: Vec<String> = lines.into_iter().map(|row| row[0].clone()).collect();
    lines.join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn bucketed_tables_join_without_a_shuffle_on_any_number_of_workers() {
    let mut cluster = Cluster::start_with(3, spread()).await;
    let mut client = cluster.client().await;
    client.query("SET bucket_joins = ON").await;
    fill(&mut client).await;
    // By hand: of the keys 0 to 299 that do not end in 9, users have 180; 0 to 99 are in events four times, 90 of them, the
    // other 90 three times.
    assert_eq!(
        client
            .value("SELECT count(*) FROM events a JOIN users b ON a.k = b.k")
            .await,
        "630"
    );
    let mut expected = vec![];
    for sql in JOINS {
        expected.push(sorted(&mut client, &plain(sql)).await);
        let plan = explain(&mut client, sql).await;
        assert!(plan.contains("BucketJoinExec"), "{sql}\n{plan}");
        assert!(
            !plan.contains("NetworkShuffleExec") && !plan.contains("NetworkBroadcastExec"),
            "{sql}\n{plan}"
        );
    }
    for workers in [3, 5, 2, 1] {
        while cluster.workers.len() < workers {
            cluster.add_worker();
        }
        while cluster.workers.len() > workers {
            if let Some(mut worker) = cluster.workers.pop() {
                worker.kill();
            }
        }
        cluster.wait_for_workers(workers).await;
        let mut client = cluster.client().await;
        client.query("SET bucket_joins = ON").await;
        for (sql, expected) in JOINS.iter().zip(&expected) {
            // What goes wrong between partitions goes wrong now and then.
            for _ in 0..3 {
                assert_eq!(
                    &sorted(&mut client, sql).await,
                    expected,
                    "{workers} workers: {sql}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_joins_over_random_buckets_agree_with_duckdb() {
    let cluster = Cluster::start_with(3, spread()).await;
    let mut client = cluster.client().await;
    client.query("SET GLOBAL bucket_joins = ON").await;
    let printed = run_python(
        "random_joins.py",
        &[
            "--address",
            &format!("127.0.0.1:{}", cluster.flight_port()),
            "--data",
            cluster.dir().to_str().expect("UTF-8"),
            "--joins",
            "300",
        ],
    );
    assert!(printed.trim().ends_with(", 0 differences"), "{printed}");
}

/// The distribution of the one join of a query, as EXPLAIN says it.
async fn distribution(client: &mut Client, sql: &str) -> String {
    let plan = explain(client, sql).await;
    let mut lines = plan
        .lines()
        .filter_map(|line| line.trim().strip_prefix("distribution  "));
    let first = lines.next().unwrap_or_else(|| panic!("{sql}\n{plan}"));
    first.split(':').next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_say_how_a_join_is_distributed() {
    let cluster = Cluster::start_with(3, spread()).await;
    let mut client = cluster.client().await;
    client.query("SET bucket_joins = ON").await;
    fill(&mut client).await;
    let right = sorted(
        &mut client,
        "SELECT a.v, b.v FROM plain_events a JOIN plain_users b ON a.k = b.k",
    )
    .await;
    for (wanted, sql) in [
        (
            "COLOCATE",
            "SELECT a.v, b.v FROM events a JOIN users b ON a.k = b.k",
        ),
        (
            "COLOCATE",
            "SELECT a.v, b.v FROM events a JOIN [COLOCATE] users b ON a.k = b.k",
        ),
        (
            "SHUFFLE",
            "SELECT a.v, b.v FROM events a JOIN [SHUFFLE] users b ON a.k = b.k",
        ),
        (
            "SHUFFLE",
            "SELECT a.v, b.v FROM plain_events a JOIN [shuffle] plain_users AS b ON a.k = b.k",
        ),
        (
            "BROADCAST",
            "SELECT a.v, b.v FROM events a JOIN [BROADCAST] users b ON a.k = b.k",
        ),
        (
            "BROADCAST",
            "SELECT /*+ BROADCAST(a) */ a.v, b.v FROM events a JOIN users b ON a.k = b.k",
        ),
        (
            "BROADCAST",
            "SELECT a.v, b.v FROM plain_events a JOIN plain_users b ON a.k = b.k",
        ),
        (
            "BUCKET_SHUFFLE",
            "SELECT a.v, b.v FROM events a JOIN [BUCKET] plain_users b ON a.k = b.k",
        ),
        (
            "BUCKET_SHUFFLE",
            "SELECT /*+ BUCKET(b) */ a.v, b.v FROM plain_events a JOIN users b ON a.k = b.k",
        ),
        (
            "BUCKET_SHUFFLE",
            "SELECT a.v, b.v FROM events a JOIN [BUCKET] (SELECT k, max(v) AS v FROM plain_users GROUP BY k) b ON a.k = b.k",
        ),
    ] {
        assert_eq!(distribution(&mut client, sql).await, wanted, "{sql}");
        for _ in 0..3 {
            assert_eq!(sorted(&mut client, sql).await, right, "{sql}");
        }
    }
    for (sql, reason) in [
        (
            "SELECT a.v FROM events a JOIN [COLOCATE] plain_users b ON a.k = b.k",
            "plain_users.k has no buckets",
        ),
        (
            "SELECT a.v FROM plain_events a JOIN [BUCKET] plain_users b ON a.k = b.k",
            "neither plain_users.k nor plain_events.k has buckets",
        ),
        (
            "SELECT a.v FROM events a RIGHT JOIN [BROADCAST] users b ON a.k = b.k",
            "is impossible: the join also yields rows of",
        ),
        (
            "SELECT /*+ BROADCAST(a) */ a.v FROM events a LEFT JOIN users b ON a.k = b.k",
            "is impossible: the join also yields rows of",
        ),
        (
            "SELECT a.v FROM plain_events a FULL JOIN [BROADCAST] plain_items b ON a.k = b.k",
            "is impossible: the join also yields rows of",
        ),
        (
            "SELECT a.v FROM events a RIGHT JOIN [BROADCAST] items b ON a.k < b.k",
            "is impossible: the join also yields rows of",
        ),
        (
            "SELECT /*+ BROADCAST(x) */ a.v FROM events a JOIN users b ON a.k = b.k",
            "there is no table 'x'",
        ),
        (
            "SELECT a.v FROM events a JOIN [SHUFFLE] users b ON a.k < b.k",
            "equal keys",
        ),
        (
            "SELECT /*+ SHUFFLE(a) */ a.v FROM events a",
            "joined with nothing",
        ),
    ] {
        let error = client.error(sql).await;
        assert!(error.contains(reason), "{sql}\n{error}");
    }
    // Hints of other engines are comments.
    assert_eq!(
        client
            .value("SELECT /*+ SET_VAR(query_timeout = 10) */ count(*) FROM items")
            .await,
        "10"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_may_shuffle_only_so_many_dimensions() {
    let cluster = Cluster::start_with(3, spread()).await;
    let mut client = cluster.client().await;
    client.query("SET bucket_joins = ON").await;
    fill(&mut client).await;
    let sql = "SELECT count(*) FROM plain_events a JOIN [SHUFFLE] plain_users b ON a.k = b.k \
               JOIN [SHUFFLE] plain_items c ON a.k = c.k";
    // The keys 100 to 108 are in events three times, in the others once.
    assert_eq!(client.value(sql).await, "27");
    client.query("SET max_shuffled_dimensions = 1").await;
    let error = client.error(sql).await;
    assert!(
        error.contains("2 joins would shuffle")
            && error.contains("plain_items")
            && error.contains("max_shuffled_dimensions allows 1"),
        "{error}"
    );
    // Those by buckets do not count, and EXPLAIN shows the plan of a query that may not run.
    let by_buckets = "SELECT count(*) FROM events a JOIN users b ON a.k = b.k JOIN [SHUFFLE] plain_items c ON a.k = c.k";
    assert_eq!(client.value(by_buckets).await, "27");
    assert!(explain(&mut client, sql).await.contains("SHUFFLE: neither"));
}
