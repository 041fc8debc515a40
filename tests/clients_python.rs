//! PyMySQL, mysql-connector-python and the ADBC driver; the scripts hold the expected values.

use crate::harness::{Cluster, Settings, run_python};

#[test]
fn every_type_by_pymysql_and_mysql_connector() {
    let server = Cluster::server();
    let printed = run_python("mysql_types.py", &[&server.mysql_port().to_string()]);
    assert_eq!(printed.trim(), "ok");
}

/// What columns are marked as is known on both sides of a shuffle.
#[tokio::test(flavor = "multi_thread")]
async fn every_type_from_three_workers() {
    // So small a scan would otherwise stay on one worker.
    let settings = Settings::default().with("TARN_QUERY_SPREAD", "1");
    let cluster = Cluster::start_with(3, settings).await;
    let printed = run_python("mysql_types.py", &[&cluster.mysql_port().to_string()]);
    assert_eq!(printed.trim(), "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn adbc_queries_updates_and_browses() {
    let cluster = Cluster::start(2).await;
    let printed = run_python("adbc_client.py", &[&cluster.flight_port().to_string()]);
    assert_eq!(printed.trim(), "ok");
}
