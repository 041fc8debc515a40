//! DataCache: a block cache in front of any object store, and rendezvous placement.
//!
//! ```text
//!   reader ──► CachedStore ──► memory ──miss──► disk ──miss──► remote store
//!              (ranges become              foyer's hybrid       one ranged GET for each run of
//!               aligned blocks)            cache of blocks      adjacent missing blocks, shared by
//!                                                               everybody who waits for one of them
//! ```
//!
//! Data files of an Iceberg table never change once written, so a block is valid for as long as its
//! path is. The crate knows nothing of SQL or Iceberg: it caches bytes of immutable objects, counts
//! where they came from, and says which node should hold which object ([`rendezvous`]).

mod block;
mod chosen_worker;
mod counters;
mod data_cache;
mod error;
pub mod rendezvous;
mod runs;
mod settings;
mod single_flight;
mod store;

#[cfg(test)]
mod read_tests;

pub use chosen_worker::ChosenWorker;
pub use counters::{CacheStats, ReadCounters};
pub use data_cache::DataCache;
pub use error::CacheError;
pub use settings::CacheSettings;
