//! Tarn: SQL over Apache Iceberg, in one binary.

mod cli;
mod client;
mod commands;
mod config;
mod demo;
mod service;
mod shell;

fn main() -> std::process::ExitCode {
    commands::run()
}
