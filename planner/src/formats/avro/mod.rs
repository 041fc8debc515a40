//! Avro files ([specification](https://avro.apache.org/docs/1.12.0/specification/)).
//!
//! ```text
//!   header ─► schema with Iceberg ids ─► plan        blocks ─► decompressed, sync marker checked (container)
//!                                          │                     │
//!                                          └─► columns: each value of a record is pushed, or stepped over
//! ```
//!
//! The decoding is our own. arrow-avro's reader of whole files never ends when a block counts fewer records than it has,
//! panics on a snappy block without a checksum, and sets memory aside for whatever size a block claims.

mod columns;
mod container;
mod cursor;
mod read;
mod schema;

#[cfg(test)]
mod tests;

pub(super) use read::read;
