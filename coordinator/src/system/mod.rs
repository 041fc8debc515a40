//! Tables that no catalog holds: `information_schema` in every catalog, `mysql`, and Tarn's own
//! `tarn.system`.

mod catalog_rows;
mod definition;
mod engine_rows;
mod information_schema;
mod information_schema_tables;
mod mysql_schema;
mod provider;
mod schemas;
mod shown_names;
mod tarn_schema;
mod wanted;

pub(crate) use catalog_rows::{
    ListedColumn, ListedTable, comment, databases, iceberg_columns, system_columns, tables,
};
pub(crate) use engine_rows::{PROCESSLIST, processlist_rows};
pub(crate) use information_schema::{
    character_set_rows, collation_rows, engine_rows, table_status,
};
pub(crate) use information_schema_tables::{COLLATIONS, ENGINES};
pub(crate) use schemas::{
    INFORMATION_SCHEMA, SYSTEM_CATALOG, SYSTEM_DATABASE, SystemSchemas, is_system_database,
    is_system_schema, system_table,
};
pub(crate) use shown_names::shown_names;
pub use tarn_schema::Progress;
pub(crate) use tarn_schema::{WORKERS, worker_rows};
pub(crate) use wanted::Wanted;
