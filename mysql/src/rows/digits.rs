//! Digits with leading zeros.

/// Appends `value` (under 100) as two digits.
pub(super) fn put_2(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&[b'0' + (value / 10 % 10) as u8, b'0' + (value % 10) as u8]);
}

/// Appends the last `count` digits of `value`.
pub(super) fn put_padded(out: &mut Vec<u8>, value: u32, count: usize) {
    let start = out.len();
    out.resize(start + count, b'0');
    let mut rest = value;
    for place in out[start..].iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

/// Appends an integer.
pub(super) fn put_integer<I: itoa::Integer>(out: &mut Vec<u8>, value: I) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits() {
        let mut out = vec![];
        put_2(&mut out, 7);
        out.push(b' ');
        put_padded(&mut out, 42, 6);
        out.push(b' ');
        put_integer(&mut out, i64::MIN);
        assert_eq!(out, b"07 000042 -9223372036854775808");
    }
}
