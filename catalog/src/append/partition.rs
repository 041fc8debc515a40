//! Which partition a row belongs to.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::row::{RowConverter, SortField};
use iceberg::arrow::arrow_struct_to_literal;
use iceberg::spec::{
    Literal, PartitionSpecRef, PrimitiveLiteral, PrimitiveType, SchemaRef, Struct, Transform, Type,
};

use super::transformed_columns::TransformedColumns;
use crate::error::{CatalogError, Result};
use crate::name::TableName;

/// The number of a partition, in the order in which partitions were first met.
pub(crate) type PartitionIndex = usize;

/// Splits batches by partition.
pub(crate) struct Partitioner {
    values: TransformedColumns,
    rows: RowConverter,
    known: HashMap<Box<[u8]>, PartitionIndex>,
    partitions: Vec<Partition>,
    spec: PartitionSpecRef,
}

/// One partition.
#[derive(Debug, Clone)]
pub(crate) struct Partition {
    /// The partition tuple.
    pub(crate) values: Struct,
    /// `field=value/field=value`, safe in a path. Empty for an unpartitioned table.
    pub(crate) path: String,
}

pub(super) fn failed(error: impl std::fmt::Display) -> CatalogError {
    CatalogError::Internal(format!("partition values cannot be computed: {error}"))
}

/// What keeps rows from being written by this transform of a column, if anything does.
pub(crate) fn unsupported_partitioning(transform: Transform) -> Option<String> {
    match transform {
        Transform::Unknown => Some("a partition transform that is not known".to_string()),
        _ => None,
    }
}

impl Partitioner {
    pub(crate) fn new(
        table: &TableName,
        spec: PartitionSpecRef,
        schema: &SchemaRef,
    ) -> Result<Self> {
        for field in spec.fields() {
            if let Some(feature) = unsupported_partitioning(field.transform) {
                return Err(CatalogError::Unsupported {
                    table: table.clone(),
                    feature,
                });
            }
        }
        let values = TransformedColumns::new(&spec, schema)?;
        let kind = values.arrow_type().clone();
        let rows = RowConverter::new(vec![SortField::new(kind)]).map_err(failed)?;
        Ok(Self {
            values,
            rows,
            known: HashMap::new(),
            partitions: Vec::new(),
            spec,
        })
    }

    pub(crate) fn partition(&self, index: PartitionIndex) -> &Partition {
        &self.partitions[index]
    }

    /// The rows of each partition, their order kept.
    pub(crate) fn split(
        &mut self,
        batch: &RecordBatch,
    ) -> Result<Vec<(PartitionIndex, RecordBatch)>> {
        let values = self.values.of(batch)?;
        let keys = self
            .rows
            .convert_columns(&[Arc::clone(&values)])
            .map_err(failed)?;
        let mut indices: HashMap<PartitionIndex, Vec<u32>> = HashMap::new();
        let mut previous: Option<(&[u8], PartitionIndex)> = None;
        for row in 0..batch.num_rows() {
            let key_row = keys.row(row);
            let key = key_row.data();
            // Rows of one partition often come together.
            let index = match previous {
                Some((known, index)) if known == key => index,
                _ => match self.known.get(key) {
                    Some(index) => *index,
                    None => self.meet(key, &values, row)?,
                },
            };
            previous = Some((key, index));
            indices.entry(index).or_default().push(row as u32);
        }
        if indices.len() == 1
            && let Some(index) = indices.keys().next()
        {
            return Ok(vec![(*index, batch.clone())]);
        }
        let mut parts: Vec<(PartitionIndex, Vec<u32>)> = indices.into_iter().collect();
        parts.sort_by_key(|(index, _)| *index);
        parts
            .into_iter()
            .map(|(index, rows)| {
                let part = take_record_batch(batch, &UInt32Array::from(rows)).map_err(failed)?;
                Ok((index, part))
            })
            .collect()
    }

    fn meet(
        &mut self,
        key: &[u8],
        values: &arrow::array::ArrayRef,
        row: usize,
    ) -> Result<PartitionIndex> {
        let one = values.slice(row, 1);
        debug_assert!(one.as_struct_opt().is_some());
        let literals = arrow_struct_to_literal(&one, self.values.iceberg_type()).map_err(failed)?;
        let Some(Some(Literal::Struct(values))) = literals.into_iter().next() else {
            return Err(failed("a partition tuple is not a struct"));
        };
        let path = self.path(&values);
        let index = self.partitions.len();
        self.partitions.push(Partition { values, path });
        self.known.insert(key.into(), index);
        Ok(index)
    }

    fn path(&self, values: &Struct) -> String {
        let kinds = self.values.iceberg_type().fields();
        let parts: Vec<String> = self
            .spec
            .fields()
            .iter()
            .zip(kinds)
            .zip(values.iter())
            .map(|((field, kind), value)| {
                let value = human(field.transform, &kind.field_type, value)
                    .unwrap_or_else(|| field.transform.to_human_string(&kind.field_type, value));
                format!("{}={}", escaped(&field.name), escaped(&value))
            })
            .collect();
        parts.join("/")
    }
}

/// Values of the time transforms as other engines name their directories: `1970`, `1970-01`, `1970-01-01-00`. They
/// count from 1970, and are negative before.
fn human(transform: Transform, kind: &Type, value: Option<&Literal>) -> Option<String> {
    if let Some(Literal::Primitive(PrimitiveLiteral::Long(time))) = value {
        // The Iceberg crate does not know those before 1970 that have a fraction of a second.
        let (time, digits) = match kind {
            Type::Primitive(PrimitiveType::Timestamptz) => {
                (chrono::DateTime::from_timestamp_micros(*time)?, "%.6f")
            }
            Type::Primitive(PrimitiveType::TimestamptzNs) => {
                (chrono::DateTime::from_timestamp_nanos(*time), "%.9f")
            }
            _ => return None,
        };
        return Some(
            time.format(&format!("%Y-%m-%dT%H:%M:%S{digits}+00:00"))
                .to_string(),
        );
    }
    let Some(Literal::Primitive(PrimitiveLiteral::Int(count))) = value else {
        return None;
    };
    match transform {
        Transform::Year => Some(format!("{:04}", 1970 + i64::from(*count))),
        Transform::Month => Some(format!(
            "{:04}-{:02}",
            1970 + i64::from(count.div_euclid(12)),
            count.rem_euclid(12) + 1
        )),
        Transform::Hour => {
            let start = chrono::DateTime::from_timestamp(i64::from(*count) * 3600, 0)?;
            Some(start.format("%Y-%m-%d-%H").to_string())
        }
        _ => None,
    }
}

/// Percent-encodes what could lead out of a directory or confuse a tool; the result is the name itself, never decoded.
fn escaped(text: &str) -> String {
    /// The most of a value that its directory's name repeats; file systems limit names to 255 bytes.
    const MAX_BYTES: usize = 100;
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if safe.len() >= MAX_BYTES {
            break;
        }
        if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ' | '+' | ',') {
            safe.push(c);
        } else {
            let mut buffer = [0; 4];
            for byte in c.encode_utf8(&mut buffer).bytes() {
                safe.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    // No segment of a path may be one of these.
    match safe.as_str() {
        "." => "%2E".to_string(),
        ".." => "%2E%2E".to_string(),
        _ => safe,
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringArray};
    use iceberg::arrow::schema_to_arrow_schema;
    use iceberg::spec::{NestedField, PartitionSpec, Schema};

    use super::*;

    #[test]
    fn rows_are_split_in_order() {
        let schema: SchemaRef = Arc::new(
            Schema::builder()
                .with_fields(vec![
                    NestedField::optional(1, "id", Type::Primitive(PrimitiveType::Long)).into(),
                    NestedField::optional(2, "kind", Type::Primitive(PrimitiveType::String)).into(),
                ])
                .build()
                .unwrap(),
        );
        let spec = PartitionSpec::builder(schema.clone())
            .add_partition_field("kind", "kind", Transform::Identity)
            .unwrap()
            .add_partition_field("id", "id_trunc", Transform::Truncate(10))
            .unwrap()
            .build()
            .unwrap();
        let table = TableName::new("lake", "db", "t");
        let mut partitioner = Partitioner::new(&table, Arc::new(spec), &schema).unwrap();
        let batch = RecordBatch::try_new(
            Arc::new(schema_to_arrow_schema(&schema).unwrap()),
            vec![
                Arc::new(Int64Array::from(vec![1, 12, 3, 4, 15])),
                Arc::new(StringArray::from(vec![
                    Some("a"),
                    Some("a"),
                    None,
                    Some("a"),
                    Some("a"),
                ])),
            ],
        )
        .unwrap();
        let parts = partitioner.split(&batch).unwrap();
        let ids: Vec<(String, Vec<i64>)> = parts
            .iter()
            .map(|(index, part)| {
                let column = part.column(0).as_primitive::<arrow::datatypes::Int64Type>();
                (
                    partitioner.partition(*index).path.clone(),
                    column.values().to_vec(),
                )
            })
            .collect();
        assert_eq!(
            ids,
            [
                ("kind=a/id_trunc=0".to_string(), vec![1, 4]),
                ("kind=a/id_trunc=10".to_string(), vec![12, 15]),
                ("kind=null/id_trunc=0".to_string(), vec![3]),
            ]
        );
        assert_eq!(
            partitioner.partition(1).values,
            Struct::from_iter([Some(Literal::string("a")), Some(Literal::long(10))])
        );
        // The same partitions keep their numbers.
        let again = partitioner.split(&batch.slice(1, 1)).unwrap();
        assert_eq!(
            again.iter().map(|(index, _)| *index).collect::<Vec<_>>(),
            [1]
        );
    }

    #[test]
    fn times_are_named_as_people_write_them() {
        for (transform, count, name) in [
            (Transform::Year, 54, "2024"),
            (Transform::Month, 0, "1970-01"),
            (Transform::Month, -1, "1969-12"),
            (Transform::Month, 649, "2024-02"),
            (Transform::Hour, 25, "1970-01-02-01"),
        ] {
            assert_eq!(
                human(
                    transform,
                    &Type::Primitive(PrimitiveType::Int),
                    Some(&Literal::int(count))
                )
                .as_deref(),
                Some(name)
            );
        }
        for (micros, name) in [
            (-1_i64, "1969-12-31T23:59:59.999999+00:00"),
            (0, "1970-01-01T00:00:00.000000+00:00"),
            (-62_135_596_799_999_999, "0001-01-01T00:00:00.000001+00:00"),
        ] {
            assert_eq!(
                human(
                    Transform::Identity,
                    &Type::Primitive(PrimitiveType::Timestamptz),
                    Some(&Literal::long(micros))
                )
                .as_deref(),
                Some(name)
            );
        }
    }

    #[test]
    fn paths_stay_inside_their_directory() {
        assert_eq!(escaped("a/b=c"), "a%2Fb%3Dc");
        assert_eq!(escaped(".."), "%2E%2E");
        assert_eq!(escaped("größe 1"), "gr%C3%B6%C3%9Fe 1");
    }
}
