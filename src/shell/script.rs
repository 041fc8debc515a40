//! Statements from `-e`, `-f` or a pipe: run in order, stopped at the first error.

use std::io::{self, BufRead, IsTerminal, Write};

use tokio::runtime::Runtime;

use super::execute::{Display, ExecuteError, execute};
use super::format::Format;
use super::meta::{self, Meta};
use super::output::Output;
use super::progress;
use super::split::{Statement, split};
use crate::client::Client;

/// Where the statements come from.
pub enum Script {
    Text(String),
    /// Run as they arrive, so that a long-lived pipe works.
    Lines(Box<dyn BufRead>),
}

/// Runs all statements. The error is the first statement's that failed.
pub fn run_script(
    runtime: &Runtime,
    client: &dyn Client,
    script: Script,
    format: Format,
) -> Result<(), ExecuteError> {
    let mut out = Output::terminal();
    let display = Display {
        format,
        limit: 0,
        summary: format.for_people() && out.is_terminal(),
        timing: true,
        progress: if io::stderr().is_terminal() {
            runtime.block_on(progress::connection_id(client))
        } else {
            None
        },
    };
    let run = |statement: Statement, out: &mut Output| {
        let display = Display {
            format: statement.format.unwrap_or(format),
            ..display
        };
        match runtime.block_on(execute(client, &statement.sql, display, out)) {
            // Whoever read our output has read enough, as in `tarn sql … | head`.
            Err(ExecuteError::Output(e)) if e.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            other => other.map(|()| true),
        }
    };
    match script {
        Script::Text(text) => {
            for statement in split(&text).finish() {
                if !run(statement, &mut out)? {
                    return Ok(());
                }
            }
        }
        Script::Lines(lines) => {
            let mut pending = String::new();
            for line in lines.lines() {
                let line = line?;
                // A pipe may say `\q`, as a person would; other commands of the shell make no sense here.
                if pending.trim().is_empty() && matches!(meta::parse(&line), Some(Ok(Meta::Quit))) {
                    break;
                }
                pending.push_str(&line);
                pending.push('\n');
                let found = split(&pending);
                for statement in found.statements {
                    if !run(statement, &mut out)? {
                        return Ok(());
                    }
                }
                pending = found.rest;
            }
            for statement in split(&pending).finish() {
                if !run(statement, &mut out)? {
                    return Ok(());
                }
            }
        }
    }
    Ok(out.flush()?)
}
