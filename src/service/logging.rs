//! The process's log, on standard error.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use super::ServiceError;
use crate::config::Settings;

/// Libraries that say much at level info that nobody asked for.
const QUIETER: &str =
    "datafusion=warn,h2=warn,hyper=warn,tower=warn,sqlx=warn,iceberg=warn,foyer=warn";

/// Logs as the settings say.
pub fn init_logging(settings: &Settings) -> Result<(), ServiceError> {
    let wanted = settings.text("log.filter");
    // The user's own words come last, and so win.
    let filter = EnvFilter::try_new(format!("{QUIETER},{wanted}"))
        .map_err(|e| ServiceError::LogFilter(e.to_string()))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    if settings.text("log.format") == "json" {
        builder.json().init();
    } else {
        builder.init();
    }
    Ok(())
}

/// For the shell and the demo: only what is wrong, unless the setting was changed.
pub fn init_quiet_logging(settings: &Settings) -> Result<(), ServiceError> {
    if !settings.is_default("log.filter") {
        return init_logging(settings);
    }
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new("error"))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    Ok(())
}
