//! The buckets of data files, by their partition values.

use std::collections::HashMap;
use std::sync::Arc;

use iceberg::spec::{Literal, PrimitiveLiteral, Struct, Transform};

use super::kind::BucketKind;
use crate::prune::TableLayout;

/// The bucket that all rows of a file are in, by one partition field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileBucket {
    /// Which column of the table the buckets are of.
    pub(crate) column: usize,
    /// How many buckets there are.
    pub(crate) count: u32,
    /// Which one; `None` is that of nulls.
    pub(crate) bucket: Option<u32>,
}

/// An extension of a file: its bucket by each bucket field of the spec that it was written with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileBuckets(pub(crate) Arc<[FileBucket]>);

impl From<FileBucket> for FileBuckets {
    fn from(bucket: FileBucket) -> Self {
        Self(Arc::from([bucket]))
    }
}

impl FileBuckets {
    /// The bucket by a column. The finest, should the spec have several.
    pub(crate) fn of_column(&self, column: usize) -> Option<&FileBucket> {
        let buckets = self.0.iter().filter(|bucket| bucket.column == column);
        buckets.max_by_key(|bucket| bucket.count)
    }
}

/// The bucket fields of one spec. Files of one partition share their buckets.
pub(crate) struct SpecBuckets {
    fields: Vec<BucketField>,
    sets: HashMap<Vec<FileBucket>, FileBuckets>,
}

struct BucketField {
    column: usize,
    position: usize,
    count: u32,
}

impl SpecBuckets {
    pub(crate) fn new(layout: &TableLayout, spec_id: i32) -> Self {
        let columns = layout.columns().iter().enumerate();
        let fields = columns
            .filter(|(_, column)| BucketKind::of(&column.arrow).is_some())
            .flat_map(|(index, column)| {
                let fields = column.partitions_of(spec_id).iter();
                fields.filter_map(move |field| match field.transform {
                    Transform::Bucket(count) if count > 0 => Some(BucketField {
                        column: index,
                        position: field.position,
                        count,
                    }),
                    _ => None,
                })
            })
            .collect();
        Self {
            fields,
            sets: HashMap::new(),
        }
    }

    /// The buckets of a file with these partition values; `None` if there are none. A value that is no bucket of its
    /// field says nothing.
    pub(crate) fn of_file(&mut self, partition: &Struct) -> Option<FileBuckets> {
        let buckets: Vec<FileBucket> = self
            .fields
            .iter()
            .filter_map(|field| {
                let bucket = match partition.fields().get(field.position)? {
                    None => None,
                    Some(Literal::Primitive(PrimitiveLiteral::Int(bucket))) => {
                        let bucket = u32::try_from(*bucket).ok()?;
                        Some(Some(bucket).filter(|bucket| *bucket < field.count)?)
                    }
                    Some(_) => return None,
                };
                Some(FileBucket {
                    column: field.column,
                    count: field.count,
                    bucket,
                })
            })
            .collect();
        if buckets.is_empty() {
            return None;
        }
        if let Some(known) = self.sets.get(&buckets) {
            return Some(known.clone());
        }
        let set = FileBuckets(buckets.clone().into());
        self.sets.insert(buckets, set.clone());
        Some(set)
    }
}
