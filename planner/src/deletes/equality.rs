//! Equality delete files: rows whose key is in the file are deleted (the specification, "Equality Delete Files").

use std::sync::LazyLock;

use arrow::array::RecordBatch;
use arrow::row::{RowConverter, Rows};
use datafusion::error::Result;
use futures::TryStreamExt;
use futures::stream::BoxStream;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

use super::key_columns::KeyColumns;

/// One for all sets of the process: a key that is looked up in many sets is hashed once.
static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// The keys of one delete file. Null is a value like others: a null in a key matches a null in a row.
pub(crate) struct KeySet {
    rows: Rows,
    /// Numbers of rows, by their bytes' hash.
    index: HashTable<u32>,
}

impl KeySet {
    /// Takes in all rows of the key's columns.
    pub(crate) async fn read(
        mut batches: BoxStream<'static, Result<RecordBatch>>,
        keys: &KeyColumns,
    ) -> Result<Self> {
        let converter = keys.converter()?;
        let mut set = Self {
            rows: converter.empty_rows(0, 0),
            index: HashTable::new(),
        };
        while let Some(batch) = batches.try_next().await? {
            set.add(&converter, &keys.keys(&batch)?)?;
        }
        Ok(set)
    }

    fn add(&mut self, converter: &RowConverter, keys: &[arrow::array::ArrayRef]) -> Result<()> {
        let known = self.rows.num_rows();
        converter.append(&mut self.rows, keys)?;
        let Self { rows, index } = self;
        for row in known..rows.num_rows() {
            let number = u32::try_from(row).map_err(|_| {
                datafusion::error::DataFusionError::ResourcesExhausted(
                    "an equality delete file has more than 2^32 rows".to_string(),
                )
            })?;
            let key = rows.row(row);
            index
                .entry(
                    hash(key.data()),
                    |other| rows.row(*other as usize).data() == key.data(),
                    |other| hash(rows.row(*other as usize).data()),
                )
                .or_insert(number);
        }
        Ok(())
    }

    fn contains(&self, hash: u64, key: &[u8]) -> bool {
        self.index
            .find(hash, |row| self.rows.row(*row as usize).data() == key)
            .is_some()
    }

    /// About its size in memory.
    pub(crate) fn memory_size(&self) -> usize {
        self.rows.size() + self.index.allocation_size()
    }
}

fn hash(key: &[u8]) -> u64 {
    HASHER.hash_one(key)
}

/// Calls `found` with each row of a batch whose key is in one of the sets.
pub(crate) fn for_each_match(
    sets: &[std::sync::Arc<KeySet>],
    converter: &RowConverter,
    keys: &[arrow::array::ArrayRef],
    mut found: impl FnMut(usize),
) -> Result<()> {
    let rows = converter.convert_columns(keys)?;
    for row in 0..rows.num_rows() {
        let key = rows.row(row);
        let hash = hash(key.data());
        if sets.iter().any(|set| set.contains(hash, key.data())) {
            found(row);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, Float64Array, Int64Array, StringViewArray, StructArray, new_null_array,
    };
    use arrow::buffer::NullBuffer;
    use arrow::datatypes::{DataType, Schema as ArrowSchema};
    use iceberg::spec::{NestedField, PrimitiveType, Schema, StructType, Type};

    use super::*;
    use crate::deletes::position::rows;

    fn optional(id: i32, name: &str, of: Type) -> Arc<NestedField> {
        NestedField::optional(id, name, of).into()
    }

    fn keys(fields: Vec<Arc<NestedField>>) -> KeyColumns {
        let schema = Schema::builder()
            .with_fields(fields)
            .build()
            .expect("a schema");
        KeyColumns::new(schema, None).expect("keys")
    }

    fn batch(keys: &KeyColumns, columns: Vec<ArrayRef>) -> RecordBatch {
        let fields: Vec<_> = keys.columns().arrow().fields().iter().cloned().collect();
        RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns).expect("a batch")
    }

    async fn matches(
        keys: &KeyColumns,
        deleted: Vec<Vec<ArrayRef>>,
        data: Vec<ArrayRef>,
    ) -> Vec<usize> {
        let mut sets = Vec::new();
        for columns in deleted {
            let batches = rows(vec![batch(keys, columns)]);
            sets.push(Arc::new(
                KeySet::read(batches, keys).await.expect("it is read"),
            ));
        }
        let mut found = Vec::new();
        let data = keys.keys(&batch(keys, data)).expect("keys");
        for_each_match(&sets, &keys.converter().expect("one"), &data, |row| {
            found.push(row)
        })
        .expect("they are compared");
        found
    }

    fn longs(of: &[Option<i64>]) -> ArrayRef {
        Arc::new(Int64Array::from(of.to_vec()))
    }

    fn words(of: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringViewArray::from(of.to_vec()))
    }

    #[tokio::test]
    async fn all_parts_of_a_key_have_to_match_and_null_matches_null() {
        let keys = keys(vec![
            optional(1, "a", Type::Primitive(PrimitiveType::Long)),
            optional(2, "b", Type::Primitive(PrimitiveType::String)),
        ]);
        let deleted = vec![
            vec![longs(&[Some(1), None]), words(&[Some("x"), None])],
            vec![longs(&[Some(2)]), words(&[None])],
        ];
        let data = vec![
            longs(&[Some(1), Some(1), None, None, Some(2), Some(2), Some(1)]),
            words(&[
                Some("x"),
                Some("y"),
                None,
                Some("x"),
                None,
                Some(""),
                Some("x"),
            ]),
        ];
        assert_eq!(matches(&keys, deleted, data).await, [0, 2, 4, 6]);
    }

    #[tokio::test]
    async fn a_part_inside_a_struct_is_null_where_the_struct_is() {
        let of = StructType::new(vec![optional(2, "n", Type::Primitive(PrimitiveType::Long))]);
        let keys = keys(vec![optional(1, "s", Type::Struct(of))]);
        let fields = match keys.columns().arrow().field(0).data_type() {
            DataType::Struct(fields) => fields.clone(),
            other => panic!("{other}"),
        };
        let column = |values: &[Option<i64>], there: &[bool]| -> Vec<ArrayRef> {
            vec![Arc::new(StructArray::new(
                fields.clone(),
                vec![longs(values)],
                Some(NullBuffer::from(there.to_vec())),
            ))]
        };
        let deleted = column(&[Some(5), Some(9)], &[true, false]);
        let data = column(
            &[Some(5), Some(9), None, Some(5)],
            &[true, true, true, false],
        );
        assert_eq!(matches(&keys, vec![deleted], data).await, [0, 2, 3]);
        let nulls = vec![new_null_array(
            keys.columns().arrow().field(0).data_type(),
            2,
        )];
        assert_eq!(
            matches(&keys, vec![nulls], column(&[Some(1), None], &[true, true])).await,
            [1]
        );
    }

    #[tokio::test]
    async fn nan_is_nan_and_zeros_of_both_signs_differ() {
        let keys = keys(vec![optional(
            1,
            "f",
            Type::Primitive(PrimitiveType::Double),
        )]);
        let floats =
            |of: &[f64]| -> Vec<ArrayRef> { vec![Arc::new(Float64Array::from(of.to_vec()))] };
        let deleted = floats(&[f64::NAN, 0.0]);
        let data = floats(&[-f64::NAN, 0.0, -0.0, 1.0]);
        assert_eq!(matches(&keys, vec![deleted], data).await, [0, 1]);
    }
}
