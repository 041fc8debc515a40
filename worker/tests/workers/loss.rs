//! Workers that die, freeze, or were never there.

use crate::cluster::*;
use crate::tables::Tables;
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use std::time::{Duration, Instant};
use tarn_cluster::{ClusterSettings, Heartbeat, QueryContext, WorkerId, WorkerState, worker_lost};
use tokio::net::TcpListener;
use url::Url;

/// Rows flow for as long as somebody reads them: every pair of facts of a shop.
const ENDLESS: &str =
    "SELECT a.id, b.id, a.note || b.note FROM facts a JOIN facts b ON a.shop = b.shop";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_killed_in_a_query_is_named_and_the_others_answer() {
    let tables = Tables::make(6, 4000);
    let coordinator = Coordinator::start().await;
    let mut workers = Vec::new();
    for _ in 0..3 {
        workers.push(TestWorker::start(coordinator.address).await);
    }
    coordinator.wait_for_workers(3).await;
    let dispatch = dispatch(&coordinator, small_scans());
    let context = session(&dispatch, &query("q"), &tables).await;
    let plan = plan(&context, ENDLESS).await.unwrap();
    let mut stream = execute_stream(plan, context.task_ctx()).unwrap();
    stream.next().await.unwrap().unwrap();

    let killed = workers[1].url.clone();
    workers[1].kill().await;
    let start = Instant::now();
    let error = loop {
        match tokio::time::timeout(PATIENCE, stream.next())
            .await
            .expect("the query hangs")
        {
            Some(Ok(_)) => {}
            Some(Err(error)) => break error,
            None => panic!("a part was returned as the whole"),
        }
    };
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}",
        start.elapsed()
    );
    let lost = worker_lost(&error).unwrap_or_else(|| panic!("not classified: {error}"));
    assert_eq!(lost.url.as_ref(), Some(&killed), "{error}");
    dispatch.report_lost(&lost);
    let members = coordinator.membership.list();
    assert_eq!(coordinator.membership.snapshot().len(), 2, "{members:?}");

    let retry = QueryContext {
        exclude: vec![killed],
        ..query("q")
    };
    let context = session(&dispatch, &retry, &tables).await;
    let sql = "SELECT count(*), sum(amount) FROM facts";
    let local = local_session(&tables).await;
    assert_eq!(
        lines(&run(&context, sql).await.unwrap()),
        lines(&run(&local, sql).await.unwrap())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loss_between_workers_names_the_one_that_is_gone() {
    let tables = Tables::make(6, 4000);
    let coordinator = Coordinator::start().await;
    let mut workers = Vec::new();
    for _ in 0..3 {
        workers.push(TestWorker::start(coordinator.address).await);
    }
    coordinator.wait_for_workers(3).await;
    let dispatch = dispatch(&coordinator, small_scans());
    // The coordinator reads the last stage from one task only; the other workers feed that one.
    let sql = "SELECT count(*), max(x) FROM (SELECT a.id * b.id AS x FROM facts a JOIN facts b ON a.shop = b.shop)";
    let context = session(&dispatch, &query("q"), &tables).await;
    let running = tokio::spawn(async move { run(&context, sql).await });
    let membership = coordinator.membership.clone();
    wait_until("task on every worker", || {
        membership
            .list()
            .iter()
            .all(|worker| worker.running_tasks > 0)
    })
    .await;
    let killed = workers[2].url.clone();
    workers[2].kill().await;
    let error = match running.await.unwrap() {
        Err(error) => error,
        Ok(_) => return, // It was done before the kill: nothing to see on a fast machine.
    };
    let lost = worker_lost(&error).unwrap_or_else(|| panic!("not classified: {error}"));
    assert_eq!(lost.url, Some(killed), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_worker_is_found_out_in_seconds() {
    let tables = Tables::make(6, 500);
    let coordinator = Coordinator::start().await;
    let _worker = TestWorker::start(coordinator.address).await;
    // It takes connections and never says a word.
    let frozen = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}", frozen.local_addr().unwrap())).unwrap();
    coordinator.membership.heartbeat(pretended(&url));
    coordinator.wait_for_workers(2).await;

    let mut settings = small_scans();
    settings.channels.keepalive_interval = Duration::from_millis(200);
    settings.channels.keepalive_timeout = Duration::from_millis(500);
    let dispatch = dispatch(&coordinator, settings);
    let context = session(&dispatch, &query("q"), &tables).await;
    let start = Instant::now();
    let error = run(
        &context,
        "SELECT shop, sum(amount) FROM facts GROUP BY shop",
    )
    .await
    .unwrap_err();
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}",
        start.elapsed()
    );
    let lost = worker_lost(&error).unwrap_or_else(|| panic!("not classified: {error}"));
    assert_eq!(lost.url, Some(url), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_not_there_is_suspected_at_once() {
    let tables = Tables::make(6, 500);
    let coordinator = Coordinator::start().await;
    let _worker = TestWorker::start(coordinator.address).await;
    let address = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let url = Url::parse(&format!("http://{address}")).unwrap();
    coordinator.membership.heartbeat(pretended(&url));
    coordinator.wait_for_workers(2).await;
    let dispatch = dispatch(&coordinator, small_scans());
    let context = session(&dispatch, &query("q"), &tables).await;
    let error = run(
        &context,
        "SELECT shop, sum(amount) FROM facts GROUP BY shop",
    )
    .await
    .unwrap_err();
    assert_eq!(worker_lost(&error).unwrap().url, Some(url), "{error}");
    assert_eq!(
        coordinator.membership.snapshot().len(),
        1,
        "suspected without being reported"
    );
    let context = session(&dispatch, &query("q"), &tables).await;
    run(
        &context,
        "SELECT shop, sum(amount) FROM facts GROUP BY shop",
    )
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_only_worker_gone_the_reason_is_told() {
    let tables = Tables::make(1, 50);
    let coordinator = Coordinator::start().await;
    let mut worker = TestWorker::start(coordinator.address).await;
    coordinator.wait_for_workers(1).await;
    let dispatch = dispatch(&coordinator, ClusterSettings::default());
    let context = session(&dispatch, &query("q"), &tables).await;
    run(&context, "SELECT max(id) FROM facts").await.unwrap();
    worker.kill().await;
    let error = run(&context, "SELECT max(id) FROM facts WHERE shop > 1")
        .await
        .unwrap_err();
    dispatch.report_lost(&worker_lost(&error).unwrap());
    let context = session(&dispatch, &query("q"), &tables).await;
    let error = run(&context, "SELECT max(id) FROM facts WHERE shop > 1")
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("no worker is in service") && error.contains(worker.url.as_str()),
        "{error}"
    );
}

fn pretended(url: &Url) -> Heartbeat {
    Heartbeat {
        id: WorkerId("pretended".to_string()),
        url: url.clone(),
        http_url: None,
        version: tarn_cluster::ENGINE_VERSION.to_string(),
        cores: 2,
        memory_bytes: 1 << 30,
        state: WorkerState::Active,
        running_tasks: 0,
        memory_used: 0,
        spill_used: 0,
        cache: Default::default(),
        started_ms: 0,
        queries: Vec::new(),
    }
}
