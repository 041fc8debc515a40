//! SQL to distributed physical plan over Iceberg tables.
//!
//! ```text
//!   text ─► statement ─► provider ─► prune ─► scan ─────────► rows
//!                        (pin, once  (whole   (Parquet, by
//!                         a query)    files)   field id)
//! ```
//!
//! [`statement`] parses and classifies, [`functions`] are MySQL's. [`QueryCatalogs`] resolves names, each table once
//! per query, to [`IcebergTable`]s. A scan of one prunes manifests and files by metadata, finds the delete files of what
//! is left, hands it to DataFusion's Parquet reader and travels to workers by [`ScanCodec`]. What it did is in its scan report
//! ([`iceberg_scans`], [`finish_scan_reports`]), and [`estimate`] tells it without running.

pub mod functions;
pub mod statement;

mod buckets;
mod common_subplans;
mod comparisons;
mod deletes;
mod distinct_values;
mod error;
mod estimate;
mod exact_arithmetic;
mod extension_types;
mod formats;
mod hints;
mod join_order;
mod margin_pool;
mod memory;
mod metadata_answers;
mod metadata_tables;
mod null_supplying;
mod optimize;
mod ordered_files;
mod pass_through;
mod portable_joins;
mod progress;
mod proven_filters;
mod provider;
mod prune;
mod query_planner;
mod repeatable;
mod replaced_rules;
mod runtime_filters;
mod scan;
mod session;
mod single_row_subqueries;
mod size_estimates;
mod skewed_joins;
mod statistics;
mod window_constants;
mod window_groups;
mod yielding_joins;

#[cfg(test)]
mod query_tests;

pub use buckets::{Distribution, JoinDistribution, join_distributions};
pub use comparisons::time_in_full;
pub use error::PlannerError;
pub use estimate::{TableEstimate, estimate};
pub use formats::write_default;
pub use join_order::with_ordered_joins;
pub use margin_pool::MarginPool;
pub use memory::{QueryMemoryPool, query_runtime};
pub use optimize::{analyze, optimize};
pub use progress::{ProgressSnapshot, QueryProgress};
pub use proven_filters::ProvenFilters;
pub use provider::{
    ColumnStats, DistinctSource, IcebergTable, NoVirtualSchemas, QueryCatalogs, TableNames,
    VirtualSchemas, time_in_zone,
};
pub use runtime_filters::{
    FilterTransport, RuntimeFilterLink, RuntimeFilterOptions, merge_runtime_filters,
};
pub use scan::{
    ROW_LINEAGE_COLUMNS, ScanCodec, ScanRef, ScanStores, finish_scan_reports, iceberg_scans,
};
pub use session::{QueryId, SessionOptions, session_builder, session_config};
