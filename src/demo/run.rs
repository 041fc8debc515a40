//! The course of the demo.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use tarn_catalog::{CatalogSettings, Catalogs, DEFAULT_CATALOG};
use tarn_lake::{LakeError, make_redbi, make_tpch};
use tokio::runtime::Runtime;

use super::bars::Bars;
use super::children::{Process, listen_address, log_file};
use super::paint::Paint;
use super::tour;
use crate::cli::DemoArgs;
use crate::client::{Client, FlightClient, collect};
use crate::commands::redbi_size;
use crate::config::Settings;
use crate::shell::ExecuteError;

const WORKERS: u16 = 3;
/// What each process may use of the machine's memory for queries.
const MEMORY_SHARE: &str = "20%";
/// How long the workers may take to register.
const REGISTER_TIMEOUT: Duration = Duration::from_secs(60);

/// Prints a line. That nobody reads it any more is no reason to panic; the tour's own output ends the demo then.
macro_rules! say {
    ($($arg:tt)*) => {{
        let _ = writeln!(std::io::stdout(), $($arg)*);
    }};
}

/// Runs the demo; with `--once` it leaves after the tour.
pub fn demo(runtime: &Runtime, settings: &Settings, args: &DemoArgs) -> ExitCode {
    match run(runtime, settings, args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stopped::Told) => {
            eprintln!("\nstopped");
            ExitCode::from(130)
        }
        Err(Stopped::Failed(message)) => {
            eprintln!("tarn demo: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Why the demo ends early.
enum Stopped {
    /// By Ctrl-C.
    Told,
    Failed(String),
}

impl From<String> for Stopped {
    fn from(message: String) -> Self {
        Stopped::Failed(message)
    }
}

fn run(runtime: &Runtime, settings: &Settings, args: &DemoArgs) -> Result<(), Stopped> {
    let paint = Paint::detect();
    // The demo's lake is its own, unless the command line names a place.
    let dir = if settings.is_flag("data_dir") {
        settings.data_dir()
    } else {
        settings.data_dir().join("demo")
    };
    runtime.block_on(or_told(lake(settings, &dir, args.scale, paint)))?;

    say!(
        "{}",
        paint.title(&format!("Starting a coordinator and {WORKERS} workers"))
    );
    let (coordinator, workers) = start(settings, &dir)?;
    let (mysql, flight) = (
        coordinator.address("mysql")?,
        coordinator.address("flight")?,
    );
    let (host, port) = split_address(flight)?;
    let client = runtime
        .block_on(FlightClient::connect(host, port, "root", ""))
        .map_err(|e| Stopped::Failed(e.to_string()))?;
    runtime.block_on(or_told(workers_registered(&client)))?;
    say!(
        "{}",
        paint.note(&format!(
            "the coordinator has {WORKERS} workers; logs are in {}",
            logs(&dir).display()
        ))
    );

    runtime
        .block_on(tour::take(&client, paint))
        .map_err(|e| match e {
            ExecuteError::Cancelled => Stopped::Told,
            other => Stopped::Failed(other.to_string()),
        })?;

    let (mysql_host, mysql_port) = split_address(mysql)?;
    say!("\n{}", paint.title("Connect"));
    say!("  MySQL       mysql -h {mysql_host} -P {mysql_port} -u root");
    say!("  Flight SQL  grpc://{flight}, user root, no password");
    say!("  shell       tarn sql --host {host} --port {port}");
    say!("  databases   redbi (events, users, notes, shops, items), tpch (8 tables)");
    if !args.once {
        say!("\nServing until Ctrl-C.");
        runtime
            .block_on(tokio::signal::ctrl_c())
            .map_err(|e| format!("cannot listen for Ctrl-C: {e}"))?;
        say!("\nstopping");
    }
    stop(coordinator, workers);
    Ok(())
}

/// Ends early on Ctrl-C.
async fn or_told<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, Stopped> {
    tokio::select! {
        result = work => Ok(result?),
        Ok(()) = tokio::signal::ctrl_c() => Err(Stopped::Told),
    }
}

async fn lake(settings: &Settings, dir: &Path, scale: f64, paint: Paint) -> Result<(), String> {
    let fail = |e: LakeError| format!("cannot make the lake in {}: {e}", dir.display());
    say!("{}", paint.title(&format!("The lake in {}", dir.display())));
    let catalogs = CatalogSettings {
        data_dir: dir.to_path_buf(),
        ..settings.catalogs()
    };
    let catalogs = Catalogs::open(catalogs).await.map_err(|e| fail(e.into()))?;
    let catalog = catalogs.get(DEFAULT_CATALOG).map_err(|e| fail(e.into()))?;
    let bars = Bars::new();
    make_tpch(&catalog, "tpch", scale, &bars)
        .await
        .map_err(fail)?;
    make_redbi(&catalog, "redbi", redbi_size(scale), &bars)
        .await
        .map_err(fail)?;
    let state = if bars.made_any() {
        "made"
    } else {
        "there already"
    };
    say!(
        "{}\n",
        paint.note(&format!(
            "{state}: tpch at scale {scale}, redbi with {} events",
            redbi_size(scale).events
        ))
    );
    Ok(())
}

fn logs(dir: &Path) -> PathBuf {
    dir.join("logs")
}

fn start(settings: &Settings, dir: &Path) -> Result<(Process, Vec<Process>), String> {
    let logs = logs(dir);
    std::fs::create_dir_all(&logs).map_err(|e| format!("cannot make {}: {e}", logs.display()))?;
    let config = settings
        .file
        .iter()
        .flat_map(|file| ["--config".to_string(), file.display().to_string()]);
    let config: Vec<String> = config.collect();
    let process = |command: &str, data_dir: &Path, rest: &[(&str, String)], log: &str| {
        let mut arguments = vec![
            command.to_string(),
            "--data-dir".to_string(),
            data_dir.display().to_string(),
        ];
        arguments.extend(config.iter().cloned());
        arguments.extend(
            rest.iter()
                .flat_map(|(flag, value)| [flag.to_string(), value.clone()]),
        );
        Process::start(&arguments, &log_file(&logs, log))
    };
    let listen = [
        ("--mysql-listen", listen_address(9030)),
        ("--flight-listen", listen_address(9040)),
        ("--http-listen", listen_address(8030)),
    ];
    let coordinator = process("coordinator", dir, &listen, "coordinator")?;
    let url = format!("http://{}", coordinator.address("http")?);
    let mut workers = Vec::new();
    for n in 0..WORKERS {
        let flags = [
            ("--coordinator", url.clone()),
            ("--listen", listen_address(9050 + n)),
            ("--http-listen", listen_address(8050 + n)),
            ("--memory", MEMORY_SHARE.to_string()),
        ];
        workers.push(process(
            "worker",
            &dir.join(format!("worker-{}", n + 1)),
            &flags,
            &format!("worker-{}", n + 1),
        )?);
    }
    Ok((coordinator, workers))
}

/// The workers first, told together, so that they can say good-bye to the coordinator.
fn stop(coordinator: Process, mut workers: Vec<Process>) {
    workers.iter_mut().for_each(Process::stop);
    drop(workers);
    drop(coordinator);
}

async fn workers_registered(client: &dyn Client) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        let sql = "SELECT count(*) FROM tarn.system.workers WHERE state = 'active'";
        let batches = collect(client, sql).await.map_err(|e| e.to_string())?;
        let active = batches.iter().find(|b| b.num_rows() > 0).and_then(|batch| {
            let count = cast(batch.column(0), &DataType::Int64).ok()?;
            Some(count.as_primitive::<Int64Type>().value(0))
        });
        if active >= Some(i64::from(WORKERS)) {
            return Ok(());
        }
        if begun.elapsed() > REGISTER_TIMEOUT {
            return Err(format!(
                "only {} of {WORKERS} workers registered",
                active.unwrap_or(0)
            ));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn split_address(address: &str) -> Result<(&str, u16), String> {
    let parts = address
        .rsplit_once(':')
        .and_then(|(host, port)| Some((host, port.parse().ok()?)));
    parts.ok_or_else(|| format!("`{address}` is no address"))
}
