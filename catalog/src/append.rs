//! Appending rows to a table in one atomic commit.
//!
//! ```text
//!  batches ─▶ convert ─▶ partition ─▶ lanes (one a partition) ─▶ row groups ─▶ parquet file ─▶ metrics
//!             to the      by the       rows wait in memory,       columns encoded               │
//!             table's     default      bounded over all lanes     in parallel                   ▼
//!             schema      spec                                                     commit: manifest, list, snapshot
//! ```

mod commit;
mod convert;
mod lanes;
mod metrics;
mod parquet_file;
mod parquet_schema;
mod partition;
mod properties;
mod sort_keys;
mod transformed_columns;
mod writer;

pub use properties::WriteOptions;
pub use sort_keys::SortKeys;
pub use writer::{AppendSummary, AppendWriter};

pub(crate) use partition::unsupported_partitioning;
pub(crate) use properties::check_properties;
