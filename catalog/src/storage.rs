//! One store for metadata and data: where a table's bytes live and how to reach them.

mod descriptor;
mod file_io;
mod location;
mod routing_store;
mod s3;
mod settings;

pub use descriptor::{StorageDescriptor, TableStorage};
pub use location::{location_to_path, path_to_location};
pub use settings::StoreSettings;

pub(crate) use file_io::{TarnStorageFactory, file_io_over};
