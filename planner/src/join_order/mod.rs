//! In which order tables are joined.
//!
//! ```text
//!   optimised logical plan
//!     │ scans ──► rows, bounds and distinct values of the files that pruning keeps
//!     ▼
//!   groups of joins that may change places ──► relations and predicates ──► search ──► joins in the cheapest order
//! ```
//!
//! A group is what inner joins connect. Semi, anti and outer joins that hang on it ([`group`]) move among the inner joins where
//! that changes no answer; everything else (aggregates, full joins, limits) is a border. [`estimate`] tells how many rows a
//! plan gives, [`costs`] what a join of two parts costs, and [`search`] finds an order. The relation that is smaller in bytes comes first
//! in each join: it is the side that is built. [`reduction`] keeps aggregates from computing groups that no join looks for.

mod columns;
mod costs;
mod estimate;
mod group;
mod keys;
mod null_rejection;
mod ordering;
mod planner;
mod reduction;
mod relation_set;
mod scans;
mod search;
mod selectivity;

#[cfg(test)]
mod search_tests;

pub(crate) use columns::distinct_values;
pub use planner::with_ordered_joins;
