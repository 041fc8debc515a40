//! Reads the fields of one packet's payload, never past its end.

use thiserror::Error;

/// A payload that is not what its place in the conversation demands.
#[derive(Debug, Error, PartialEq, Eq, Clone, Copy)]
#[error("malformed packet: {0}")]
pub(crate) struct Malformed(pub &'static str);

/// A cursor over one payload. Every read is checked against what is left.
#[derive(Debug, Clone)]
pub(crate) struct Parser<'a> {
    rest: &'a [u8],
}

impl<'a> Parser<'a> {
    pub fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Everything not read yet.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        if count > self.rest.len() {
            return Err(Malformed("it ends in the middle of a field"));
        }
        let (head, tail) = self.rest.split_at(count);
        self.rest = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A length-encoded integer; the NULL marker 0xfb and 0xff are no integers.
    pub fn lenenc_int(&mut self) -> Result<u64, Malformed> {
        match self.u8()? {
            small @ 0..=0xfa => Ok(u64::from(small)),
            0xfc => Ok(u64::from(self.u16()?)),
            0xfd => {
                let [a, b, c] = self.array()?;
                Ok(u64::from(u32::from_le_bytes([a, b, c, 0])))
            }
            0xfe => self.u64(),
            _ => Err(Malformed("a length that is no length")),
        }
    }

    /// A string with a length-encoded length.
    pub fn lenenc_bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let count = self.lenenc_int()?;
        let count = usize::try_from(count).map_err(|_| Malformed("a length past its end"))?;
        self.bytes(count)
    }

    /// A string up to a zero byte, which is consumed and not returned. A missing zero byte at the
    /// end of the payload is forgiven: several clients leave it out of a last field.
    pub fn nul_terminated(&mut self) -> &'a [u8] {
        match self.rest.iter().position(|byte| *byte == 0) {
            Some(end) => {
                let head = &self.rest[..end];
                self.rest = &self.rest[end + 1..];
                head
            }
            None => std::mem::take(&mut self.rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_encoded_integers_at_their_edges() {
        let cases: [(&[u8], u64); 9] = [
            (&[0x00], 0),
            (&[0xfa], 250),
            (&[0xfc, 0xfb, 0x00], 251),
            (&[0xfc, 0xff, 0xff], 65_535),
            (&[0xfd, 0x00, 0x00, 0x01], 65_536),
            (&[0xfd, 0xff, 0xff, 0xff], 16_777_215),
            (&[0xfe, 0, 0, 0, 1, 0, 0, 0, 0], 16_777_216),
            (
                &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
                u64::MAX,
            ),
            (&[0xfc, 0x01, 0x00], 1),
        ];
        for (bytes, expected) in cases {
            assert_eq!(Parser::new(bytes).lenenc_int(), Ok(expected), "{bytes:x?}");
        }
    }

    #[test]
    fn what_is_cut_short_is_an_error() {
        let cases: [&[u8]; 7] = [
            &[],
            &[0xfb],
            &[0xff],
            &[0xfc, 1],
            &[0xfd, 1, 2],
            &[0xfe, 1, 2, 3],
            &[0xfe],
        ];
        for bytes in cases {
            assert!(Parser::new(bytes).lenenc_int().is_err(), "{bytes:x?}");
        }
        assert!(Parser::new(&[5, b'a']).lenenc_bytes().is_err());
        // A claim of 2^64-1 bytes must not be believed.
        assert!(
            Parser::new(&[0xfe, 255, 255, 255, 255, 255, 255, 255, 255])
                .lenenc_bytes()
                .is_err()
        );
    }

    #[test]
    fn strings() {
        let mut parser = Parser::new(b"root\0\x02dbtail");
        assert_eq!(parser.nul_terminated(), b"root");
        assert_eq!(parser.lenenc_bytes(), Ok(&b"db"[..]));
        assert_eq!(parser.nul_terminated(), b"tail");
        assert!(parser.is_empty());
    }
}
