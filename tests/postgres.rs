//! SQL catalogs in PostgreSQL.

use serde_json::{Value, json};

use crate::harness::{Cluster, Postgres, run_python};

/// What PyIceberg says of the same catalog.
fn by_python(postgres: &Postgres, warehouse: &str, arguments: &[&str]) -> Value {
    let uri = postgres.uri();
    let mut all = vec!["pg", uri.as_str(), warehouse];
    all.extend(arguments);
    let printed = run_python("postgres_by_pyiceberg.py", &all);
    match printed.trim() {
        "" => Value::Null,
        json => serde_json::from_str(json).expect("JSON"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_in_postgresql_is_shared_with_pyiceberg() {
    let postgres = Postgres::start();
    let cluster = Cluster::start(2).await;
    let mut client = cluster.client().await;
    let warehouse = format!("file://{}/pg", cluster.dir().display());
    client
        .query(&format!(
            "CREATE CATALOG pg PROPERTIES ('type' = 'sql', 'uri' = '{}', 'warehouse' = '{warehouse}')",
            postgres.uri()
        ))
        .await;
    client.query("CREATE DATABASE pg.shop").await;
    client
        .query("CREATE TABLE pg.shop.t (id BIGINT, name STRING) PARTITION BY (bucket(2, id))")
        .await;
    client
        .query("INSERT INTO pg.shop.t VALUES (1, 'tarn'), (2, 'tarn')")
        .await;

    // Both ways, over the same tables.
    by_python(&postgres, &warehouse, &["append", "shop.t", "3"]);
    assert_eq!(
        client
            .query("SELECT id, name FROM pg.shop.t ORDER BY id")
            .await,
        [["1", "tarn"], ["2", "tarn"], ["3", "python"]]
    );
    client
        .query("INSERT INTO pg.shop.t VALUES (4, 'tarn')")
        .await;
    assert_eq!(
        by_python(&postgres, &warehouse, &["read", "shop.t"]),
        json!([["1", "tarn"], ["2", "tarn"], ["3", "python"], ["4", "tarn"]])
    );
    by_python(&postgres, &warehouse, &["create", "py.t"]);
    assert_eq!(client.value("SELECT sum(id) FROM pg.py.t").await, "203");
    assert_eq!(
        client.query("SHOW DATABASES FROM pg LIKE 'p%'").await,
        [["py"]]
    );
    client
        .query("CREATE TABLE pg.py.copy AS SELECT * FROM pg.py.t")
        .await;
    assert_eq!(
        by_python(&postgres, &warehouse, &["list", "py"]),
        json!(["py.copy", "py.t"])
    );

    let error = client.error("DROP DATABASE pg.py").await;
    assert!(
        error.contains("not empty") && error.contains("2 table"),
        "{error}"
    );
    for statement in [
        "DROP TABLE pg.py.copy",
        "DROP TABLE pg.py.t",
        "DROP DATABASE pg.py",
    ] {
        client.query(statement).await;
    }
    let error = client.error("CREATE DATABASE pg.shop").await;
    assert!(error.contains("exists"), "{error}");
    assert_eq!(
        by_python(&postgres, &warehouse, &["list", "shop"]),
        json!(["shop.t"])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_at_once_to_a_table_in_postgresql_are_all_kept() {
    let postgres = Postgres::start();
    // As Iceberg Java's JDBC catalog of schema version V0 makes it: without a column that tells tables from views.
    postgres.execute(
        "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, \
         table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), \
         PRIMARY KEY (catalog_name, table_namespace, table_name))",
    );
    let server = Cluster::server();
    let mut client = server.client().await;
    client
        .query(&format!(
            "CREATE CATALOG pg PROPERTIES ('uri' = '{}', 'warehouse' = 'file://{}/pg')",
            postgres.uri(),
            server.dir().display()
        ))
        .await;
    client.query("CREATE DATABASE pg.d").await;
    client.query("CREATE TABLE pg.d.t (id BIGINT)").await;
    let writers = (0..4).map(|writer| {
        let server = &server;
        async move {
            let mut client = server.client().await;
            for n in 0..3 {
                client
                    .query(&format!("INSERT INTO pg.d.t VALUES ({})", writer * 10 + n))
                    .await;
            }
        }
    });
    futures::future::join_all(writers).await;
    assert_eq!(
        client
            .query("SELECT count(*), count(DISTINCT id), sum(id) FROM pg.d.t")
            .await,
        [["12", "12", "192"]]
    );
    assert_eq!(
        client.value("SELECT count(*) FROM pg.d.t$snapshots").await,
        "12"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_password_of_a_database_is_never_shown() {
    let postgres = Postgres::start();
    let server = Cluster::server();
    let mut client = server.client().await;
    let wrong = postgres.uri().replace("secret-of-the-test", "hush-hush");
    for (name, uri) in [
        ("wrong", wrong.as_str()),
        ("gone", "postgresql://me:hush-hush@127.0.0.1:9/db"),
        ("readable", &postgres.uri()),
    ] {
        client
            .query(&format!(
                "CREATE CATALOG {name} PROPERTIES ('type' = 'sql', 'uri' = '{uri}')"
            ))
            .await;
    }
    let mut said = vec![
        client.error("SELECT * FROM wrong.d.t").await,
        client.error("SELECT * FROM gone.d.t").await,
    ];
    assert!(
        said[0].contains("password authentication failed") && said[0].contains("wrong"),
        "{said:?}"
    );
    assert!(
        said[1].contains("postgresql://me@127.0.0.1:9/db"),
        "{said:?}"
    );
    said.push(client.error("CREATE CATALOG x PROPERTIES ('type' = 'sql', 'uri' = 'postgresql://me:hush-hush@h:port/d')").await);
    said.push(
        client
            .error(
                "CREATE CATALOG x PROPERTIES ('type' = 'sql', 'uri' = 'mysql://me:hush-hush@h/d')",
            )
            .await,
    );
    for show in [
        "SHOW CATALOGS",
        "SELECT * FROM tarn.system.catalogs",
        "SHOW PROCESSLIST",
    ] {
        said.push(format!("{:?}", client.query(show).await));
    }
    said.push(server.coordinator.log());
    let audit = server.audit();
    assert!(!audit.is_empty(), "statements leave a record");
    said.push(format!("{audit:?}"));
    for text in said {
        assert!(
            !text.contains("hush-hush") && !text.contains("secret-of-the-test"),
            "{text}"
        );
    }
}
