//! System variables: MySQL's that clients read, and Tarn's own.

use std::collections::BTreeMap;

use crate::error::{Error, ErrorKind, Result};
use crate::settings::EngineSettings;

/// The version that MySQL clients are told. Its first part decides how drivers browse
/// (`information_schema` and `transaction_isolation`, as for MySQL 8).
pub const SERVER_VERSION: &str = concat!("8.0.36-tarn-", env!("CARGO_PKG_VERSION"));

/// What `@@version_comment` and `SHOW VARIABLES` say the server is.
pub const VERSION_COMMENT: &str = "Tarn, an MPP SQL engine for Apache Iceberg";

/// What values a variable takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableKind {
    /// `ON`/`OFF`, shown as 1 and 0 by `SELECT @@x`.
    Switch,
    /// An integer in a range.
    Integer {
        min: i64,
        max: i64,
    },
    /// Bytes, or a text such as `512MB`; 0 for no limit.
    Bytes,
    Text,
    /// A time zone that is UTC: the engine's timestamps are.
    Zone,
    /// One of a few words, in any case.
    Word(&'static [&'static str]),
}

/// A system variable's definition.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    pub name: &'static str,
    pub kind: VariableKind,
    /// Its unit, empty where there is none.
    pub unit: &'static str,
    /// Whether `SET` may change it.
    pub read_only: bool,
    /// Whether it is Tarn's own; MySQL's are mostly there because clients ask for them.
    pub tarn: bool,
    pub help: &'static str,
    default: &'static str,
}

const fn mysql(name: &'static str, kind: VariableKind, default: &'static str) -> Variable {
    Variable {
        name,
        kind,
        unit: "",
        read_only: false,
        tarn: false,
        help: "",
        default,
    }
}

const fn fixed(name: &'static str, kind: VariableKind, default: &'static str) -> Variable {
    Variable {
        read_only: true,
        ..mysql(name, kind, default)
    }
}

const fn tarn(
    name: &'static str,
    kind: VariableKind,
    unit: &'static str,
    help: &'static str,
) -> Variable {
    Variable {
        name,
        kind,
        unit,
        read_only: false,
        tarn: true,
        help,
        default: "",
    }
}

const fn integer(min: i64, max: i64) -> VariableKind {
    VariableKind::Integer { min, max }
}

const SWITCH: VariableKind = VariableKind::Switch;
const TEXT: VariableKind = VariableKind::Text;
const SECONDS: VariableKind = integer(0, 31_536_000);
const ISOLATION: VariableKind = VariableKind::Word(&[
    "READ-UNCOMMITTED",
    "READ-COMMITTED",
    "REPEATABLE-READ",
    "SERIALIZABLE",
]);

/// Names of UTC, as clients set `time_zone`.
const UTC_ZONES: &[&str] = &["SYSTEM", "UTC", "GMT", "Etc/UTC", "Z", "+00:00", "-00:00"];

/// MySQL's own maximum, which means "no limit".
const NO_SELECT_LIMIT: &str = "18446744073709551615";

/// Every system variable, by name.
pub const VARIABLES: &[Variable] = &[
    mysql("auto_increment_increment", integer(1, 65_535), "1"),
    mysql("auto_increment_offset", integer(1, 65_535), "1"),
    mysql("autocommit", SWITCH, "ON"),
    tarn(
        "batch_rows",
        integer(64, 1_048_576),
        "rows",
        "Rows of a batch between operators.",
    ),
    mysql("big_tables", SWITCH, "OFF"),
    tarn(
        "bucket_joins",
        SWITCH,
        "",
        "Tables in buckets of what they are joined or grouped by are not shuffled.",
    ),
    mysql("character_set_client", TEXT, "utf8mb4"),
    mysql("character_set_connection", TEXT, "utf8mb4"),
    mysql("character_set_database", TEXT, "utf8mb4"),
    mysql("character_set_filesystem", TEXT, "binary"),
    mysql("character_set_results", TEXT, "utf8mb4"),
    mysql("character_set_server", TEXT, "utf8mb4"),
    fixed("character_set_system", TEXT, "utf8mb3"),
    mysql("collation_connection", TEXT, "utf8mb4_0900_ai_ci"),
    mysql("collation_database", TEXT, "utf8mb4_0900_ai_ci"),
    mysql("collation_server", TEXT, "utf8mb4_0900_ai_ci"),
    mysql("default_storage_engine", TEXT, "ICEBERG"),
    mysql("div_precision_increment", integer(0, 30), "4"),
    mysql("foreign_key_checks", SWITCH, "ON"),
    mysql("group_concat_max_len", integer(4, i64::MAX), "1048576"),
    fixed("have_ssl", TEXT, "DISABLED"),
    fixed("hostname", TEXT, "tarn"),
    mysql("init_connect", TEXT, ""),
    mysql("interactive_timeout", SECONDS, "28800"),
    tarn(
        "join_reorder",
        SWITCH,
        "",
        "Joins are put into the order that costs least by statistics; OFF leaves them as they are written.",
    ),
    fixed("license", TEXT, "Apache-2.0"),
    mysql("local_infile", SWITCH, "OFF"),
    mysql("lock_wait_timeout", SECONDS, "31536000"),
    fixed("lower_case_file_system", SWITCH, "OFF"),
    fixed("lower_case_table_names", integer(0, 2), "0"),
    fixed("max_allowed_packet", VariableKind::Bytes, "67108864"),
    fixed("max_connections", integer(1, i64::MAX), "1024"),
    Variable {
        unit: "milliseconds",
        help: "A SELECT that takes longer is stopped; 0 for no limit. The shorter of this and query_timeout holds.",
        ..mysql("max_execution_time", integer(0, i64::MAX), "0")
    },
    tarn(
        "max_shuffled_dimensions",
        integer(0, 1_000),
        "joins",
        "Tables that one query may join with its main table by shuffling both; with more it is refused.",
    ),
    mysql("max_statement_time", TEXT, "0"),
    mysql("net_buffer_length", integer(1_024, 1_048_576), "16384"),
    mysql("net_read_timeout", SECONDS, "30"),
    mysql("net_write_timeout", SECONDS, "600"),
    mysql("optimizer_switch", TEXT, ""),
    fixed("performance_schema", SWITCH, "OFF"),
    fixed("port", integer(0, 65_535), "9030"),
    mysql("profiling", SWITCH, "OFF"),
    fixed("protocol_version", integer(10, 10), "10"),
    mysql("query_cache_size", integer(0, i64::MAX), "0"),
    mysql("query_cache_type", TEXT, "OFF"),
    tarn(
        "query_memory_bytes",
        VariableKind::Bytes,
        "bytes",
        "Memory that one query may hold in each process; 0 for the process's own limit only.",
    ),
    tarn(
        "query_retries",
        integer(0, 100),
        "times",
        "How often a query is started anew when a worker is lost before any row reached the client.",
    ),
    tarn(
        "query_timeout",
        SECONDS,
        "seconds",
        "A query that takes longer is stopped; 0 for no limit.",
    ),
    tarn(
        "result_queue_batches",
        integer(1, 1_024),
        "batches",
        "Batches that may wait for a client that reads slowly.",
    ),
    tarn(
        "runtime_filter_min_rows",
        integer(0, i64::MAX),
        "rows",
        "Sides of shuffled joins that are estimated to have fewer rows are read without the keys of the other; with 0 every join that may have a filter has one.",
    ),
    tarn(
        "runtime_filter_wait_ms",
        integer(0, 3_600_000),
        "milliseconds",
        "The longest that a scan waits for the keys of a join on other workers before it reads.",
    ),
    tarn(
        "runtime_filters",
        SWITCH,
        "",
        "Scans learn the keys of a shuffled join's smaller side before they read.",
    ),
    mysql("session_track_gtids", TEXT, "OFF"),
    mysql("session_track_schema", SWITCH, "ON"),
    mysql("session_track_state_change", SWITCH, "OFF"),
    mysql(
        "session_track_system_variables",
        TEXT,
        "time_zone,autocommit,character_set_client,character_set_results,character_set_connection",
    ),
    mysql("session_track_transaction_info", TEXT, "OFF"),
    tarn(
        "skew_join_min_rows",
        integer(0, i64::MAX),
        "rows",
        "Sides of shuffled joins that are estimated to have fewer rows are not looked at for heavy keys.",
    ),
    tarn(
        "skew_joins",
        SWITCH,
        "",
        "Rows of keys that hold many of a shuffled join's rows are spread over all partitions.",
    ),
    mysql("sql_auto_is_null", SWITCH, "OFF"),
    mysql("sql_big_selects", SWITCH, "ON"),
    mysql(
        "sql_mode",
        TEXT,
        "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
    ),
    mysql("sql_notes", SWITCH, "ON"),
    mysql("sql_quote_show_create", SWITCH, "ON"),
    mysql("sql_safe_updates", SWITCH, "OFF"),
    Variable {
        unit: "rows",
        help: "Most rows that a SELECT without a LIMIT returns.",
        ..mysql("sql_select_limit", TEXT, NO_SELECT_LIMIT)
    },
    mysql("sql_warnings", SWITCH, "OFF"),
    mysql("storage_engine", TEXT, "ICEBERG"),
    fixed("system_time_zone", TEXT, "UTC"),
    tarn(
        "target_file_bytes",
        VariableKind::Bytes,
        "bytes",
        "Data files of an INSERT are closed when they reach this size.",
    ),
    tarn(
        "target_partitions",
        integer(0, 4_096),
        "partitions",
        "Partitions of a plan in one process; 0 for one per core.",
    ),
    mysql("time_zone", VariableKind::Zone, "SYSTEM"),
    mysql("timestamp", TEXT, "0"),
    mysql("transaction_isolation", ISOLATION, "REPEATABLE-READ"),
    mysql("transaction_read_only", SWITCH, "OFF"),
    mysql("tx_isolation", ISOLATION, "REPEATABLE-READ"),
    mysql("tx_read_only", SWITCH, "OFF"),
    mysql("unique_checks", SWITCH, "ON"),
    fixed("version", TEXT, SERVER_VERSION),
    fixed("version_comment", TEXT, VERSION_COMMENT),
    fixed("version_compile_machine", TEXT, std::env::consts::ARCH),
    fixed("version_compile_os", TEXT, std::env::consts::OS),
    mysql("wait_timeout", SECONDS, "28800"),
    mysql("windowing_use_high_precision", SWITCH, "ON"),
];

/// Two names of one thing: what is set under one is read under the other.
fn twin(name: &str) -> Option<&'static str> {
    match name {
        "tx_isolation" => Some("transaction_isolation"),
        "transaction_isolation" => Some("tx_isolation"),
        "tx_read_only" => Some("transaction_read_only"),
        "transaction_read_only" => Some("tx_read_only"),
        _ => None,
    }
}

/// The definition of a variable by its lower-case name.
pub fn find(name: &str) -> Option<&'static Variable> {
    VARIABLES
        .binary_search_by(|variable| variable.name.cmp(name))
        .ok()
        .and_then(|index| VARIABLES.get(index))
}

/// A value that `SET` brings.
#[derive(Debug, Clone, PartialEq)]
pub enum NewValue {
    Default,
    Null,
    Integer(i64),
    Float(f64),
    Text(String),
}

/// The values of all variables of one session, or the global ones that new sessions start with.
#[derive(Debug, Clone)]
pub struct Variables {
    values: BTreeMap<&'static str, Option<String>>,
    defaults: BTreeMap<&'static str, String>,
}

impl Variables {
    /// The values that the configuration gives.
    pub fn new(settings: &EngineSettings) -> Self {
        let query = &settings.query;
        let mut defaults: BTreeMap<&'static str, String> = VARIABLES
            .iter()
            .map(|variable| (variable.name, variable.default.to_owned()))
            .collect();
        for (name, value) in [
            ("query_timeout", query.timeout.as_secs().to_string()),
            (
                "query_memory_bytes",
                query.memory_bytes.unwrap_or(0).to_string(),
            ),
            ("target_partitions", query.target_partitions.to_string()),
            ("batch_rows", query.batch_rows.to_string()),
            ("bucket_joins", "ON".to_owned()),
            ("join_reorder", "ON".to_owned()),
            ("runtime_filters", "ON".to_owned()),
            ("skew_joins", "ON".to_owned()),
            ("skew_join_min_rows", "1000000".to_owned()),
            ("runtime_filter_min_rows", "100000".to_owned()),
            ("runtime_filter_wait_ms", "1000".to_owned()),
            (
                "max_shuffled_dimensions",
                query.max_shuffled_dimensions.to_string(),
            ),
            ("query_retries", query.retries.to_string()),
            (
                "result_queue_batches",
                query.result_queue_batches.to_string(),
            ),
            ("target_file_bytes", query.target_file_bytes.to_string()),
            (
                "max_allowed_packet",
                settings.max_allowed_packet_bytes.to_string(),
            ),
            ("max_connections", settings.max_connections.to_string()),
        ] {
            defaults.insert(name, value);
        }
        let values = defaults
            .iter()
            .map(|(name, value)| (*name, Some(value.clone())))
            .collect();
        Self { values, defaults }
    }

    /// Every variable with its value as `SHOW VARIABLES` shows it, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Variable, &str)> {
        VARIABLES
            .iter()
            .map(|variable| (variable, self.text(variable.name).unwrap_or_default()))
    }

    /// A variable's value as text; `None` when it is NULL or there is no such variable.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.as_deref()
    }

    /// A variable's value as a number, 0 when it is not one.
    pub fn number(&self, name: &str) -> u64 {
        self.text(name)
            .and_then(|text| text.parse().ok())
            .unwrap_or(0)
    }

    /// Whether a switch is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.text(name) == Some("ON")
    }

    /// Sets a variable after checking the value.
    ///
    /// # Errors
    /// There is no such variable, it cannot be set, or the value is not one of its values.
    pub fn set(&mut self, name: &str, value: NewValue) -> Result<()> {
        let variable = find(name).ok_or_else(|| unknown(name))?;
        if variable.read_only {
            return Err(Error::new(
                ErrorKind::ReadOnlyVariable,
                format!("Variable '{name}' is a read only variable"),
            ));
        }
        let text = match value {
            NewValue::Default => self.defaults.get(variable.name).cloned(),
            NewValue::Null if variable.kind == VariableKind::Text => None,
            value => Some(checked(variable, &value)?),
        };
        if let Some(twin) = twin(variable.name) {
            self.values.insert(twin, text.clone());
        }
        self.values.insert(variable.name, text);
        Ok(())
    }
}

/// The error for a variable that is not there, with near names.
pub fn unknown(name: &str) -> Error {
    let near = tarn_catalog::near_names(name, VARIABLES.iter().map(|variable| variable.name));
    let hint = match near.first() {
        Some(near) => format!("; did you mean '{near}'?"),
        None => String::new(),
    };
    Error::new(
        ErrorKind::NoSuchVariable,
        format!("Unknown system variable '{name}'{hint}"),
    )
}

fn checked(variable: &Variable, value: &NewValue) -> Result<String> {
    let shown = match value {
        NewValue::Integer(number) => number.to_string(),
        NewValue::Float(number) => number.to_string(),
        NewValue::Text(text) => text.trim().to_owned(),
        NewValue::Null | NewValue::Default => "NULL".to_owned(),
    };
    let wrong = |expected: String| {
        Error::new(
            ErrorKind::WrongValueForVariable,
            format!(
                "Variable '{}' can't be set to the value of '{shown}': {expected}",
                variable.name
            ),
        )
    };
    match variable.kind {
        VariableKind::Text => match value {
            NewValue::Text(text) => Ok(text.clone()),
            _ => Ok(shown),
        },
        VariableKind::Switch => match shown.to_ascii_uppercase().as_str() {
            "1" | "ON" | "TRUE" => Ok("ON".to_owned()),
            "0" | "OFF" | "FALSE" => Ok("OFF".to_owned()),
            _ => Err(wrong("it is ON or OFF".to_owned())),
        },
        VariableKind::Integer { min, max } => match shown.parse::<i64>() {
            Ok(number) if (min..=max).contains(&number) => Ok(number.to_string()),
            _ => {
                let unit = if variable.unit.is_empty() {
                    String::new()
                } else {
                    format!(" {}", variable.unit)
                };
                Err(wrong(format!(
                    "it is a whole number from {min} to {max}{unit}"
                )))
            }
        },
        VariableKind::Bytes => parse_bytes(&shown)
            .map(|bytes| bytes.to_string())
            .ok_or_else(|| {
                wrong("it is a number of bytes, or a size such as 512MB or 2GiB".to_owned())
            }),
        VariableKind::Zone => UTC_ZONES
            .iter()
            .find(|zone| zone.eq_ignore_ascii_case(&shown))
            .map(|zone| (*zone).to_owned())
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::UnknownTimeZone,
                    format!(
                        "time_zone '{shown}' is not supported: timestamps are UTC here; use CONVERT_TZ"
                    ),
                )
            }),
        VariableKind::Word(words) => {
            let word = shown.to_ascii_uppercase().replace([' ', '_'], "-");
            match words.iter().find(|known| **known == word) {
                Some(known) => Ok((*known).to_owned()),
                None => Err(wrong(format!("it is one of {}", words.join(", ")))),
            }
        }
    }
}

/// `4096`, `64KB`, `512 MiB`, `1.5g`: K, M, G and T are powers of 1024 with or without the `i`.
fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let power = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        _ => return None,
    };
    let scale = 1024_u64.pow(power);
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(scale);
    }
    let fraction = number.parse::<f64>().ok()? * scale as f64;
    (fraction.is_finite() && fraction < 9e18).then_some(fraction as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> Variables {
        Variables::new(&EngineSettings::default())
    }

    #[test]
    fn the_table_is_sorted_so_that_names_are_found() {
        assert!(VARIABLES.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(
            VARIABLES
                .iter()
                .all(|v| find(v.name).is_some_and(|found| found.name == v.name))
        );
    }

    #[test]
    fn every_variable_that_a_driver_reads_at_login_has_a_value() {
        let variables = variables();
        for name in [
            "auto_increment_increment",
            "character_set_client",
            "character_set_connection",
            "character_set_results",
            "character_set_server",
            "collation_server",
            "collation_connection",
            "init_connect",
            "interactive_timeout",
            "license",
            "lower_case_table_names",
            "max_allowed_packet",
            "net_write_timeout",
            "performance_schema",
            "query_cache_size",
            "query_cache_type",
            "sql_mode",
            "system_time_zone",
            "time_zone",
            "transaction_isolation",
            "tx_isolation",
            "wait_timeout",
            "version",
            "version_comment",
            "session_track_system_variables",
        ] {
            assert!(variables.text(name).is_some(), "{name}");
        }
    }

    #[test]
    fn values_are_checked_and_shown_as_mysql_shows_them() {
        let mut variables = variables();
        for (name, value, expected) in [
            ("autocommit", NewValue::Integer(0), "OFF"),
            ("autocommit", NewValue::Text("on".into()), "ON"),
            ("query_timeout", NewValue::Integer(5), "5"),
            ("query_timeout", NewValue::Text("7".into()), "7"),
            (
                "query_memory_bytes",
                NewValue::Text("64MB".into()),
                "67108864",
            ),
            (
                "transaction_isolation",
                NewValue::Text("read committed".into()),
                "READ-COMMITTED",
            ),
            ("sql_mode", NewValue::Text("".into()), ""),
            ("time_zone", NewValue::Text("+00:00".into()), "+00:00"),
            ("time_zone", NewValue::Text("utc".into()), "UTC"),
            ("time_zone", NewValue::Text("etc/utc".into()), "Etc/UTC"),
            ("time_zone", NewValue::Default, "SYSTEM"),
        ] {
            variables.set(name, value).expect("a valid value");
            assert_eq!(variables.text(name), Some(expected), "{name}");
        }
        assert_eq!(variables.text("tx_isolation"), Some("READ-COMMITTED"));
        variables
            .set("character_set_results", NewValue::Null)
            .expect("may be NULL");
        assert_eq!(variables.text("character_set_results"), None);
        variables
            .set("query_timeout", NewValue::Default)
            .expect("has a default");
        assert_eq!(variables.text("query_timeout"), Some("3600"));
    }

    #[test]
    fn a_wrong_value_or_name_is_an_error_that_names_it() {
        let mut variables = variables();
        for (name, value, kind) in [
            (
                "query_timeout",
                NewValue::Integer(-1),
                ErrorKind::WrongValueForVariable,
            ),
            (
                "query_timeout",
                NewValue::Text("soon".into()),
                ErrorKind::WrongValueForVariable,
            ),
            (
                "autocommit",
                NewValue::Integer(2),
                ErrorKind::WrongValueForVariable,
            ),
            (
                "query_memory_bytes",
                NewValue::Text("much".into()),
                ErrorKind::WrongValueForVariable,
            ),
            (
                "time_zone",
                NewValue::Text("Europe/Berlin".into()),
                ErrorKind::UnknownTimeZone,
            ),
            (
                "time_zone",
                NewValue::Text("+02:00".into()),
                ErrorKind::UnknownTimeZone,
            ),
            (
                "version",
                NewValue::Text("9".into()),
                ErrorKind::ReadOnlyVariable,
            ),
            (
                "query_timout",
                NewValue::Integer(1),
                ErrorKind::NoSuchVariable,
            ),
        ] {
            let error = variables.set(name, value).expect_err(name);
            assert_eq!(error.kind, kind, "{name}");
            assert!(error.message.contains(name), "{}", error.message);
        }
    }

    #[test]
    fn each_of_tarns_own_is_documented() {
        let document = include_str!("../../docs/sql.md");
        for variable in VARIABLES.iter().filter(|variable| variable.tarn) {
            let line = format!("\n| `{}` | {} |", variable.name, variable.unit);
            assert!(document.contains(&line), "{}", variable.name);
        }
    }

    #[test]
    fn sizes_are_read_with_and_without_a_unit() {
        for (text, expected) in [
            ("0", Some(0)),
            ("4096", Some(4096)),
            ("1k", Some(1024)),
            ("512 MiB", Some(512 << 20)),
            ("1.5GB", Some(1_610_612_736)),
            ("-1", None),
            ("1x", None),
            ("", None),
            ("99999999999T", None),
        ] {
            assert_eq!(parse_bytes(text), expected, "{text}");
        }
    }
}
