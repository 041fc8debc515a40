//! What the planning of a scan learnt of its files, until the optimiser has looked at it.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::BooleanArray;
use parking_lot::Mutex;

use crate::distinct_values::DistinctValues;
use crate::prune::TableLayout;
use crate::statistics::KeptFiles;

/// The files of a scan, as their manifests have them.
pub(crate) struct ScanFacts {
    pub(crate) kept: Vec<KeptFiles>,
    pub(crate) layout: Arc<TableLayout>,
    pub(crate) distinct: Arc<DistinctValues>,
    /// Names of the columns that the scan has statistics of.
    pub(crate) columns: BTreeSet<String>,
}

/// Where the facts of one of the scan's files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FilePlace {
    pub(crate) manifest: usize,
    pub(crate) entry: usize,
}

impl ScanFacts {
    /// Leaves out all files but those.
    pub(crate) fn retain(&mut self, is_left: impl Fn(FilePlace) -> bool) {
        for (manifest, files) in self.kept.iter_mut().enumerate() {
            let mut keep = vec![false; files.keep.len()];
            for entry in files.indices() {
                keep[entry] = is_left(FilePlace { manifest, entry });
            }
            files.keep = BooleanArray::from(keep);
        }
    }
}

/// Facts that are taken out once: they hold on to manifests, and a query runs longer than it is planned.
#[derive(Default)]
pub(crate) struct FactsCell(Mutex<Option<ScanFacts>>);

impl FactsCell {
    pub(crate) fn new(facts: ScanFacts) -> Self {
        Self(Mutex::new(Some(facts)))
    }

    pub(crate) fn take(&self) -> Option<ScanFacts> {
        self.0.lock().take()
    }
}
