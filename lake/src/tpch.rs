//! The eight tables of TPC-H, by the `tpchgen` crate.

mod rows;
mod tables;

use std::collections::HashMap;

use tarn_catalog::Catalog;

use crate::error::{LakeError, Result};
use crate::load::load;
use crate::progress::Progress;

/// Makes the TPC-H tables of that scale factor (1 is about 1 GB of text) in `database`, which is created if need be.
/// Tables of that scale that are there are kept; of another scale they are replaced.
pub async fn make_tpch(
    catalog: &Catalog,
    database: &str,
    scale: f64,
    progress: &dyn Progress,
) -> Result<()> {
    if !(0.001..=1_000.0).contains(&scale) {
        return Err(LakeError::Scale { scale });
    }
    catalog
        .create_database(database, HashMap::new(), true)
        .await?;
    for table in tables::tables(scale) {
        load(catalog, database, table, progress).await?;
    }
    Ok(())
}
