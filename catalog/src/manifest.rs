//! A manifest, decoded once and shared by every query that reads its table.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use iceberg::spec::{ManifestContentType, ManifestEntryRef, ManifestFile};
use parking_lot::Mutex;

/// The live entries of one manifest, sequence numbers and snapshot ids inherited from the manifest list.
pub struct DecodedManifest {
    /// Entries that are added or existing; deleted ones are left out.
    pub entries: Vec<ManifestEntryRef>,
    /// The partition spec that the entries' partition values are of.
    pub partition_spec_id: i32,
    /// Data files, or delete files.
    pub content: ManifestContentType,
    memo: Mutex<HashMap<String, Arc<dyn Any + Send + Sync>>>,
}

impl DecodedManifest {
    /// The live entries of a manifest of that spec and content.
    pub fn new(
        entries: Vec<ManifestEntryRef>,
        partition_spec_id: i32,
        content: ManifestContentType,
    ) -> Self {
        Self {
            entries,
            partition_spec_id,
            content,
            memo: Mutex::default(),
        }
    }

    /// The id of the first row of each entry's file, in a snapshot whose manifest list says `manifest` of this one: a
    /// file without one takes the next of its manifest's (the specification's "First Row ID Inheritance"). In a snapshot
    /// whose list says none, rows have no ids, whatever a later list says of the same manifest.
    pub fn first_row_ids(&self, manifest: &ManifestFile) -> Vec<Option<i64>> {
        let first = manifest.first_row_id.and_then(|id| i64::try_from(id).ok());
        let Some(mut next) = first.filter(|_| self.content == ManifestContentType::Data) else {
            return vec![None; self.entries.len()];
        };
        let ids = self.entries.iter().map(|entry| {
            let file = entry.data_file();
            file.first_row_id().or_else(|| {
                let rows = i64::try_from(file.record_count()).ok()?;
                let first = next;
                next = next.checked_add(rows)?;
                Some(first)
            })
        });
        ids.collect()
    }

    /// A guess at its memory, with room for what is derived from it.
    pub(crate) fn estimated_bytes(&self) -> u64 {
        // A map entry with its key, its control byte and the slack of a hash table; a bound owns a value besides.
        const COUNT: usize = 24;
        const BOUND: usize = 96;
        self.entries
            .iter()
            .map(|entry| {
                let file = entry.data_file();
                let counts = file.column_sizes().len()
                    + file.value_counts().len()
                    + file.null_value_counts().len()
                    + file.nan_value_counts().len();
                let bounds = file.lower_bounds().len() + file.upper_bounds().len();
                (600 + file.file_path().len() + counts * COUNT + bounds * BOUND) as u64
            })
            .sum::<u64>()
            + 400
    }

    /// What was derived from the entries under `key`, made by `derive` the first time.
    ///
    /// It lives as long as the manifest stays in the cache, so derive only what is not much larger than the entries:
    /// bounds of a column as an array, say. If the value under `key` is of another type it is derived anew.
    pub fn memo<T: Any + Send + Sync>(&self, key: &str, derive: impl FnOnce(&Self) -> T) -> Arc<T> {
        if let Some(known) = self.memo.lock().get(key).cloned()
            && let Ok(value) = known.downcast::<T>()
        {
            return value;
        }
        // Two queries may derive the same value at once; that costs less than one waiting under a lock.
        let value = Arc::new(derive(self));
        self.memo.lock().insert(key.to_string(), value.clone());
        value
    }
}

impl fmt::Debug for DecodedManifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecodedManifest")
            .field("entries", &self.entries.len())
            .field("partition_spec_id", &self.partition_spec_id)
            .field("content", &self.content)
            .finish_non_exhaustive()
    }
}
