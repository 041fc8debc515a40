//! Parts of a plan that occur more than once, computed once: a common table expression that two places read, say.
//!
//! ```text
//!            Join                                   Join
//!           ╱    ╲                                 ╱    ╲
//!   Aggregate   max(…)            ──▶    SharedSubplan   max(…)
//!      scan       Aggregate                   │            SharedSubplan
//!                   scan                  Aggregate ◀──────────┘
//!                                            scan
//! ```
//!
//! Only aggregates are shared: they are small beside what they read, and nothing streams through them anyway. Both places keep
//! a plan of their own; that of the one that is asked first runs, and its rows, kept in memory or spilled, serve both.
//! It takes one process: the places of a cluster's plan may be on two workers.

mod exec;
mod find;
mod node;
mod rows;

pub(crate) use find::share_subplans;
pub(crate) use node::SharedSubplanPlanner;
