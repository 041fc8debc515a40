//! Blobs of type `deletion-vector-v1` (the Puffin specification, "deletion-vector-v1 blob type").
//!
//! ```text
//!   4  length of magic and vector together, big-endian
//!   4  magic D1 D3 39 64
//!   …  vector ┬ 8  number of bitmaps, little-endian
//!             └ for each, by ascending key:  4 key (high half of the positions), then a 32-bit Roaring bitmap
//!   4  CRC-32 of magic and vector, big-endian
//! ```

use roaring::{RoaringBitmap, RoaringTreemap};

const MAGIC: [u8; 4] = [0xd1, 0xd3, 0x39, 0x64];

/// Positions are counted in 63 bits, so the high half of one has 31.
const MAX_KEY: u32 = i32::MAX as u32;

/// What is wrong with a blob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum VectorError {
    #[error("the blob has {0} bytes, fewer than a deletion vector takes")]
    TooShort(usize),
    #[error("its length field says {said} bytes, the blob has {has}")]
    Length { said: u32, has: usize },
    #[error("it does not begin as a deletion vector does")]
    Magic,
    #[error("its checksum is {said:08x}, that of its bytes {is:08x}")]
    Checksum { said: u32, is: u32 },
    #[error("it says to hold {0} bitmaps, more than fit into it")]
    Count(u64),
    #[error("the keys of its bitmaps are not in order")]
    KeyOrder,
    #[error("bitmap {index} cannot be read: {reason}")]
    Bitmap { index: u64, reason: String },
    #[error("{0} bytes follow its last bitmap")]
    Trailing(usize),
}

/// The positions in a blob. It takes no more memory than some small multiple of the blob's size.
pub(crate) fn parse(blob: &[u8]) -> Result<RoaringTreemap, VectorError> {
    let too_short = || VectorError::TooShort(blob.len());
    let (length, rest) = blob.split_first_chunk::<4>().ok_or_else(too_short)?;
    let (body, checksum) = rest.split_last_chunk::<4>().ok_or_else(too_short)?;
    let said = u32::from_be_bytes(*length);
    if said as usize != body.len() {
        return Err(VectorError::Length {
            said,
            has: blob.len(),
        });
    }
    let (magic, vector) = body.split_first_chunk::<4>().ok_or_else(too_short)?;
    if *magic != MAGIC {
        return Err(VectorError::Magic);
    }
    let (said, is) = (u32::from_be_bytes(*checksum), crc32fast::hash(body));
    if said != is {
        return Err(VectorError::Checksum { said, is });
    }
    bitmaps(vector).map(RoaringTreemap::from_bitmaps)
}

/// The 64-bit bitmap's parts, each 32 bits wide.
fn bitmaps(vector: &[u8]) -> Result<Vec<(u32, RoaringBitmap)>, VectorError> {
    let (count, mut rest) = vector
        .split_first_chunk::<8>()
        .ok_or(VectorError::TooShort(vector.len()))?;
    let count = u64::from_le_bytes(*count);
    // A key and an empty bitmap take twelve bytes.
    if count > (rest.len() / 12) as u64 {
        return Err(VectorError::Count(count));
    }
    let mut parts: Vec<(u32, RoaringBitmap)> = Vec::new();
    for index in 0..count {
        let bad = |reason: String| VectorError::Bitmap { index, reason };
        let (key, after) = rest
            .split_first_chunk::<4>()
            .ok_or_else(|| bad("the blob ends before it".to_string()))?;
        let key = u32::from_le_bytes(*key);
        if key > MAX_KEY || parts.last().is_some_and(|(last, _)| *last >= key) {
            return Err(VectorError::KeyOrder);
        }
        rest = after;
        let bitmap = RoaringBitmap::deserialize_from(&mut rest).map_err(|e| bad(e.to_string()))?;
        parts.push((key, bitmap));
    }
    match rest.len() {
        0 => Ok(parts),
        left => Err(VectorError::Trailing(left)),
    }
}

/// A blob of those positions, for tests.
#[cfg(test)]
pub(crate) fn blob(positions: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let positions: RoaringTreemap = positions.into_iter().collect();
    let mut vector = Vec::new();
    positions
        .serialize_into(&mut vector)
        .expect("memory takes it");
    framed(&vector)
}

#[cfg(test)]
fn framed(vector: &[u8]) -> Vec<u8> {
    let body = [MAGIC.as_slice(), vector].concat();
    let length = u32::try_from(body.len()).expect("it is small");
    let checksum = crc32fast::hash(&body);
    [
        length.to_be_bytes().as_slice(),
        &body,
        &checksum.to_be_bytes(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_vector_put_together_by_hand_is_read() {
        // One bitmap of key 0: cookie without runs (12346), one container of key 0 and two values at offset 16.
        let vector = [
            [1, 0, 0, 0, 0, 0, 0, 0].as_slice(),
            &[0, 0, 0, 0],
            &[0x3a, 0x30, 0, 0, 1, 0, 0, 0],
            &[0, 0, 1, 0],
            &[16, 0, 0, 0],
            &[3, 0, 9, 0],
        ]
        .concat();
        let positions = parse(&framed(&vector)).expect("a vector");
        assert_eq!(positions.iter().collect::<Vec<_>>(), [3, 9]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let good = blob([1, 5, 1 << 33]);
        let changed = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] ^= value;
            parse(&bytes)
        };
        assert_eq!(
            parse(&good).map(|p| p.iter().collect::<Vec<_>>()),
            Ok(vec![1, 5, 1 << 33])
        );
        assert!(matches!(changed(0, 1), Err(VectorError::Length { .. })));
        assert_eq!(changed(4, 1), Err(VectorError::Magic));
        assert!(matches!(changed(20, 1), Err(VectorError::Checksum { .. })));
        assert_eq!(parse(&good[..7]), Err(VectorError::TooShort(7)));
        let count = |n: u64| parse(&framed(&n.to_le_bytes()));
        assert_eq!(count(0).map(|p| p.len()), Ok(0));
        assert_eq!(count(u64::MAX), Err(VectorError::Count(u64::MAX)));
        let mut trailing = good[8..good.len() - 4].to_vec();
        trailing.push(0);
        assert_eq!(parse(&framed(&trailing)), Err(VectorError::Trailing(1)));
        // The same key twice.
        let empty = [0, 0, 0, 0, 0x3a, 0x30, 0, 0, 0, 0, 0, 0];
        let twice = [2u64.to_le_bytes().as_slice(), &empty, &empty].concat();
        assert_eq!(parse(&framed(&twice)), Err(VectorError::KeyOrder));
    }

    proptest! {
        #[test]
        fn positions_come_back(positions in prop::collection::btree_set(0u64..1 << 34, 0..200)) {
            let read = parse(&blob(positions.iter().copied())).expect("a vector");
            prop_assert_eq!(read.iter().collect::<Vec<_>>(), positions.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse(&bytes);
            // Past the frame, too.
            let _ = parse(&framed(&bytes));
        }

        #[test]
        fn a_flipped_bit_does_no_harm(
            positions in prop::collection::btree_set(0u64..1 << 20, 1..300),
            at in any::<prop::sample::Index>(),
            bit in 0u8..8,
        ) {
            let good = blob(positions);
            let mut vector = good[8..good.len() - 4].to_vec();
            let at = at.index(vector.len());
            vector[at] ^= 1 << bit;
            if let Ok(positions) = parse(&framed(&vector)) {
                // What is read is a set that can be walked.
                prop_assert!(positions.iter().take(1000).count() <= 1000);
            }
            let mut unframed = good;
            let at = at % unframed.len();
            unframed[at] ^= 1 << bit;
            prop_assert!(parse(&unframed).is_err());
        }
    }
}
