//! Iceberg's metadata tables: what a table's metadata says, as tables that can be filtered and joined.
//!
//! ```text
//!   t$files ─► kind ─► table (a provider; streams) ─┬─► static_tables      rows that the metadata file has
//!                                                   ├─► manifests          rows of manifest lists
//!                                                   ├─► files              rows of manifests, one after the other
//!                                                   └─► partitions         sums over all manifests
//! ```
//! Names, types and order of their columns are those of Iceberg's Java library. Rows are made where the query is
//! planned: they come from metadata, not from data files.

mod arrays;
mod file_columns;
mod files;
mod human;
mod kind;
mod manifests;
mod partition_type;
mod partitions;
mod readable_metrics;
mod schemas;
mod static_tables;
mod table;

#[cfg(test)]
mod tests;

pub(crate) use kind::MetadataTable;
pub(crate) use table::metadata_table;
