//! ORC files ([specification](https://orc.apache.org/specification/ORCv1/)).
//!
//! ```text
//!   tail ─► types with Iceberg ids ─► plan ─► for each stripe:  streams of the columns that are read
//!    └ stripes: where, how many rows                             │ decompressed chunk by chunk (stream)
//!                                                                │ runs to integers and bits (run_length, bits)
//!                                                                └ arrays, a batch at a time (columns)
//! ```
//!
//! The decoding is our own. The crate that there is for it takes what a file says of its lengths on trust (a flipped
//! bit makes it ask for all memory, which ends the process), goes on when the stream of nulls breaks off, makes null of a
//! timestamp that it cannot express, and reads nested columns whole. Answers must be right, and workers must live.

mod bits;
mod columns;
mod messages;
mod read;
mod run_length;
mod stream;
mod stripe;
mod tail;
mod types;

#[cfg(test)]
mod tests;

pub(super) use read::read;
