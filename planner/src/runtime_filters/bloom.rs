//! A split block Bloom filter over 64-bit hashes, as Parquet's specification has it ("Bloom Filter"): a key sets one bit in
//! each of the eight 32-bit words of one block.

/// What turns one half of a hash into a bit of each word; from the specification.
const SALTS: [u32; 8] = [
    0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
];
const BLOCK_WORDS: usize = SALTS.len();
const BLOCK_BYTES: usize = 4 * BLOCK_WORDS;

/// Tells hashes that were never seen from those that may have been.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bloom {
    words: Vec<u32>,
}

impl Bloom {
    /// An empty filter of about so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let blocks = (bytes / BLOCK_BYTES).max(1);
        Self {
            words: vec![0; blocks * BLOCK_WORDS],
        }
    }

    fn block(&self, hash: u64) -> usize {
        let blocks = (self.words.len() / BLOCK_WORDS) as u64;
        (((hash >> 32) * blocks) >> 32) as usize * BLOCK_WORDS
    }

    pub(super) fn insert(&mut self, hash: u64) {
        let block = self.block(hash);
        for (word, salt) in self.words[block..block + BLOCK_WORDS].iter_mut().zip(SALTS) {
            *word |= bit(hash, salt);
        }
    }

    pub(super) fn may_hold(&self, hash: u64) -> bool {
        let block = self.block(hash);
        self.words[block..block + BLOCK_WORDS]
            .iter()
            .zip(SALTS)
            .all(|(word, salt)| word & bit(hash, salt) != 0)
    }

    /// Takes in what another filter has seen; `false` if that has another size.
    pub(super) fn add(&mut self, other: &Self) -> bool {
        if self.words.len() != other.words.len() {
            return false;
        }
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
        true
    }

    /// The part of its bits that are set: what it lets pass by mistake grows with the eighth power of it.
    pub(super) fn fill(&self) -> f64 {
        let set: u64 = self
            .words
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum();
        set as f64 / (32 * self.words.len()) as f64
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        self.words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }

    /// `None` for bytes that are no filter.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() || !bytes.len().is_multiple_of(BLOCK_BYTES) {
            return None;
        }
        let words = bytes
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        Some(Self { words })
    }
}

fn bit(hash: u64, salt: u32) -> u32 {
    1 << ((hash as u32).wrapping_mul(salt) >> 27)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> u64 {
        // SplitMix64.
        let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    #[test]
    fn what_was_seen_is_found_and_little_else() {
        // 12 bits a key; the specification's table gives about 0.5 % false positives for 11.3 bits.
        let mut bloom = Bloom::new(10_000 * 12 / 8);
        (0..10_000).for_each(|key| bloom.insert(hash(key)));
        assert!((0..10_000).all(|key| bloom.may_hold(hash(key))));
        let wrong = (10_000..110_000)
            .filter(|key| bloom.may_hold(hash(*key)))
            .count();
        assert!(wrong < 1_000, "{wrong} of 100,000");
        assert!((0.3..0.6).contains(&bloom.fill()), "{}", bloom.fill());
    }

    #[test]
    fn filters_of_one_size_are_added_and_travel_as_bytes() {
        let (mut odd, mut even) = (Bloom::new(1024), Bloom::new(1024));
        (0..100).for_each(|key| match key % 2 {
            0 => even.insert(hash(key)),
            _ => odd.insert(hash(key)),
        });
        assert!(odd.add(&even));
        assert!((0..100).all(|key| odd.may_hold(hash(key))));
        assert!(!odd.add(&Bloom::new(2048)));
        assert_eq!(Bloom::from_bytes(&odd.to_bytes()), Some(odd));
        assert_eq!(Bloom::from_bytes(&[]), None);
        assert_eq!(Bloom::from_bytes(&[0; 33]), None);
    }
}
