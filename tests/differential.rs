//! Random tables and random queries, against DuckDB over a plain model of the rows: a hundred tables with ten queries
//! each, always the same ones. The README says how to ask for others, and for more.

use crate::harness::{Cluster, Settings, run_python};

#[tokio::test(flavor = "multi_thread")]
async fn random_queries_over_random_tables_agree_with_duckdb() {
    assert_no_differences("0").await;
}

/// The other half, beside the first.
#[tokio::test(flavor = "multi_thread")]
async fn random_queries_over_more_random_tables_agree_with_duckdb() {
    assert_no_differences("50").await;
}

async fn assert_no_differences(first_table: &str) {
    // So small a scan would otherwise stay on one worker.
    let settings = Settings::default().with("TARN_QUERY_SPREAD", "1");
    let cluster = Cluster::start_with(3, settings).await;
    let flight = format!("127.0.0.1:{}", cluster.flight_port());
    let mysql = format!("127.0.0.1:{}", cluster.mysql_port());
    let arguments = [
        ["--address", &flight],
        ["--mysql", &mysql],
        ["--data", cluster.dir().to_str().expect("UTF-8")],
        ["--seed", "1"],
        ["--first", first_table],
        ["--tables", "50"],
        ["--queries", "10"],
    ];
    let printed = run_python("differential.py", arguments.as_flattened());
    assert!(printed.trim().ends_with(", 0 differences"), "{printed}");
}
