//! Queries over real tables, made with the catalog's own append.

mod answers;
mod codec;
mod evolution;
pub(crate) mod lake;
mod pruning;
pub(crate) mod versions;
