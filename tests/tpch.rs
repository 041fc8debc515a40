//! The 22 TPC-H queries, by both protocols, against DuckDB's answers over the same files.

use crate::harness::{Cluster, generate_tpch, run_python};

#[tokio::test(flavor = "multi_thread")]
async fn tpch_on_three_workers_agrees_with_duckdb() {
    let cluster = Cluster::over(generate_tpch(), 3).await;
    agree_with_duckdb(&cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn tpch_in_one_process_agrees_with_duckdb() {
    let cluster = Cluster::over(generate_tpch(), 0).await;
    agree_with_duckdb(&cluster);
}

fn agree_with_duckdb(cluster: &Cluster) {
    let printed = run_python(
        "tpch_answers.py",
        &[
            &cluster.mysql_port().to_string(),
            &cluster.flight_port().to_string(),
            cluster.dir().to_str().expect("UTF-8"),
            "tpch",
        ],
    );
    assert_eq!(printed.trim(), "22 queries, 0 failures");
}
