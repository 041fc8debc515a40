//! Random tables and random queries, against DuckDB over a plain model of the rows.

use crate::harness::{Cluster, Settings, run_python};

// Of 1,000 queries with seed 1, eight do not agree yet: seven with a uuid inside a struct, which the script cannot take
// from Arrow, and one with "Field … not found in struct" for a field of a struct that was renamed.
#[ignore = "run by hand until the differences that are known are mended: --ignored differential"]
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
            // Until Tarn reads row-level deletes and version 3; the script makes both by default.
            "--no-deletes",
            "--no-version3",
        ],
    );
    assert!(printed.trim().ends_with(", 0 differences"), "{printed}");
}
