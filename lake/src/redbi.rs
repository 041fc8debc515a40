//! `redbi`: a community with shops, seen by self-service analytics. One fact, `events`, over a week, and the dimensions
//! `users`, `notes`, `shops` and `items`. Traffic is skewed as real traffic is: few notes get most of the views, evenings
//! are busier than nights, the weekend is busier than the week.

mod dimensions;
mod events;
mod tables;

use std::collections::HashMap;

use tarn_catalog::Catalog;

use crate::error::Result;
use crate::load::load;
use crate::progress::Progress;

/// How many rows each table gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedbiSize {
    pub events: u64,
    pub users: u64,
    pub notes: u64,
    pub shops: u64,
    pub items: u64,
    /// Everything is a function of the size and of this.
    pub seed: u64,
}

impl RedbiSize {
    /// So many events (at least 700), and dimensions in proportion.
    pub fn of_events(events: u64) -> Self {
        let events = events.max(700);
        Self {
            events,
            users: (events / 20).max(50),
            notes: (events / 10).max(100),
            shops: (events / 1_000).max(10),
            items: (events / 100).max(40),
            seed: 7,
        }
    }
}

impl Default for RedbiSize {
    /// The demo's size: 2.1 million events.
    fn default() -> Self {
        Self::of_events(2_100_000)
    }
}

/// Makes the tables of `redbi` in `database`, which is created if need be. Tables of that size that are there are kept;
/// of another size they are replaced.
pub async fn make_redbi(
    catalog: &Catalog,
    database: &str,
    size: RedbiSize,
    progress: &dyn Progress,
) -> Result<()> {
    catalog
        .create_database(database, HashMap::new(), true)
        .await?;
    for table in tables::tables(size) {
        load(catalog, database, table, progress).await?;
    }
    Ok(())
}
