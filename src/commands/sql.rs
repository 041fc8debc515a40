//! `tarn sql`.

use std::io::{BufReader, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::runtime::Runtime;

use crate::cli::SqlArgs;
use crate::client::{Client, ClientError, EmbeddedClient, FlightClient, collect};
use crate::config::Settings;
use crate::service::{Placement, start_engine};
use crate::shell::{Format, Script, interactive, run_script};

/// Runs the shell, or the statements of `-e`, `-f` or a pipe.
pub fn sql(runtime: &Runtime, settings: &Settings, args: SqlArgs) -> ExitCode {
    match run(runtime, settings, args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("Error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(runtime: &Runtime, settings: &Settings, args: SqlArgs) -> Result<(), String> {
    // Before connecting: a missing file is cheaper to find.
    let script = script(&args)?;
    let client = runtime
        .block_on(connect(settings, &args))
        .map_err(|e| e.to_string())?;
    let format = args.format.unwrap_or(Format::Table);
    let result = match script {
        Some(script) => {
            run_script(runtime, client.as_ref(), script, format).map_err(|e| e.to_string())
        }
        None => {
            let history = history_file();
            interactive(runtime, Arc::clone(&client), format, history).map_err(|e| e.to_string())
        }
    };
    runtime.block_on(client.close());
    result
}

fn script(args: &SqlArgs) -> Result<Option<Script>, String> {
    if let Some(path) = &args.file {
        let text = std::fs::read_to_string(path)
            .map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        return Ok(Some(Script::Text(text)));
    }
    if !args.execute.is_empty() {
        return Ok(Some(Script::Text(args.execute.join(";\n"))));
    }
    if !std::io::stdin().is_terminal() {
        return Ok(Some(Script::Lines(Box::new(BufReader::new(
            std::io::stdin(),
        )))));
    }
    Ok(None)
}

async fn connect(settings: &Settings, args: &SqlArgs) -> Result<Arc<dyn Client>, ClientError> {
    let client: Arc<dyn Client> = match &args.host {
        Some(host) => {
            let password = args.password.as_deref().unwrap_or_default();
            Arc::new(FlightClient::connect(host, args.port, &args.user, password).await?)
        }
        None => {
            let engine = start_engine(settings, Placement::Local)
                .await
                .map_err(|e| ClientError(e.to_string()))?;
            Arc::new(EmbeddedClient::open(
                engine,
                settings.data_dir().display().to_string(),
            )?)
        }
    };
    if let Some(database) = &args.database {
        collect(client.as_ref(), &format!("USE {database}")).await?;
    }
    Ok(client)
}

/// Where the lines of earlier shells are.
fn history_file() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
    Some(PathBuf::from(home).join(".tarn_history"))
}
