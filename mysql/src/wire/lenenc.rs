//! Length-encoded integers and strings, as they are written.

/// Appends a length-encoded integer.
pub(crate) fn put_int(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=0xfa => out.push(value as u8),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&(value as u16).to_le_bytes());
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&(value as u32).to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

/// Appends a string with its length.
pub(crate) fn put_bytes(out: &mut Vec<u8>, value: &[u8]) {
    put_int(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Appends what `write` appends, with its length in front.
///
/// Nearly every value is shorter than 251 bytes, so one byte is kept free for the length and the
/// value is written once, in place; a longer one is moved up to make room.
pub(crate) fn put_with<E>(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    out.push(0);
    write(out)?;
    let length = out.len() - start - 1;
    if length <= 0xfa {
        out[start] = length as u8;
    } else {
        let mut prefix = Vec::with_capacity(9);
        put_int(&mut prefix, length as u64);
        out.splice(start..start + 1, prefix);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parser::Parser;

    #[test]
    fn integers_at_their_edges() {
        let cases: [(u64, &[u8]); 8] = [
            (0, &[0]),
            (250, &[0xfa]),
            (251, &[0xfc, 0xfb, 0]),
            (65_535, &[0xfc, 0xff, 0xff]),
            (65_536, &[0xfd, 0, 0, 1]),
            (16_777_215, &[0xfd, 0xff, 0xff, 0xff]),
            (16_777_216, &[0xfe, 0, 0, 0, 1, 0, 0, 0, 0]),
            (u64::MAX, &[0xfe, 255, 255, 255, 255, 255, 255, 255, 255]),
        ];
        for (value, expected) in cases {
            let mut out = vec![];
            put_int(&mut out, value);
            assert_eq!(out, expected, "{value}");
        }
    }

    #[test]
    fn a_value_written_in_place_has_the_right_length() {
        for length in [0, 1, 250, 251, 65_535, 65_536, 70_000] {
            let value = vec![b'x'; length];
            let mut out = vec![b'.'];
            put_with::<()>(&mut out, |out| {
                out.extend_from_slice(&value);
                Ok(())
            })
            .unwrap();
            out.push(b'.');
            let mut parser = Parser::new(&out[1..]);
            assert_eq!(parser.lenenc_bytes(), Ok(&value[..]), "{length}");
            assert_eq!(parser.rest(), b".");
        }
    }
}
