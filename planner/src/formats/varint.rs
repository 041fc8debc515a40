//! Numbers in groups of seven bits, the lowest first, as Avro and ORC both write them.

use super::error::FormatError;

/// An unsigned number; `None` if it has more than 64 bits.
pub(super) fn varint(
    mut byte: impl FnMut() -> Result<u8, FormatError>,
) -> Result<Option<u64>, FormatError> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let byte = byte()?;
        if shift == 63 && byte > 1 {
            break;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// Signed numbers are kept with the sign in the lowest bit.
pub(super) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
