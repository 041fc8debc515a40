//! Header and blocks of a file (specification, "Object Container Files").
//!
//! ```text
//!   Obj 1 │ schema, codec, … │ marker │ count  bytes  records … marker │ count  bytes  records … marker │ …
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::cursor::{Cursor, damaged};
use crate::formats::FileFormat;
use crate::formats::compression::Codec;
use crate::formats::error::FormatError;
use crate::formats::file_bytes::FileBytes;

const MAGIC: &[u8] = b"Obj\x01";
const MARKER_BYTES: usize = 16;

/// What is read at once.
const READ_BYTES: u64 = 4 << 20;

/// What is read first in the hope that it holds the header.
const HEADER_BYTES: u64 = 64 << 10;

/// No schema is larger.
const MAX_HEADER_BYTES: u64 = 64 << 20;

/// Writers end a block after some kilobytes.
const MAX_BLOCK_BYTES: usize = 512 << 20;

/// Two numbers of 64 bits.
const MAX_BLOCK_START: usize = 20;

/// The records of one block.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) count: u64,
    pub(super) records: Bytes,
}

/// Reads a file from its start to its end.
pub(super) struct Container {
    bytes: Arc<dyn FileBytes>,
    size: u64,
    codec: Option<Codec>,
    marker: [u8; MARKER_BYTES],
    /// What was read and not yet taken, and where in the file it ends.
    buffer: Bytes,
    end: u64,
}

impl Container {
    /// Reads the header, and returns the text of the schema too.
    pub(super) async fn open(
        bytes: Arc<dyn FileBytes>,
        size: u64,
    ) -> Result<(Self, String), FormatError> {
        let mut wanted = HEADER_BYTES;
        loop {
            let end = wanted.min(size);
            let start = bytes.read(0..end).await?;
            if !start.starts_with(MAGIC) {
                return Err(damaged("it does not start as one"));
            }
            match Header::parse(&start) {
                Ok(header) => {
                    let container = Self {
                        codec: header.codec()?,
                        marker: header.marker,
                        buffer: start.slice(header.length..),
                        bytes,
                        size,
                        end,
                    };
                    return Ok((container, header.schema()?));
                }
                // It may be that the header is longer than what was read.
                Err(error) if end == size || wanted >= MAX_HEADER_BYTES => return Err(error),
                Err(_) => wanted *= 8,
            }
        }
    }

    /// The next block; its records stay as they are in the file if they are not wanted.
    pub(super) async fn next(&mut self, records: bool) -> Result<Option<Block>, FormatError> {
        if self.buffer.is_empty() && self.end == self.size {
            return Ok(None);
        }
        self.fill(MAX_BLOCK_START).await?;
        let mut cursor = Cursor::new(&self.buffer);
        let (count, length) = (cursor.length()?, cursor.length()?);
        let start = cursor.position();
        if length > MAX_BLOCK_BYTES {
            return Err(FormatError::unsupported(
                FileFormat::Avro,
                format!("a block of {length} bytes"),
            ));
        }
        let whole = start + length + MARKER_BYTES;
        self.fill(whole).await?;
        if self.buffer.len() < whole {
            return Err(damaged("its last block is cut off"));
        }
        let block = self.buffer.split_to(whole);
        if block[start + length..] != self.marker {
            return Err(damaged("a block does not end with the file's marker"));
        }
        let written = block.slice(start..start + length);
        let records = match self.codec {
            Some(codec) if records => self.decompress(codec, &written)?,
            _ => written,
        };
        Ok(Some(Block {
            count: count as u64,
            records,
        }))
    }

    fn decompress(&self, codec: Codec, written: &[u8]) -> Result<Bytes, FormatError> {
        let decompress = |bytes: &[u8]| codec.decompress(FileFormat::Avro, bytes, MAX_BLOCK_BYTES);
        if codec != Codec::Snappy {
            return decompress(written).map(Bytes::from);
        }
        // Snappy blocks have a checksum of what they hold after them.
        let Some((written, checksum)) = written.split_last_chunk::<4>() else {
            return Err(damaged("a snappy block has no checksum"));
        };
        let records = decompress(written)?;
        if crc32fast::hash(&records) != u32::from_be_bytes(*checksum) {
            return Err(damaged("a block does not match its checksum"));
        }
        Ok(Bytes::from(records))
    }

    /// Reads on until so many bytes are there, or the file ends.
    async fn fill(&mut self, wanted: usize) -> Result<(), FormatError> {
        let Some(missing) = wanted.checked_sub(self.buffer.len()) else {
            return Ok(());
        };
        let end = self
            .end
            .saturating_add(READ_BYTES.max(missing as u64))
            .min(self.size);
        if missing == 0 || end == self.end {
            return Ok(());
        }
        let more = self.bytes.read(self.end..end).await?;
        if more.len() as u64 != end - self.end {
            return Err(damaged("it is shorter than it was"));
        }
        self.end = end;
        self.buffer = match self.buffer.is_empty() {
            true => more,
            false => {
                let mut both = BytesMut::with_capacity(self.buffer.len() + more.len());
                both.extend_from_slice(&self.buffer);
                both.extend_from_slice(&more);
                both.freeze()
            }
        };
        Ok(())
    }
}

struct Header {
    metadata: HashMap<String, Vec<u8>>,
    marker: [u8; MARKER_BYTES],
    length: usize,
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let cut_off = || damaged("its header is cut off");
        let mut cursor = Cursor::new(bytes);
        let mut read = || {
            cursor.take(MAGIC.len())?;
            let mut metadata = HashMap::new();
            while let Some(items) = cursor.items(2)? {
                for _ in 0..items.count {
                    let key = String::from_utf8_lossy(cursor.bytes()?).into_owned();
                    metadata.insert(key, cursor.bytes()?.to_vec());
                }
            }
            let marker = cursor.array()?;
            Ok::<_, FormatError>((metadata, marker))
        };
        let (metadata, marker) = read().map_err(|_| cut_off())?;
        Ok(Self {
            metadata,
            marker,
            length: cursor.position(),
        })
    }

    fn schema(self) -> Result<String, FormatError> {
        let mut metadata = self.metadata;
        metadata
            .remove("avro.schema")
            .and_then(|schema| String::from_utf8(schema).ok())
            .ok_or_else(|| damaged("its header has no schema"))
    }

    fn codec(&self) -> Result<Option<Codec>, FormatError> {
        let Some(name) = self.metadata.get("avro.codec") else {
            return Ok(None);
        };
        Ok(Some(match name.as_slice() {
            b"null" => return Ok(None),
            b"deflate" => Codec::Deflate,
            b"snappy" => Codec::Snappy,
            b"zstandard" => Codec::Zstd,
            b"bzip2" => Codec::Bzip2,
            b"xz" => Codec::Xz,
            other => {
                return Err(FormatError::unsupported(
                    FileFormat::Avro,
                    format!("the codec '{}'", String::from_utf8_lossy(other)),
                ));
            }
        }))
    }
}
