//! From names in a query to tables.

mod catalogs;
mod column_stats;
mod iceberg_table;
mod location_scan;
mod scan_deletes;
mod scan_plan;
mod table_names;
mod virtual_schemas;

pub use catalogs::QueryCatalogs;
pub use column_stats::{ColumnStats, DistinctSource};
pub use iceberg_table::IcebergTable;
pub use table_names::{TableNames, time_in_zone};
pub use virtual_schemas::{NoVirtualSchemas, VirtualSchemas};
