//! Which manifests and files of a table can hold rows that a filter keeps.
//!
//! ```text
//!   manifest list ──► partition summaries ─┐
//!                                          ├─► bounds of the source columns ──► PruningPredicate ──► may match
//!   manifest ──────► partition values ─────┤
//!                    column bounds ────────┘
//! ```
//!
//! Nothing projects predicates through transforms. What is known of a partition field is turned around instead, into
//! bounds of the column that it derives from: `day(ts) = 3` says that `ts` lies in the fourth day of 1970. Then
//! DataFusion's `PruningPredicate` evaluates any predicate over columns, for all files of a manifest at once. All of
//! it errs on the side of "may match": a bound that is missing, truncated, inverted, NaN or of an unknown kind is no
//! bound.

mod buckets;
mod column_bounds;
mod exact;
#[cfg(test)]
mod file_tests;
mod filter;
mod manifests;
mod numbers;
mod partition_layout;
mod prunable;
mod transform_bounds;
mod values;

pub(crate) use column_bounds::{ColumnBounds, column_bounds};
pub(crate) use exact::{identity_columns, is_evaluated_by_partition, partition_constant};
pub(crate) use filter::{PruneFilter, unqualified};
pub(crate) use manifests::prune_manifests;
pub(crate) use partition_layout::{PartitionColumn, TableColumn, TableLayout};
pub(crate) use values::scalar;
