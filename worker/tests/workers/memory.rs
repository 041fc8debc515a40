//! What queries hold on workers, and that they give it back.

use crate::cluster::*;
use crate::tables::Tables;
use datafusion::physical_plan::execute_stream;
use datafusion_distributed::{DistributedMetricsFormat, explain_analyze};
use futures::{StreamExt, TryStreamExt};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tarn_cluster::{QueryContext, worker_lost};

async fn idle(worker: &TestWorker) {
    let start = Instant::now();
    loop {
        let status = worker.status().await;
        if status.running_tasks == 0 && status.memory_used == 0 && status.queries.is_empty() {
            return;
        }
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "still held: {status:?}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_is_dropped_gives_everything_back() {
    let tables = Tables::make(6, 4000);
    let coordinator = Coordinator::start().await;
    let workers = [
        TestWorker::start(coordinator.address).await,
        TestWorker::start(coordinator.address).await,
    ];
    coordinator.wait_for_workers(2).await;
    let dispatch = dispatch(&coordinator, small_scans());
    let context = session(&dispatch, &query("killed"), &tables).await;
    let sql = "SELECT a.id, b.id, a.note || b.note FROM facts a JOIN facts b ON a.shop = b.shop";
    let plan = plan(&context, sql).await.unwrap();
    let mut stream = execute_stream(plan, context.task_ctx()).unwrap();
    stream.next().await.unwrap().unwrap();
    for worker in &workers {
        let status = worker.status().await;
        assert!(
            status.running_tasks > 0 && status.memory_used > 0,
            "{status:?}"
        );
        assert_eq!(status.queries[0].query_id, "killed");
        assert!(status.queries[0].memory_bytes > 0);
    }
    let members = coordinator.membership.clone();
    wait_until("report of the query", || {
        members
            .query_load("killed")
            .is_some_and(|load| load.memory_bytes > 0)
    })
    .await;
    drop(stream);
    for worker in &workers {
        idle(worker).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finished_query_gives_everything_back() {
    let tables = Tables::make(4, 1000);
    let coordinator = Coordinator::start().await;
    let worker = TestWorker::start(coordinator.address).await;
    coordinator.wait_for_workers(1).await;
    let dispatch = dispatch(&coordinator, small_scans());
    let context = session(&dispatch, &query("q"), &tables).await;
    run(&context, "SELECT shop, count(*) FROM facts GROUP BY shop")
        .await
        .unwrap();
    let error = run(&context, "SELECT CAST(note AS bigint) FROM facts")
        .await
        .unwrap_err();
    assert_eq!(worker_lost(&error), None);
    idle(&worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sort_above_the_querys_limit_spills_and_a_join_is_refused_in_words() {
    let tables = Tables::make(8, 120_000);
    let coordinator = Coordinator::start().await;
    let worker = TestWorker::start(coordinator.address).await;
    coordinator.wait_for_workers(1).await;
    let dispatch = dispatch(&coordinator, small_scans());
    let tight = QueryContext {
        query_memory_bytes: Some(24 << 20),
        ..query("tight")
    };
    let context = session(&dispatch, &tight, &tables).await;
    // Numbers only: 40 bytes a row, 38 MB in all. A merge counts the whole buffers behind every slice of text.
    let sql = "SELECT id, shop, amount, id * 7 AS a, id * 11 AS b FROM facts ORDER BY a % 1009, id";
    let sorted = plan(&context, sql).await.unwrap();
    let stream = execute_stream(Arc::clone(&sorted), context.task_ctx()).unwrap();
    let batches: Vec<_> = stream.try_collect().await.unwrap();
    assert_eq!(
        batches.iter().map(|batch| batch.num_rows()).sum::<usize>(),
        960_000
    );
    let profile = explain_analyze(sorted, DistributedMetricsFormat::Aggregated)
        .await
        .unwrap();
    let spills: usize = profile
        .split("spill_count=")
        .skip(1)
        .filter_map(|rest| {
            rest.split(|c: char| !c.is_ascii_digit())
                .next()?
                .parse::<usize>()
                .ok()
        })
        .sum();
    assert!(spills > 0, "{profile}");

    let sql = "SELECT count(*) FROM facts a JOIN facts b ON a.id = b.id AND a.note || a.id = b.note || b.id";
    let error = run(&context, sql).await.unwrap_err();
    assert_eq!(worker_lost(&error), None);
    assert!(error.to_string().contains("query_memory_bytes"), "{error}");
    idle(&worker).await;
}
