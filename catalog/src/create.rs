//! What a new table shall be.

use std::collections::HashMap;

use iceberg::spec::{Schema, Transform};

/// A table to create.
#[derive(Debug, Clone)]
pub struct NewTable {
    /// The table's name in its database.
    pub name: String,
    /// Its columns. Field ids are assigned anew; those given only need to be distinct.
    pub schema: Schema,
    /// Its partition fields, in order; empty for an unpartitioned table.
    pub partition: Vec<PartitionField>,
    /// Table properties, such as `write.target-file-size-bytes`.
    pub properties: HashMap<String, String>,
    /// Where its files go; if `None`, a fresh place below the database's location or the warehouse.
    pub location: Option<String>,
    /// The version of the table format: 1 or 2.
    pub format_version: u8,
    /// Leave a table of that name as it is.
    pub if_not_exists: bool,
}

impl NewTable {
    /// An unpartitioned table of format version 2.
    pub fn new(name: impl Into<String>, schema: Schema) -> Self {
        Self {
            name: name.into(),
            schema,
            partition: Vec::new(),
            properties: HashMap::new(),
            location: None,
            format_version: 2,
            if_not_exists: false,
        }
    }
}

/// One field of a partition spec: `transform(column)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionField {
    /// The source column; dots lead into structs.
    pub column: String,
    /// How a value of it becomes a partition value.
    pub transform: Transform,
    /// The field's name; if `None`, the usual one, such as `ts_day` or `id_bucket`.
    pub name: Option<String>,
}
