//! Looks an Avro file over before it is decoded, and unpacks it.
//!
//! Avro's decoder believes what a file says of itself: that a block holds a terabyte once it is unpacked, that a list has
//! half a billion items. Here the blocks are unpacked into a bounded number of bytes, and every length and count is held
//! against the bytes that are there. What passes is decoded into memory of some small multiple of its size.
//!
//! ```text
//!   Obj 1 │ schema, codec, … │ marker │ count  bytes  packed … marker │ …
//!                     ▼
//!   Obj 1 │ schema, null, …  │ marker │ count  bytes  records … marker │ …
//! ```

use std::borrow::Cow;
use std::io::Read;

use serde_json::Value;

use crate::avro_schema::{AvroSchema, block_count, bytes, length, put_long, take};

pub(crate) const MAGIC: &[u8] = b"Obj\x01";
pub(crate) const MARKER_BYTES: usize = 16;

/// What an Avro file says of itself, by key, and what comes after it: the marker and the blocks.
pub(crate) type Header<'a> = (Vec<(&'a [u8], &'a [u8])>, &'a [u8]);

/// The header of an Avro file; an error is what is wrong with it.
pub(crate) fn header(file: &[u8]) -> Result<Header<'_>, String> {
    let mut rest = file.strip_prefix(MAGIC).ok_or("it is not an Avro file")?;
    let mut entries = Vec::new();
    loop {
        let count = block_count(&mut rest)?;
        if count == 0 {
            return Ok((entries, rest));
        }
        for _ in 0..count {
            entries.push((bytes(&mut rest)?, bytes(&mut rest)?));
        }
    }
}

/// The file, unpacked; an error is what is wrong with it. No more than `limit` bytes are unpacked.
pub(crate) fn checked(file: &[u8], limit: u64) -> Result<Cow<'_, [u8]>, String> {
    let (entries, mut rest) = header(file)?;
    let marker = take(&mut rest, MARKER_BYTES)?;
    let entry = |name: &[u8]| entries.iter().find(|(key, _)| *key == name);
    let (_, schema) = entry(b"avro.schema").ok_or("it has no schema")?;
    let schema: Value = serde_json::from_slice(schema).map_err(|e| format!("its schema: {e}"))?;
    let schema = AvroSchema::new(&schema)?;
    let codec = Codec::of(entry(b"avro.codec").map_or(b"null", |(_, codec)| codec))?;

    let mut unpacked = MAGIC.to_vec();
    if codec != Codec::Null {
        put_long(&mut unpacked, entries.len());
        for (key, value) in &entries {
            let value = if *key == b"avro.codec" {
                b"null"
            } else {
                *value
            };
            for part in [*key, value] {
                put_long(&mut unpacked, part.len());
                unpacked.extend_from_slice(part);
            }
        }
        put_long(&mut unpacked, 0);
        unpacked.extend_from_slice(marker);
    }
    while !rest.is_empty() {
        let count = length(&mut rest)?;
        let packed = bytes(&mut rest)?;
        if take(&mut rest, MARKER_BYTES)? != marker {
            return Err("a block does not end with the file's marker".to_string());
        }
        let left = limit.saturating_sub(unpacked.len() as u64);
        let records = codec.unpack(packed, left)?;
        let mut unread = records.as_ref();
        for _ in 0..count {
            // What takes no bytes cannot be there any number of times.
            let before = unread.len();
            schema.skip(&schema.root, &mut unread, 0)?;
            if unread.len() == before && count > records.len() {
                return Err(format!(
                    "a block of {} bytes says to have {count} records",
                    records.len()
                ));
            }
        }
        if !unread.is_empty() {
            return Err(format!(
                "{} bytes follow the records of a block",
                unread.len()
            ));
        }
        if codec != Codec::Null {
            put_long(&mut unpacked, count);
            put_long(&mut unpacked, records.len());
            unpacked.extend_from_slice(&records);
            unpacked.extend_from_slice(marker);
        }
    }
    Ok(match codec {
        Codec::Null => Cow::Borrowed(file),
        _ => Cow::Owned(unpacked),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Codec {
    Null,
    Deflate,
    Snappy,
    Zstandard,
}

impl Codec {
    fn of(name: &[u8]) -> Result<Self, String> {
        Ok(match name {
            b"null" => Self::Null,
            b"deflate" => Self::Deflate,
            b"snappy" => Self::Snappy,
            b"zstandard" => Self::Zstandard,
            other => {
                let name = String::from_utf8_lossy(&other[..other.len().min(40)]);
                return Err(format!("its codec is '{name}'"));
            }
        })
    }

    fn unpack(self, packed: &[u8], limit: u64) -> Result<Cow<'_, [u8]>, String> {
        let failed = |e: &dyn std::fmt::Display| format!("a block cannot be unpacked: {e}");
        let unpacked = match self {
            Self::Null => return Ok(Cow::Borrowed(packed)),
            Self::Deflate => bounded(flate2::read::DeflateDecoder::new(packed), limit),
            Self::Zstandard => {
                zstd::Decoder::with_buffer(packed).and_then(|reader| bounded(reader, limit))
            }
            Self::Snappy => {
                // A checksum follows, which is the decoder's to look at.
                let packed = packed
                    .split_last_chunk::<4>()
                    .ok_or("a block is cut off")?
                    .0;
                let length = snap::raw::decompress_len(packed).map_err(|e| failed(&e))?;
                if length as u64 > limit {
                    return Err(too_large(limit));
                }
                snap::raw::Decoder::new()
                    .decompress_vec(packed)
                    .map_err(std::io::Error::other)
            }
        };
        let unpacked = unpacked.map_err(|e| failed(&e))?;
        if unpacked.len() as u64 > limit {
            return Err(too_large(limit));
        }
        Ok(Cow::Owned(unpacked))
    }
}

fn too_large(limit: u64) -> String {
    format!("a block unpacks to more than {limit} bytes")
}

/// All that the reader yields, but no more than a byte over the limit.
fn bounded(reader: impl Read, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    reader
        .take(limit.saturating_add(1))
        .read_to_end(&mut unpacked)?;
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const SCHEMA: &str = r#"{"type": "record", "name": "r", "fields": [
        {"name": "n", "type": ["null", "long"]},
        {"name": "f", "type": {"type": "fixed", "name": "two", "size": 2}},
        {"name": "g", "type": "two"},
        {"name": "l", "type": {"type": "array", "items": "string"}},
        {"name": "m", "type": {"type": "map", "values": "boolean"}}]}"#;

    /// A file of one block.
    fn file(codec: &str, count: usize, block: &[u8]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        put_long(&mut file, 2);
        for part in ["avro.schema", SCHEMA, "avro.codec", codec] {
            put_long(&mut file, part.len());
            file.extend_from_slice(part.as_bytes());
        }
        put_long(&mut file, 0);
        let marker = [7; MARKER_BYTES];
        file.extend_from_slice(&marker);
        put_long(&mut file, count);
        put_long(&mut file, block.len());
        file.extend_from_slice(block);
        file.extend_from_slice(&marker);
        file
    }

    /// n: 5; f: ab, g: cd; l: ["x"]; m: {"k": true}, its size told.
    const RECORD: &[u8] = &[
        2, 10, b'a', b'b', b'c', b'd', 2, 2, b'x', 0, 1, 6, 2, b'k', 1, 0,
    ];

    #[test]
    fn a_file_is_looked_over_and_unpacked() {
        let two = [RECORD, RECORD].concat();
        let plain = file("null", 2, &two);
        assert_eq!(checked(&plain, 1000).as_deref(), Ok(plain.as_slice()));
        let mut encoder =
            flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&two).expect("it is packed");
        let packed = file("deflate", 2, &encoder.finish().expect("it is packed"));
        assert_eq!(checked(&packed, 1000).as_deref(), Ok(plain.as_slice()));
        let packed = file(
            "zstandard",
            2,
            &zstd::encode_all(two.as_slice(), 1).expect("it is packed"),
        );
        assert_eq!(checked(&packed, 1000).as_deref(), Ok(plain.as_slice()));
    }

    #[test]
    fn what_claims_to_be_more_than_it_is_is_refused() {
        let error = |file: &[u8]| checked(file, 100_000).expect_err("it is refused");
        // A list of 2^29 items.
        let huge = [0, b'a', b'b', b'c', b'd', 0x80, 0x80, 0x80, 0x80, 4, 0, 0];
        assert!(error(&file("null", 1, &huge)).contains("a list of 536870912 items"));
        assert!(error(&file("null", usize::MAX >> 1, RECORD)).contains("in the middle of a value"));
        assert!(error(&file("null", 1, &[RECORD, b"x"].concat())).contains("1 bytes follow"));
        assert!(error(&file("null", 1, &[4, 0])).contains("no such branch"));
        let zeros = vec![0; 10_000_000];
        let mut encoder =
            flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&zeros).expect("it is packed");
        let bomb = file("deflate", 1, &encoder.finish().expect("it is packed"));
        assert!(error(&bomb).contains("more than 9"), "{}", error(&bomb));
        assert!(error(&file("lzo", 1, RECORD)).contains("'lzo'"));
        assert!(error(b"{}").contains("not an Avro file"));
        let whole = file("null", 1, RECORD);
        for end in 0..whole.len() - MARKER_BYTES {
            // Cut off at the end of the header it is a file without records.
            if let Ok(rest) = checked(&whole[..end], 1000) {
                assert_eq!(rest.len(), whole.len() - RECORD.len() - 2 - MARKER_BYTES);
            }
        }
    }
}
