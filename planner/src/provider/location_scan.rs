//! What a call of `iceberg_scan` in FROM means.

use std::collections::BTreeMap;

use datafusion::error::Result;
use datafusion::scalar::ScalarValue;
use tarn_catalog::{
    TableLocation, TableVersion, is_storage_property, near_names, unknown_storage_property,
};

use super::table_names::{SelectedTable, TableNames, is_unbound, refused};
use crate::error::catalog_error;
use crate::metadata_tables::MetadataTable;
use crate::statement::{ICEBERG_SCAN, NewName, WrittenScan};

/// Options that are no storage properties.
const CATALOG: &str = "catalog";
const METADATA_TABLE: &str = "metadata_table";
/// As DuckDB calls it.
const ALLOW_MOVED_PATHS: &str = "allow_moved_paths";

/// The arguments of a call.
#[derive(Debug)]
struct ScanArguments {
    location: TableLocation,
    metadata: Option<MetadataTable>,
}

impl TableNames<'_> {
    /// Pins the table of a scan, and gives it a name to plan it under.
    pub(super) async fn scanned(
        &self,
        scan: &WrittenScan,
        version: Option<TableVersion>,
    ) -> Result<NewName> {
        let ScanArguments { location, metadata } = self.scan_arguments(scan)?;
        let version = version.unwrap_or_default();
        if let Some(metadata) = metadata
            && version != TableVersion::Current
            && !metadata.has_versions()
        {
            return Err(refused(format!(
                "the metadata table '{}' tells of the whole table and has no versions",
                metadata.name()
            ))
            .into());
        }
        let (table, pinned) = Box::pin(self.catalogs.pin_location(&location))
            .await
            .map_err(catalog_error)?;
        pinned.version(&version).map_err(catalog_error)?;
        let selected = SelectedTable {
            table,
            version,
            metadata,
        };
        let parts = vec![
            selected.table.catalog.clone(),
            selected.table.database.clone(),
            selected.key(),
        ];
        self.catalogs.remember(selected);
        Ok(NewName {
            parts,
            alias: ICEBERG_SCAN.to_owned(),
        })
    }

    fn scan_arguments(&self, scan: &WrittenScan) -> Result<ScanArguments> {
        let mut location = None;
        let mut catalog = None;
        let mut metadata = None;
        let mut moved = false;
        let mut properties = BTreeMap::new();
        for (name, value) in &scan.arguments {
            if self.describing && is_unbound(value) {
                return Err(refused(format!(
                    "the arguments of {ICEBERG_SCAN} are known before its parameters are: write them as they are"
                ))
                .into());
            }
            let said = name.as_deref().unwrap_or("location");
            let value = self
                .constant(value)
                .ok()
                .and_then(text)
                .ok_or_else(|| refused(format!("'{said}' of {ICEBERG_SCAN} is a text")))?;
            match name.as_deref() {
                None if location.is_none() => location = Some(value),
                None => {
                    return Err(refused(format!(
                        "{ICEBERG_SCAN} takes one location; options are written 'name' => 'value'"
                    ))
                    .into());
                }
                Some(CATALOG) => catalog = Some(value),
                Some(METADATA_TABLE) => metadata = Some(metadata_table(&value)?),
                Some(ALLOW_MOVED_PATHS) => {
                    moved = value.parse().map_err(|_| {
                        refused(format!(
                            "'{ALLOW_MOVED_PATHS}' is true or false, not '{value}'"
                        ))
                    })?;
                }
                Some(key) if is_storage_property(key) => {
                    properties.insert(key.to_owned(), value);
                }
                Some(key) => return Err(unknown_option(key).into()),
            }
        }
        let location = location.filter(|location| !location.trim().is_empty());
        let Some(location) = location else {
            return Err(refused(format!(
                "{ICEBERG_SCAN} takes the location of a table: {ICEBERG_SCAN}('s3://bucket/table')"
            ))
            .into());
        };
        Ok(ScanArguments {
            location: TableLocation {
                location,
                catalog,
                properties,
                moved,
            },
            metadata,
        })
    }
}

fn metadata_table(name: &str) -> Result<MetadataTable> {
    MetadataTable::from_name(name)
        .ok_or_else(|| refused(format!("there is no metadata table '{name}'")).into())
}

fn unknown_option(key: &str) -> crate::PlannerError {
    let near = near_names(key, [CATALOG, METADATA_TABLE, ALLOW_MOVED_PATHS]);
    let reason = match near.first() {
        Some(near) => format!("option '{key}' is not known; did you mean '{near}'?"),
        None => unknown_storage_property(key),
    };
    refused(format!("{ICEBERG_SCAN}: {reason}"))
}

/// A text, number or boolean as it would be written in quotes.
fn text(value: ScalarValue) -> Option<String> {
    match value.try_as_str() {
        Some(text) => text.map(str::to_owned),
        None if value.is_null() || value.data_type().is_nested() => None,
        None => Some(value.to_string()),
    }
}
