//! The `mysql` command line.

use std::process::Command;

use crate::harness::{Cluster, eventually, mysql_command, run};

fn mysql(cluster: &Cluster, args: &[&str]) -> Command {
    let mut command = Command::new(mysql_command());
    command
        .args([
            "--protocol=tcp",
            "-h",
            "127.0.0.1",
            "-u",
            "root",
            "-P",
            &cluster.mysql_port().to_string(),
        ])
        .args(args);
    command
}

#[test]
fn statements_run_in_batch_mode_and_completion_may_browse() {
    let server = Cluster::server();
    let ddl = "CREATE DATABASE shop; USE shop; \
               CREATE TABLE orders (id INT NOT NULL, total DECIMAL(10,2), placed_at TIMESTAMP) \
               PARTITION BY (day(placed_at)); \
               INSERT INTO orders VALUES (1, 9.90, '2024-03-01 10:00:00'), (2, NULL, '2024-03-02 11:00:00');";
    run(&mut mysql(&server, &["-e", ddl]));
    // Without -A the client browses every table of the database before the first statement.
    let printed = run(&mut mysql(
        &server,
        &[
            "--auto-rehash",
            "-B",
            "shop",
            "-e",
            "SELECT id, total, placed_at FROM orders ORDER BY id",
        ],
    ));
    assert_eq!(
        printed,
        "id\ttotal\tplaced_at\n1\t9.90\t2024-03-01 10:00:00.000000\n2\tNULL\t2024-03-02 11:00:00.000000\n"
    );
    let tables = run(&mut mysql(
        &server,
        &[
            "-B",
            "-N",
            "shop",
            "-e",
            "SHOW TABLES; SHOW DATABASES LIKE 'sh%'",
        ],
    ));
    assert_eq!(tables, "orders\nshop\n");
    let described = run(&mut mysql(
        &server,
        &["-B", "-N", "shop", "-e", "DESCRIBE orders"],
    ));
    let types: Vec<Vec<&str>> = described
        .lines()
        .map(|line| line.split('\t').take(3).collect())
        .collect();
    assert_eq!(
        types,
        [
            vec!["id", "int", "NO"],
            vec!["total", "decimal(10,2)", "YES"],
            vec!["placed_at", "datetime(6)", "YES"],
        ]
    );
}

#[test]
fn errors_carry_mysqls_codes() {
    let server = Cluster::server();
    for (sql, code, part) in [
        ("SELEC 1", "ERROR 1064 (42000)", "near"),
        ("SELECT * FROM nowhere.nothing", "ERROR 1", "nowhere"),
        (
            "SELECT missing_column FROM (SELECT 1 AS present) t",
            "ERROR 1054 (42S22)",
            "missing_column",
        ),
        (
            "USE no_such_database",
            "ERROR 1049 (42000)",
            "no_such_database",
        ),
        ("CREATE DATABASE `default`", "ERROR 1007", "default"),
    ] {
        let output = mysql(&server, &["-e", sql]).output().expect("mysql runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{sql} should fail");
        assert!(
            error.contains(code) && error.contains(part),
            "{sql}: {error}"
        );
    }
}

/// MySQL has no years past 9999, which shows when the row is on its way.
#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_the_protocol_cannot_send_is_an_error_in_the_audit_too() {
    let server = Cluster::server();
    let sql = "SELECT make_date(20000, 1, 2) AS far";
    let output = mysql(&server, &["-e", sql]).output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("1292") && error.contains("far") && error.contains("20000"),
        "{error}"
    );
    let recorded = || {
        let records = server.audit();
        records
            .into_iter()
            .find(|record| record["statement"] == sql)
    };
    // The client has its answer before the statement is over.
    eventually("there is a record", async || recorded().is_some()).await;
    let record = recorded().expect("a record");
    assert_eq!(record["outcome"], "error", "{record}");
    assert_eq!(record["error"]["code"], 1292, "{record}");
    assert_eq!(
        run(&mut mysql(&server, &["-N", "-B", "-e", "SELECT 1"])),
        "1\n"
    );
}
