//! A table as Hive sees it: its columns and where it is, and the pointer to Iceberg's metadata among its parameters.
//!
//! Field numbers are those of `hive_metastore.thrift`; what is written into them is what Iceberg's Java library writes.

use std::collections::BTreeMap;

use iceberg::spec::{PrimitiveType, TableMetadata, Type};

use super::value::{Fields, Value};
use crate::name::TableName;

/// Parameters of a table.
pub(super) const TABLE_TYPE: &str = "table_type";
pub(super) const METADATA_LOCATION: &str = "metadata_location";
const PREVIOUS_METADATA_LOCATION: &str = "previous_metadata_location";

/// Fields of a table, and of its storage.
const PARAMETERS: i16 = 9;
const STORAGE: i16 = 7;
const COLUMNS: i16 = 1;
const LOCATION: i16 = 2;

/// What a metastore says of one table.
#[derive(Debug, Clone)]
pub(super) struct HiveTable(pub(super) Fields);

impl HiveTable {
    /// The metadata file, if it is an Iceberg table.
    pub(super) fn metadata_location(&self) -> Option<Option<String>> {
        let mut parameters = self.0.texts(PARAMETERS);
        let is_iceberg = parameters
            .get(TABLE_TYPE)
            .is_some_and(|kind| kind.eq_ignore_ascii_case("iceberg"));
        is_iceberg.then(|| parameters.remove(METADATA_LOCATION))
    }

    pub(super) fn name(&self) -> Option<String> {
        self.0.text(1)
    }

    /// A table that is not there yet.
    pub(super) fn new(name: &TableName, metadata: &TableMetadata, file: &str) -> Self {
        let mut table = Self(Fields::of([
            (1, Value::from(name.table.as_str())),
            (2, Value::from(name.database.as_str())),
            (3, Value::from("tarn")),
            (4, Value::I32((metadata.last_updated_ms() / 1000) as i32)),
            (5, Value::I32((metadata.last_updated_ms() / 1000) as i32)),
            (6, Value::I32(i32::MAX)),
            (STORAGE, Value::Struct(storage(metadata))),
            (8, Value::structs([])),
            (
                PARAMETERS,
                Value::texts([("EXTERNAL".to_string(), "TRUE".to_string())]),
            ),
            (12, Value::from("EXTERNAL_TABLE")),
        ]));
        table.point_to(None, metadata, file);
        table
    }

    /// Points the table to a metadata file; `previous` is the one that it pointed to, with what that said.
    pub(super) fn point_to(
        &mut self,
        previous: Option<(&str, &TableMetadata)>,
        metadata: &TableMetadata,
        file: &str,
    ) {
        let mut parameters: BTreeMap<String, String> = self.0.texts(PARAMETERS);
        if let Some((previous, before)) = previous {
            parameters.retain(|key, _| {
                !before.properties().contains_key(key) || metadata.properties().contains_key(key)
            });
            parameters.insert(PREVIOUS_METADATA_LOCATION.to_string(), previous.to_string());
        }
        for (key, value) in metadata.properties() {
            parameters.insert(key.clone(), value.clone());
        }
        for (key, value) in [
            (TABLE_TYPE, "ICEBERG"),
            (METADATA_LOCATION, file),
            ("uuid", &metadata.uuid().to_string()),
        ] {
            parameters.insert(key.to_string(), value.to_string());
        }
        self.0.0.insert(PARAMETERS, Value::texts(parameters));
        // What else a metastore keeps of the storage stays as it is.
        match self.0.0.get_mut(&STORAGE) {
            Some(Value::Struct(storage)) => {
                storage.0.insert(COLUMNS, columns(metadata));
                storage.0.insert(LOCATION, Value::from(metadata.location()));
            }
            _ => {
                self.0.0.insert(STORAGE, Value::Struct(storage(metadata)));
            }
        }
    }
}

fn storage(metadata: &TableMetadata) -> Fields {
    let serde = Fields::of([
        (
            2,
            Value::from("org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
        ),
        (3, Value::texts([])),
    ]);
    Fields::of([
        (COLUMNS, columns(metadata)),
        (LOCATION, Value::from(metadata.location())),
        (3, Value::from("org.apache.hadoop.mapred.FileInputFormat")),
        (4, Value::from("org.apache.hadoop.mapred.FileOutputFormat")),
        (5, Value::Bool(false)),
        (6, Value::I32(0)),
        (7, Value::Struct(serde)),
        (8, Value::List(thrift::protocol::TType::String, Vec::new())),
        (9, Value::structs([])),
        (10, Value::texts([])),
    ])
}

fn columns(metadata: &TableMetadata) -> Value {
    let fields = metadata.current_schema().as_struct().fields();
    Value::structs(fields.iter().map(|field| {
        Fields::of([
            (1, Value::from(field.name.as_str())),
            (2, Value::from(hive_type(&field.field_type).as_str())),
            (3, Value::from(field.doc.as_deref().unwrap_or_default())),
        ])
    }))
}

/// The type that comes nearest, as Iceberg's Java library has it.
fn hive_type(of: &Type) -> String {
    match of {
        Type::Primitive(primitive) => match primitive {
            PrimitiveType::Boolean => "boolean".to_string(),
            PrimitiveType::Int => "int".to_string(),
            PrimitiveType::Long => "bigint".to_string(),
            PrimitiveType::Float => "float".to_string(),
            PrimitiveType::Double => "double".to_string(),
            PrimitiveType::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
            PrimitiveType::Date => "date".to_string(),
            PrimitiveType::Timestamp | PrimitiveType::TimestampNs => "timestamp".to_string(),
            PrimitiveType::Timestamptz | PrimitiveType::TimestamptzNs => {
                "timestamp with local time zone".to_string()
            }
            PrimitiveType::Time | PrimitiveType::String | PrimitiveType::Uuid => {
                "string".to_string()
            }
            PrimitiveType::Fixed(_) | PrimitiveType::Binary => "binary".to_string(),
        },
        Type::Struct(fields) => {
            let fields = fields.fields().iter();
            let inner: Vec<String> = fields
                .map(|field| format!("{}:{}", field.name, hive_type(&field.field_type)))
                .collect();
            format!("struct<{}>", inner.join(","))
        }
        Type::List(list) => format!("array<{}>", hive_type(&list.element_field.field_type)),
        Type::Map(map) => format!(
            "map<{},{}>",
            hive_type(&map.key_field.field_type),
            hive_type(&map.value_field.field_type)
        ),
    }
}
