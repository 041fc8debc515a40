//! Bytes and bits in runs (ORC specification, "Byte Run Length Encoding", "Boolean Run Length Encoding").

use super::stream::Stream;
use crate::formats::error::FormatError;

/// A run of at least three equal bytes, or up to 128 that are written out.
#[derive(Debug)]
pub(super) struct ByteRuns {
    stream: Stream,
    left: usize,
    repeated: Option<u8>,
}

impl ByteRuns {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            left: 0,
            repeated: None,
        }
    }

    pub(super) fn next(&mut self) -> Result<u8, FormatError> {
        if self.left == 0 {
            let control = self.stream.byte()?;
            if control < 0x80 {
                self.left = usize::from(control) + 3;
                self.repeated = Some(self.stream.byte()?);
            } else {
                self.left = 0x100 - usize::from(control);
                self.repeated = None;
            }
        }
        self.left -= 1;
        match self.repeated {
            Some(byte) => Ok(byte),
            None => self.stream.byte(),
        }
    }
}

/// Bits in bytes in runs, the highest bit first.
#[derive(Debug)]
pub(super) struct BitRuns {
    bytes: ByteRuns,
    byte: u8,
    left: u8,
}

impl BitRuns {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            bytes: ByteRuns::new(stream),
            byte: 0,
            left: 0,
        }
    }

    pub(super) fn next(&mut self) -> Result<bool, FormatError> {
        if self.left == 0 {
            self.byte = self.bytes.next()?;
            self.left = 8;
        }
        self.left -= 1;
        Ok(self.byte >> self.left & 1 == 1)
    }
}
