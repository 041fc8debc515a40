//! How large the sides of a join are, by the estimates that ordered the joins, told to DataFusion's choice of build side and
//! of broadcast or shuffle: it knows nothing of what an aggregate or a join of one gives.
//!
//! ```text
//!   joins in order ──► SizeEstimateNode ──► SizeEstimateExec ──► join selection ──► taken out again
//!                      (logical)            (physical: statistics)                  (ForgetSizeEstimates)
//! ```

mod exec;
mod node;

pub(crate) use exec::ForgetSizeEstimates;
pub(crate) use node::{SizeEstimatePlanner, estimated};

/// Rows and bytes that a plan gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SizeEstimate {
    pub rows: usize,
    pub bytes: usize,
}
