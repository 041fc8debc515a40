//! Random tables and random queries, against DuckDB over a plain model of the rows.

use crate::harness::{Cluster, Settings, run_python};

#[ignore = "run by hand until no difference is left: --ignored differential"]
#[tokio::test(flavor = "multi_thread")]
async fn random_queries_over_random_tables_agree_with_duckdb() {
    // So small a scan would otherwise stay on one worker.
    let settings = Settings::default().with("TARN_QUERY_SPREAD", "1");
    let cluster = Cluster::start_with(3, settings).await;
    let printed = run_python(
        "differential.py",
        &[
            "--address",
            &format!("127.0.0.1:{}", cluster.flight_port()),
            "--mysql",
            &format!("127.0.0.1:{}", cluster.mysql_port()),
            "--data",
            cluster.dir().to_str().expect("UTF-8"),
            "--tables",
            "100",
            "--queries",
            "10",
        ],
    );
    assert!(printed.trim().ends_with(", 0 differences"), "{printed}");
}
