//! Workers come, go and die; the coordinator restarts.

use std::time::Duration;

use crate::harness::{Cluster, Settings, eventually, generate_tpch, run_python};

/// Runs for many seconds on any machine: every pair of lineitem's rows with a thousandth of them.
const LONG: &str = "SELECT count(*) FROM tpch.lineitem a JOIN tpch.lineitem b \
    ON a.l_orderkey + b.l_partkey <> a.l_suppkey * b.l_linenumber + 1 WHERE b.l_orderkey < 2000";

/// The index of a worker that runs a task, once there is one.
async fn busy_worker(cluster: &Cluster) -> usize {
    let mut client = cluster.client().await;
    let mut busy = None;
    eventually("a worker runs the query", async || {
        let urls = client
            .query(
                "SELECT url FROM tarn.system.workers WHERE state = 'active' AND running_tasks > 0",
            )
            .await;
        busy = cluster.workers.iter().position(|worker| {
            urls.iter()
                .any(|row| row[0].contains(worker.address("worker")))
        });
        busy.is_some()
    })
    .await;
    busy.expect("found above")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_mid_query_costs_time_and_not_the_answer() {
    let mut cluster = Cluster::over(generate_tpch(), 3).await;
    let mut client = cluster.client().await;
    let expected = client
        .value("SELECT count(*) FROM tpch.lineitem WHERE l_orderkey < 2000")
        .await;
    let query = tokio::spawn(async move { client.try_query(LONG).await });
    let busy = busy_worker(&cluster).await;
    cluster.workers[busy].kill();
    let rows = query
        .await
        .expect("no panic")
        .expect("the query is retried");
    // The condition holds for nearly all pairs; the exact count is what one process says.
    let alone = Cluster::over(generate_tpch(), 0).await;
    assert_eq!(rows[0][0], alone.client().await.value(LONG).await);
    assert!(expected.parse::<u64>().expect("a count") > 1000);
    let record = cluster
        .audit()
        .into_iter()
        .rev()
        .find(|r| r["statement"] == LONG)
        .expect("an audit record");
    assert_eq!(record["outcome"], "ok");
    assert!(record["retries"].as_u64() >= Some(1), "{record}");
    cluster.wait_for_workers(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_lost_after_the_first_row_fails_the_query_in_seconds() {
    let mut cluster = Cluster::over(generate_tpch(), 2).await;
    let mut client = cluster.client().await;
    let sql = "SELECT a.l_orderkey, b.l_comment FROM tpch.lineitem a JOIN tpch.lineitem b \
               ON a.l_linenumber <> b.l_linenumber + 10 WHERE b.l_orderkey < 2000";
    let info = client
        .flight()
        .execute(sql.into(), None)
        .await
        .expect("planned");
    let ticket = info.endpoint[0].ticket.clone().expect("a ticket");
    let mut stream = client.flight().do_get(ticket).await.expect("a stream");
    use futures::StreamExt;
    stream.next().await.expect("a batch").expect("rows");
    for worker in &mut cluster.workers {
        worker.kill();
    }
    let ended = tokio::time::timeout(Duration::from_secs(60), async {
        while let Some(batch) = stream.next().await {
            if let Err(error) = batch {
                return error.to_string();
            }
        }
        String::new()
    })
    .await
    .expect("it must not hang");
    assert!(
        ended.contains("worker"),
        "an error that says why, not `{ended}`"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_worker_ends_a_query_whose_client_does_not_read() {
    let cluster = Cluster::over(generate_tpch(), 3).await;
    let mut args = vec![cluster.mysql_port().to_string()];
    args.extend(
        cluster
            .workers
            .iter()
            .map(|worker| format!("{}={}", worker.address("worker"), worker.pid())),
    );
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let printed = run_python("unread_loss.py", &args);
    let (killed, error) = printed.split_once(' ').expect("an address and an error");
    assert!(
        error.contains(&format!("worker http://{killed}/ was lost")),
        "an error that names {killed}, not `{error}`"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_worker_takes_part_without_any_restart() {
    let mut cluster = Cluster::over(generate_tpch(), 1).await;
    let mut client = cluster.client().await;
    let sql = "SELECT l_returnflag, count(*) FROM tpch.lineitem GROUP BY l_returnflag ORDER BY 1";
    let before = client.query(sql).await;
    let running = tokio::spawn({
        let mut other = cluster.client().await;
        async move { other.try_query(LONG).await }
    });
    cluster.add_worker();
    cluster.add_worker();
    cluster.wait_for_workers(3).await;
    assert_eq!(client.query(sql).await, before);
    running
        .await
        .expect("no panic")
        .expect("the query that was running goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_worker_finishes_its_tasks_and_takes_no_more() {
    // The query takes as long as the machine is slow, and the worker waits for it.
    let settings = Settings::default().with("TARN_WORKER_DRAIN_TIMEOUT", "15min");
    let mut cluster = Cluster::over_with(generate_tpch(), 2, settings).await;
    let mut client = cluster.client().await;
    let query = tokio::spawn(async move { client.try_query(LONG).await });
    let busy = busy_worker(&cluster).await;
    cluster.workers[busy].signal("TERM");
    cluster.wait_for_workers(1).await;
    // New queries go to the other one; the running one is finished by both.
    assert_eq!(
        cluster
            .client()
            .await
            .value("SELECT count(*) FROM tpch.nation")
            .await,
        "25"
    );
    query
        .await
        .expect("no panic")
        .expect("a draining worker finishes its tasks");
    assert_eq!(cluster.workers[busy].wait(Duration::from_secs(60)), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_rejoin_a_restarted_coordinator() {
    let mut cluster = Cluster::over(generate_tpch(), 2).await;
    cluster.restart_coordinator();
    cluster.wait_for_workers(2).await;
    assert_eq!(
        cluster
            .client()
            .await
            .value("SELECT count(*) FROM tpch.region")
            .await,
        "5"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_without_workers_says_so() {
    let cluster = Cluster::start_with(0, Settings::default()).await;
    let mut client = cluster.client().await;
    client.query("CREATE DATABASE d").await;
    client.query("CREATE TABLE d.t (id INT)").await;
    client.query("INSERT INTO d.t VALUES (1)").await;
    let error = client.error("SELECT id + 1 FROM d.t").await;
    assert!(error.contains("no worker"), "{error}");
    assert_eq!(client.value("SELECT 1").await, "1");
}
