use std::io::{Read, Write};
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use foyer::{Code, Error, ErrorKind};
use object_store::ObjectMeta;
use object_store::path::Path;

/// Names one block: the bytes `index * block_bytes ..` of the object at `path` in the store `scope`.
///
/// The block size is part of the name, since a disk tier may outlive a change of the setting.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct BlockKey {
    pub object: ObjectKey,
    pub block_bytes: u64,
    pub index: u64,
}

/// Names one object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ObjectKey {
    pub scope: Arc<str>,
    pub path: Arc<str>,
}

/// What the store said about the object when the block was read. Every block carries it, so that a
/// block found on disk after a restart can be served without asking the store anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectIdentity {
    /// Bytes of the whole object.
    pub size: u64,
    pub last_modified: DateTime<Utc>,
    pub e_tag: Option<String>,
    pub version: Option<String>,
}

impl ObjectIdentity {
    pub fn of(meta: &ObjectMeta) -> Self {
        Self {
            size: meta.size,
            last_modified: meta.last_modified,
            e_tag: meta.e_tag.clone(),
            version: meta.version.clone(),
        }
    }

    pub fn meta(&self, location: &Path) -> ObjectMeta {
        ObjectMeta {
            location: location.clone(),
            last_modified: self.last_modified,
            size: self.size,
            e_tag: self.e_tag.clone(),
            version: self.version.clone(),
        }
    }
}

/// One block. Its bytes are an allocation of their own, so that evicting it frees them.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub object: Arc<ObjectIdentity>,
    pub bytes: Bytes,
}

impl Block {
    /// Bytes it takes in memory, with its bookkeeping.
    pub fn weight(key: &BlockKey, block: &Block) -> usize {
        block.bytes.len() + key.object.path.len() + 192
    }
}

/// First bytes of an encoded block: the layout's version.
const LAYOUT: u32 = 0x7461_0001;

impl Code for BlockKey {
    fn encode(&self, writer: &mut impl Write) -> foyer::Result<()> {
        put_text(writer, &self.object.scope)?;
        put_text(writer, &self.object.path)?;
        self.block_bytes.encode(writer)?;
        self.index.encode(writer)
    }

    fn decode(reader: &mut impl Read) -> foyer::Result<Self> {
        Ok(Self {
            object: ObjectKey {
                scope: take_text(reader)?.into(),
                path: take_text(reader)?.into(),
            },
            block_bytes: u64::decode(reader)?,
            index: u64::decode(reader)?,
        })
    }

    fn estimated_size(&self) -> usize {
        4 + self.object.scope.len() + 4 + self.object.path.len() + 8 + 8
    }
}

impl Code for Block {
    fn encode(&self, writer: &mut impl Write) -> foyer::Result<()> {
        LAYOUT.encode(writer)?;
        let object = &self.object;
        object.size.encode(writer)?;
        object.last_modified.timestamp().encode(writer)?;
        object
            .last_modified
            .timestamp_subsec_nanos()
            .encode(writer)?;
        put_optional_text(writer, object.e_tag.as_deref())?;
        put_optional_text(writer, object.version.as_deref())?;
        (self.bytes.len() as u64).encode(writer)?;
        writer.write_all(&self.bytes).map_err(Error::io_error)
    }

    fn decode(reader: &mut impl Read) -> foyer::Result<Self> {
        let layout = u32::decode(reader)?;
        if layout != LAYOUT {
            return Err(Error::new(ErrorKind::Parse, "a block of another layout"));
        }
        let size = u64::decode(reader)?;
        let (seconds, nanos) = (i64::decode(reader)?, u32::decode(reader)?);
        let last_modified = DateTime::from_timestamp(seconds, nanos)
            .ok_or_else(|| Error::new(ErrorKind::Parse, "a time out of range"))?;
        let e_tag = take_optional_text(reader)?;
        let version = take_optional_text(reader)?;
        let length = u64::decode(reader)?;
        let bytes = take_bytes(reader, length)?;
        Ok(Self {
            object: Arc::new(ObjectIdentity {
                size,
                last_modified,
                e_tag,
                version,
            }),
            bytes: bytes.into(),
        })
    }

    fn estimated_size(&self) -> usize {
        let text = |text: &Option<String>| 1 + text.as_ref().map_or(0, |text| 4 + text.len());
        4 + 8 + 12 + text(&self.object.e_tag) + text(&self.object.version) + 8 + self.bytes.len()
    }
}

fn put_text(writer: &mut impl Write, text: &str) -> foyer::Result<()> {
    (text.len() as u32).encode(writer)?;
    writer.write_all(text.as_bytes()).map_err(Error::io_error)
}

fn take_text(reader: &mut impl Read) -> foyer::Result<String> {
    let length = u32::decode(reader)?;
    let bytes = take_bytes(reader, u64::from(length))?;
    String::from_utf8(bytes)
        .map_err(|e| Error::new(ErrorKind::Parse, "text that is not UTF-8").with_source(e))
}

fn put_optional_text(writer: &mut impl Write, text: Option<&str>) -> foyer::Result<()> {
    text.is_some().encode(writer)?;
    text.map_or(Ok(()), |text| put_text(writer, text))
}

fn take_optional_text(reader: &mut impl Read) -> foyer::Result<Option<String>> {
    bool::decode(reader)?.then(|| take_text(reader)).transpose()
}

/// Reads exactly `length` bytes; a damaged length allocates no more than there is to read.
fn take_bytes(reader: &mut impl Read, length: u64) -> foyer::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(length.min(4 << 20) as usize);
    let read = reader
        .take(length)
        .read_to_end(&mut bytes)
        .map_err(Error::io_error)?;
    if read as u64 == length {
        Ok(bytes)
    } else {
        Err(Error::new(ErrorKind::OutOfRange, "a block that ends early"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Block {
        Block {
            object: Arc::new(ObjectIdentity {
                size: 10,
                last_modified: DateTime::from_timestamp(1_700_000_000, 123_456_789).unwrap(),
                e_tag: Some("\"abc\"".into()),
                version: None,
            }),
            bytes: Bytes::from_static(b"0123456789"),
        }
    }

    #[test]
    fn a_key_and_a_block_survive_the_disk() {
        let key = BlockKey {
            object: ObjectKey {
                scope: "s3://a".into(),
                path: "s3/b/ü.parquet".into(),
            },
            block_bytes: 1 << 20,
            index: 7,
        };
        let mut encoded = Vec::new();
        key.encode(&mut encoded).unwrap();
        assert_eq!(encoded.len(), key.estimated_size());
        assert_eq!(BlockKey::decode(&mut encoded.as_slice()).unwrap(), key);

        let block = block();
        let mut encoded = Vec::new();
        block.encode(&mut encoded).unwrap();
        assert_eq!(encoded.len(), block.estimated_size());
        let decoded = Block::decode(&mut encoded.as_slice()).unwrap();
        assert_eq!(decoded.object, block.object);
        assert_eq!(decoded.bytes, block.bytes);
    }

    #[test]
    fn damaged_blocks_are_errors() {
        let mut encoded = Vec::new();
        block().encode(&mut encoded).unwrap();
        for cut in 0..encoded.len() {
            assert!(Block::decode(&mut &encoded[..cut]).is_err(), "cut at {cut}");
        }
        encoded[0] ^= 1;
        assert!(Block::decode(&mut encoded.as_slice()).is_err());
    }
}
