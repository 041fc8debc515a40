use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Where `tests/run` put the clients (see that script).
fn clients_dir() -> PathBuf {
    match std::env::var_os("TARN_TEST_CLIENTS") {
        Some(dir) => dir.into(),
        None => Path::new(env!("CARGO_TARGET_TMPDIR")).join("../test-clients"),
    }
}

/// The root of the checkout that the tests run in. A target directory that checkouts share may hold a test binary
/// of another one: cargo's word at run time counts.
pub fn package_root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// The Python that has the client libraries of `tests/clients/requirements.txt`.
pub fn python() -> PathBuf {
    present(clients_dir().join("venv/bin/python"), "the Python clients")
}

/// A jar that `tests/run` fetched.
pub fn jar(name: &str) -> PathBuf {
    present(clients_dir().join("jars").join(name), name)
}

/// The compiled JDBC probe's class path.
pub fn jdbc_driver_class() -> PathBuf {
    present(
        clients_dir().join("classes/JdbcProbe.class"),
        "the JDBC probe",
    )
}

/// The class path of the Iceberg REST catalog of `tests/clients/rest_fixture`.
pub fn rest_fixture_class_path() -> std::ffi::OsString {
    let classes = present(
        clients_dir().join("classes/RestFx.class"),
        "the Iceberg REST catalog",
    );
    let jars = clients_dir().join("rest-jars/*");
    std::env::join_paths([classes.parent().expect("a folder"), &jars]).expect("a class path")
}

/// The class path of the Hive Metastore of `tests/clients/hive_metastore`, fetched and compiled if it is not there.
pub fn hive_metastore_class_path() -> std::ffi::OsString {
    let source = package_root().join("tests/clients/hive_metastore");
    let (jars, classes) = (
        clients_dir().join("hive-jars"),
        clients_dir().join("hive-classes"),
    );
    let all_jars = jars.join("*");
    if !classes.join("Hms.class").exists() {
        run(Command::new("mvn")
            .args(["-q", "-B", "-f"])
            .arg(source.join("pom.xml"))
            .arg("dependency:copy-dependencies")
            .arg(format!("-DoutputDirectory={}", jars.display())));
        run(Command::new("javac")
            .arg("-cp")
            .arg(&all_jars)
            .arg("-d")
            .arg(&classes)
            .arg(source.join("Hms.java")));
    }
    std::env::join_paths([&classes, &all_jars]).expect("a class path")
}

/// The `mysql` command-line client (MariaDB's or MySQL's).
pub fn mysql_command() -> &'static str {
    static NAME: OnceLock<&'static str> = OnceLock::new();
    NAME.get_or_init(|| {
        ["mysql", "mariadb"]
            .into_iter()
            .find(|name| Command::new(name).arg("--version").output().is_ok())
            .expect("no `mysql` or `mariadb` client here: run the tests by tests/run, which says what is missing")
    })
}

fn present(path: PathBuf, what: &str) -> PathBuf {
    assert!(
        path.exists(),
        "{what} not found at {}: run the tests by tests/run, which fetches the clients",
        path.display()
    );
    path
}

/// Runs a script of `tests/clients` and returns what it printed; a failure fails the test with
/// everything it said.
pub fn run_python(script: &str, args: &[&str]) -> String {
    let path = package_root().join("tests/clients").join(script);
    run(Command::new(python()).arg(path).args(args))
}

/// Runs a command that must succeed; its standard output.
pub fn run(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    let stdout = String::from_utf8_lossy(&stdout).into_owned();
    assert!(
        status.success(),
        "{command:?} ended with {status}\n{stdout}\n{}",
        String::from_utf8_lossy(&stderr)
    );
    stdout
}
