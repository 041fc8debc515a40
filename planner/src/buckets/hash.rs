//! Iceberg's bucket hash: the 32-bit Murmur3 of a value's bytes (specification, Appendix B).

/// The hash of integers of either width, and of what is stored as one.
pub(super) fn hash_long(value: i64) -> u32 {
    let (low, high) = (value as u32, (value as u64 >> 32) as u32);
    finish(mix(mix(0, low), high), 8)
}

/// The hash of text and binary.
pub(super) fn hash_bytes(bytes: &[u8]) -> u32 {
    let mut blocks = bytes.chunks_exact(4);
    let mut hash = 0;
    for block in &mut blocks {
        hash = mix(
            hash,
            u32::from_le_bytes([block[0], block[1], block[2], block[3]]),
        );
    }
    let tail = blocks.remainder();
    if !tail.is_empty() {
        let mut last = [0; 4];
        last[..tail.len()].copy_from_slice(tail);
        hash ^= scramble(u32::from_le_bytes(last));
    }
    finish(hash, bytes.len() as u32)
}

/// The hash of a decimal: of its unscaled value, in as few bytes as two's complement needs, the highest first.
pub(super) fn hash_decimal(unscaled: i128) -> u32 {
    let bytes = unscaled.to_be_bytes();
    let sign = if unscaled < 0 { 0xff } else { 0x00 };
    let mut start = 0;
    // The first byte left must still tell the sign.
    while start < 15 && bytes[start] == sign && (bytes[start + 1] ^ sign) & 0x80 == 0 {
        start += 1;
    }
    hash_bytes(&bytes[start..])
}

/// The bucket of a hash among `count`.
pub(super) fn bucket(hash: u32, count: u32) -> u32 {
    (hash & i32::MAX as u32) % count.max(1)
}

fn scramble(block: u32) -> u32 {
    block
        .wrapping_mul(0xcc9e_2d51)
        .rotate_left(15)
        .wrapping_mul(0x1b87_3593)
}

fn mix(hash: u32, block: u32) -> u32 {
    (hash ^ scramble(block))
        .rotate_left(13)
        .wrapping_mul(5)
        .wrapping_add(0xe654_6b64)
}

fn finish(hash: u32, length: u32) -> u32 {
    let mut hash = hash ^ length;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of the specification's Appendix B.
    #[test]
    fn hashes_are_those_of_the_specification() {
        let cases: [(u32, i32); 9] = [
            (hash_long(34), 2017239379),
            (hash_long(17486), -653330422),          // 2017-11-16
            (hash_long(81_068_000_000), -662762989), // 22:31:08
            (hash_long(1_510_871_468_000_000), -2047944441), // 2017-11-16T22:31:08
            (hash_long(1_510_871_468_000_001), -1207196810), // and one microsecond
            (hash_bytes("iceberg".as_bytes()), 1210000089),
            (hash_bytes(&[0, 1, 2, 3]), -188683207),
            (hash_decimal(1420), -500754589), // 14.20
            (
                hash_bytes(&[
                    0xf7, 0x9c, 0x3e, 0x09, 0x67, 0x7c, 0x4b, 0xbd, 0xa4, 0x79, 0x3f, 0x34, 0x9c,
                    0xb7, 0x85, 0xe7,
                ]),
                1488055340,
            ),
        ];
        for (hash, expected) in cases {
            assert_eq!(hash as i32, expected);
        }
    }

    #[test]
    fn a_decimal_is_hashed_in_the_fewest_bytes() {
        for (value, bytes) in [
            (0, vec![0x00]),
            (127, vec![0x7f]),
            (128, vec![0x00, 0x80]),
            (-1, vec![0xff]),
            (-128, vec![0x80]),
            (-129, vec![0xff, 0x7f]),
        ] {
            assert_eq!(hash_decimal(value), hash_bytes(&bytes), "{value}");
        }
    }

    #[test]
    fn the_sign_of_a_hash_is_left_out() {
        // -653330422 without its sign bit is 1494153226.
        assert_eq!(bucket(hash_long(17486), 16), 1494153226 % 16);
    }
}
