//! Starts `tarn` as its users do, and talks to it as they do.

mod bucket;
mod client;
mod cluster;
mod postgres;
mod process;
mod service;
mod tools;

pub use bucket::Bucket;
pub use client::Client;
pub use cluster::{Cluster, Settings, eventually, generate_tpch};
pub use postgres::Postgres;
pub use process::Process;
pub use service::Service;
pub use tools::{jar, jdbc_driver_class, mysql_command, package_root, python, run, run_python};
