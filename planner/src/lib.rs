//! SQL to distributed physical plan over Iceberg tables.

pub mod functions;
pub mod statement;
