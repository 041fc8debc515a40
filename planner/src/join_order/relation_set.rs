//! Sets of the relations of one join group.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, Sub};

/// A set of relations, by their numbers.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RelationSet(u64);

impl RelationSet {
    /// The most relations that a set can be of.
    pub(crate) const MOST: usize = 64;

    pub(crate) const EMPTY: Self = Self(0);

    pub(crate) fn of(relation: usize) -> Self {
        Self(1 << relation)
    }

    /// The relations below that number.
    pub(crate) fn below(count: usize) -> Self {
        match count {
            0 => Self::EMPTY,
            count => Self(u64::MAX >> (Self::MOST - count.min(Self::MOST))),
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub(crate) fn contains(self, relation: usize) -> bool {
        self.0 & (1 << relation) != 0
    }

    pub(crate) fn covers(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The relation, if there is just one.
    pub(crate) fn single(self) -> Option<usize> {
        (self.0.is_power_of_two()).then(|| self.0.trailing_zeros() as usize)
    }

    pub(crate) fn iter(self) -> impl DoubleEndedIterator<Item = usize> {
        (0..Self::MOST).filter(move |relation| self.contains(*relation))
    }

    /// All subsets but the empty one, smaller numbers first.
    pub(crate) fn subsets(self) -> impl Iterator<Item = Self> {
        let mut subset = 0_u64;
        std::iter::from_fn(move || {
            subset = subset.wrapping_sub(self.0) & self.0;
            (subset != 0).then_some(Self(subset))
        })
    }
}

impl BitOr for RelationSet {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for RelationSet {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for RelationSet {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Sub for RelationSet {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl fmt::Debug for RelationSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsets_of_three_relations_are_seven() {
        let set = RelationSet::of(0) | RelationSet::of(3) | RelationSet::of(63);
        let subsets: Vec<RelationSet> = set.subsets().collect();
        assert_eq!(subsets.len(), 7);
        assert!(subsets.iter().all(|subset| set.covers(*subset)));
        assert_eq!(subsets.last(), Some(&set));
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 3, 63]);
        assert_eq!(RelationSet::below(64).len(), 64);
        assert_eq!(
            RelationSet::below(2),
            RelationSet::of(0) | RelationSet::of(1)
        );
    }
}
