//! The answers of a cluster are those of one process.

use crate::cluster::*;
use crate::tables::Tables;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::physical_plan::displayable;
use datafusion_distributed::display_plan_ascii;
use tarn_cluster::{ClusterSettings, needs_cluster};

const QUERIES: &[&str] = &[
    "SELECT count(*), sum(amount), min(note), max(id) FROM facts",
    "SELECT shop, count(*) c, sum(amount) s FROM facts GROUP BY shop ORDER BY s DESC, shop LIMIT 7",
    "SELECT city, count(*) c, avg(amount) a FROM facts JOIN shops USING (shop) GROUP BY city",
    "SELECT a.id, b.note FROM facts a JOIN facts b ON a.id = b.id + 1 WHERE a.shop = 3",
    "SELECT count(*), sum(a.amount) FROM facts a JOIN facts b ON a.id = b.id + 1",
    "SELECT f.shop, s.city FROM facts f LEFT JOIN shops s ON f.shop = s.shop WHERE f.id % 97 = 0",
    "SELECT count(*), count(s.shop) FROM facts f FULL JOIN shops s ON f.shop = s.shop AND f.id > 100000",
    "SELECT s.shop FROM shops s WHERE NOT EXISTS (SELECT 1 FROM facts f WHERE f.shop = s.shop AND f.amount > 249.5)",
    "SELECT count(*) FROM facts WHERE shop IN (SELECT shop FROM shops WHERE city = 'city 1')",
    "SELECT count(*) FROM facts WHERE shop NOT IN (SELECT shop FROM shops)",
    "SELECT count(DISTINCT note), count(DISTINCT shop) FROM facts",
    "SELECT * FROM facts WHERE amount > (SELECT avg(amount) * 1.99 FROM facts)",
    "SELECT id, note FROM facts ORDER BY amount DESC, id LIMIT 20",
    "SELECT id, sum(amount) OVER (PARTITION BY shop ORDER BY id) FROM facts WHERE id < 3000",
    "SELECT shop, 'f' FROM facts WHERE id < 90 UNION ALL SELECT shop, city FROM shops",
    "SELECT shop FROM facts INTERSECT SELECT shop FROM shops",
    "SELECT f.shop, v.b FROM facts f JOIN (VALUES (1, 'one'), (2, 'two')) v(a, b) ON f.shop = v.a WHERE f.id < 5000",
    "WITH t AS (SELECT shop, max(amount) m FROM facts GROUP BY shop) SELECT t.shop, f.id FROM t JOIN facts f \
     ON f.shop = t.shop AND f.amount = t.m",
    "SELECT shop, city FROM shops",
    "SELECT s.city, t.city FROM shops s CROSS JOIN shops t WHERE s.shop < t.shop AND t.shop < 5",
    "SELECT approx_distinct(note) FROM facts WHERE id < 0",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n, count(*) FROM r JOIN facts \
     ON n = shop GROUP BY n",
    "SELECT shop, median(amount), array_agg(id ORDER BY id) FROM facts WHERE id < 400 GROUP BY shop",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_workers_answer_as_one_process_does() {
    let tables = Tables::make(9, 2000);
    let coordinator = Coordinator::start().await;
    let mut workers = Vec::new();
    for _ in 0..3 {
        workers.push(TestWorker::start(coordinator.address).await);
    }
    coordinator.wait_for_workers(3).await;
    let local = local_session(&tables).await;
    for (name, settings) in [
        ("small scans spread", small_scans()),
        ("defaults", ClusterSettings::default()),
    ] {
        let dispatch = dispatch(&coordinator, settings);
        for (i, sql) in QUERIES.iter().enumerate() {
            let cluster = session(&dispatch, &query(&format!("{name} {i}")), &tables).await;
            let expected = lines(&run(&local, sql).await.unwrap());
            let got = match run(&cluster, sql).await {
                Ok(batches) => lines(&batches),
                Err(error) => {
                    let plan = plan(&cluster, sql).await.unwrap();
                    panic!(
                        "{name}: {sql}\n{error}\n{}",
                        display_plan_ascii(plan.as_ref(), false)
                    )
                }
            };
            if got != expected {
                let plan = plan(&cluster, sql).await.unwrap();
                assert_eq!(
                    got,
                    expected,
                    "{name}: {sql}\n{}",
                    display_plan_ascii(plan.as_ref(), false)
                );
            }
        }
    }
    for worker in &workers {
        let status = worker.status().await;
        assert_eq!(status.state, tarn_cluster::WorkerState::Active);
        let (_, metrics) = worker.text("/metrics").await;
        let started: u64 = metrics
            .lines()
            .find_map(|line| line.strip_prefix("tarn_worker_tasks_started_total "))
            .unwrap()
            .parse()
            .unwrap();
        assert!(started > 20, "a worker had only {started} tasks");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_worker_does_the_work_and_not_the_coordinator() {
    let tables = Tables::make(3, 1000);
    let coordinator = Coordinator::start().await;
    let worker = TestWorker::start(coordinator.address).await;
    coordinator.wait_for_workers(1).await;
    let dispatch = dispatch(&coordinator, ClusterSettings::default());
    let local = local_session(&tables).await;
    for sql in QUERIES {
        let cluster = session(&dispatch, &query(sql), &tables).await;
        let plan = plan(&cluster, sql).await.unwrap();
        let text = display_plan_ascii(plan.as_ref(), false);
        // A recursive query cannot be cut into stages.
        let stages = !sql.contains("RECURSIVE");
        assert_eq!(text.contains("Stage 1 ──"), stages, "{sql}\n{text}");
        let head: String = text
            .lines()
            .take_while(|line| !line.contains(" ── tasks="))
            .collect();
        assert_eq!(head.contains("DataSourceExec"), !stages, "{sql}\n{text}");
        assert_eq!(
            lines(&run(&cluster, sql).await.unwrap()),
            lines(&run(&local, sql).await.unwrap()),
            "{sql}"
        );
    }
    drop(worker);
}

/// Joins then end in one partition, with no stage of their own above the scans.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_one_partition_a_task_the_answers_stay_the_same() {
    let tables = Tables::make(7, 300);
    let coordinator = Coordinator::start().await;
    let mut workers = Vec::new();
    for _ in 0..3 {
        workers.push(TestWorker::start(coordinator.address).await);
    }
    coordinator.wait_for_workers(3).await;
    let dispatch = dispatch(&coordinator, small_scans());
    let local = local_session(&tables).await;
    for sql in QUERIES {
        let cluster = session(&dispatch, &query(sql), &tables).await;
        cluster
            .state_ref()
            .write()
            .config_mut()
            .options_mut()
            .execution
            .target_partitions = 1;
        assert_eq!(
            lines(&run(&cluster, sql).await.unwrap()),
            lines(&run(&local, sql).await.unwrap()),
            "{sql}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_worker_only_what_reads_no_table_works() {
    let tables = Tables::make(1, 10);
    let coordinator = Coordinator::start().await;
    let dispatch = dispatch(&coordinator, ClusterSettings::default());
    let context = session(&dispatch, &query("q"), &tables).await;
    for (sql, rows) in [
        ("SELECT 1", 1),
        ("SELECT * FROM (VALUES (1), (2)) v(a) WHERE a > 1", 1),
        (
            "SELECT table_name FROM information_schema.tables WHERE table_name = 'facts'",
            1,
        ),
    ] {
        let batches = run(&context, sql).await.unwrap();
        assert_eq!(
            batches.iter().map(|b| b.num_rows()).sum::<usize>(),
            rows,
            "{sql}"
        );
        assert!(!needs_cluster(&plan(&context, sql).await.unwrap()));
    }
    let error = run(&context, "SELECT sum(id) FROM facts")
        .await
        .unwrap_err();
    assert!(error.to_string().contains("tarn worker"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_reads_no_table_stays_where_it_is_planned() {
    let tables = Tables::make(1, 10);
    let coordinator = Coordinator::start().await;
    let worker = TestWorker::start(coordinator.address).await;
    coordinator.wait_for_workers(1).await;
    let dispatch = dispatch(&coordinator, small_scans());
    let context = session(&dispatch, &query("q"), &tables).await;
    for sql in [
        "SELECT 1",
        "SELECT count(*) FROM information_schema.tables",
        "SELECT a FROM (VALUES (1), (2)) v(a) ORDER BY a",
    ] {
        let plan = plan(&context, sql).await.unwrap();
        let text = displayable(plan.as_ref()).indent(false).to_string();
        assert!(!text.contains("Distributed"), "{sql}\n{text}");
        run(&context, sql).await.unwrap();
    }
    drop(worker);
}

/// A merge reads one partition for long before it wants the next row of another: the first must not wait for room that the
/// other takes up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_merge_reads_the_partitions_of_a_task_in_its_own_order() {
    let (files, rows) = (6, 40_000);
    let tables = Tables::make(files, rows);
    let coordinator = Coordinator::start().await;
    let _workers = [
        TestWorker::start(coordinator.address).await,
        TestWorker::start(coordinator.address).await,
    ];
    coordinator.wait_for_workers(2).await;
    let mut settings = small_scans();
    settings.channels.read_ahead_bytes = 1;
    let dispatch = dispatch(&coordinator, settings);
    let context = session(&dispatch, &query("q"), &tables).await;
    let mut next = 0;
    for batch in run(&context, "SELECT id, note FROM facts ORDER BY id")
        .await
        .unwrap()
    {
        for id in batch.column(0).as_primitive::<Int64Type>().values() {
            assert_eq!(*id, next);
            next += 1;
        }
    }
    assert_eq!(next, files * rows);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_the_query_is_not_a_loss() {
    let tables = Tables::make(3, 1000);
    let coordinator = Coordinator::start().await;
    let _workers = [
        TestWorker::start(coordinator.address).await,
        TestWorker::start(coordinator.address).await,
    ];
    coordinator.wait_for_workers(2).await;
    let dispatch = dispatch(&coordinator, small_scans());
    let context = session(&dispatch, &query("q"), &tables).await;
    for sql in [
        "SELECT CAST(note AS bigint) FROM facts",
        "SELECT shop, sum(CAST(note AS bigint)) FROM facts GROUP BY shop",
        "SELECT 1 / (id - id) FROM facts",
    ] {
        let error = run(&context, sql).await.unwrap_err();
        assert_eq!(tarn_cluster::worker_lost(&error), None, "{error}");
    }
    assert_eq!(
        coordinator.membership.snapshot().len(),
        2,
        "nobody is suspected"
    );
}
