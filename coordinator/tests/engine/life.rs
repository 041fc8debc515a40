//! A query's life: listed, limited, killed, abandoned.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use tarn_audit::Outcome;
use tarn_coordinator::{ErrorKind, QueryState, StatementOutcome, User};

use crate::harness::{ENDLESS, Harness, collect, login, try_rows, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_query_past_its_time_is_stopped() {
    let harness = Harness::start().await;
    harness.done("SET query_timeout = 1").await;
    let begun = Instant::now();
    let error = harness.error(ENDLESS).await;
    assert_eq!(
        (error.kind, error.mysql_code()),
        (ErrorKind::TimedOut, 3024)
    );
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(
        harness.records("range(1000000000)")[0].outcome,
        Outcome::TimedOut
    );
    assert!(harness.engine.processes().statements().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_query_ends_it_and_leaves_the_connection() {
    let harness = Harness::start().await;
    let victim = login(&harness.engine, "root");
    let running = tokio::spawn({
        let victim = Arc::clone(&victim);
        async move { try_rows(&victim, ENDLESS).await }
    });
    let processes = harness.engine.processes();
    until("the query runs", || {
        processes
            .statements()
            .iter()
            .any(|statement| statement.state() == QueryState::Running)
    })
    .await;
    let listed = harness.rows("SELECT connection_id, state FROM tarn.system.queries WHERE statement LIKE '%range(%' AND kind = 'SELECT' AND connection_id <> CONNECTION_ID()").await;
    assert_eq!(listed.rows, [[victim.id().to_string(), "RUNNING".into()]]);

    harness.done(&format!("KILL QUERY {}", victim.id())).await;
    let error = running.await.expect("no panic").expect_err("was killed");
    assert_eq!((error.mysql_code(), error.sqlstate()), (1317, "70100"));
    assert!(!victim.closed().is_cancelled());
    assert_eq!(
        try_rows(&victim, "SELECT 1").await.expect("goes on").rows,
        [["1"]]
    );
    assert_eq!(
        harness.records("SELECT count(*) FROM range")[0].outcome,
        Outcome::Killed
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_closes_the_connection() {
    let harness = Harness::start().await;
    let victim = login(&harness.engine, "root");
    harness.done(&format!("KILL {}", victim.id())).await;
    assert!(victim.closed().is_cancelled());
}

#[tokio::test(flavor = "multi_thread")]
async fn users_stop_their_own_queries_only() {
    let harness = Harness::with(|settings| {
        settings.users = vec![
            User::without_password("root"),
            User::with_password("ann", "a"),
            User::with_password("bob", "b"),
        ];
    })
    .await;
    let ann = login(&harness.engine, "ann");
    let bob = login(&harness.engine, "bob");
    let error = try_rows(&bob, &format!("KILL {}", ann.id()))
        .await
        .expect_err("not his");
    assert_eq!(error.mysql_code(), 1227);
    let listed = try_rows(&bob, "SHOW PROCESSLIST").await.expect("lists");
    assert!(listed.rows.iter().all(|row| row[1] == "bob"), "{listed:?}");
    assert!(harness.engine.users().verify_plain("ann", "wrong").is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_stops_its_query() {
    let harness = Harness::start().await;
    let outcome = harness
        .session
        .execute_sql("SELECT value FROM range(100000000)")
        .await
        .expect("starts");
    let StatementOutcome::Rows(mut rows) = outcome else {
        panic!("a query gives rows");
    };
    rows.stream
        .next()
        .await
        .expect("a batch")
        .expect("no error");
    drop(rows);
    assert!(harness.engine.processes().statements().is_empty());
    let record = &harness.records("range(100000000)")[0];
    assert_eq!(record.outcome, Outcome::Disconnected);
    assert!(record.rows_returned > 0 && record.rows_returned < 100_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_holds_the_query_back() {
    let harness = Harness::start().await;
    let outcome = harness
        .session
        .execute_sql("SELECT value FROM range(50000000)")
        .await
        .expect("starts");
    let StatementOutcome::Rows(mut rows) = outcome else {
        panic!("a query gives rows");
    };
    let running = harness.engine.processes().statements();
    let mut read = 0;
    for _ in 0..3 {
        read += rows
            .stream
            .next()
            .await
            .expect("a batch")
            .expect("no error")
            .num_rows() as u64;
    }
    // What was taken is counted, what waits in the queue is bounded: the query is far from its end.
    assert_eq!(running[0].rows_returned(), read);
    assert_eq!(running[0].state(), QueryState::Running);
    harness.session.cancel_running();
    let mut last = None;
    while let Some(item) = rows.stream.next().await {
        last = Some(item);
    }
    assert_eq!(
        last.expect("an end").expect_err("was cancelled").kind,
        ErrorKind::Killed
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_above_its_memory_limit_fails_and_says_so() {
    let harness = Harness::start().await;
    harness.done("SET query_memory_bytes = '2MB'").await;
    let error = harness
        .error("SELECT count(*) FROM (SELECT value v, count(*) c FROM range(3000000) GROUP BY value) a JOIN (SELECT value v FROM range(3000000)) b ON a.v = b.v")
        .await;
    assert_eq!(error.kind, ErrorKind::MemoryLimit, "{error}");
    assert!(error.message.contains("query_memory_bytes"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_that_is_killed_leaves_nothing() {
    let harness = Harness::start().await;
    harness.done("CREATE TABLE t (v BIGINT)").await;
    let victim = login(&harness.engine, "root");
    let running = tokio::spawn({
        let victim = Arc::clone(&victim);
        async move {
            try_rows(
                &victim,
                "INSERT INTO t SELECT value FROM range(100000000000)",
            )
            .await
        }
    });
    let processes = harness.engine.processes();
    until("the insert runs", || {
        processes
            .statements()
            .iter()
            .any(|statement| statement.state() == QueryState::Running)
    })
    .await;
    harness.done(&format!("KILL QUERY {}", victim.id())).await;
    let error = running.await.expect("no panic").expect_err("was killed");
    assert_eq!(error.kind, ErrorKind::Killed);
    assert_eq!(harness.column("SELECT count(*) FROM t").await, ["0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_ends_what_runs_and_lets_nobody_in() {
    let harness = Harness::start().await;
    let outcome = harness.session.execute_sql(ENDLESS).await.expect("starts");
    let reader = tokio::spawn(collect(outcome));
    harness.engine.shutdown().await;
    let error = reader.await.expect("no panic").expect_err("stopped");
    assert_eq!(error.kind, ErrorKind::ShuttingDown);
    assert!(harness.session.closed().is_cancelled());
}
