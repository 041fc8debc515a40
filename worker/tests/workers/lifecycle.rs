//! Workers come, drain and go; coordinators restart.

use crate::cluster::*;
use crate::tables::Tables;
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use tarn_cluster::WorkerState;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draining_worker_finishes_its_tasks_and_leaves() {
    let tables = Tables::make(4, 4000);
    let coordinator = Coordinator::start().await;
    let mut leaving = TestWorker::start(coordinator.address).await;
    let _staying = TestWorker::start(coordinator.address).await;
    coordinator.wait_for_workers(2).await;
    let dispatch = dispatch(&coordinator, small_scans());
    let sql = "SELECT a.id, b.id FROM facts a JOIN facts b ON a.shop = b.shop AND a.id < b.id WHERE a.shop < 12";
    let expected: usize = {
        let local = local_session(&tables).await;
        run(&local, sql)
            .await
            .unwrap()
            .iter()
            .map(|batch| batch.num_rows())
            .sum()
    };
    let context = session(&dispatch, &query("before"), &tables).await;
    let plan = plan(&context, sql).await.unwrap();
    let mut stream = execute_stream(plan, context.task_ctx()).unwrap();
    let mut rows = stream.next().await.unwrap().unwrap().num_rows();

    leaving.shut_down();
    let members = coordinator.membership.clone();
    wait_until("draining worker in the list", || {
        members
            .list()
            .iter()
            .any(|worker| worker.state == WorkerState::Draining)
    })
    .await;
    assert_eq!(members.snapshot().len(), 1, "new queries go elsewhere");
    let (code, health) = leaving.text("/health").await;
    assert_eq!((code, health.as_str()), (503, "draining\n"));
    let context = session(&dispatch, &query("meanwhile"), &tables).await;
    run(&context, "SELECT shop, count(*) FROM facts GROUP BY shop")
        .await
        .unwrap();

    while let Some(batch) = stream.next().await {
        rows += batch.unwrap().num_rows();
    }
    assert_eq!(rows, expected);
    leaving.left().await;
    wait_until("good-bye", || members.list().len() == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_worker_leaves_when_told_to() {
    let coordinator = Coordinator::start().await;
    let mut worker = TestWorker::start(coordinator.address).await;
    coordinator.wait_for_workers(1).await;
    worker.shut_down();
    worker.left().await;
    assert!(coordinator.membership.list().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_come_back_to_a_coordinator_that_restarts() {
    let coordinator = Coordinator::start().await;
    let _workers = [
        TestWorker::start(coordinator.address).await,
        TestWorker::start(coordinator.address).await,
    ];
    coordinator.wait_for_workers(2).await;
    let address = coordinator.stop().await;
    let coordinator = Coordinator::start_at(address).await;
    coordinator.wait_for_workers(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_comes_is_used_by_the_next_query() {
    let tables = Tables::make(12, 200);
    let coordinator = Coordinator::start().await;
    let _first = TestWorker::start(coordinator.address).await;
    coordinator.wait_for_workers(1).await;
    let dispatch = dispatch(&coordinator, small_scans());
    let second = TestWorker::start(coordinator.address).await;
    coordinator.wait_for_workers(2).await;
    let context = session(&dispatch, &query("q"), &tables).await;
    run(&context, "SELECT shop, count(*) FROM facts GROUP BY shop")
        .await
        .unwrap();
    let (_, metrics) = second.text("/metrics").await;
    assert!(
        !metrics.contains("tarn_worker_tasks_started_total 0\n"),
        "{metrics}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_of_another_version_is_listed_and_left_alone() {
    let coordinator = Coordinator::start().await;
    let _worker = TestWorker::start_as(coordinator.address, "0.0.1").await;
    let members = coordinator.membership.clone();
    wait_until("listed worker", || members.list().len() == 1).await;
    assert!(members.snapshot().is_empty());
    assert!(
        members.why_none().contains("0.0.1"),
        "{}",
        members.why_none()
    );
}
