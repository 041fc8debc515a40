//! Values as Avro writes them (specification, "Binary Encoding").

use crate::formats::FileFormat;
use crate::formats::error::FormatError;
use crate::formats::varint::{unzigzag, varint};

pub(super) fn damaged(reason: impl Into<String>) -> FormatError {
    FormatError::damaged(FileFormat::Avro, reason)
}

/// Reads values from bytes that are in memory.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    start: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            start: bytes.len(),
        }
    }

    /// How many bytes were read.
    pub(super) fn position(&self) -> usize {
        self.start - self.bytes.len()
    }

    pub(super) fn remaining(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], FormatError> {
        let (taken, rest) = self
            .bytes
            .split_at_checked(length)
            .ok_or_else(|| damaged("a value goes beyond its block"))?;
        self.bytes = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn byte(&mut self) -> Result<u8, FormatError> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn boolean(&mut self) -> Result<bool, FormatError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(damaged(format!("a boolean is {other}"))),
        }
    }

    pub(super) fn long(&mut self) -> Result<i64, FormatError> {
        varint(|| self.byte())?
            .map(unzigzag)
            .ok_or_else(|| damaged("a number has more than 64 bits"))
    }

    pub(super) fn int(&mut self) -> Result<i32, FormatError> {
        let value = self.long()?;
        i32::try_from(value).map_err(|_| damaged(format!("an int is {value}")))
    }

    /// A number that must not be negative.
    pub(super) fn length(&mut self) -> Result<usize, FormatError> {
        let value = self.long()?;
        usize::try_from(value).map_err(|_| damaged(format!("a length is {value}")))
    }

    /// Bytes or a string.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], FormatError> {
        let length = self.length()?;
        self.take(length)
    }

    /// How many items come next in an array or a map, and how many bytes they have if that is said. None at its end.
    pub(super) fn items(&mut self, item_bytes: usize) -> Result<Option<Items>, FormatError> {
        let count = self.long()?;
        if count == 0 {
            return Ok(None);
        }
        let bytes = match count < 0 {
            true => Some(self.length()?),
            false => None,
        };
        let count = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        // Items of no bytes could be without number.
        if item_bytes == 0
            || count
                .checked_mul(item_bytes)
                .is_none_or(|n| n > self.remaining())
        {
            return Err(damaged(format!("{count} items go beyond their block")));
        }
        Ok(Some(Items { count, bytes }))
    }
}

pub(super) struct Items {
    pub(super) count: usize,
    pub(super) bytes: Option<usize>,
}
