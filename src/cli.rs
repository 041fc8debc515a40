//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::config::Overrides;

/// SQL over Apache Iceberg, on one machine or many.
#[derive(Debug, Parser)]
#[command(name = "tarn", version, about, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    pub settings: SettingsArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// Where settings come from; any command takes these.
#[derive(Debug, Args)]
pub struct SettingsArgs {
    /// Configuration file (else $TARN_CONFIG, else ./tarn.toml if it is there)
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where the embedded catalog, its tables, caches and audit files live
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the product: make a small lake, start a cluster, run a guided tour, serve until Ctrl-C
    Demo(DemoArgs),
    /// Serve MySQL and Flight SQL with everything in this one process
    Server(ListenArgs),
    /// Serve MySQL and Flight SQL, and run queries on the workers that register
    Coordinator(ListenArgs),
    /// Execute fragments of queries for a coordinator
    Worker(WorkerArgs),
    /// Make a data set in the embedded catalog: tpch (database `tpch`) or redbi (database `redbi`)
    Generate(GenerateArgs),
    /// The SQL shell: embedded without --host, else against a running server
    Sql(SqlArgs),
    /// Print the settings in force, their units, and where each came from
    Config {
        /// Print the reference of all settings instead (docs/configuration.md)
        #[arg(long)]
        markdown: bool,
    },
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Leave after the tour
    #[arg(long)]
    pub once: bool,
    /// Scale factor of the TPC-H tables; the redbi data set grows along
    #[arg(long, default_value_t = 0.1, value_parser = scale)]
    pub scale: f64,
}

#[derive(Debug, Args)]
pub struct GenerateArgs {
    #[arg(value_enum)]
    pub set: DataSet,
    /// Scale factor: TPC-H's, and 21 million events of redbi at 1
    #[arg(long, default_value_t = 0.1, value_parser = scale)]
    pub scale: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum DataSet {
    Tpch,
    Redbi,
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if (0.001..=1000.0).contains(&s) => Ok(s),
        _ => Err("a scale is a number between 0.001 and 1000".to_string()),
    }
}

#[derive(Debug, Args)]
pub struct ListenArgs {
    /// Address of the MySQL protocol
    #[arg(long, value_name = "HOST:PORT")]
    pub mysql_listen: Option<String>,
    /// Address of Arrow Flight SQL
    #[arg(long, value_name = "HOST:PORT")]
    pub flight_listen: Option<String>,
    /// Address of the cluster API and health checks
    #[arg(long, value_name = "HOST:PORT")]
    pub http_listen: Option<String>,
    /// Leave when standard input closes, as it does when the parent process dies
    #[arg(long, hide = true)]
    pub stop_with_stdin: bool,
}

#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// URL of the coordinator's HTTP address
    #[arg(long, value_name = "URL")]
    pub coordinator: Option<String>,
    /// Address of the fragment service
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// Address of the health checks
    #[arg(long, value_name = "HOST:PORT")]
    pub http_listen: Option<String>,
    /// Memory for query operators ("8GiB" or "50%")
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Leave when standard input closes, as it does when the parent process dies
    #[arg(long, hide = true)]
    pub stop_with_stdin: bool,
}

#[derive(Debug, Args)]
pub struct SqlArgs {
    /// Server to connect to; without it the shell runs its own engine on the data directory
    #[arg(long)]
    pub host: Option<String>,
    /// Flight SQL port of the server
    #[arg(long, default_value_t = 9040)]
    pub port: u16,
    /// User to log in as
    #[arg(long, short, default_value = "root")]
    pub user: String,
    /// Password to log in with
    #[arg(long, env = "TARN_PASSWORD", hide_env_values = true)]
    pub password: Option<String>,
    /// Database to start in (`database` or `catalog.database`)
    #[arg(long, short)]
    pub database: Option<String>,
    /// Run these statements and leave; may be given several times
    #[arg(long, short, value_name = "SQL")]
    pub execute: Vec<String>,
    /// Run the statements of this file and leave
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// How results are printed
    #[arg(long, value_enum)]
    pub format: Option<crate::shell::Format>,
}

impl SettingsArgs {
    /// Flags as settings: those every command has, then the command's own.
    pub fn overrides(&self, command: &Command) -> Overrides {
        let mut all = Overrides::new();
        let mut set = |flag, name, value: &Option<String>| {
            if let Some(text) = value {
                all.push((flag, name, text.clone()));
            }
        };
        let data_dir = self.data_dir.as_ref().map(|p| p.display().to_string());
        set("--data-dir", "data_dir", &data_dir);
        match command {
            Command::Server(a) | Command::Coordinator(a) => {
                set(
                    "--mysql-listen",
                    "coordinator.mysql_listen",
                    &a.mysql_listen,
                );
                set(
                    "--flight-listen",
                    "coordinator.flight_listen",
                    &a.flight_listen,
                );
                set("--http-listen", "coordinator.http_listen", &a.http_listen);
            }
            Command::Worker(a) => {
                set("--coordinator", "worker.coordinator", &a.coordinator);
                set("--listen", "worker.listen", &a.listen);
                set("--http-listen", "worker.http_listen", &a.http_listen);
                set("--memory", "worker.memory", &a.memory);
            }
            Command::Demo(_) | Command::Generate(_) | Command::Sql(_) | Command::Config { .. } => {}
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_become_settings() {
        let cli = Cli::parse_from([
            "tarn",
            "worker",
            "--coordinator",
            "http://c:8030",
            "--data-dir",
            "/d",
            "--listen",
            "h:1",
        ]);
        assert_eq!(
            cli.settings.overrides(&cli.command),
            [
                ("--data-dir", "data_dir", "/d".to_string()),
                (
                    "--coordinator",
                    "worker.coordinator",
                    "http://c:8030".to_string()
                ),
                ("--listen", "worker.listen", "h:1".to_string()),
            ]
        );
    }
}
