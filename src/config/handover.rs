//! Hands the settings on, each crate's in that crate's own form.

use std::net::UdpSocket;

use tarn_audit::FileSinkSettings;
use tarn_cache::CacheSettings;
use tarn_catalog::{CatalogSettings, StoreSettings};
use tarn_cluster::routing::RoutingSettings;
use tarn_cluster::{ClusterSettings, Compression, MembershipSettings};
use tarn_coordinator::{EngineSettings, QuerySettings, ShownSetting, User};
use tarn_flight_sql::FlightSettings;
use tarn_worker::WorkerSettings;

use super::entries::UserPassword;
use super::error::ConfigError;
use super::load::Settings;
use super::show;

impl Settings {
    pub fn catalogs(&self) -> CatalogSettings {
        CatalogSettings {
            metadata_cache_bytes: self.bytes("cache.metadata_memory"),
            freshness: self.duration("cache.metadata_freshness"),
            catalogs: self
                .catalogs
                .iter()
                .map(|c| (c.name.clone(), c.properties.clone()))
                .collect(),
            storage: self.storage.properties.clone(),
            store: self.store(),
            ..CatalogSettings::new(self.data_dir())
        }
    }

    pub fn store(&self) -> StoreSettings {
        StoreSettings {
            connect_timeout: self.duration("store.connect_timeout"),
            request_timeout: self.duration("store.request_timeout"),
            max_retries: self.small("store.retries"),
            retry_timeout: self.duration("store.retry_timeout"),
            ..StoreSettings::default()
        }
    }

    /// `None` if both tiers are turned off.
    pub fn cache(&self) -> Option<CacheSettings> {
        let settings = CacheSettings {
            memory_bytes: self.bytes("cache.memory"),
            disk_bytes: self.bytes("cache.disk"),
            disk_path: self.path("cache.path"),
            block_bytes: self.bytes("cache.block"),
        };
        (settings.memory_bytes + settings.disk_bytes > 0).then_some(settings)
    }

    pub fn audit(&self) -> FileSinkSettings {
        FileSinkSettings {
            max_file_bytes: self.bytes("audit.max_file"),
            // The setting counts the file that is written now, the sink only older ones.
            keep_files: self.count("audit.keep") as usize - 1,
            ..FileSinkSettings::in_dir(self.path("audit.dir"))
        }
    }

    pub fn engine(&self) -> Result<EngineSettings, ConfigError> {
        Ok(EngineSettings {
            data_dir: self.data_dir(),
            query: QuerySettings {
                timeout: self.duration("query.timeout"),
                memory_bytes: Some(self.bytes("query.memory")).filter(|bytes| *bytes > 0),
                target_partitions: self.count("query.target_partitions") as usize,
                batch_rows: self.count("query.batch_rows") as usize,
                max_shuffled_dimensions: self.small("query.max_shuffled_dimensions"),
                retries: self.small("query.retries"),
                target_file_bytes: self.bytes("query.target_file"),
                ..QuerySettings::default()
            },
            users: self.users()?,
            max_connections: self.small("coordinator.max_connections"),
            max_allowed_packet_bytes: self.bytes("coordinator.max_packet"),
            shown_settings: show::rows(self).into_iter().map(shown).collect(),
            ..EngineSettings::default()
        })
    }

    fn users(&self) -> Result<Vec<User>, ConfigError> {
        let users =
            self.users
                .iter()
                .flatten()
                .map(|user| match &user.password {
                    UserPassword::None => Ok(User::without_password(&user.name)),
                    UserPassword::Plain(password) => Ok(User::with_password(&user.name, password)),
                    UserPassword::Sha256(hex) => User::with_password_sha256(&user.name, hex)
                        .map_err(|e| ConfigError::BadValue {
                            place: user.place.clone(),
                            name: "users.password_sha256".to_string(),
                            problem: e.message,
                        }),
                });
        users.collect()
    }

    pub fn membership(&self) -> MembershipSettings {
        MembershipSettings {
            heartbeat: self.duration("coordinator.heartbeat"),
            missed_heartbeats: self.small("coordinator.missed_heartbeats"),
            ..MembershipSettings::default()
        }
    }

    pub fn cluster(&self) -> ClusterSettings {
        let defaults = ClusterSettings::default();
        ClusterSettings {
            routing: RoutingSettings {
                task_bytes: self.bytes("query.spread"),
                ..defaults.routing
            },
            compression: match self.text("query.compression") {
                "none" => Compression::None,
                "zstd" => Compression::Zstd,
                _ => Compression::Lz4,
            },
            broadcast_bytes: usize::try_from(self.bytes("query.broadcast")).unwrap_or(usize::MAX),
            ..defaults
        }
    }

    pub fn flight(&self) -> FlightSettings {
        FlightSettings {
            max_message_bytes: usize::try_from(self.bytes("coordinator.max_packet"))
                .unwrap_or(usize::MAX),
            max_sessions: self.count("coordinator.max_connections") as usize,
            ..FlightSettings::default()
        }
    }

    pub fn worker(&self) -> WorkerSettings {
        WorkerSettings {
            listen: self.address("worker.listen"),
            http_listen: Some(self.address("worker.http_listen")),
            advertise: self.advertise(),
            coordinator_url: self.url("worker.coordinator").clone(),
            cores: self.small("worker.cores"),
            memory_bytes: self.bytes("worker.memory"),
            spill_dir: self.path("worker.spill_dir"),
            spill_bytes: self.bytes("worker.spill_bytes"),
            cache: self.cache().unwrap_or(CacheSettings {
                memory_bytes: 0,
                disk_bytes: 0,
                ..CacheSettings::default()
            }),
            store: self.store(),
            heartbeat: self.duration("worker.heartbeat"),
            drain_timeout: self.duration("worker.drain_timeout"),
            ..WorkerSettings::default()
        }
    }

    /// Under which name others reach this worker. One that listens on all addresses is reached under the one that
    /// leads to the coordinator, else under the machine's name.
    fn advertise(&self) -> Option<String> {
        let given = self.text("worker.advertise");
        if !given.is_empty() {
            return Some(given.to_string());
        }
        if !self.address("worker.listen").ip().is_unspecified() {
            return None;
        }
        let url = self.url("worker.coordinator");
        let towards = url.host_str().and_then(|host| {
            let host = host.trim_matches(['[', ']']);
            let local = if host.contains(':') {
                "[::]:0"
            } else {
                "0.0.0.0:0"
            };
            // Connecting a datagram socket only picks the route; nothing is sent.
            let socket = UdpSocket::bind(local).ok()?;
            socket
                .connect((host, url.port_or_known_default().unwrap_or(80)))
                .ok()?;
            Some(socket.local_addr().ok()?.ip().to_string())
        });
        towards.or_else(|| {
            let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
            Some(name.trim().to_string()).filter(|name| !name.is_empty())
        })
    }

    /// A count that a `u32` holds for sure: larger ones mean the same.
    fn small(&self, name: &str) -> u32 {
        u32::try_from(self.count(name)).unwrap_or(u32::MAX)
    }

    /// The users who may log in without a password.
    pub fn open_users(&self) -> Vec<&str> {
        let Some(users) = &self.users else {
            return vec!["root"];
        };
        let open = users.iter().filter(|user| match &user.password {
            UserPassword::None => true,
            UserPassword::Plain(password) => password.is_empty(),
            UserPassword::Sha256(_) => false,
        });
        open.map(|user| user.name.as_str()).collect()
    }
}

fn shown([name, value, unit, source]: [String; 4]) -> ShownSetting {
    let blank = |text: String| if text == "-" { String::new() } else { text };
    ShownSetting {
        name,
        value: blank(value),
        unit: blank(unit),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::load;
    use super::*;

    fn settings(text: &str) -> Settings {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tarn.toml");
        std::fs::write(&file, text).unwrap();
        load(Some(&file), &Vec::new()).unwrap()
    }

    #[test]
    fn every_crate_gets_its_settings() {
        let s = settings(
            "data_dir = \"/d\"\n[query]\nmemory = \"1GiB\"\nretries = 1\ncompression = \"zstd\"\n\
             [audit]\nkeep = 3\n[cache]\nmemory = 0\n[store]\nretries = 2\n[worker]\nmemory = \"5GiB\"\n\
             [coordinator]\nheartbeat = \"500ms\"\n[catalog.c]\ntype = \"rest\"\nuri = \"http://c\"\n[[users]]\nname = \"ann\"\n",
        );
        let engine = s.engine().unwrap();
        assert_eq!(engine.query.memory_bytes, Some(1 << 30));
        assert_eq!(engine.query.retries, 1);
        assert_eq!(engine.users.len(), 1);
        assert!(
            engine
                .shown_settings
                .iter()
                .any(|s| s.name == "query.memory" && s.value == "1073741824")
        );
        assert_eq!(s.cluster().compression, Compression::Zstd);
        assert_eq!(s.audit().keep_files, 2);
        assert_eq!(s.audit().dir, std::path::Path::new("/d/audit"));
        assert_eq!(s.cache(), None);
        assert_eq!(s.store().max_retries, 2);
        assert_eq!(s.worker().memory_bytes, 5 << 30);
        assert_eq!(s.worker().advertise, None);
        assert_eq!(s.membership().heartbeat, Duration::from_millis(500));
        assert_eq!(s.catalogs().catalogs["c"]["type"], "rest");
        assert_eq!(s.open_users(), ["ann"]);
    }

    #[test]
    fn a_bad_hash_names_its_place() {
        let error = settings("[[users]]\nname = \"bob\"\npassword_sha256 = \"00\"\n")
            .engine()
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("tarn.toml:1") && error.contains("password_sha256"),
            "{error}"
        );
    }

    #[test]
    fn a_worker_on_all_addresses_says_under_which_one_it_is_reached() {
        let s = settings("[worker]\nlisten = \"0.0.0.0:9050\"\n");
        assert_eq!(s.worker().advertise.as_deref(), Some("127.0.0.1"));
        let s = settings("[worker]\nlisten = \"0.0.0.0:9050\"\nadvertise = \"w1.lan\"\n");
        assert_eq!(s.worker().advertise.as_deref(), Some("w1.lan"));
    }
}
