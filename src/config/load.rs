//! The settings in force: the table's defaults, overridden by the file, then the environment, then flags.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::entries::{CatalogEntry, StorageEntry, UserEntry};
use super::error::{ConfigError, nearest};
use super::table::{SETTINGS, Setting, find};
use super::toml_file::{self, FileContent, Lookup};
use super::value::{self, Kind, Value};

/// Variables with our prefix that are no settings: where the file is, and what the shell reads.
const OTHER_VARIABLES: &[&str] = &["TARN_CONFIG", "TARN_PASSWORD"];
/// Variables with these prefixes belong to the tests and the benchmark.
const OTHER_PREFIXES: &[&str] = &["TARN_TEST_", "TARN_BENCH_"];

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Default,
    File { path: PathBuf, line: usize },
    Environment(String),
    Flag(&'static str),
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::File { path, line } => write!(f, "{}:{line}", path.display()),
            Source::Environment(variable) => write!(f, "environment {variable}"),
            Source::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

/// What the command line sets: the flag, the setting it stands for, and the text given.
pub type Overrides = Vec<(&'static str, &'static str, String)>;

/// All settings in force.
#[derive(Debug)]
pub struct Settings {
    values: BTreeMap<String, (Value, Source)>,
    pub(super) catalogs: Vec<CatalogEntry>,
    pub(super) storage: StorageEntry,
    pub(super) users: Option<Vec<UserEntry>>,
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
}

/// Reads the file (`--config`, else `$TARN_CONFIG`, else `./tarn.toml` if it is there), the environment and the flags.
pub fn load(file: Option<&Path>, overrides: &Overrides) -> Result<Settings, ConfigError> {
    let environment: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
        .collect();
    let file = match file {
        Some(path) => Some(path.to_path_buf()),
        None => match environment.get("TARN_CONFIG").filter(|v| !v.is_empty()) {
            Some(path) => Some(PathBuf::from(path)),
            None => Some(PathBuf::from("tarn.toml")).filter(|p| p.is_file()),
        },
    };
    let text = match &file {
        Some(path) => {
            Some(
                std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
                    path: path.clone(),
                    source,
                })?,
            )
        }
        None => None,
    };
    let file = file.zip(text);
    resolve(
        file.as_ref().map(|(p, t)| (p.as_path(), t.as_str())),
        &environment,
        overrides,
    )
}

/// The pure part of [`load`].
fn resolve(
    file: Option<(&Path, &str)>,
    environment: &BTreeMap<String, String>,
    overrides: &Overrides,
) -> Result<Settings, ConfigError> {
    let lookup: Lookup<'_> = &|name| environment.get(name).cloned();
    let content = match file {
        Some((path, text)) => toml_file::parse(path, text, lookup)?,
        None => FileContent::default(),
    };
    let mut values = BTreeMap::new();
    for s in SETTINGS {
        let value =
            value::parse(&s.kind, s.default).map_err(|problem| bad("default", s, problem))?;
        values.insert(s.name(), (value, Source::Default));
    }
    if let Some((path, _)) = file {
        for (setting, value, line) in content.values {
            values.insert(
                setting.name(),
                (
                    value,
                    Source::File {
                        path: path.to_path_buf(),
                        line,
                    },
                ),
            );
        }
    }
    // An empty variable is one that a compose file or a unit file leaves open.
    for (variable, text) in environment.iter().filter(|(_, text)| !text.is_empty()) {
        if let Some(setting) = setting_of_variable(variable)? {
            let value = value::parse(&setting.kind, text).map_err(|p| bad(variable, setting, p))?;
            values.insert(
                setting.name(),
                (value, Source::Environment(variable.clone())),
            );
        }
    }
    for (flag, name, text) in overrides {
        let Some(setting) = find(name) else {
            return Err(ConfigError::Unknown {
                place: (*flag).to_string(),
                what: "setting",
                name: (*name).to_string(),
                near: None,
            });
        };
        let value = value::parse(&setting.kind, text).map_err(|p| bad(flag, setting, p))?;
        values.insert(setting.name(), (value, Source::Flag(flag)));
    }
    Ok(Settings {
        values,
        catalogs: content.catalogs,
        storage: content.storage,
        users: content.users,
        file: file.map(|(path, _)| path.to_path_buf()),
    })
}

fn bad(place: &str, setting: &Setting, problem: String) -> ConfigError {
    ConfigError::BadValue {
        place: place.to_string(),
        name: setting.name(),
        problem,
    }
}

fn setting_of_variable(variable: &str) -> Result<Option<&'static Setting>, ConfigError> {
    if !variable.starts_with("TARN_")
        || OTHER_VARIABLES.contains(&variable)
        || OTHER_PREFIXES.iter().any(|p| variable.starts_with(p))
    {
        return Ok(None);
    }
    match SETTINGS.iter().find(|s| s.variable() == variable) {
        Some(setting) => Ok(Some(setting)),
        None => Err(ConfigError::Unknown {
            place: "environment".to_string(),
            what: "variable",
            name: variable.to_string(),
            near: nearest(variable, SETTINGS.iter().map(Setting::variable)),
        }),
    }
}

/// The accessors panic on a name or type that is not in the table: that is a slip in this program which every start
/// would meet, never something a user can cause.
impl Settings {
    pub(super) fn entry(&self, setting: &Setting) -> &(Value, Source) {
        self.get(&setting.name())
    }

    fn get(&self, name: &str) -> &(Value, Source) {
        match self.values.get(name) {
            Some(entry) => entry,
            None => unreachable!("no setting is called {name}"),
        }
    }

    /// Whether nobody has set it.
    pub fn is_default(&self, name: &str) -> bool {
        self.get(name).1 == Source::Default
    }

    /// Whether the command line has set it.
    pub fn is_flag(&self, name: &str) -> bool {
        matches!(self.get(name).1, Source::Flag(_))
    }

    /// A size in bytes.
    pub fn bytes(&self, name: &str) -> u64 {
        match self.get(name).0 {
            Value::Bytes(n) => n,
            _ => unreachable!("{name} is no size"),
        }
    }

    pub fn count(&self, name: &str) -> u64 {
        match self.get(name).0 {
            Value::Count(n) => n,
            _ => unreachable!("{name} is no count"),
        }
    }

    pub fn duration(&self, name: &str) -> Duration {
        match self.get(name).0 {
            Value::Duration(d) => d,
            _ => unreachable!("{name} is no duration"),
        }
    }

    pub fn address(&self, name: &str) -> SocketAddr {
        match self.get(name).0 {
            Value::Address(a) => a,
            _ => unreachable!("{name} is no address"),
        }
    }

    pub fn text(&self, name: &str) -> &str {
        match &self.get(name).0 {
            Value::Text(s) => s,
            _ => unreachable!("{name} is no text"),
        }
    }

    pub fn url(&self, name: &str) -> &url::Url {
        match &self.get(name).0 {
            Value::Url(u) => u,
            _ => unreachable!("{name} is no URL"),
        }
    }

    /// A path, an empty one resolved inside the data directory.
    pub fn path(&self, name: &str) -> PathBuf {
        match (find(name).map(|s| s.kind), &self.get(name).0) {
            (Some(Kind::PathInside(fallback)), Value::Path(p)) if p.as_os_str().is_empty() => {
                self.data_dir().join(fallback)
            }
            (_, Value::Path(p)) => p.clone(),
            _ => unreachable!("{name} is no path"),
        }
    }

    pub fn data_dir(&self) -> PathBuf {
        self.path("data_dir")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect()
    }

    fn from_file(text: &str) -> Result<Settings, ConfigError> {
        resolve(
            Some((Path::new("tarn.toml"), text)),
            &BTreeMap::new(),
            &Vec::new(),
        )
    }

    fn source(settings: &Settings, name: &str) -> String {
        settings.get(name).1.to_string()
    }

    #[test]
    fn each_place_overrides_the_one_before_and_is_named_as_the_source() {
        let text = "data_dir = \"/srv/tarn\"\n\n[cache]\nmemory = \"2GiB\"\nblock = 65536\ndisk = \"10GB\"\n";
        let settings = resolve(
            Some((Path::new("etc/tarn.toml"), text)),
            &environment(&[
                ("TARN_CACHE_BLOCK", "4MiB"),
                ("TARN_DATA_DIR", "/env"),
                ("PATH", "/bin"),
            ]),
            &vec![("--data-dir", "data_dir", "/flag".to_string())],
        )
        .unwrap();

        assert_eq!(settings.data_dir(), PathBuf::from("/flag"));
        assert_eq!(source(&settings, "data_dir"), "flag --data-dir");
        assert_eq!(settings.bytes("cache.block"), 4_194_304);
        assert_eq!(
            source(&settings, "cache.block"),
            "environment TARN_CACHE_BLOCK"
        );
        assert_eq!(settings.bytes("cache.memory"), 2_147_483_648);
        assert_eq!(source(&settings, "cache.memory"), "etc/tarn.toml:4");
        assert_eq!(settings.bytes("cache.disk"), 10_000_000_000);
        assert_eq!(
            settings.address("coordinator.mysql_listen"),
            "127.0.0.1:9030".parse().unwrap()
        );
        assert_eq!(source(&settings, "coordinator.mysql_listen"), "default");
        assert_eq!(settings.path("audit.dir"), PathBuf::from("/flag/audit"));
    }

    #[test]
    fn what_is_wrong_is_named_with_file_and_line() {
        for (text, expected) in [
            (
                "[cache]\nmemroy = \"1GiB\"\n",
                "tarn.toml:2: unknown setting `cache.memroy`; did you mean `cache.memory`?",
            ),
            (
                "\n[cash]\nmemory = 1\n",
                "tarn.toml:2: unknown section `cash`; did you mean `cache`?",
            ),
            (
                "frobnicate = 1\n",
                "tarn.toml:1: unknown setting `frobnicate`; `tarn config` lists them all",
            ),
            (
                "[cache]\n\nmemory = \"lots\"\n",
                "tarn.toml:3: cache.memory: `lots` is not a size; write it like 64MiB, 2GiB or 500MB",
            ),
            (
                "[coordinator]\nmysql_listen = \"9030\"\n",
                "tarn.toml:2: coordinator.mysql_listen: `9030` is not an address like 127.0.0.1:9030 or 0.0.0.0:9030",
            ),
            (
                "[log]\nformat = \"xml\"\n",
                "tarn.toml:2: log.format: `xml` is not one of text, json",
            ),
            (
                "[query]\nbatch_rows = 0\n",
                "tarn.toml:2: query.batch_rows: 0 is too small, the least is 1",
            ),
            (
                "[query]\ntimeout = [1]\n",
                "tarn.toml:2: query.timeout: array is not a duration",
            ),
            (
                "[[users]]\npassword = \"x\"\n",
                "tarn.toml:1: users.name: a user needs a name",
            ),
            (
                "[[users]]\nname = \"a\"\n[[users]]\nname = \"a\"\n",
                "tarn.toml:3: users.name: there are two users of the name `a`",
            ),
            (
                "[worker]\nheartbeat = \"0s\"\n",
                "tarn.toml:2: worker.heartbeat: `0s` is too short, the least is 1ms",
            ),
            (
                "[[users]]\nname = \"a\"\npasword = \"x\"\n",
                "tarn.toml:3: unknown setting `users.pasword`; did you mean `users.password`?",
            ),
            (
                "[catalog.prod]\ntoken = \"${NOT_THERE}\"\n",
                "tarn.toml:2: catalog.prod.token: the environment variable NOT_THERE is not set",
            ),
            (
                "[storage]\ns3.endpont = \"http://s3\"\n",
                "tarn.toml:1: storage: property 's3.endpont' is not known; did you mean 's3.endpoint'?",
            ),
        ] {
            match from_file(text) {
                Err(e) => assert_eq!(e.to_string(), expected, "{text}"),
                Ok(_) => panic!("accepted: {text}"),
            }
        }
    }

    #[test]
    fn broken_toml_names_the_line() {
        let error = from_file("[cache]\nmemory = \n").unwrap_err().to_string();
        assert!(error.starts_with("tarn.toml:2: "), "{error}");
    }

    #[test]
    fn an_unknown_variable_is_an_error_but_those_of_the_tests_are_not() {
        let error = resolve(
            None,
            &environment(&[("TARN_CACHE_MEMROY", "1")]),
            &Vec::new(),
        )
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "environment: unknown variable `TARN_CACHE_MEMROY`; did you mean `TARN_CACHE_MEMORY`?"
        );
        let error = resolve(
            None,
            &environment(&[("TARN_QUERY_RETRIES", "-1")]),
            &Vec::new(),
        )
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "TARN_QUERY_RETRIES: query.retries: `-1` is not a whole number"
        );
        assert!(
            resolve(
                None,
                &environment(&[("TARN_TEST_X", "1"), ("TARN_CONFIG", "x")]),
                &Vec::new()
            )
            .is_ok()
        );
    }

    #[test]
    fn catalogs_storage_and_users() {
        let text = r#"
            [catalog.prod]
            type = "rest"
            uri = "http://c"
            s3.region = "eu-west-1"
            "s3.path-style-access" = true
            "s3.secret-access-key" = "${KEY}-x"

            [storage]
            s3.endpoint = "http://s3"
            s3.path-style-access = true

            [[users]]
            name = "ann"
            password = "p"
            [[users]]
            name = "bob"
            password_sha256 = "00"
            [[users]]
            name = "root"
        "#;
        let settings = resolve(
            Some((Path::new("t.toml"), text)),
            &environment(&[("KEY", "k")]),
            &Vec::new(),
        )
        .unwrap();
        let properties: Vec<(&str, &str)> = settings.catalogs[0]
            .properties
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        assert_eq!(
            properties,
            [
                ("s3.path-style-access", "true"),
                ("s3.region", "eu-west-1"),
                ("s3.secret-access-key", "k-x"),
                ("type", "rest"),
                ("uri", "http://c"),
            ]
        );
        assert_eq!(
            settings.storage.properties,
            environment(&[
                ("s3.endpoint", "http://s3"),
                ("s3.path-style-access", "true")
            ])
        );
        let users = settings.users.unwrap();
        assert_eq!(
            users.iter().map(|u| u.name.as_str()).collect::<Vec<_>>(),
            ["ann", "bob", "root"]
        );
    }
}
