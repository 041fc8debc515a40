//! One store for metadata and data: where a table's bytes live and how to reach them.

mod aws_profile;
mod azure;
mod client_options;
mod descriptor;
mod file_io;
mod files;
mod gcs;
mod http;
mod location;
mod overlay;
mod routing_store;
mod s3;
mod settings;
mod stores;

pub use descriptor::{StorageDescriptor, TableStorage};
pub use location::{location_to_path, path_to_location};
pub use settings::StoreSettings;

pub(crate) use file_io::file_io_over;
pub(crate) use files::{
    MAX_METADATA_FILE_BYTES, delete_files, read_file, root_cause, store_error, write_new_file,
};
pub(crate) use overlay::{overlaid, without_overridden};
pub(crate) use s3::{aws_credentials, aws_region};
pub(crate) use stores::Stores;
