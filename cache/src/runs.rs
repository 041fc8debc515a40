//! Arithmetic from byte ranges to blocks to remote requests.

use std::collections::BTreeMap;
use std::ops::Range;

/// The blocks that hold the bytes of `range`.
pub(crate) fn blocks_of(range: &Range<u64>, block_bytes: u64) -> Range<u64> {
    if range.is_empty() {
        return 0..0;
    }
    range.start / block_bytes..(range.end - 1) / block_bytes + 1
}

/// The blocks that hold the bytes of `ranges`, with how many of these bytes each holds.
pub(crate) fn wanted(ranges: &[Range<u64>], block_bytes: u64) -> BTreeMap<u64, u64> {
    let mut wanted = BTreeMap::new();
    for range in ranges {
        for index in blocks_of(range, block_bytes) {
            let within = within(range, index, block_bytes);
            *wanted.entry(index).or_default() += (within.end - within.start) as u64;
        }
    }
    wanted
}

/// The part of `range` that lies in block `index`, relative to that block's first byte.
pub(crate) fn within(range: &Range<u64>, index: u64, block_bytes: u64) -> Range<usize> {
    let first = index * block_bytes;
    let start = range.start.max(first) - first;
    let end = range.end.min(first + block_bytes) - first;
    start as usize..end as usize
}

/// Joins adjacent blocks (`indices` ascend) into runs of at most `longest` blocks: one request each.
///
/// ```text
///   missing   3 4 5 . 7 8 9 10          longest = 3
///   runs     [3   6) [7    10)[10 11)
/// ```
pub(crate) fn runs(indices: &[u64], longest: u64) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for &index in indices {
        match runs.last_mut() {
            Some(run) if run.end == index && run.end - run.start < longest => run.end += 1,
            _ => runs.push(index..index + 1),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_become_blocks() {
        assert_eq!(blocks_of(&(0..10), 10), 0..1);
        assert_eq!(blocks_of(&(9..11), 10), 0..2);
        assert_eq!(blocks_of(&(10..20), 10), 1..2);
        assert_eq!(blocks_of(&(35..36), 10), 3..4);
        assert_eq!(blocks_of(&(5..5), 10), 0..0);
    }

    #[test]
    fn bytes_are_counted_by_block() {
        let wanted = wanted(&[5..12, 12..15, 38..41], 10);
        assert_eq!(
            wanted.into_iter().collect::<Vec<_>>(),
            [(0, 5), (1, 5), (3, 2), (4, 1)]
        );
        assert_eq!(within(&(5..25), 1, 10), 0..10);
        assert_eq!(within(&(5..25), 2, 10), 0..5);
        assert_eq!(within(&(5..25), 0, 10), 5..10);
    }

    #[test]
    #[expect(
        clippy::single_range_in_vec_init,
        reason = "a list of one range is what is meant"
    )]
    fn adjacent_blocks_become_runs() {
        assert_eq!(runs(&[3, 4, 5, 7, 8, 9, 10], 3), [3..6, 7..10, 10..11]);
        assert_eq!(runs(&[], 3), Vec::<Range<u64>>::new());
        assert_eq!(runs(&[2], 8), [2..3]);
    }
}
