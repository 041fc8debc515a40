//! Real workers on loopback ports, and queries spread over them.

mod cluster;
mod iceberg;
mod lifecycle;
mod loss;
mod memory;
mod queries;
mod tables;
