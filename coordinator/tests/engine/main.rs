//! The engine as its protocols see it: sessions and statements over a real catalog in a temporary folder.

mod answers;
mod errors;
mod harness;
mod life;
mod locations;
mod metadata;
mod prepared;
mod sort_orders;
mod statements;
mod values;
mod versions;
