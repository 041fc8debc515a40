//! Iceberg catalogs, storage, metadata caches, pinned tables and commits.
//!
//! [`Catalogs`] holds every [`Catalog`] by name: the embedded one (SQLite and local files), REST catalogs, SQL catalogs
//! in SQLite or PostgreSQL, Hive Metastores. [`Catalog::table`] pins a table: a [`PinnedTable`] is one snapshot of it, whose manifests are read
//! through a bounded cache. [`Catalog::append`] and [`Catalog::create_table_as`] give an [`AppendWriter`], which makes
//! its rows visible in one atomic commit. [`StorageDescriptor`] tells, as a value that travels to workers, how a
//! table's bytes are reached, and opens the one store that metadata and data are read and written through.

mod append;
mod avro_guard;
mod avro_names;
mod avro_schema;
mod backend;
mod catalog;
mod catalog_kind;
mod commit_retry;
mod create;
#[cfg(test)]
mod damaged_files;
mod error;
mod extension_columns;
mod hive;
mod manifest;
mod manifest_decoder;
mod metadata_cache;
mod metadata_file;
mod metadata_location;
mod metadata_pointer;
mod name;
mod near_names;
mod newer_types;
mod pinned;
mod properties;
mod purge;
mod refs;
mod registry;
mod registry_file;
mod rest;
mod secrets;
mod settings;
mod sql;
mod storage;
mod table_location;
mod table_statistics;
mod uuid_partitions;
mod version;

pub use append::{AppendSummary, AppendWriter, SortKeys, WriteOptions};
pub use catalog::Catalog;
pub use create::{NewTable, OrderField, PartitionField};
pub use error::{CatalogError, Result};
pub use extension_columns::{Extension, is_uuid, mark_json, mark_uuid};
pub use manifest::DecodedManifest;
pub use name::{DEFAULT_CATALOG, DEFAULT_DATABASE, TableName};
pub use near_names::near_names;
pub use newer_types::{NewerType, field_comment};
pub use pinned::PinnedTable;
pub use properties::{
    PROPERTIES, Property, PropertyGroup, is_storage_property, unknown_storage_property,
};
pub use refs::{RefChange, RefCreation, RefKind, RefOutcome, RefRetention};
pub use registry::{Catalogs, check_properties};
pub use secrets::{MASK, is_secret, shown_value};
pub use settings::CatalogSettings;
pub use storage::{
    StorageDescriptor, StoreSettings, TableStorage, location_to_path, path_to_location,
};
pub use table_location::TableLocation;
pub use table_statistics::{ColumnSketch, NewSketch};
pub use version::TableVersion;
