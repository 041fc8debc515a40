//! `tarn generate`: the data sets of the demo, the tests and the benchmark, in the embedded catalog.

use std::process::ExitCode;

use tarn_catalog::{Catalogs, DEFAULT_CATALOG};
use tarn_lake::{LakeError, RedbiSize, make_redbi, make_tpch};
use tokio::runtime::Runtime;

use crate::cli::{DataSet, GenerateArgs};
use crate::config::Settings;
use crate::demo::Bars;

/// Makes one data set.
pub fn generate(runtime: &Runtime, settings: &Settings, args: &GenerateArgs) -> ExitCode {
    let bars = Bars::new();
    match runtime.block_on(make(settings, args.set, args.scale, &bars)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("tarn: {e}");
            ExitCode::FAILURE
        }
    }
}

async fn make(settings: &Settings, set: DataSet, scale: f64, bars: &Bars) -> Result<(), LakeError> {
    let catalogs = Catalogs::open(settings.catalogs()).await?;
    let catalog = catalogs.get(DEFAULT_CATALOG)?;
    match set {
        DataSet::Tpch => make_tpch(&catalog, "tpch", scale, bars).await,
        DataSet::Redbi => make_redbi(&catalog, "redbi", redbi_size(scale), bars).await,
    }
}

/// The demo's scale of 0.1 is 2.1 million events.
pub fn redbi_size(scale: f64) -> RedbiSize {
    RedbiSize::of_events((scale * 21_000_000.0).round() as u64)
}
