//! Statements with placeholders.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use tarn_coordinator::StatementOutcome;

use crate::harness::{Harness, collect};

async fn run(harness: &Harness, sql: &str, params: Vec<ScalarValue>) -> Vec<Vec<String>> {
    let prepared = harness
        .session
        .prepare(sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let outcome = harness
        .session
        .execute_prepared(&prepared, params)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    collect(outcome)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
        .rows
}

fn text(value: &str) -> ScalarValue {
    ScalarValue::Utf8(Some(value.into()))
}

fn int(value: i64) -> ScalarValue {
    ScalarValue::Int64(Some(value))
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_have_the_types_of_what_they_meet() {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE t (id BIGINT, day DATE, note TEXT)")
        .await;
    let insert = harness
        .session
        .prepare("INSERT INTO t VALUES (?, ?, ?)")
        .await
        .expect("prepares");
    assert_eq!(insert.parameter_types.len(), 3);
    assert_eq!(insert.parameter_types[0], Some(DataType::Int64));
    assert_eq!(insert.parameter_types[1], Some(DataType::Date32));
    assert_eq!(insert.schema, None);
    for (id, day) in [(1, "2026-01-01"), (2, "2026-01-02")] {
        let params = vec![text(&id.to_string()), text(day), ScalarValue::Null];
        let outcome = harness
            .session
            .execute_prepared(&insert, params)
            .await
            .expect("inserts");
        assert!(matches!(outcome, StatementOutcome::Done(done) if done.affected_rows == 1));
    }
    let select = harness
        .session
        .prepare("SELECT id, note FROM t WHERE day >= ? AND id < ? ORDER BY id LIMIT ?")
        .await
        .expect("prepares");
    assert_eq!(select.parameter_types.len(), 3);
    assert_eq!(select.parameter_types[0], Some(DataType::Date32));
    assert_eq!(select.parameter_types[2], Some(DataType::Int64));
    let schema = select.schema.as_ref().expect("rows");
    assert_eq!(schema.field(0).name(), "id");
    let outcome = harness
        .session
        .execute_prepared(&select, vec![text("2026-01-01"), int(10), int(1)])
        .await
        .expect("runs");
    assert_eq!(collect(outcome).await.expect("rows").rows, [["1", "NULL"]]);
    let error = harness
        .session
        .execute_prepared(&select, vec![int(1)])
        .await
        .expect_err("too few");
    assert_eq!(error.mysql_code(), 1210);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_statement_can_be_prepared() {
    let harness = Harness::start().await;
    assert_eq!(run(&harness, "SELECT ?", vec![int(7)]).await, [["7"]]);
    assert_eq!(run(&harness, "SELECT ? + 1", vec![int(-7)]).await, [["-6"]]);
    assert_eq!(
        run(&harness, "SHOW DATABASES LIKE 'def%'", vec![]).await,
        [["default"]]
    );
    assert!(run(&harness, "SET @x = 3", vec![]).await.is_empty());
    assert!(
        run(&harness, "CREATE TABLE made (a INT)", vec![])
            .await
            .is_empty()
    );
    assert!(
        run(
            &harness,
            "CREATE TABLE copied AS SELECT ? AS a",
            vec![text("x")]
        )
        .await
        .is_empty()
    );
    assert_eq!(run(&harness, "SELECT a FROM copied", vec![]).await, [["x"]]);
    let show = harness
        .session
        .prepare("SHOW TABLES")
        .await
        .expect("prepares");
    assert_eq!(
        show.schema.expect("rows").field(0).name(),
        "Tables_in_default"
    );
    assert_eq!(
        harness
            .session
            .prepare("SELECT x FROM made")
            .await
            .expect_err("no x")
            .mysql_code(),
        1054
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_uuid_may_be_bound_as_text_and_a_sum_of_two_parameters_takes_numbers() {
    let harness = Harness::start().await;
    harness.done("CREATE TABLE u (k UUID)").await;
    let uuid = "12345678-1234-1234-1234-123456789012";
    let insert = harness
        .session
        .prepare("INSERT INTO u VALUES (?)")
        .await
        .expect("prepares");
    let outcome = harness
        .session
        .execute_prepared(&insert, vec![text(uuid)])
        .await
        .expect("inserts");
    assert!(matches!(outcome, StatementOutcome::Done(done) if done.affected_rows == 1));
    let found = "SELECT count(*) FROM u WHERE k = '12345678-1234-1234-1234-123456789012'";
    assert_eq!(run(&harness, found, vec![]).await, [["1"]]);
    assert_eq!(
        run(&harness, "SELECT ? + ?", vec![int(1), int(2)]).await,
        [["3"]]
    );
}
