//! Tarn: SQL over Apache Iceberg, in one binary.

mod cli;
mod config;
mod shell;

use clap::Parser;

fn main() -> std::process::ExitCode {
    let cli = cli::Cli::parse();
    let overrides = cli.settings.overrides(&cli.command);
    match config::load(cli.settings.config.as_deref(), &overrides) {
        Ok(s) => {
            match cli.command {
                cli::Command::Config { markdown: true } => print!("{}", config::markdown()),
                _ => print!("{}", config::print(&s)),
            }
            std::process::ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("tarn: {e}");
            std::process::ExitCode::from(2)
        }
    }
}
