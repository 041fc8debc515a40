//! The bytes of one stream, decompressed a chunk at a time.
//!
//! A compressed stream is a sequence of chunks, each with three bytes before it: its length and whether it is stored as
//! it is (ORC specification, "Compression").

use bytes::Bytes;

use crate::formats::compression::Codec;
use crate::formats::error::FormatError;
use crate::formats::file_format::FileFormat;
use crate::formats::varint::{unzigzag, varint};

/// How a file's streams and footers are compressed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compression {
    pub(super) codec: Codec,
    /// No chunk holds more than this.
    pub(super) chunk_bytes: usize,
}

/// A reader that knows its end, and grows only by what is there.
#[derive(Debug, Default)]
pub(super) struct Stream {
    rest: Bytes,
    compression: Option<Compression>,
    chunk: Bytes,
    at: usize,
}

pub(super) fn damaged(reason: impl Into<String>) -> FormatError {
    FormatError::damaged(FileFormat::Orc, reason)
}

fn ended() -> FormatError {
    damaged("a stream ends early")
}

impl Stream {
    pub(super) fn new(bytes: Bytes, compression: Option<Compression>) -> Self {
        match compression {
            None => Self {
                chunk: bytes,
                ..Self::default()
            },
            Some(_) => Self {
                rest: bytes,
                compression,
                ..Self::default()
            },
        }
    }

    /// The bytes that are left of this chunk, which are none only at the end.
    fn available(&mut self) -> Result<&[u8], FormatError> {
        while self.at == self.chunk.len() && !self.rest.is_empty() {
            let Some(compression) = self.compression else {
                break;
            };
            if self.rest.len() < 3 {
                return Err(ended());
            }
            let header = self.rest.split_to(3);
            let header = u32::from_le_bytes([header[0], header[1], header[2], 0]);
            let (stored, length) = (header & 1 == 1, (header >> 1) as usize);
            if length > self.rest.len() {
                return Err(damaged("a chunk is longer than its stream"));
            }
            let bytes = self.rest.split_to(length);
            self.at = 0;
            self.chunk = if stored {
                bytes
            } else {
                let limit = compression.chunk_bytes;
                let plain = compression
                    .codec
                    .decompress(FileFormat::Orc, &bytes, limit)?;
                Bytes::from(plain)
            };
        }
        Ok(&self.chunk[self.at..])
    }

    pub(super) fn byte(&mut self) -> Result<u8, FormatError> {
        let byte = *self.available()?.first().ok_or_else(ended)?;
        self.at += 1;
        Ok(byte)
    }

    /// Fills `out`.
    pub(super) fn exact(&mut self, mut out: &mut [u8]) -> Result<(), FormatError> {
        while !out.is_empty() {
            let available = self.available()?;
            let length = available.len().min(out.len());
            if length == 0 {
                return Err(ended());
            }
            let (now, later) = out.split_at_mut(length);
            now.copy_from_slice(&available[..length]);
            self.at += length;
            out = later;
        }
        Ok(())
    }

    /// Appends `length` bytes to `out`.
    pub(super) fn append(
        &mut self,
        mut length: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        while length > 0 {
            let available = self.available()?;
            let now = available.len().min(length);
            if now == 0 {
                return Err(ended());
            }
            out.extend_from_slice(&available[..now]);
            self.at += now;
            length -= now;
        }
        Ok(())
    }

    /// All that is left, if it is no more than `limit`.
    pub(super) fn all(mut self, limit: usize) -> Result<Vec<u8>, FormatError> {
        let mut out = Vec::new();
        loop {
            let available = self.available()?;
            let length = available.len();
            if length == 0 {
                return Ok(out);
            }
            if out.len() + length > limit {
                return Err(damaged(format!("a footer holds more than {limit} bytes")));
            }
            out.extend_from_slice(available);
            self.at += length;
        }
    }

    /// An unsigned number in groups of seven bits, the lowest first.
    pub(super) fn varint(&mut self) -> Result<u64, FormatError> {
        varint(|| self.byte())?.ok_or_else(|| damaged("a number has more than 64 bits"))
    }

    pub(super) fn signed_varint(&mut self) -> Result<i64, FormatError> {
        self.varint().map(unzigzag)
    }

    /// A signed number of up to 128 bits.
    pub(super) fn wide_varint(&mut self) -> Result<i128, FormatError> {
        let mut value = 0u128;
        for shift in (0..133).step_by(7) {
            let byte = self.byte()?;
            if shift == 126 && byte > 3 {
                break;
            }
            value |= u128::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((value >> 1) as i128 ^ -((value & 1) as i128));
            }
        }
        Err(damaged("a decimal has more than 128 bits"))
    }
}
