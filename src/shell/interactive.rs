//! The shell at a terminal.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config};
use tokio::runtime::Runtime;

use super::editor::Editor;
use super::execute::{Display, ExecuteError, execute};
use super::format::Format;
use super::meta::{self, HELP, Meta};
use super::names::Names;
use super::output::Output;
use super::progress;
use super::split::split;
use crate::client::Client;

/// Rows shown of a result unless `\limit` says otherwise.
const DEFAULT_LIMIT: u64 = 1_000;
const HISTORY_LINES: usize = 10_000;

/// The state of one shell.
struct Shell<'a> {
    runtime: &'a Runtime,
    client: Arc<dyn Client>,
    names: Names,
    display: Display,
    out: Output,
}

/// Reads statements from the terminal until Ctrl-D. `history` is the file that lines are kept in.
pub fn interactive(
    runtime: &Runtime,
    client: Arc<dyn Client>,
    format: Format,
    history: Option<PathBuf>,
) -> Result<(), ReadlineError> {
    let config = Config::builder()
        .max_history_size(HISTORY_LINES)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .auto_add_history(false)
        .build();
    let names = Names::default();
    let mut editor: rustyline::Editor<Editor, FileHistory> =
        rustyline::Editor::with_config(config)?;
    editor.set_helper(Some(Editor {
        names: names.clone(),
    }));
    if let Some(path) = &history {
        // The first time there is none.
        let _ = editor.load_history(path);
    }
    let id = runtime.block_on(progress::connection_id(client.as_ref()));
    let mut shell = Shell {
        runtime,
        display: Display {
            format,
            limit: DEFAULT_LIMIT,
            summary: true,
            timing: true,
            progress: id.filter(|_| std::io::stderr().is_terminal()),
        },
        client,
        names,
        out: Output::terminal(),
    };
    shell.learn();
    println!(
        "Tarn {} at {}. \\? for help, Ctrl-D to leave.",
        env!("CARGO_PKG_VERSION"),
        shell.client.place()
    );
    loop {
        match editor.readline("tarn> ") {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => {
                let _ = editor.add_history_entry(line.trim_end());
                save(&mut editor, history.as_deref());
                if !shell.line(&line) {
                    break;
                }
            }
            // Ctrl-C at the prompt gives up the line and not the shell.
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(other) => return Err(other),
        }
    }
    Ok(())
}

fn save(editor: &mut rustyline::Editor<Editor, FileHistory>, path: Option<&Path>) {
    if let Some(path) = path
        && let Err(e) = editor.append_history(path)
    {
        tracing::debug!("cannot write the history {}: {e}", path.display());
    }
}

impl Shell<'_> {
    /// Handles one input; false leaves the shell.
    fn line(&mut self, line: &str) -> bool {
        match meta::parse(line) {
            Some(Ok(Meta::Quit)) => return false,
            Some(Ok(command)) => {
                if let Err(message) = self.command(command) {
                    eprintln!("{message}");
                }
            }
            Some(Err(message)) => eprintln!("{message}"),
            None => {
                for statement in split(line).finish() {
                    let display = Display {
                        format: statement.format.unwrap_or(self.display.format),
                        ..self.display
                    };
                    if !self.run(&statement.sql, display) {
                        break;
                    }
                }
            }
        }
        true
    }

    /// Runs a statement and says what went wrong; false if anything did.
    fn run(&mut self, sql: &str, display: Display) -> bool {
        let client = Arc::clone(&self.client);
        match self
            .runtime
            .block_on(execute(client.as_ref(), sql, display, &mut self.out))
        {
            Ok(()) => {
                if changes_names(sql) {
                    self.learn();
                }
                true
            }
            Err(ExecuteError::Cancelled) => {
                eprintln!("cancelled");
                false
            }
            Err(e) => {
                eprintln!("Error: {e}");
                false
            }
        }
    }

    /// Learns the names in the background, on a connection of its own.
    fn learn(&self) {
        let (names, client) = (self.names.clone(), Arc::clone(&self.client));
        self.runtime.spawn(async move {
            if let Ok(observer) = client.another().await {
                names.learn(observer.as_ref()).await;
            }
        });
    }

    fn command(&mut self, command: Meta) -> Result<(), String> {
        match command {
            Meta::Help => print!("{HELP}"),
            Meta::Quit => {}
            Meta::Timing(wanted) => {
                self.display.timing = wanted.unwrap_or(!self.display.timing);
                println!(
                    "timing is {}",
                    if self.display.timing { "on" } else { "off" }
                );
            }
            Meta::Format(wanted) => {
                self.display.format = wanted.unwrap_or(self.display.format);
                println!(
                    "format is {}",
                    format!("{:?}", self.display.format).to_lowercase()
                );
            }
            Meta::Limit(wanted) => {
                self.display.limit = wanted.unwrap_or(self.display.limit);
                println!("limit is {}", self.display.limit);
            }
            Meta::Output(None) => {
                self.out
                    .flush()
                    .map_err(|e| format!("cannot write the file: {e}"))?;
                self.out = Output::terminal();
            }
            Meta::Output(Some(path)) => {
                self.out = Output::file(&path).map_err(|e| format!("cannot write {path}: {e}"))?;
            }
            Meta::Describe(None) => {
                self.run("SHOW TABLES", self.display);
            }
            Meta::Describe(Some(table)) => {
                self.run(&format!("DESCRIBE {table}"), self.display);
            }
            Meta::Databases => {
                self.run("SHOW DATABASES", self.display);
            }
            Meta::Connect(database) => {
                if let Some(database) = database {
                    self.run(&format!("USE {database}"), self.display);
                }
                self.learn();
            }
        }
        Ok(())
    }
}

/// Whether a statement may have changed what Tab can complete.
fn changes_names(sql: &str) -> bool {
    let first = sql.split_whitespace().next().unwrap_or_default();
    ["create", "drop", "alter", "use", "rename"]
        .iter()
        .any(|word| first.eq_ignore_ascii_case(word))
}
