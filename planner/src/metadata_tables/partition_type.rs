//! The one type that the partitions of all specs of a table have together.

use std::collections::BTreeMap;

use iceberg::spec::{
    NestedField, NestedFieldRef, PartitionSpec, Schema, StructType, TableMetadata, Transform, Type,
};
use tarn_catalog::{CatalogError, PinnedTable};

/// A field for each partition field of any spec whose source is still a column, by field id. As in Iceberg's Java
/// library, names are the newest spec's.
pub(super) fn partition_type(table: &PinnedTable) -> Result<StructType, CatalogError> {
    let metadata: &TableMetadata = table.metadata();
    let specs: Vec<&PartitionSpec> = metadata.partition_specs_iter().map(AsRef::as_ref).collect();
    of_specs(metadata.current_schema(), specs).map_err(|feature| CatalogError::Unsupported {
        table: table.name().clone(),
        feature,
    })
}

fn of_specs(schema: &Schema, mut specs: Vec<&PartitionSpec>) -> Result<StructType, String> {
    specs.sort_by_key(|spec| std::cmp::Reverse(spec.spec_id()));
    let mut fields: BTreeMap<i32, (NestedFieldRef, Transform)> = BTreeMap::new();
    for spec in specs {
        for field in spec.fields() {
            let Some(source) = schema.field_by_id(field.source_id) else {
                continue;
            };
            let unknown = || format!("the partition transform '{}'", field.transform);
            let result: Type = match field.transform {
                Transform::Unknown => return Err(unknown()),
                transform => transform
                    .result_type(&source.field_type)
                    .map_err(|_| unknown())?,
            };
            let of_type = |name: &str| NestedField::optional(field.field_id, name, result.clone());
            match fields.get(&field.field_id) {
                None => {
                    let new = of_type(&field.name);
                    fields.insert(field.field_id, (new.into(), field.transform));
                }
                // A field that was dropped in version 1 is void from then on; its values have the type of before.
                Some((known, Transform::Void)) if field.transform != Transform::Void => {
                    let named = of_type(&known.name);
                    fields.insert(field.field_id, (named.into(), field.transform));
                }
                Some(_) => {}
            }
        }
    }
    Ok(StructType::new(
        fields.into_values().map(|(field, _)| field).collect(),
    ))
}

/// Where the values of a spec's partitions are, for each field of the common type; `None` where it has no such field.
pub(super) fn positions(spec: Option<&PartitionSpec>, common: &StructType) -> Vec<Option<usize>> {
    common
        .fields()
        .iter()
        .map(|wanted| {
            spec?
                .fields()
                .iter()
                .position(|field| field.field_id == wanted.id)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iceberg::spec::PrimitiveType;

    fn spec(json: &str) -> PartitionSpec {
        serde_json::from_str(json).expect("a spec")
    }

    #[test]
    fn fields_of_all_specs_by_their_ids() {
        let schema: Schema = serde_json::from_str(
            r#"{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"ts","required":false,"type":"timestamp"},
            {"id":2,"name":"p","required":false,"type":"string"}]}"#,
        )
        .expect("a schema");
        let old = spec(
            r#"{"spec-id":0,"fields":[{"source-id":1,"field-id":1000,"name":"ts_day","transform":"day"},
            {"source-id":9,"field-id":1001,"name":"dropped","transform":"identity"}]}"#,
        );
        let new = spec(
            r#"{"spec-id":1,"fields":[{"source-id":1,"field-id":1000,"name":"day","transform":"void"},
            {"source-id":2,"field-id":1002,"name":"p_bucket","transform":"bucket[4]"}]}"#,
        );
        let common = of_specs(&schema, vec![&old, &new]).expect("a type");
        let fields: Vec<_> = common
            .fields()
            .iter()
            .map(|field| {
                (
                    field.id,
                    field.name.as_str(),
                    field.field_type.as_primitive_type(),
                )
            })
            .collect();
        assert_eq!(
            fields,
            [
                (1000, "day", Some(&PrimitiveType::Date)),
                (1002, "p_bucket", Some(&PrimitiveType::Int)),
            ]
        );
        assert_eq!(positions(Some(&old), &common), [Some(0), None]);
        assert_eq!(positions(Some(&new), &common), [Some(0), Some(1)]);
        assert_eq!(positions(None, &common), [None, None]);
    }
}
