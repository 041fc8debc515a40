//! SQL to distributed physical plan over Iceberg tables.
