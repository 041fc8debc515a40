//! Which rows of a Parquet file are left, as the Parquet reader wants to be told.

use datafusion::datasource::physical_plan::parquet::{ParquetAccessPlan, RowGroupAccess};
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use roaring::RoaringTreemap;

/// A row group that is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowGroup {
    /// Its number in the file.
    pub index: usize,
    /// Position of its first row.
    pub first: u64,
    pub rows: u64,
}

/// What is left of some row groups.
#[derive(Debug, PartialEq)]
pub(crate) struct Remaining {
    pub plan: ParquetAccessPlan,
    /// Rows that were left out.
    pub deleted: u64,
    /// Whether the plan has any row.
    pub any: bool,
}

/// The rows of `groups` that are not deleted; row groups of the file that are not among them are not read.
pub(crate) fn remaining(
    row_groups: usize,
    groups: &[RowGroup],
    deleted: &RoaringTreemap,
) -> Remaining {
    let mut plan = ParquetAccessPlan::new_none(row_groups);
    let (mut count, mut any) = (0, false);
    for group in groups {
        let (access, gone) = access(group, deleted);
        count += gone;
        any |= access.should_scan();
        if group.index < row_groups {
            plan.set(group.index, access);
        }
    }
    Remaining {
        plan,
        deleted: count,
        any,
    }
}

fn access(group: &RowGroup, deleted: &RoaringTreemap) -> (RowGroupAccess, u64) {
    let mut selectors = Vec::new();
    // Up to where in the row group it is known what to do, and how many rows are left out.
    let (mut done, mut gone) = (0, 0);
    for (start, end) in runs(deleted, group.first, group.first + group.rows) {
        let (start, end) = (start - group.first, end - group.first);
        if start > done {
            selectors.push(RowSelector::select((start - done) as usize));
        }
        selectors.push(RowSelector::skip((end - start) as usize));
        gone += end - start;
        done = end;
    }
    if gone == 0 {
        return (RowGroupAccess::Scan, 0);
    }
    if gone == group.rows {
        return (RowGroupAccess::Skip, gone);
    }
    if done < group.rows {
        selectors.push(RowSelector::select((group.rows - done) as usize));
    }
    (
        RowGroupAccess::Selection(RowSelection::from(selectors)),
        gone,
    )
}

/// The runs of positions in `from..to`, each as its first and the one after its last.
fn runs(positions: &RoaringTreemap, from: u64, to: u64) -> Vec<(u64, u64)> {
    const HALF: u64 = 1 << 32;
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for (high, bitmap) in positions.bitmaps() {
        let base = u64::from(high) * HALF;
        let (start, end) = (from.max(base), to.min(base.saturating_add(HALF)));
        if start >= end {
            continue;
        }
        // Both fit into the bitmap's 32 bits.
        let (low, last) = ((start - base) as u32, (end - 1 - base) as u32);
        let mut found = bitmap.range(low..=last);
        while let Some(run) = found.next_range() {
            let run = (
                base + u64::from(*run.start()),
                (base + u64::from(*run.end()) + 1).min(end),
            );
            match runs.last_mut() {
                Some(previous) if previous.1 == run.0 => previous.1 = run.1,
                _ => runs.push(run),
            }
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn select(n: usize) -> RowSelector {
        RowSelector::select(n)
    }

    fn skip(n: usize) -> RowSelector {
        RowSelector::skip(n)
    }

    fn group(index: usize, first: u64, rows: u64) -> RowGroup {
        RowGroup { index, first, rows }
    }

    #[test]
    fn row_groups_are_scanned_selected_or_skipped() {
        let deleted: RoaringTreemap = [0, 1, 9, 10, 11, 12, 13, 25].into_iter().collect();
        let groups = [
            group(0, 0, 10),
            group(1, 10, 4),
            group(2, 14, 6),
            group(3, 20, 5),
            // 25 .. 35; group 4 is another split's.
            group(5, 25, 10),
        ];
        let left = remaining(6, &groups, &deleted);
        use RowGroupAccess::{Scan, Selection, Skip};
        assert_eq!(
            left.plan.inner(),
            [
                Selection(vec![skip(2), select(7), skip(1)].into()),
                Skip,
                Scan,
                Scan,
                Skip,
                Selection(vec![skip(1), select(9)].into()),
            ]
        );
        assert_eq!((left.deleted, left.any), (8, true));
        assert!(!remaining(6, &groups[1..2], &deleted).any);
        assert!(!remaining(0, &[], &deleted).any);
    }

    #[test]
    fn positions_past_32_bits_are_found() {
        let at = (1u64 << 32) - 1;
        let deleted: RoaringTreemap = [3, at, at + 1, at + 5].into_iter().collect();
        assert_eq!(
            runs(&deleted, at - 10, at + 10),
            [(at, at + 2), (at + 5, at + 6)]
        );
        assert_eq!(runs(&deleted, 0, 4), [(3, 4)]);
        assert_eq!(runs(&deleted, 4, 4), []);
    }

    proptest! {
        #[test]
        fn a_selection_leaves_out_the_deleted_rows_and_no_others(
            deleted in prop::collection::btree_set(0u64..3000, 0..600),
            runs_of in prop::collection::vec((0u64..3000, 1u64..500), 0..4),
            sizes in prop::collection::vec(1u64..900, 1..5),
        ) {
            let mut bitmap: RoaringTreemap = deleted.into_iter().collect();
            for (start, length) in runs_of {
                bitmap.insert_range(start..start + length);
            }
            bitmap.optimize();
            let mut first = 0;
            let groups: Vec<RowGroup> = sizes.iter().enumerate().map(|(index, rows)| {
                let group = group(index, first, *rows);
                first += rows;
                group
            }).collect();
            let left = remaining(groups.len(), &groups, &bitmap);
            let mut kept = Vec::new();
            for (group, access) in groups.iter().zip(left.plan.inner()) {
                let rows = group.first..group.first + group.rows;
                match access {
                    RowGroupAccess::Skip => {}
                    RowGroupAccess::Scan => kept.extend(rows),
                    RowGroupAccess::Selection(selection) => {
                        let mut at = group.first;
                        for selector in selection.iter() {
                            if !selector.skip {
                                kept.extend(at..at + selector.row_count as u64);
                            }
                            at += selector.row_count as u64;
                        }
                        prop_assert_eq!(at, rows.end);
                    }
                }
            }
            let expected: Vec<u64> = (0..first).filter(|p| !bitmap.contains(*p)).collect();
            prop_assert_eq!(left.deleted, first - expected.len() as u64);
            prop_assert_eq!(kept, expected);
        }
    }
}
