//! Data sets for the demo, the tests and the benchmark, written as Iceberg tables through `tarn-catalog`.
//!
//! [`make_tpch`] makes the eight tables of TPC-H; [`make_redbi`] makes `redbi`, the traffic of a community with shops as
//! self-service analytics sees it. Both are deterministic, generate on all cores with bounded memory, and can be called
//! again: a table becomes visible with its last row, so one that is there and carries our mark is complete, and is kept.

mod columns;
mod error;
mod load;
mod progress;
mod random;
mod redbi;
mod tpch;

pub use error::{LakeError, Result};
pub use progress::{Progress, Silent};
pub use redbi::{RedbiSize, make_redbi};
pub use tpch::make_tpch;
