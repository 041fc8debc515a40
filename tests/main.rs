//! End-to-end tests: real `tarn` processes on free loopback ports, and real clients.
//!
//! One binary for all of them, since each test binary links the whole engine. A module is named
//! after the room it looks at, a test after what a user would say.

mod harness;

mod bucket_joins;
mod catalogs;
mod client_mysql_command_line;
mod clients_java;
mod clients_python;
mod cloud_stores;
mod cluster_life;
mod differential;
mod glue;
mod hive;
mod iceberg_fixtures;
mod lake_demo;
mod locations;
mod postgres;
mod query_life;
mod runtime_filters;
mod skewed_joins;
mod small_joins;
mod statistics;
mod tpch;
mod trouble;
mod written_tables;
