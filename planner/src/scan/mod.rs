//! The scan of an Iceberg table: DataFusion's Parquet reader, told which column is which by field id.
//!
//! ```text
//!   DataSourceExec ─ FileScanConfig ─ IcebergSource ─ ParquetSource
//!                                      │  ▲
//!                                      │  └ filters, projections, byte ranges, sort orders: delegated
//!                                      ├ file_columns: footers with the table's names, by field id
//!                                      ├ column_adapter: types, missing columns, constants
//!                                      ├ morselizer: before a file with deletes is opened, they are loaded
//!                                      ├ other_formats: files that are not Parquet (`formats`), as morsels
//!                                      ├ reader: bytes through ScanStores, counted by where they came from
//!                                      └ codec: to the workers and back
//! ```

mod bucket_check;
mod codec;
mod column_adapter;
mod conform;
mod delete_codec;
mod file_columns;
mod file_groups;
mod file_order;
mod file_pruning;
mod footers;
mod morselizer;
mod other_formats;
mod panics;
mod positions;
mod reader;
mod report;
mod retain_filters;
mod row_lineage;
mod scan_table;
mod source;
mod stores;
mod variant_text;

pub use codec::ScanCodec;
pub(crate) use codec::data_file;
pub use report::{ScanRef, finish_scan_reports, iceberg_scans};
pub use stores::ScanStores;

pub(crate) use column_adapter::{ColumnAdapterFactory, FileConstants};
pub(crate) use conform::under;
pub(crate) use file_columns::TableColumns;
pub(crate) use file_groups::group_by_size;
pub(crate) use other_formats::wanted_field;
pub(crate) use panics::{caught_future, caught_stream};
pub(crate) use reader::{ReadSource, ReaderFactory, ScannedFile};
pub(crate) use retain_filters::retain_filters;
pub use row_lineage::ROW_LINEAGE_COLUMNS;
pub(crate) use row_lineage::{inherited, is_row_lineage, with_row_lineage};
pub(crate) use scan_table::{ScanTable, scan_schema};
pub(crate) use source::IcebergSource;
