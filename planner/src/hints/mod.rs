//! Hints for how a join is distributed, on their way from the text to the plan.
//!
//! ```text
//!   brackets called by the hint ──► JoinHintNode ──► JoinHintExec ──► the rule of joins by buckets obeys, and takes it out
//!   (statement::join_hints)         (logical)        (physical)
//! ```

mod exec;
mod logical;

use std::fmt;

pub(crate) use exec::JoinHintExec;
pub(crate) use logical::{HintPlanner, HintedRelations, is_hinted_side};

/// How the rows of a relation are to meet those that it is joined with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum JoinHint {
    /// It is sent whole to every task.
    Broadcast,
    /// Both sides are sent by the hash of their keys.
    Shuffle,
    /// One side is sent to the buckets of the other.
    Bucket,
    /// Both sides are in the same buckets.
    Colocate,
}

impl JoinHint {
    /// The hint of that name, in any case.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Broadcast, Self::Shuffle, Self::Bucket, Self::Colocate]
            .into_iter()
            .find(|hint| hint.to_string().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for JoinHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Broadcast => "BROADCAST",
            Self::Shuffle => "SHUFFLE",
            Self::Bucket => "BUCKET",
            Self::Colocate => "COLOCATE",
        })
    }
}
