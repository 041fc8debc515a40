//! MySQL Connector/J, with client-side and with server-side prepared statements and cursors.

use std::process::Command;

use crate::harness::{Cluster, jar, jdbc_driver_class, run};

#[tokio::test(flavor = "multi_thread")]
async fn connector_j_browses_queries_and_prepares() {
    let server = Cluster::server();
    let mut client = server.client().await;
    client.query("CREATE DATABASE shop").await;
    client
        .query("CREATE TABLE shop.orders (id INT NOT NULL, note STRING)")
        .await;
    client
        .query("INSERT INTO shop.orders SELECT value, concat('note ', value) FROM range(0, 500)")
        .await;
    for options in [
        "",
        "?useServerPrepStmts=true",
        "?useCursorFetch=true&defaultFetchSize=100",
    ] {
        let url = format!(
            "jdbc:mysql://127.0.0.1:{}/shop{options}",
            server.mysql_port()
        );
        let classes = jdbc_driver_class();
        let class_path = std::env::join_paths([
            classes.parent().expect("a folder"),
            &jar("mysql-connector-j-26.10.0.jar"),
        ])
        .expect("a class path");
        let printed = run(Command::new("java")
            .arg("-cp")
            .arg(class_path)
            .args(["JdbcProbe", &url, "root", ""])
            .args(["SELECT id, note FROM orders WHERE id < 250 ORDER BY id"])
            .args(["SELECT * FROM orders WHERE id > ? ORDER BY id", "490"]));
        // The probe ends with 0 only if each of its steps passed.
        assert!(printed.contains("\"orders\""), "{options}: {printed}");
    }
}
