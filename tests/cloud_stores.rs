//! Tables on Azure and Google Cloud Storage, against emulators of both.
//!
//! Azurite speaks the protocol of Azure's blobs as it is. fake-gcs-server reads, lists and deletes as Google's XML API does,
//! but takes uploads by the JSON API alone, and asks nobody for a token: a door in front of it ([`DOOR`]) turns the one kind
//! of upload into the other and refuses who has no token. PyIceberg goes to the servers themselves.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Client, Cluster, Settings, eventually, run};

const ACCOUNT: &str = "tarn";
/// Base64, as keys of accounts are.
const KEY: &str = "c2VjcmV0LW9mLXRoZS10ZXN0";
const WRONG_KEY: &str = "aHVzaC1odXNo";
const TOKEN: &str = "token-of-the-test";
const WRONG_TOKEN: &str = "hush-hush";

/// An address where nobody listens.
const NOBODY: &str = "127.0.0.1:9";

const AZURE_WAREHOUSE: &str = "abfss://box@tarn.dfs.core.windows.net/wh";
const GOOGLE_WAREHOUSE: &str = "gs://box/wh";

/// The longest that a store may be waited for that is not there or refuses.
const PATIENCE: Duration = Duration::from_secs(10);

const DOOR: &str = include_str!("clients/gcs_door.py");

const PYTHON_CLIENT: &str = include_str!("clients/cloud_client.py");

/// A server that is not ours, on a free loopback port; ended when the test lets go of it.
struct Emulator {
    url: String,
    child: Child,
}

impl Emulator {
    /// Starts what `command` makes of a port, and waits until it listens there.
    async fn start(command: impl FnOnce(u16) -> Command) -> Self {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|listener| listener.local_addr())
            .expect("a free port")
            .port();
        let mut command = command(port);
        let program = command.get_program().to_owned();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{program:?} does not start: {error}"));
        let mut emulator = Self {
            url: format!("http://127.0.0.1:{port}"),
            child,
        };
        eventually(&format!("{program:?} listens on {port}"), async || {
            let ended = emulator.child.try_wait().expect("the process is ours");
            assert!(ended.is_none(), "{program:?} ended: {ended:?}");
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
        })
        .await;
        emulator
    }

    async fn azurite() -> Self {
        Self::start(|port| {
            let mut command = Command::new(folder().join("node_modules/.bin/azurite-blob"));
            command
                .env("AZURITE_ACCOUNTS", format!("{ACCOUNT}:{KEY}"))
                .args(["--blobHost", "127.0.0.1", "--blobPort", &port.to_string()])
                .args(["--inMemoryPersistence", "--silent", "--disableTelemetry"])
                // Python's library is newer than Azurite.
                .arg("--skipApiVersionCheck");
            command
        })
        .await
    }

    async fn fake_gcs_server() -> Self {
        Self::start(|port| {
            let mut command = Command::new(folder().join("bin/fake-gcs-server"));
            command
                .args(["-scheme", "http", "-backend", "memory"])
                .args(["-host", "127.0.0.1", "-port", &port.to_string()])
                .args(["-public-host", &format!("127.0.0.1:{port}")])
                .args(["-external-url", &format!("http://127.0.0.1:{port}")]);
            command
        })
        .await
    }

    /// The door in front of `server`.
    async fn door(server: &Emulator) -> Self {
        Self::start(|port| {
            let mut command = Command::new(folder().join("venv/bin/python"));
            command.args(["-c", DOOR, &port.to_string(), &server.url, TOKEN]);
            command
        })
        .await
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folder of the emulators and of PyIceberg.
fn folder() -> PathBuf {
    std::env::var_os("TARN_TEST_CLOUDS")
        .expect("TARN_TEST_CLOUDS names a folder")
        .into()
}

/// A store with an empty container or bucket `box`, and how it is reached.
struct Cloud {
    warehouse: &'static str,
    /// As Tarn takes them.
    properties: Vec<(&'static str, String)>,
    /// As the Python client takes them.
    python: Value,
    /// Let go of in this order.
    _servers: Vec<Emulator>,
}

impl Cloud {
    async fn azure() -> Self {
        let azurite = Emulator::azurite().await;
        let endpoint = format!("{}/{ACCOUNT}", azurite.url);
        let cloud = Self {
            warehouse: AZURE_WAREHOUSE,
            properties: vec![
                ("adls.endpoint", endpoint.clone()),
                ("adls.account-key", KEY.to_owned()),
            ],
            python: json!({
                "store": "azure",
                "endpoint": endpoint,
                "container": "box",
                "account": ACCOUNT,
                "key": KEY,
                "properties": {
                    "adls.account-name": ACCOUNT,
                    "adls.account-key": KEY,
                    "adls.connection-string": connection_string(&endpoint),
                    "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
                },
            }),
            _servers: vec![azurite],
        };
        cloud.python("make", json!({}));
        cloud
    }

    async fn google() -> Self {
        let server = Emulator::fake_gcs_server().await;
        let door = Emulator::door(&server).await;
        let cloud = Self {
            warehouse: GOOGLE_WAREHOUSE,
            properties: vec![
                ("gcs.service.host", door.url.clone()),
                ("gcs.oauth2.token", TOKEN.to_owned()),
            ],
            python: json!({
                "store": "google",
                "endpoint": server.url,
                "container": "box",
                "properties": {
                    "gcs.service.host": server.url,
                    "gcs.oauth2.token": "anon",
                    "gcs.project-id": "p",
                    "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
                },
            }),
            _servers: vec![door, server],
        };
        cloud.python("make", json!({}));
        cloud
    }

    /// Where it answers, as Tarn is told.
    fn endpoint(&self) -> (&'static str, &str) {
        let (key, value) = &self.properties[0];
        (*key, value.as_str())
    }

    /// Its properties as text.
    fn properties(&self) -> Vec<(&str, &str)> {
        self.properties
            .iter()
            .map(|(key, value)| (*key, value.as_str()))
            .collect()
    }

    /// What the Python client says.
    fn python(&self, action: &str, more: Value) -> Value {
        let mut asked = self.python.clone();
        asked["action"] = json!(action);
        for (key, value) in more.as_object().expect("an object") {
            asked[key.as_str()] = value.clone();
        }
        let printed = run(Command::new(folder().join("venv/bin/python"))
            .args(["-c", PYTHON_CLIENT, &asked.to_string()])
            // Otherwise gcsfs asks for the kind of bucket by gRPC, which the emulator does not speak, for a minute.
            .env("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false"));
        serde_json::from_str(printed.trim()).expect("JSON")
    }
}

fn connection_string(endpoint: &str) -> String {
    format!(
        "DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={endpoint};"
    )
}

/// Processes that send every scan to all workers, and find no credentials in their surroundings: neither the machine's
/// nor those below the home directory.
fn settings(home: &TempDir) -> Settings {
    Settings::default()
        .with("TARN_QUERY_SPREAD", "1")
        .with("HOME", home.path().to_str().expect("UTF-8"))
        .with("IDENTITY_ENDPOINT", &format!("http://{NOBODY}/token"))
        .with("GCE_METADATA_HOST", NOBODY)
        .with("GCE_METADATA_IP", NOBODY)
}

/// Properties as `PROPERTIES` or, with `=>`, as `iceberg_scan` takes them.
fn listed(properties: &[(&str, &str)], equals: &str) -> String {
    let each: Vec<String> = properties
        .iter()
        .map(|(key, value)| format!("'{key}' {equals} '{value}'"))
        .collect();
    each.join(", ")
}

/// Makes a SQL catalog, and a database `d` in it; the file that it is in.
async fn make_catalog(
    client: &mut Client,
    folder: &Path,
    name: &str,
    warehouse: &str,
    properties: &[(&str, &str)],
) -> String {
    let file = folder.join(format!("{name}.db")).display().to_string();
    client
        .query(&format!(
            "CREATE CATALOG {name} PROPERTIES ('type' = 'sql', 'uri' = 'sqlite:{file}?mode=rwc', \
             'warehouse' = '{warehouse}', {})",
            listed(properties, "=")
        ))
        .await;
    client.query(&format!("CREATE DATABASE {name}.d")).await;
    file
}

/// The current metadata file of a table.
async fn metadata_file(client: &mut Client, table: &str) -> String {
    client
        .value(&format!(
            "SELECT file FROM {table}$metadata_log_entries ORDER BY timestamp DESC, file DESC LIMIT 1"
        ))
        .await
}

/// Tables from their making to their purge, on two workers, with PyIceberg beside them.
async fn check_tables(cloud: &Cloud) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let cluster = Cluster::start_with(2, settings(&home)).await;
    let mut client = cluster.client().await;
    let properties = cloud.properties();
    let file = make_catalog(
        &mut client,
        cluster.dir(),
        "c",
        cloud.warehouse,
        &properties,
    )
    .await;

    client
        .query(
            "CREATE TABLE c.d.orders (id BIGINT, customer INT, placed DATE, total DECIMAL(12,2), note STRING) \
             PARTITION BY (month(placed))",
        )
        .await;
    client
        .query(
            "INSERT INTO c.d.orders VALUES (1, 1, '2024-01-05', 9.90, 'a b%20c'), \
             (2, 2, '2024-02-05', 19.90, 'ü'), (3, 1, '2024-02-07', 0.10, NULL)",
        )
        .await;
    // A value that a key of a store holds encoded, and a URL once more.
    client
        .query(
            "CREATE TABLE c.d.customers PARTITION BY (name) AS \
             SELECT 1 AS id, 'ann b/c%' AS name UNION ALL SELECT 2, 'bob'",
        )
        .await;
    assert_eq!(
        client
            .query("SELECT id, note FROM c.d.orders WHERE placed >= '2024-02-01' AND total > 1")
            .await,
        [["2", "ü"]]
    );
    assert_eq!(
        client
            .query(
                "SELECT c.name, sum(o.total) FROM c.d.orders o JOIN c.d.customers c ON o.customer = c.id \
                 GROUP BY 1 ORDER BY 1"
            )
            .await,
        [["ann b/c%", "10.00"], ["bob", "19.90"]]
    );
    let names = cloud.python("names", json!({})).to_string();
    assert!(names.contains("/data/name=ann b%2Fc%25/"), "{names}");

    client.query("ANALYZE TABLE c.d.orders").await;
    let stats = client
        .query("SHOW STATS FOR c.d.orders LIKE 'customer'")
        .await;
    assert_eq!(
        stats[0][..6].to_vec(),
        ["customer", "3", "0", "2", "1", "2"]
    );
    assert!(stats[0][7].starts_with("sketch of snapshot"), "{stats:?}");

    let of = |table: &str, filter: &str| json!({"catalog": file, "table": table, "filter": filter});
    assert_eq!(
        cloud.python("read", of("d.customers", "id > 0")),
        json!([["1", "ann b/c%"], ["2", "bob"]])
    );
    cloud.python("append", of("d.orders", ""));
    assert_eq!(
        cloud.python("read", of("d.orders", "placed >= '2024-02-07'")),
        json!([
            ["3", "1", "2024-02-07", "0.10", "None"],
            ["77", "2", "2024-03-01", "5.00", "python"]
        ])
    );
    assert_eq!(
        client
            .query("SELECT count(*), sum(total) FROM c.d.orders")
            .await,
        [["4", "34.90"]]
    );

    let metadata = metadata_file(&mut client, "c.d.orders").await;
    let folder = metadata.split_once("/metadata/").expect("a table").0;
    assert!(folder.starts_with(cloud.warehouse), "{folder}");
    let options = listed(&properties, "=>");
    for from in [
        format!("iceberg_scan('{folder}', 'catalog' => 'c')"),
        format!("iceberg_scan('{folder}', {options})"),
        format!("iceberg_scan('{metadata}', {options})"),
    ] {
        assert_eq!(
            client
                .query(&format!(
                    "SELECT count(*), sum(total) FROM {from} WHERE placed >= '2024-02-01'"
                ))
                .await,
            [["3", "25.00"]],
            "{from}"
        );
    }

    // A file that is uploaded, and read, in parts.
    client
        .query(
            "CREATE TABLE c.d.large AS SELECT value AS id, sha256(CAST(value AS CHAR)) AS hash FROM range(0, 600000)",
        )
        .await;
    assert_eq!(
        client
            .query("SELECT count(*), count(DISTINCT hash), sum(id) FROM c.d.large")
            .await,
        [["600000", "600000", "179999700000"]]
    );
    assert_eq!(
        client
            .value("SELECT max(file_size_in_bytes) > 9000000 FROM c.d.large$files")
            .await,
        "true"
    );

    for table in ["orders", "customers", "large"] {
        client.query(&format!("DROP TABLE c.d.{table} PURGE")).await;
    }
    client.query("DROP DATABASE c.d").await;
    assert_eq!(cloud.python("names", json!({})), json!([]));
}

/// Needs Azurite (npm), fake-gcs-server (Go) and PyIceberg with its file systems (PyPI): `TARN_TEST_CLOUDS` is a folder with
/// all of them. Run it without variables of Azure's and Google's in the environment.
///
/// ```text
/// npm install --prefix $TARN_TEST_CLOUDS azurite@3.35.0
/// GOBIN=$TARN_TEST_CLOUDS/bin go install github.com/fsouza/fake-gcs-server@v1.56.1
/// python3 -m venv $TARN_TEST_CLOUDS/venv
/// $TARN_TEST_CLOUDS/venv/bin/pip install 'pyiceberg[sql-sqlite,pyarrow,pyiceberg-core]==0.12.0' \
///   adlfs==2026.8.0 gcsfs==2026.10.1 azure-storage-blob==12.31.1 aiohttp==3.14.5
/// ```
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Azurite and fake-gcs-server: run by hand, as its comment says"]
async fn tables_in_a_container_of_azure() {
    check_tables(&Cloud::azure().await).await;
}

/// Needs what [`tables_in_a_container_of_azure`] needs.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Azurite and fake-gcs-server: run by hand, as the comment of the first test here says"]
async fn tables_in_a_bucket_of_google() {
    check_tables(&Cloud::google().await).await;
}

/// Needs what [`tables_in_a_container_of_azure`] needs.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Azurite and fake-gcs-server: run by hand, as the comment of the first test here says"]
async fn a_container_of_azure_has_several_names_and_several_keys() {
    let cloud = Cloud::azure().await;
    let home = tempfile::tempdir().expect("a temporary folder");
    let server = Cluster::server_with(settings(&home));
    let mut client = server.client().await;
    let (endpoint_key, endpoint) = cloud.endpoint();
    let sas = cloud.python("sas of the container", json!({}));
    let sas = sas.as_str().expect("a text");
    make_catalog(
        &mut client,
        server.dir(),
        "c",
        AZURE_WAREHOUSE,
        &[(endpoint_key, endpoint), ("adls.sas-token.tarn", sas)],
    )
    .await;
    client
        .query("CREATE TABLE c.d.t AS SELECT value AS id FROM range(0, 100)")
        .await;
    client.query("INSERT INTO c.d.t VALUES (1000)").await;
    let metadata = metadata_file(&mut client, "c.d.t").await;
    let folder = metadata.split_once("/metadata/").expect("a table").0;
    let key = folder.split_once("windows.net/").expect("a host").1;

    let own_key = ("adls.account-key", KEY);
    let marked = format!("?{sas}");
    let connection = connection_string(endpoint);
    for (location, properties) in [
        (folder.to_owned(), vec![(endpoint_key, endpoint), own_key]),
        (
            folder.to_owned(),
            vec![
                (endpoint_key, endpoint),
                ("adls.sas-token", marked.as_str()),
            ],
        ),
        (
            folder.to_owned(),
            vec![("adls.connection-string", connection.as_str())],
        ),
        (
            format!("wasbs://box@tarn.blob.core.windows.net/{key}"),
            vec![(endpoint_key, endpoint), own_key],
        ),
        (
            format!("az://box/{key}"),
            vec![
                (endpoint_key, endpoint),
                own_key,
                ("adls.account-name", ACCOUNT),
            ],
        ),
        // The connection string says which account it is for.
        (
            format!("az://box/{key}"),
            vec![("adls.connection-string", connection.as_str())],
        ),
    ] {
        let from = format!("iceberg_scan('{location}', {})", listed(&properties, "=>"));
        assert_eq!(
            client
                .query(&format!("SELECT count(*), sum(id) FROM {from}"))
                .await,
            [["101", "5950"]],
            "{from}"
        );
    }
    client.query("DROP TABLE c.d.t PURGE").await;
    assert_eq!(cloud.python("names", json!({})), json!([]));
}

/// What a write and a read fail with, neither of which may take long.
async fn refused(
    client: &mut Client,
    folder: &Path,
    name: &str,
    warehouse: &str,
    properties: &[(&str, &str)],
) -> Vec<String> {
    make_catalog(client, folder, name, warehouse, properties).await;
    let mut errors = vec![];
    for statement in [
        format!("CREATE TABLE {name}.d.t (id INT)"),
        format!("SELECT * FROM iceberg_scan('{warehouse}/d/t', 'catalog' => '{name}')"),
    ] {
        let begun = Instant::now();
        let error = client.error(&statement).await;
        let took = begun.elapsed();
        assert!(took < PATIENCE, "{name} took {took:?}: {error}");
        assert!(error.contains(warehouse), "{name}: {error}");
        assert!(!error.contains("panicked"), "{name}: {error}");
        errors.push(error);
    }
    errors
}

/// Everything that is shown or kept of what was said.
async fn all_that_is_shown(server: &Cluster, client: &mut Client) -> Vec<String> {
    let mut shown = vec![];
    for show in [
        "SHOW CATALOGS",
        "SELECT * FROM tarn.system.catalogs",
        "SHOW PROCESSLIST",
    ] {
        shown.push(format!("{:?}", client.query(show).await));
    }
    shown.push(server.coordinator.log());
    let audit = server.audit();
    assert!(!audit.is_empty(), "statements leave a record");
    shown.push(format!("{audit:?}"));
    shown
}

/// Needs what [`tables_in_a_container_of_azure`] needs.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Azurite and fake-gcs-server: run by hand, as the comment of the first test here says"]
async fn a_cloud_that_refuses_or_is_not_there_is_named_at_once() {
    let (azure, google) = (Cloud::azure().await, Cloud::google().await);
    let home = tempfile::tempdir().expect("a temporary folder");
    let server = Cluster::server_with(settings(&home));
    let mut client = server.client().await;
    let (az, gs) = (azure.endpoint(), google.endpoint());
    let nobody = format!("http://{NOBODY}");
    let (az_key, gs_token) = (("adls.account-key", KEY), ("gcs.oauth2.token", TOKEN));

    let mut said = vec![];
    for (name, warehouse, properties, words) in [
        (
            "az_wrong_key",
            AZURE_WAREHOUSE,
            vec![az, ("adls.account-key", WRONG_KEY)],
            "AuthorizationFailure",
        ),
        (
            "az_no_key_at_all",
            AZURE_WAREHOUSE,
            vec![az],
            "token request",
        ),
        (
            "az_anonymous",
            AZURE_WAREHOUSE,
            vec![az, ("adls.anon", "true")],
            "",
        ),
        (
            "az_wrong_token",
            AZURE_WAREHOUSE,
            vec![az, ("adls.token", WRONG_TOKEN)],
            "AuthorizationFailure",
        ),
        (
            "az_wrong_signature",
            AZURE_WAREHOUSE,
            vec![
                az,
                (
                    "adls.sas-token",
                    "sv=2024-11-04&sig=hush-hush%3D&se=2100-01-01",
                ),
            ],
            "AuthorizationFailure",
        ),
        (
            "az_key_that_is_no_key",
            AZURE_WAREHOUSE,
            vec![az, ("adls.account-key", "hush-hush!")],
            "Invalid Access Key",
        ),
        (
            "az_no_container",
            "abfss://nothing@tarn.dfs.core.windows.net/wh",
            vec![az, az_key],
            "ContainerNotFound",
        ),
        (
            "az_no_account",
            "az://box/wh",
            vec![az, az_key],
            "adls.account-name",
        ),
        (
            "az_nobody",
            AZURE_WAREHOUSE,
            vec![("adls.endpoint", nobody.as_str()), az_key],
            "refused",
        ),
        // Without an endpoint the location's host counts, and no host is called so.
        (
            "az_no_endpoint",
            "abfss://box@tarn.dfs.invalid/wh",
            vec![az_key],
            "tarn.blob.invalid",
        ),
        (
            "gs_wrong_token",
            GOOGLE_WAREHOUSE,
            vec![gs, ("gcs.oauth2.token", WRONG_TOKEN)],
            "401",
        ),
        (
            "gs_no_token_at_all",
            GOOGLE_WAREHOUSE,
            vec![gs],
            "token request",
        ),
        (
            "gs_anonymous",
            GOOGLE_WAREHOUSE,
            vec![gs, ("gcs.no-auth", "true")],
            "401",
        ),
        (
            "gs_no_file_of_credentials",
            GOOGLE_WAREHOUSE,
            vec![gs, ("gcs.credentials-path", "/nowhere/key.json")],
            "/nowhere/key.json",
        ),
        ("gs_no_bucket", "gs://nothing/wh", vec![gs, gs_token], ""),
        (
            "gs_nobody",
            GOOGLE_WAREHOUSE,
            vec![("gcs.service.host", nobody.as_str()), gs_token],
            "refused",
        ),
    ] {
        let errors = refused(&mut client, server.dir(), name, warehouse, &properties).await;
        assert!(errors[0].contains(words), "{name}: {errors:?}");
        said.extend(errors);
    }
    assert_eq!(client.value("SELECT 1 + 1").await, "2");
    said.extend(all_that_is_shown(&server, &mut client).await);
    for text in said {
        for secret in [KEY, WRONG_KEY, TOKEN, "hush-hush"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}

/// Needs what [`tables_in_a_container_of_azure`] needs. Azurite lets nobody delete in batches who has a signature of the
/// whole account, so a purge fails there; it is the address of that request that has the signature.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Azurite and fake-gcs-server: run by hand, as the comment of the first test here says"]
async fn a_shared_access_signature_is_never_shown() {
    let cloud = Cloud::azure().await;
    let home = tempfile::tempdir().expect("a temporary folder");
    let server = Cluster::server_with(settings(&home));
    let mut client = server.client().await;
    let sas = cloud.python("sas of the account", json!({}));
    let sas = sas.as_str().expect("a text");
    let signature = sas.split_once("sig=").expect("a signature").1;
    let signature = signature.split('&').next().expect("a part");
    make_catalog(
        &mut client,
        server.dir(),
        "c",
        AZURE_WAREHOUSE,
        &[cloud.endpoint(), ("adls.sas-token", sas)],
    )
    .await;
    client.query("CREATE TABLE c.d.t AS SELECT 1 AS id").await;
    assert_eq!(client.value("SELECT sum(id) FROM c.d.t").await, "1");
    let error = client.error("DROP TABLE c.d.t PURGE").await;
    assert!(error.contains(AZURE_WAREHOUSE), "{error}");
    let mut said = vec![error];
    said.extend(all_that_is_shown(&server, &mut client).await);
    for text in said {
        assert!(!text.contains(signature), "{text}");
    }
}

/// An address without `http://` or `https://`, as it is easily written. Nothing is asked of anybody, so this one needs no
/// emulator.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_no_address_is_refused_by_its_name() {
    let server = Cluster::server();
    let mut client = server.client().await;
    for (location, key, others) in [
        (
            "abfss://box@tarn.dfs.core.windows.net/t",
            "adls.endpoint",
            vec![("adls.account-key", KEY)],
        ),
        (
            "gs://box/t",
            "gcs.service.host",
            vec![("gcs.oauth2.token", TOKEN)],
        ),
        (
            "s3://box/t",
            "s3.endpoint",
            vec![
                ("s3.access-key-id", "id"),
                ("s3.secret-access-key", WRONG_TOKEN),
            ],
        ),
    ] {
        for endpoint in [NOBODY, "store.example.com", "http://", "http://[::"] {
            let mut properties = others.clone();
            properties.push((key, endpoint));
            let error = client
                .error(&format!(
                    "SELECT * FROM iceberg_scan('{location}', {})",
                    listed(&properties, "=>")
                ))
                .await;
            assert!(
                error.contains(key) && !error.contains("panicked"),
                "{key} = {endpoint}: {error}"
            );
        }
    }
}
