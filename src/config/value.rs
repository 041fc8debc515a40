//! How values are written: sizes ("2GiB"), durations ("30s"), addresses, and what is wrong with the ones that are not.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// What a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// A path; `~/` is the home directory.
    Path,
    /// A path; empty means the directory of this name inside the data directory.
    PathInside(&'static str),
    /// IP address and port.
    Address,
    Url,
    /// A size in bytes.
    Bytes,
    /// A size in bytes, or a share of the machine's memory ("70%").
    MemoryBytes,
    Duration {
        least: Duration,
    },
    Count {
        least: u64,
    },
    Choice(&'static [&'static str]),
}

impl Kind {
    /// The column "type" of the reference.
    pub fn describe(&self) -> String {
        match self {
            Kind::Text => "text".into(),
            Kind::Path | Kind::PathInside(_) => "path".into(),
            Kind::Address => "address".into(),
            Kind::Url => "URL".into(),
            Kind::Bytes => "size".into(),
            Kind::MemoryBytes => "size or share".into(),
            Kind::Duration { .. } => "duration".into(),
            Kind::Count { .. } => "count".into(),
            Kind::Choice(options) => options.join(" or "),
        }
    }

    /// The unit a parsed value is in; empty if it has none.
    pub fn unit(&self) -> &'static str {
        match self {
            Kind::Bytes | Kind::MemoryBytes => "bytes",
            Kind::Duration { .. } => "ms",
            _ => "",
        }
    }
}

/// A value of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Path(PathBuf),
    Address(SocketAddr),
    Url(url::Url),
    Bytes(u64),
    Duration(Duration),
    Count(u64),
}

impl Value {
    /// As `tarn config` shows it, in the kind's unit.
    pub fn show(&self) -> String {
        match self {
            Value::Text(s) => s.clone(),
            Value::Path(p) => p.display().to_string(),
            Value::Address(a) => a.to_string(),
            Value::Url(u) => u.to_string(),
            Value::Bytes(n) | Value::Count(n) => n.to_string(),
            Value::Duration(d) => d.as_millis().to_string(),
        }
    }
}

/// With less no operator gets anywhere.
const LEAST_MEMORY_BYTES: u64 = 16 << 20;

/// Reads one value; the error says what was expected.
pub fn parse(kind: &Kind, text: &str) -> Result<Value, String> {
    let text = text.trim();
    match kind {
        Kind::Text => Ok(Value::Text(text.to_string())),
        Kind::Path if text.is_empty() => Err("a path is needed".to_string()),
        Kind::Path | Kind::PathInside(_) => Ok(Value::Path(expand_home(text))),
        Kind::Address => address(text).map(Value::Address),
        Kind::Url => match url::Url::parse(text) {
            Ok(u) if matches!(u.scheme(), "http" | "https") && u.has_host() => Ok(Value::Url(u)),
            _ => Err(format!("`{text}` is not a URL like http://host:8030")),
        },
        Kind::Bytes => bytes(text).map(Value::Bytes),
        Kind::MemoryBytes => match text.strip_suffix('%') {
            Some(share) => match share.trim().parse::<u64>() {
                Ok(share @ 1..=100) => Ok(Value::Bytes(machine_memory_bytes() / 100 * share)),
                _ => Err(format!("`{text}` is not a share between 1% and 100%")),
            },
            None => match bytes(text)? {
                enough if enough >= LEAST_MEMORY_BYTES => Ok(Value::Bytes(enough)),
                _ => Err(format!("`{text}` is too small, the least is 16MiB")),
            },
        },
        Kind::Duration { least } => match duration(text)? {
            long if long >= *least => Ok(Value::Duration(long)),
            _ => Err(format!(
                "`{text}` is too short, the least is {}ms",
                least.as_millis()
            )),
        },
        Kind::Count { least } => match text.parse::<u64>() {
            Ok(n) if n >= *least => Ok(Value::Count(n)),
            Ok(n) => Err(format!("{n} is too small, the least is {least}")),
            Err(_) => Err(format!("`{text}` is not a whole number")),
        },
        Kind::Choice(options) => {
            if options.contains(&text) {
                Ok(Value::Text(text.to_string()))
            } else {
                Err(format!("`{text}` is not one of {}", options.join(", ")))
            }
        }
    }
}

/// "64MiB", "2 GB", "512": binary units are powers of 1024, decimal ones of 1000.
fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split_number(text);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => {
            return Err(format!(
                "`{text}` is not a size; write it like 64MiB, 2GiB or 500MB"
            ));
        }
    };
    scale(number, factor as f64)
        .filter(|n| *n < u64::MAX as f64)
        .map(|n| n as u64)
        .ok_or_else(|| format!("`{text}` is not a size; write it like 64MiB, 2GiB or 500MB"))
}

/// "250ms", "30s", "5m", "1h", "7d"; a bare 0 needs no unit.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write it like 500ms, 30s, 5m or 1h");
    let (number, unit) = split_number(text);
    let millis = match unit {
        "ms" => 1.0,
        "s" => 1_000.0,
        "m" | "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        "" if number == "0" => 1.0,
        _ => return Err(wrong()),
    };
    scale(number, millis)
        .filter(|n| *n <= 1e13)
        .map(|n| Duration::from_millis(n as u64))
        .ok_or_else(wrong)
}

fn split_number(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

fn scale(number: &str, factor: f64) -> Option<f64> {
    number.parse::<f64>().ok().map(|n| n * factor)
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let numeric = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_string(),
    };
    numeric
        .parse()
        .map_err(|_| format!("`{text}` is not an address like 127.0.0.1:9030 or 0.0.0.0:9030"))
}

fn expand_home(text: &str) -> PathBuf {
    let home = || {
        std::env::var_os("HOME")
            .filter(|h| !h.is_empty())
            .map(PathBuf::from)
    };
    match text.strip_prefix("~/") {
        // Without a home directory the working directory is the only place left that is ours.
        Some(rest) => home().unwrap_or_else(|| PathBuf::from(".")).join(rest),
        None => PathBuf::from(text),
    }
}

/// Memory this process may use: the container's limit if there is one, else the machine's.
fn machine_memory_bytes() -> u64 {
    const FALLBACK: u64 = 4 << 30;
    let machine = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|l| l.starts_with("MemTotal:"))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        })
        .map(|kib| kib * 1024);
    let container = std::fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok());
    match (machine, container) {
        (Some(m), Some(c)) => m.min(c),
        (Some(n), None) | (None, Some(n)) => n,
        (None, None) => FALLBACK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, expected) in [
            ("0", 0),
            ("512", 512),
            ("64MiB", 67_108_864),
            ("2GiB", 2_147_483_648),
            ("1.5 KiB", 1_536),
            ("2GB", 2_000_000_000),
            ("3tb", 3_000_000_000_000),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "-1", "MiB", "64M", "1e3", "1..2KB", "99999999999TiB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations() {
        for (text, millis) in [
            ("0", 0),
            ("0s", 0),
            ("250ms", 250),
            ("30s", 30_000),
            ("1.5m", 90_000),
            ("8h", 28_800_000),
            ("2d", 172_800_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "30", "s", "30 parsecs", "-1s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_of_memory() {
        let all = match parse(&Kind::MemoryBytes, "100%") {
            Ok(Value::Bytes(n)) => n,
            other => panic!("{other:?}"),
        };
        assert!(all > 0);
        // The last two digits may differ: the share is taken of whole hundredths.
        match parse(&Kind::MemoryBytes, "50%") {
            Ok(Value::Bytes(half)) => assert!(half.abs_diff(all / 2) < 100, "{half} of {all}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(
            parse(&Kind::MemoryBytes, "2GiB"),
            Ok(Value::Bytes(2_147_483_648))
        );
        assert!(parse(&Kind::MemoryBytes, "0").is_err());
        assert!(parse(&Kind::MemoryBytes, "0%").is_err());
        assert!(parse(&Kind::MemoryBytes, "101%").is_err());
    }

    #[test]
    fn addresses() {
        assert_eq!(
            address("localhost:9030"),
            Ok("127.0.0.1:9030".parse().unwrap())
        );
        assert_eq!(address("[::1]:0"), Ok("[::1]:0".parse().unwrap()));
        assert!(address("9030").is_err());
        assert!(address("127.0.0.1:99999").is_err());
    }
}
