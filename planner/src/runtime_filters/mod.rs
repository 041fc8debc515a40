//! The keys of a join's build side, known to the scan of its probe side before it reads: also where the two are in different
//! stages, on different workers.
//!
//! ```text
//!   HashJoin
//!     Repartition                             Repartition
//!       RuntimeFilterSource   ── parts ──▶      RuntimeFilterTarget    waits a bounded time, then drops rows
//!         build side           coordinator        probe side             and has files and row groups pruned
//!                             ◀── the whole ──
//! ```
//!
//! Joins by buckets have both ends, or one of them, in their own stage, as [`BucketJoinExec`](crate::buckets) has no filter of
//! DataFusion's. Other joins within a stage have one.
//!
//! A filter never changes an answer: it says which rows cannot have a match, and a filter that is late, or never comes, drops
//! none.

mod bloom;
mod codec;
mod link;
mod rule;
mod source;
mod summary;
mod target;

pub use link::{FilterTransport, RuntimeFilterLink};

pub(crate) use codec::{decode_filter, encode_filter, is_filter};
pub use rule::RuntimeFilterOptions;
pub(crate) use rule::RuntimeFilters;
pub(crate) use summary::can_be_summed_up;
pub(crate) use target::RuntimeFilterTarget;

use std::fmt;

use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use uuid::Uuid;

use summary::KeySummary;

/// What both ends of a filter know of it.
#[derive(Debug, Clone)]
struct FilterEnd {
    /// Never used again: a query that is started anew has other filters.
    id: Uuid,
    /// For people: unique in the plan.
    number: u32,
    /// The join's keys, over the rows at this end.
    keys: Vec<PhysicalExprRef>,
}

impl fmt::Display for FilterEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.keys.iter().map(|key| key.to_string()).collect();
        write!(f, "filter={} on=[{}]", self.number, keys.join(", "))
    }
}

/// Puts together what two tasks, or more, handed in of one filter.
///
/// # Errors
/// The parts are not of one filter, or no parts at all.
pub fn merge_runtime_filters(one: &[u8], other: &[u8]) -> Result<Vec<u8>> {
    let mut whole = KeySummary::decode(one)?;
    whole.add(KeySummary::decode(other)?)?;
    whole.encode()
}
