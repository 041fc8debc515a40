//! A query is seen, limited, killed, and leaves a record.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::harness::{Cluster, Settings, eventually, generate_tpch, run_python};

const LONG: &str = "SELECT count(*) FROM tpch.lineitem a JOIN tpch.lineitem b \
    ON a.l_orderkey + b.l_partkey <> a.l_suppkey * b.l_linenumber + 1";

async fn tasks(cluster: &Cluster) -> u64 {
    let mut client = cluster.client().await;
    client
        .value("SELECT coalesce(sum(running_tasks), 0) FROM tarn.system.workers")
        .await
        .parse()
        .expect("a count")
}

async fn memory(cluster: &Cluster) -> u64 {
    let mut client = cluster.client().await;
    client
        .value("SELECT coalesce(sum(memory_used_bytes), 0) FROM tarn.system.workers")
        .await
        .parse()
        .expect("bytes")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_query_stops_on_every_worker() {
    let cluster = Cluster::over(generate_tpch(), 2).await;
    let mut client = cluster.client().await;
    let query = tokio::spawn(async move { client.try_query(LONG).await });
    eventually("the query runs", async || tasks(&cluster).await >= 1).await;
    let mut admin = cluster.client().await;
    let rows = admin
        .query("SELECT query_id, state FROM tarn.system.queries WHERE statement LIKE '%l_suppkey * b.l_linenumber%' AND statement NOT LIKE '%system.queries%'")
        .await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    admin.query(&format!("KILL QUERY '{}'", rows[0][0])).await;
    let error = query.await.expect("no panic").expect_err("it was killed");
    assert!(
        error.to_lowercase().contains("interrupt") || error.to_lowercase().contains("kill"),
        "{error}"
    );
    eventually("no task is left", async || tasks(&cluster).await == 0).await;
    eventually("its memory is free", async || memory(&cluster).await == 0).await;
    let record = cluster
        .audit()
        .into_iter()
        .rev()
        .find(|r| r["statement"] == LONG)
        .expect("a record");
    assert_eq!(record["outcome"], "killed");
}

/// One key joins with itself a million million times: the join makes batches without end from the
/// one that it read, and must leave its threads to the KILL all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_join_that_multiplies_without_end_can_be_killed() {
    let sql = "SELECT count(a.value + b.value) FROM range(0, 1000000) a \
               JOIN range(0, 1000000) b ON a.value % 1 = b.value % 1";
    let server = Cluster::server();
    let mut client = server.client().await;
    let query = tokio::spawn(async move { client.try_query(sql).await });
    let mut admin = server.client().await;
    let mut id = None;
    eventually("the query runs", async || {
        let rows = admin
            .query("SELECT query_id FROM tarn.system.queries WHERE state = 'RUNNING' AND statement LIKE 'SELECT count(a.value%'")
            .await;
        id = rows.first().map(|row| row[0].clone());
        id.is_some()
    })
    .await;
    admin
        .query(&format!("KILL QUERY '{}'", id.expect("found above")))
        .await;
    query.await.expect("no panic").expect_err("it was killed");
    assert_eq!(admin.value("SELECT 1").await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disconnect_stops_the_query() {
    let cluster = Cluster::over(generate_tpch(), 2).await;
    run_python("disconnect.py", &[&cluster.mysql_port().to_string(), LONG]);
    eventually("no task is left", async || tasks(&cluster).await == 0).await;
    eventually("the record says so", async || {
        cluster
            .audit()
            .iter()
            .any(|r| r["statement"] == LONG && r["outcome"] == "disconnected")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn query_timeout_ends_a_query_with_its_error() {
    let cluster = Cluster::over(generate_tpch(), 2).await;
    let printed = run_python("timeout.py", &[&cluster.mysql_port().to_string(), LONG]);
    assert_eq!(printed.trim(), "3024");
    eventually("no task is left", async || tasks(&cluster).await == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_spill_under_a_small_memory_limit_and_agree() {
    // 361,050 rows of text to sort, far more than the limit holds.
    let sql = "SELECT at, l_orderkey, l_comment FROM (SELECT l_orderkey, l_comment, \
               row_number() OVER (ORDER BY l_comment, l_orderkey, l_linenumber, n.value) AS at \
               FROM tpch.lineitem CROSS JOIN range(0, 6) n) WHERE at IN (1, 100000, 361050) ORDER BY at";
    let roomy = Cluster::over(generate_tpch(), 0).await;
    let expected = roomy.client().await.query(sql).await;
    assert_eq!(expected.len(), 3);
    let small = Cluster::over_with(
        generate_tpch(),
        0,
        Settings::default().with("TARN_WORKER_MEMORY", "64MiB"),
    )
    .await;
    let mut client = small.client().await;
    assert_eq!(client.query(sql).await, expected);
    let analyzed = format!(
        "{:?}",
        client.query(&format!("EXPLAIN ANALYZE {sql}")).await
    );
    assert!(
        analyzed
            .split("spill_count=")
            .skip(1)
            .any(|rest| !rest.starts_with('0')),
        "nothing was spilled: {analyzed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_client_does_not_make_the_query_buffer() {
    let cluster = Cluster::over(generate_tpch(), 2).await;
    let printed = run_python(
        "slow_client.py",
        &[
            &cluster.mysql_port().to_string(),
            &cluster.coordinator.pid().to_string(),
        ],
    );
    let grown: u64 = printed.trim().parse().expect("bytes");
    // The whole answer is over 2 GB; sockets, channels and batches in flight are far less.
    assert!(grown < 400 << 20, "the coordinator grew by {grown} bytes");
    eventually("no task is left", async || tasks(&cluster).await == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_statement_leaves_a_record_with_its_scans() {
    let cluster = Cluster::start(2).await;
    let mut client = cluster.client().await;
    client.query("CREATE DATABASE d").await;
    client
        .query("CREATE TABLE d.t (day DATE, user_id BIGINT, n INT) PARTITION BY (day)")
        .await;
    for day in 1..=4 {
        client
            .query(&format!("INSERT INTO d.t SELECT DATE '2024-01-0{day}', value, 1 FROM range({day}00, {day}50)"))
            .await;
    }
    assert_eq!(
        client
            .value("SELECT sum(n) FROM d.t WHERE day >= '2024-01-03' AND user_id < 320")
            .await,
        "20"
    );
    client.error("SELECT * FROM d.missing").await;
    client.error("SELECT FROM WHERE").await;
    let mut record = serde_json::Value::Null;
    eventually("the records are written", async || {
        let all = cluster.audit();
        if let Some(found) = all.iter().find(|r| {
            r["statement"]
                .as_str()
                .is_some_and(|s| s.contains("user_id < 320"))
        }) {
            record = found.clone();
        }
        !record.is_null()
            && all
                .iter()
                .any(|r| r["outcome"] == "error" && r["error"]["code"] == 1146)
            && all
                .iter()
                .any(|r| r["outcome"] == "error" && r["error"]["code"] == 1064)
    })
    .await;
    assert_eq!(record["kind"], "SELECT");
    assert_eq!(record["outcome"], "ok");
    assert_eq!(record["rowsReturned"], 1);
    let scan = &record["scans"][0];
    // Four files, a day each: the partition leaves days 3 and 4, the bounds of user_id leave day 3.
    assert_eq!(scan["table"], "t");
    assert_eq!(scan["nonPartFilterCols"], serde_json::json!(["user_id"]));
    assert_eq!(
        scan["files"],
        serde_json::json!({"total": 4, "skipped": 3, "kept": 1}),
        "{scan}"
    );
    assert_eq!(scan["resultDataFiles"], 1);
    assert_eq!(scan["rowsInFiles"], 50);
    assert_eq!(scan["manifests"]["total"], 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_estimate_and_analyze_tell_what_is_read() {
    let cluster = Cluster::over(generate_tpch(), 2).await;
    let mut client = cluster.client().await;
    let plan = format!("{:?}", client.query("EXPLAIN SELECT count(*) FROM tpch.lineitem l JOIN tpch.orders o ON l.l_orderkey = o.o_orderkey WHERE o.o_orderdate < '1995-01-01' GROUP BY l.l_shipmode").await);
    for part in ["Stage", "lineitem", "files"] {
        assert!(plan.contains(part), "no `{part}` in {plan}");
    }
    let estimate = client
        .query("EXPLAIN ESTIMATE SELECT * FROM tpch.lineitem WHERE l_orderkey < 0")
        .await;
    let text = format!("{estimate:?}");
    assert!(text.contains("lineitem"), "{text}");
    let analyzed = format!(
        "{:?}",
        client
            .query(
                "EXPLAIN ANALYZE SELECT l_shipmode, count(*) FROM tpch.lineitem GROUP BY l_shipmode"
            )
            .await
    );
    assert!(
        analyzed.contains("Stage 1")
            && analyzed.contains("tasks=")
            && analyzed.contains("output_rows"),
        "{analyzed}"
    );
}

#[test]
fn garbage_on_the_ports_hurts_nobody_else() {
    let server = Cluster::server();
    for address in [
        server.coordinator.address("mysql"),
        server.coordinator.address("flight"),
        server.coordinator.address("http"),
    ] {
        let mut socket = TcpStream::connect(address).expect("it listens");
        let garbage: Vec<u8> = (0..100_000u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        let _ = socket.write_all(&garbage);
        let _ = socket.set_read_timeout(Some(std::time::Duration::from_secs(5)));
        let mut answer = vec![];
        let _ = socket.read_to_end(&mut answer);
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        assert_eq!(server.client().await.value("SELECT 1").await, "1");
    });
}
