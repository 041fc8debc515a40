//! Queries over real tables, made with the catalog's own append.

mod answers;
mod buckets;
mod codec;
mod common_subplans;
mod constants;
mod damaged_files;
mod defaults;
mod deletes;
mod deleting;
mod equality_deletes;
mod evolution;
mod extension_types;
mod formats;
mod join_order;
pub(crate) mod lake;
mod metadata_answers;
mod nested_keys;
mod plans;
mod pruning;
mod row_lineage;
mod same_names;
mod skewed_joins;
mod statistics_files;
mod top_rows;
pub(crate) mod versions;
