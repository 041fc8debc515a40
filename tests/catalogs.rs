//! Several catalogs at once, tables that others read, commits that others make.

use serde_json::{Value, json};

use crate::harness::{Cluster, run_python};

fn read_by_others(cluster: &Cluster, table: &str, order: &str) -> Value {
    let printed = run_python(
        "other_readers.py",
        &[cluster.dir().to_str().expect("UTF-8"), table, order],
    );
    serde_json::from_str(&printed).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn pyiceberg_and_duckdb_read_what_tarn_wrote() {
    let server = Cluster::server();
    let mut client = server.client().await;
    client.query("CREATE DATABASE shop").await;
    client
        .query(
            "CREATE TABLE shop.orders (id BIGINT NOT NULL, day DATE, at TIMESTAMP, price DECIMAL(12,3), \
             name STRING, ok BOOLEAN, score DOUBLE) \
             PARTITION BY (month(day), bucket(4, id), truncate(2, name)) \
             TBLPROPERTIES ('write.parquet.compression-codec' = 'zstd', 'owner' = 'tests')",
        )
        .await;
    client
        .query(
            "INSERT INTO shop.orders VALUES \
             (1, '1969-12-31', '1969-12-31 23:59:59.999999', -1.005, 'alpha', true, 0.5), \
             (2, '2024-02-29', '2024-02-29 00:00:00', 123456789.125, 'alps', false, -0.25), \
             (3, NULL, NULL, NULL, NULL, NULL, NULL)",
        )
        .await;
    client
        .query("INSERT INTO shop.orders (id, name) SELECT id + 10, name FROM shop.orders")
        .await;

    let read = read_by_others(&server, "shop.orders", "id");

    let none = Value::Null;
    assert_eq!(
        read["rows"],
        json!([
            [
                "1",
                "1969-12-31",
                "1969-12-31 23:59:59.999999",
                "-1.005",
                "alpha",
                "True",
                "0.5"
            ],
            [
                "2",
                "2024-02-29",
                "2024-02-29 00:00:00",
                "123456789.125",
                "alps",
                "False",
                "-0.25"
            ],
            ["3", none, none, none, none, none, none],
            ["11", none, none, none, "alpha", none, none],
            ["12", none, none, none, "alps", none, none],
            ["13", none, none, none, none, none, none],
        ])
    );
    assert_eq!(read["properties"]["owner"], "tests");
    let records: i64 = read["files"]
        .as_array()
        .expect("files")
        .iter()
        .filter_map(|f| f["records"].as_i64())
        .sum();
    assert_eq!(records, 6);
    assert!(
        read["files"]
            .as_array()
            .expect("files")
            .iter()
            .all(|f| f["bounds"].as_i64() > Some(0)),
        "each file has bounds: {read}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn create_table_as_keeps_types_and_a_failed_one_leaves_nothing() {
    let server = Cluster::server();
    let mut client = server.client().await;
    client.query("CREATE DATABASE d").await;
    client
        .query("CREATE TABLE d.t AS SELECT value AS id, value % 3 AS k, cast(value AS STRING) AS s FROM range(0, 1000)")
        .await;
    assert_eq!(
        client
            .query("SELECT k, count(*), sum(id) FROM d.t GROUP BY k ORDER BY k")
            .await,
        [
            ["0", "334", "166833"],
            ["1", "333", "166167"],
            ["2", "333", "166500"]
        ]
    );
    let error = client
        .error("CREATE TABLE d.broken AS SELECT cast(concat(s, 'x') AS INT) AS x FROM d.t")
        .await;
    assert!(error.contains("0x"), "{error}");
    assert_eq!(client.query("SHOW TABLES FROM d").await, [["t"]]);
    let error = client
        .error("INSERT INTO d.t SELECT cast(concat(s, 'x') AS BIGINT), k, s FROM d.t")
        .await;
    assert!(error.contains("0x"), "{error}");
    assert_eq!(client.value("SELECT count(*) FROM d.t").await, "1000");
    let files = run_python(
        "data_files_on_disk.py",
        &[server.dir().to_str().expect("UTF-8"), "d.t"],
    );
    assert_eq!(files.trim(), "no orphans");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_by_pyiceberg_is_seen_by_the_next_query() {
    let server = Cluster::server();
    let mut client = server.client().await;
    client.query("CREATE DATABASE d").await;
    client
        .query("CREATE TABLE d.t (id BIGINT, name STRING)")
        .await;
    client.query("INSERT INTO d.t VALUES (1, 'a')").await;
    assert_eq!(client.value("SELECT count(*) FROM d.t").await, "1");
    for n in 2..5 {
        run_python(
            "append_by_pyiceberg.py",
            &[
                server.dir().to_str().expect("UTF-8"),
                "d.t",
                &n.to_string(),
                "b",
            ],
        );
        assert_eq!(client.value("SELECT max(id) FROM d.t").await, n.to_string());
    }
    // And the other way round: Tarn's append keeps what the other engine wrote.
    client.query("INSERT INTO d.t VALUES (9, 'c')").await;
    assert_eq!(
        client.value("SELECT sum(id) FROM d.t").await,
        (1 + 2 + 3 + 4 + 9).to_string()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_and_rest_catalogs_join_with_the_embedded_one() {
    let services = run_python_services();
    let cluster = Cluster::start(2).await;
    let mut client = cluster.client().await;
    client
        .query(&format!(
            "CREATE CATALOG store PROPERTIES ('type' = 'sql', 'uri' = 'sqlite:{}/store.db?mode=rwc', \
             'warehouse' = 's3://lake/warehouse', 's3.endpoint' = '{}', 's3.access-key-id' = 'test', \
             's3.secret-access-key' = 'secret-of-the-test', 's3.region' = 'us-east-1', 's3.path-style-access' = 'true')",
            cluster.dir().display(),
            services.s3
        ))
        .await;
    client
        .query(&format!(
            "CREATE CATALOG served PROPERTIES ('type' = 'rest', 'uri' = '{}')",
            services.rest
        ))
        .await;
    for catalog in ["store", "served"] {
        client.query(&format!("CREATE DATABASE {catalog}.d")).await;
        client
            .query(&format!(
                "CREATE TABLE {catalog}.d.users (id BIGINT, name STRING) PARTITION BY (bucket(3, id))"
            ))
            .await;
        client
            .query(&format!(
                "INSERT INTO {catalog}.d.users VALUES (1, 'ann'), (2, 'bob'), (3, 'cy')"
            ))
            .await;
    }
    client.query("CREATE DATABASE lake.d").await;
    client
        .query("CREATE TABLE lake.d.events (user_id BIGINT, n INT)")
        .await;
    client
        .query("INSERT INTO lake.d.events VALUES (1, 10), (1, 5), (3, 7), (4, 1)")
        .await;
    assert_eq!(
        client
            .query(
                "SELECT s.name, r.name, sum(e.n) FROM lake.d.events e JOIN store.d.users s ON e.user_id = s.id \
                 JOIN served.d.users r ON r.id = s.id GROUP BY s.name, r.name ORDER BY 1",
            )
            .await,
        [["ann", "ann", "15"], ["cy", "cy", "7"]]
    );
    let shown = format!("{:?}", client.query("SHOW CATALOGS").await)
        + &format!(
            "{:?}",
            client.query("SELECT * FROM tarn.system.catalogs").await
        );
    assert!(
        shown.contains("store") && shown.contains("served"),
        "{shown}"
    );
    assert!(
        !shown.contains("secret-of-the-test"),
        "a secret is shown: {shown}"
    );
    client.query("DROP CATALOG store").await;
    let error = client.error("SELECT * FROM store.d.users").await;
    assert!(error.contains("store"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_that_is_down_fails_alone() {
    let server =
        Cluster::server_with(crate::harness::Settings::default().with("TARN_STORE_RETRIES", "1"));
    let mut client = server.client().await;
    client
        .query("CREATE CATALOG gone PROPERTIES ('type' = 'rest', 'uri' = 'http://127.0.0.1:9')")
        .await;
    let error = client.error("SELECT * FROM gone.d.t").await;
    assert!(
        error.contains("gone") && error.contains("127.0.0.1:9"),
        "{error}"
    );
    assert_eq!(client.value("SELECT 1 + 1").await, "2");
}

struct Services {
    s3: String,
    rest: String,
    _processes: Vec<crate::harness::Service>,
}

fn run_python_services() -> Services {
    let s3 = crate::harness::Service::moto();
    let rest = crate::harness::Service::iceberg_rest();
    Services {
        s3: s3.url.clone(),
        rest: rest.url.clone(),
        _processes: vec![s3, rest],
    }
}
