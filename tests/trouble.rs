//! Bad input and broken tables: a clear error to that client alone.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{Client, Cluster, Settings};

async fn table_of_ten(client: &mut Client, name: &str) {
    client.query("CREATE DATABASE IF NOT EXISTS d").await;
    client
        .query(&format!(
            "CREATE TABLE d.{name} AS SELECT value AS id FROM range(0, 10)"
        ))
        .await;
}

fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = vec![];
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found
}

/// Truncates, empties, replaces or removes each kind of file of a table; every query must fail with
/// an error that names the file, and the next query on another table must work.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_file_is_named_and_hurts_nothing_else() {
    let server = Cluster::server();
    let mut client = server.client().await;
    table_of_ten(&mut client, "sound").await;
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 4] = [
        ("missing", |path| fs::remove_file(path).expect("removed")),
        ("empty", |path| fs::write(path, b"").expect("emptied")),
        ("truncated", |path| {
            let bytes = fs::read(path).expect("read");
            fs::write(path, &bytes[..bytes.len() / 2]).expect("truncated");
        }),
        ("garbage", |path| {
            let bytes: Vec<u8> = (0..fs::metadata(path).expect("there").len())
                .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
                .collect();
            fs::write(path, bytes).expect("overwritten");
        }),
    ];
    for (how, harm) in harms {
        for ending in [".parquet", ".avro", ".metadata.json"] {
            let name = format!(
                "t_{how}_{}",
                ending.trim_start_matches('.').replace('.', "_")
            );
            table_of_ten(&mut client, &name).await;
            let folder = files(server.dir(), ending)
                .into_iter()
                .filter(|path| path.to_string_lossy().contains(&name))
                .collect::<Vec<_>>();
            assert!(!folder.is_empty(), "no {ending} of {name}");
            folder.iter().for_each(|path| harm(path));
            // The server that made the table may know its metadata by heart: ask another one.
            let other = Cluster::over(server.dir(), 0).await;
            let mut asking = other.client().await;
            let error = asking
                .error(&format!("SELECT sum(id) FROM d.{name} WHERE id > 3"))
                .await;
            assert!(
                folder
                    .iter()
                    .any(|path| error
                        .contains(&*path.file_name().expect("a file").to_string_lossy())),
                "{how} {ending}: the error names no file: {error}"
            );
            assert_eq!(
                asking.value("SELECT sum(id) FROM d.sound").await,
                "45",
                "after {how} {ending}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_refused_and_a_right_one_is_not() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = dir.path().join("tarn.toml");
    fs::write(
        &file,
        "[[users]]\nname = \"ann\"\npassword = \"right horse\"\n",
    )
    .expect("written");
    let server = Cluster::server_with(
        Settings::default().with("TARN_CONFIG", file.to_str().expect("UTF-8")),
    );
    let error = server
        .client_as("ann", "wrong")
        .await
        .err()
        .expect("refused");
    assert!(error.to_lowercase().contains("ann"), "{error}");
    let mut ann = server
        .client_as("ann", "right horse")
        .await
        .expect("let in");
    assert!(ann.value("SELECT CURRENT_USER()").await.starts_with("ann"));
    assert!(
        server.client_as("root", "").await.is_err(),
        "root is not among the users of the file"
    );
    let printed = crate::harness::run_python(
        "passwords.py",
        &[&server.mysql_port().to_string(), "ann", "right horse"],
    );
    assert_eq!(printed.trim(), "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_suggest_what_was_meant() {
    let server = Cluster::server();
    let mut client = server.client().await;
    table_of_ten(&mut client, "orders").await;
    assert!(
        client
            .error("SELECT * FROM d.ordesr")
            .await
            .contains("orders")
    );
    assert!(
        client
            .error("SELECT idd FROM d.orders")
            .await
            .contains("id")
    );
    let error = client.error("SELECT id,\nFROM d.orders").await;
    assert!(error.contains("line 2"), "{error}");
    let error = client.error("SELECT * FROM lke.d.orders").await;
    assert!(error.contains("lke") && error.contains("lake"), "{error}");
}
