//! Queries over real tables, made with the catalog's own append.

mod answers;
mod codec;
mod deletes;
mod deleting;
mod equality_deletes;
mod evolution;
mod formats;
pub(crate) mod lake;
mod pruning;
pub(crate) mod versions;
