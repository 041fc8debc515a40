use crate::error::WorkerError;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tarn_cache::CacheSettings;
use tarn_catalog::StoreSettings;
use tarn_cluster::{ChannelSettings, ENGINE_VERSION};
use url::Url;

/// How a worker runs.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// Where tasks are taken (gRPC).
    pub listen: SocketAddr,
    /// Where health, metrics and status are served; `None` serves none.
    pub http_listen: Option<SocketAddr>,
    /// Host name or address under which the coordinator and other workers reach this one; `None` is the address
    /// it listens on.
    pub advertise: Option<String>,
    /// The coordinator's HTTP address, where heartbeats go.
    pub coordinator_url: Url,
    /// Processor cores it works with; 0 is what the machine has.
    pub cores: u32,
    /// Bytes all queries together may hold.
    pub memory_bytes: u64,
    /// Directory of the spill files.
    pub spill_dir: PathBuf,
    /// Bytes all spill files together may have.
    pub spill_bytes: u64,
    /// The DataCache; without memory and disk bytes there is none.
    pub cache: CacheSettings,
    /// Timeouts and retries of object stores.
    pub store: StoreSettings,
    /// How often it reports to the coordinator, until the coordinator asks for another pace.
    pub heartbeat: Duration,
    /// How long its tasks may take to finish when it is told to leave.
    pub drain_timeout: Duration,
    /// The connections to other workers.
    pub channels: ChannelSettings,
    /// The engine version it reports.
    pub version: String,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 9050)),
            http_listen: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 8050))),
            advertise: None,
            coordinator_url: default_coordinator(),
            cores: 0,
            memory_bytes: 2 << 30,
            spill_dir: std::env::temp_dir().join("tarn-spill"),
            spill_bytes: 20 << 30,
            cache: CacheSettings::default(),
            store: StoreSettings::default(),
            heartbeat: Duration::from_secs(2),
            drain_timeout: Duration::from_secs(120),
            channels: ChannelSettings::default(),
            version: ENGINE_VERSION.to_string(),
        }
    }
}

#[allow(clippy::expect_used)]
fn default_coordinator() -> Url {
    Url::parse("http://127.0.0.1:8030").expect("a constant address")
}

impl WorkerSettings {
    /// Cores in force.
    pub fn effective_cores(&self) -> u32 {
        match self.cores {
            0 => std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32),
            cores => cores,
        }
    }

    /// The address others reach `bound` under.
    pub(crate) fn advertised(&self, bound: SocketAddr) -> Result<Url, WorkerError> {
        let host = match &self.advertise {
            Some(host) if host.contains(':') && !host.starts_with('[') => format!("[{host}]"),
            Some(host) => host.clone(),
            None if bound.ip().is_unspecified() => {
                return Err(WorkerError::Setting {
                    name: "advertise",
                    reason: format!(
                        "a worker that listens on all addresses ({bound}) must say under which one others reach it"
                    ),
                });
            }
            None if bound.is_ipv6() => format!("[{}]", bound.ip()),
            None => bound.ip().to_string(),
        };
        let text = format!("http://{host}:{}", bound.port());
        Url::parse(&text).map_err(|error| WorkerError::Setting {
            name: "advertise",
            reason: format!("{text:?} is not an address: {error}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advertised(advertise: Option<&str>, bound: &str) -> Result<String, WorkerError> {
        WorkerSettings {
            advertise: advertise.map(str::to_string),
            ..WorkerSettings::default()
        }
        .advertised(bound.parse().unwrap())
        .map(|url| url.to_string())
    }

    #[test]
    fn the_address_of_a_worker() {
        assert_eq!(
            advertised(None, "127.0.0.1:9050").unwrap(),
            "http://127.0.0.1:9050/"
        );
        assert_eq!(
            advertised(Some("w1.lan"), "0.0.0.0:9051").unwrap(),
            "http://w1.lan:9051/"
        );
        assert_eq!(
            advertised(Some("fe80::1"), "[::]:9050").unwrap(),
            "http://[fe80::1]:9050/"
        );
        assert_eq!(
            advertised(None, "[::1]:9050").unwrap(),
            "http://[::1]:9050/"
        );
    }

    #[test]
    fn listening_everywhere_needs_a_name() {
        let error = advertised(None, "0.0.0.0:9050").unwrap_err();
        assert!(error.to_string().contains("advertise"), "{error}");
        let error = advertised(Some("not a host"), "0.0.0.0:9050").unwrap_err();
        assert!(error.to_string().contains("not a host"), "{error}");
    }
}
