//! From the command line to an exit code.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use super::{generate, serve, sql, worker};
use crate::cli::{Cli, Command};
use crate::config::{self, Settings};
use crate::service::{Placement, ServiceError, init_logging, init_quiet_logging};

/// What was asked for cannot be done as it was asked: exit code of a bad setting.
const USAGE: u8 = 2;

/// Runs the command line's command.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let overrides = cli.settings.overrides(&cli.command);
    if let Command::Config { markdown: true } = cli.command {
        return print(&config::markdown());
    }
    let settings = match config::load(cli.settings.config.as_deref(), &overrides) {
        Ok(settings) => settings,
        Err(e) => return failed(&e, USAGE),
    };
    match dispatch(cli.command, &settings) {
        Ok(code) => code,
        Err(ServiceError::Config(e)) => failed(&e, USAGE),
        Err(e) => failed(&e, 1),
    }
}

/// Whoever reads may stop before the end, as in `tarn config | head`.
fn print(text: &str) -> ExitCode {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => failed(&e, 1),
        _ => ExitCode::SUCCESS,
    }
}

fn failed(error: &dyn std::error::Error, code: u8) -> ExitCode {
    eprintln!("tarn: {error}");
    ExitCode::from(code)
}

fn dispatch(command: Command, settings: &Settings) -> Result<ExitCode, ServiceError> {
    match command {
        Command::Config { .. } => return Ok(print(&config::print(settings))),
        Command::Server(args) => {
            init_logging(settings)?;
            runtime()?.block_on(serve::serve(
                settings,
                Placement::Local,
                args.stop_with_stdin,
            ))?;
        }
        Command::Coordinator(args) => {
            init_logging(settings)?;
            runtime()?.block_on(serve::serve(
                settings,
                Placement::Cluster,
                args.stop_with_stdin,
            ))?;
        }
        Command::Worker(args) => {
            init_logging(settings)?;
            runtime()?.block_on(worker::worker(settings, args.stop_with_stdin))?;
        }
        Command::Generate(args) => {
            init_quiet_logging(settings)?;
            return Ok(generate::generate(&runtime()?, settings, &args));
        }
        Command::Sql(args) => {
            init_quiet_logging(settings)?;
            return Ok(sql::sql(&runtime()?, settings, args));
        }
        Command::Demo(args) => {
            init_quiet_logging(settings)?;
            return Ok(crate::demo::demo(&runtime()?, settings, &args));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Planning recurses as deep as a statement is nested: a thread's default 2 MiB end the process on
/// statements that people write. Only what is touched is ever committed.
const THREAD_STACK_BYTES: usize = 32 << 20;

fn runtime() -> Result<tokio::runtime::Runtime, ServiceError> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(THREAD_STACK_BYTES)
        .build()
        .map_err(ServiceError::Runtime)
}
