//! Every setting there is. Parsing, validation, `tarn config`, the environment variables and
//! `docs/configuration.md` are all driven by this table.

use std::time::Duration;

use super::value::Kind;

/// One setting: `key` inside `[section]` of the file, `TARN_<SECTION>_<KEY>` in the environment.
#[derive(Debug)]
pub struct Setting {
    /// Table of the TOML file; empty for a key at the top of the file.
    pub section: &'static str,
    pub key: &'static str,
    pub kind: Kind,
    /// As it would be written in the file (without quotes).
    pub default: &'static str,
    /// One line, for the reference and for `tarn config --markdown`.
    pub doc: &'static str,
}

impl Setting {
    /// `section.key`, or `key` at the top of the file.
    pub fn name(&self) -> String {
        if self.section.is_empty() {
            self.key.to_string()
        } else {
            format!("{}.{}", self.section, self.key)
        }
    }

    /// The environment variable that overrides the file.
    pub fn variable(&self) -> String {
        if self.section.is_empty() {
            format!("TARN_{}", self.key.to_uppercase())
        } else {
            format!(
                "TARN_{}_{}",
                self.section.to_uppercase(),
                self.key.to_uppercase()
            )
        }
    }
}

/// The sections, in the order of the reference, with what each is about.
pub const SECTIONS: &[(&str, &str)] = &[
    ("", "At the top of the file, before any `[section]`."),
    (
        "coordinator",
        "What clients and workers connect to. Read by `tarn coordinator` and `tarn server`.",
    ),
    (
        "worker",
        "What executes the fragments of a query. Read by `tarn worker`; `tarn server` and the embedded shell use \
         `memory`, `spill_dir` and `spill_bytes` for the engine inside the process.",
    ),
    (
        "cache",
        "The block cache in front of remote object stores, and the cache of table metadata.",
    ),
    ("query", "Defaults and bounds of every query."),
    ("store", "Patience with object stores and catalogs."),
    (
        "audit",
        "One JSON line for every statement, in files that rotate.",
    ),
    ("log", "The process's own log, on standard error."),
];

const fn setting(
    section: &'static str,
    key: &'static str,
    kind: Kind,
    default: &'static str,
    doc: &'static str,
) -> Setting {
    Setting {
        section,
        key,
        kind,
        default,
        doc,
    }
}

/// A duration that may be none at all.
const ANY_TIME: Kind = Kind::Duration {
    least: Duration::ZERO,
};
/// A duration that would make no sense as zero.
const SOME_TIME: Kind = Kind::Duration {
    least: Duration::from_millis(1),
};

/// The table.
pub const SETTINGS: &[Setting] = &[
    setting(
        "",
        "data_dir",
        Kind::Path,
        "~/.tarn",
        "Where the embedded catalog, its warehouse, the caches, the spill files and the audit files live.",
    ),
    setting(
        "coordinator",
        "mysql_listen",
        Kind::Address,
        "127.0.0.1:9030",
        "Address of the MySQL protocol; port 0 takes a free one.",
    ),
    setting(
        "coordinator",
        "flight_listen",
        Kind::Address,
        "127.0.0.1:9040",
        "Address of Arrow Flight SQL (gRPC); port 0 takes a free one.",
    ),
    setting(
        "coordinator",
        "http_listen",
        Kind::Address,
        "127.0.0.1:8030",
        "Address of the cluster API and health checks (HTTP); port 0 takes a free one.",
    ),
    setting(
        "coordinator",
        "max_connections",
        Kind::Count { least: 1 },
        "1024",
        "MySQL connections at a time; the next one is refused with an error.",
    ),
    setting(
        "coordinator",
        "max_packet",
        Kind::Bytes,
        "64MiB",
        "Largest MySQL packet and largest Flight SQL message accepted from a client.",
    ),
    setting(
        "coordinator",
        "heartbeat",
        SOME_TIME,
        "2s",
        "How often the coordinator asks workers to report.",
    ),
    setting(
        "coordinator",
        "missed_heartbeats",
        Kind::Count { least: 1 },
        "4",
        "A worker that misses so many reports in a row is taken for lost: it gets no tasks. Queries that it runs fail, or are started anew, once it has missed two and accepts no connection.",
    ),
    setting(
        "coordinator",
        "shutdown_timeout",
        ANY_TIME,
        "30s",
        "How long a stopping coordinator lets running queries finish before it cancels them.",
    ),
    setting(
        "worker",
        "listen",
        Kind::Address,
        "127.0.0.1:9050",
        "Address of the fragment service (gRPC); port 0 takes a free one.",
    ),
    setting(
        "worker",
        "http_listen",
        Kind::Address,
        "127.0.0.1:8050",
        "Address of the worker's health checks (HTTP); port 0 takes a free one.",
    ),
    setting(
        "worker",
        "coordinator",
        Kind::Url,
        "http://127.0.0.1:8030",
        "The coordinator's HTTP address, to which the worker reports.",
    ),
    setting(
        "worker",
        "advertise",
        Kind::Text,
        "",
        "Host name or address under which the coordinator and the other workers reach this one; empty means the \
         address of `listen`.",
    ),
    setting(
        "worker",
        "cores",
        Kind::Count { least: 0 },
        "0",
        "Processor cores to work with; 0 means those of the machine.",
    ),
    setting(
        "worker",
        "memory",
        Kind::MemoryBytes,
        "70%",
        "Memory for query operators, as a size or a share of the machine's (or container's) memory; past it they \
         spill.",
    ),
    setting(
        "worker",
        "spill_dir",
        Kind::PathInside("spill"),
        "",
        "Where operators spill; empty means `spill` in the data directory.",
    ),
    setting(
        "worker",
        "spill_bytes",
        Kind::Bytes,
        "100GiB",
        "Most that may be spilled at a time; a query that needs more fails.",
    ),
    setting(
        "worker",
        "heartbeat",
        SOME_TIME,
        "2s",
        "How often the worker reports until a coordinator has told it its own pace.",
    ),
    setting(
        "worker",
        "drain_timeout",
        ANY_TIME,
        "60s",
        "How long a stopping worker finishes its tasks before it leaves all the same.",
    ),
    setting(
        "cache",
        "memory",
        Kind::Bytes,
        "512MiB",
        "Memory for blocks of data files from remote stores; 0 turns the block cache off.",
    ),
    setting(
        "cache",
        "disk",
        Kind::Bytes,
        "0",
        "Disk for blocks of data files from remote stores; 0 means memory alone.",
    ),
    setting(
        "cache",
        "path",
        Kind::PathInside("cache"),
        "",
        "Directory of the disk cache; empty means `cache` in the data directory.",
    ),
    setting(
        "cache",
        "block",
        Kind::Bytes,
        "1MiB",
        "Size of a cached block.",
    ),
    setting(
        "cache",
        "metadata_memory",
        Kind::Bytes,
        "256MiB",
        "Memory for decoded table metadata, manifest lists and manifests.",
    ),
    setting(
        "cache",
        "metadata_freshness",
        ANY_TIME,
        "10m",
        "How long parsed metadata is used before its file is read again. Which file is a table's current one is asked \
         of the catalog by every query, whatever this says.",
    ),
    setting(
        "query",
        "timeout",
        ANY_TIME,
        "1h",
        "A query that runs longer is cancelled; 0 means never. `SET query_timeout` overrides it in a session.",
    ),
    setting(
        "query",
        "memory",
        Kind::Bytes,
        "0",
        "Memory one query may use on a worker; past it its operators spill. 0 means all of the worker's.",
    ),
    setting(
        "query",
        "target_partitions",
        Kind::Count { least: 0 },
        "0",
        "Parallelism inside a process; 0 means one partition a core.",
    ),
    setting(
        "query",
        "batch_rows",
        Kind::Count { least: 1 },
        "8192",
        "Rows in a record batch between operators.",
    ),
    setting(
        "query",
        "retries",
        Kind::Count { least: 0 },
        "3",
        "How often a query is run again on the remaining workers when one dies before any row has reached the client.",
    ),
    setting(
        "query",
        "target_file",
        Kind::Bytes,
        "512MiB",
        "INSERT and CREATE TABLE AS close a data file when it holds this much, measured in memory before encoding.",
    ),
    setting(
        "query",
        "spread",
        Kind::Bytes,
        "16MiB",
        "A scan of fewer bytes runs on one worker, a larger one on all of them.",
    ),
    setting(
        "query",
        "broadcast",
        Kind::Bytes,
        "8MiB",
        "A join whose smaller side is below this sends that side whole to every worker and shuffles neither.",
    ),
    setting(
        "query",
        "max_shuffled_dimensions",
        Kind::Count { least: 0 },
        "4",
        "How many tables one query may join with its main table by shuffling both; with more it is refused. Joins by buckets and broadcasts do not count. `SET max_shuffled_dimensions` overrides it in a session.",
    ),
    setting(
        "query",
        "compression",
        Kind::Choice(&["lz4", "zstd", "none"]),
        "lz4",
        "How batches are packed between workers.",
    ),
    setting(
        "store",
        "connect_timeout",
        SOME_TIME,
        "5s",
        "Patience with a store that does not accept a connection.",
    ),
    setting(
        "store",
        "request_timeout",
        SOME_TIME,
        "60s",
        "Patience with one request to a store, its body included.",
    ),
    setting(
        "store",
        "retries",
        Kind::Count { least: 0 },
        "4",
        "How often a failed request to a store or catalog is tried again, with growing pauses.",
    ),
    setting(
        "store",
        "retry_timeout",
        SOME_TIME,
        "90s",
        "No attempt of a request begins later than this after its first; each ends by `store.request_timeout`.",
    ),
    setting(
        "audit",
        "dir",
        Kind::PathInside("audit"),
        "",
        "Directory of the audit files; empty means `audit` in the data directory.",
    ),
    setting(
        "audit",
        "max_file",
        Kind::Bytes,
        "256MiB",
        "An audit file that has grown past this is closed and a new one begun.",
    ),
    setting(
        "audit",
        "keep",
        Kind::Count { least: 1 },
        "20",
        "Files kept, the current one included; older ones are deleted.",
    ),
    setting(
        "log",
        "filter",
        Kind::Text,
        "info",
        "A level (error, warn, info, debug, trace), or levels by module as in `info,tarn_planner=debug`.",
    ),
    setting(
        "log",
        "format",
        Kind::Choice(&["text", "json"]),
        "text",
        "How a line of the log is written.",
    ),
];

/// Finds a setting by `section.key`.
pub fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|s| s.name() == name)
}

#[cfg(test)]
mod tests {
    use super::super::value;
    use super::*;

    #[test]
    fn names_and_variables_are_unique_and_sections_are_described() {
        let mut names = std::collections::HashSet::new();
        let mut variables = std::collections::HashSet::new();
        for s in SETTINGS {
            assert!(names.insert(s.name()), "{} is there twice", s.name());
            assert!(
                variables.insert(s.variable()),
                "{} is there twice",
                s.variable()
            );
            assert!(
                SECTIONS.iter().any(|(name, _)| *name == s.section),
                "[{}] is not described",
                s.section
            );
        }
    }

    #[test]
    fn every_default_is_a_good_value() {
        for s in SETTINGS {
            if let Err(problem) = value::parse(&s.kind, s.default) {
                panic!("{}: {problem}", s.name());
            }
        }
    }
}
