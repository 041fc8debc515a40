//! Which worker reads which bytes.
//!
//! ```text
//!  files of a scan ──split──▶ chunks ──rendezvous──▶ task i = worker i ──balance──▶ partitions of the task
//!  (pruned)         (pieces.rs)        (placement.rs)                    (balance.rs)
//! ```
//!
//! A stage runs in one task, or in one task for each worker of the query's snapshot. The names and sizes of files
//! and the addresses of workers decide everything, so a repeated query sends the same bytes to the same worker.

mod balance;
#[cfg(test)]
mod coverage_tests;
mod handlers;
mod pieces;
mod placement;

pub use balance::balance;
pub use handlers::{RoutingSettings, ScanRouting};
pub use pieces::{Piece, split_files};
pub use placement::{Placement, home_of, place};

pub(crate) use handlers::{file_scan, is_answer};
