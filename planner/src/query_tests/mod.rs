//! Queries over real tables, made with the catalog's own append.

mod answers;
mod codec;
mod evolution;
mod lake;
mod pruning;
