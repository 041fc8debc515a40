//! `tarn demo`, `tarn sql`, `tarn config`: the commands of the README.

use std::process::Command;

use crate::harness::{Cluster, run};

fn tarn() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tarn"))
}

#[test]
fn the_demo_makes_its_lake_once_and_takes_its_tour_on_three_workers() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let demo = || {
        let mut command = tarn();
        command
            .args(["demo", "--once", "--scale", "0.01", "--data-dir"])
            .arg(dir.path());
        run(&mut command)
    };
    let first = demo();
    for part in ["redbi", "EXPLAIN", "Stage", "mysql", "tarn sql"] {
        assert!(first.contains(part), "no `{part}` in the tour:\n{first}");
    }
    let made = std::fs::metadata(dir.path().join("catalog.db"))
        .and_then(|m| m.modified())
        .expect("the catalog");
    let second = demo();
    assert!(second.contains("redbi"));
    let kept = std::fs::metadata(dir.path().join("catalog.db"))
        .and_then(|m| m.modified())
        .expect("the catalog");
    assert_eq!(made, kept, "the second run makes no new lake");
}

#[test]
fn the_shell_runs_embedded_and_prints_every_format() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let sql = |format: &str, text: &str| {
        let mut command = tarn();
        command
            .args(["sql", "--data-dir"])
            .arg(dir.path())
            .args(["--format", format, "-e", text]);
        run(&mut command)
    };
    sql(
        "table",
        "CREATE DATABASE d; CREATE TABLE d.t (id INT, s STRING); INSERT INTO d.t VALUES (1, 'a,\"b\"'), (2, NULL)",
    );
    let query = "SELECT id, s FROM d.t ORDER BY id";
    assert_eq!(sql("csv", query), "id,s\n1,\"a,\"\"b\"\"\"\n2,\n");
    assert_eq!(
        sql("json", query).split_whitespace().collect::<String>(),
        r#"[{"id":1,"s":"a,\"b\""},{"id":2,"s":null}]"#
    );
    assert!(sql("markdown", query).contains("| 2 |") || sql("markdown", query).contains("|  2 |"));
    assert!(sql("vertical", query).contains("id: 1"));
}

#[test]
fn the_shell_connects_to_a_server_and_fails_with_one_sentence() {
    let server = Cluster::server();
    let mut command = tarn();
    command.args([
        "sql",
        "--host",
        "127.0.0.1",
        "--port",
        &server.flight_port().to_string(),
        "--format",
        "csv",
    ]);
    assert_eq!(
        run(command.args(["-e", "SELECT 40 + 2 AS answer"])),
        "answer\n42\n"
    );
    let mut command = tarn();
    command.args([
        "sql",
        "--host",
        "127.0.0.1",
        "--port",
        &server.flight_port().to_string(),
        "-e",
        "SELECT * FROM missing",
    ]);
    let output = command.output().expect("tarn runs");
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("missing") && error.trim().lines().count() == 1,
        "{error}"
    );
}

#[test]
fn an_unknown_setting_is_named() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = dir.path().join("tarn.toml");
    std::fs::write(&file, "[worker]\nmemori = \"1GiB\"\n").expect("written");
    let output = tarn()
        .args(["config", "--config"])
        .arg(&file)
        .output()
        .expect("tarn runs");
    assert!(!output.status.success());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("memori") && error.contains("memory"),
        "{error}"
    );
    let printed = run(tarn().arg("config").env("TARN_WORKER_MEMORY", "3GiB"));
    assert!(
        printed.contains("TARN_WORKER_MEMORY")
            || printed.contains("environment")
            || printed.contains("env"),
        "{printed}"
    );
}
