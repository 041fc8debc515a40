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
use std::collections::HashMap;
use std::io::Read;

use serde_json::Value;

const MAGIC: &[u8] = b"Obj\x01";
const MARKER_BYTES: usize = 16;

/// Schemas, and what they describe, nest no deeper.
const MAX_DEPTH: usize = 64;

/// The file, unpacked; an error is what is wrong with it. No more than `limit` bytes are unpacked.
pub(crate) fn checked(file: &[u8], limit: u64) -> Result<Cow<'_, [u8]>, String> {
    let mut rest = file.strip_prefix(MAGIC).ok_or("it is not an Avro file")?;
    let mut entries: Vec<(&[u8], &[u8])> = Vec::new();
    loop {
        let count = block_count(&mut rest)?;
        if count == 0 {
            break;
        }
        for _ in 0..count {
            entries.push((bytes(&mut rest)?, bytes(&mut rest)?));
        }
    }
    let marker = take(&mut rest, MARKER_BYTES)?;
    let entry = |name: &[u8]| entries.iter().find(|(key, _)| *key == name);
    let (_, schema) = entry(b"avro.schema").ok_or("it has no schema")?;
    let schema: Value = serde_json::from_slice(schema).map_err(|e| format!("its schema: {e}"))?;
    let schema = Schema::new(&schema)?;
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

/// What a schema says of how many bytes a value takes.
#[derive(Debug, Clone)]
enum Node {
    Nothing,
    Fixed(usize),
    Number,
    /// A length and so many bytes.
    Bytes,
    Record(Vec<Node>),
    Union(Vec<Node>),
    List(Box<Node>),
    Map(Box<Node>),
    Named(usize),
}

struct Schema {
    root: Node,
    named: Vec<Node>,
}

impl Schema {
    fn new(json: &Value) -> Result<Self, String> {
        let mut names = Names::default();
        let root = names.node(json, 0)?;
        Ok(Self {
            root,
            named: names.nodes,
        })
    }

    /// Goes past one value.
    fn skip(&self, node: &Node, rest: &mut &[u8], depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err("its values nest too deep".to_string());
        }
        match node {
            Node::Nothing => Ok(()),
            Node::Fixed(length) => take(rest, *length).map(|_| ()),
            Node::Number => long(rest).map(|_| ()),
            Node::Bytes => bytes(rest).map(|_| ()),
            Node::Record(fields) => fields
                .iter()
                .try_for_each(|field| self.skip(field, rest, depth + 1)),
            Node::Union(branches) => {
                let branch = usize::try_from(long(rest)?).ok();
                let branch = branch.and_then(|branch| branches.get(branch));
                self.skip(branch.ok_or("a union has no such branch")?, rest, depth + 1)
            }
            Node::List(of) | Node::Map(of) => loop {
                let count = block_count(rest)?;
                if count == 0 {
                    return Ok(());
                }
                for _ in 0..count {
                    if matches!(node, Node::Map(_)) {
                        bytes(rest)?;
                    }
                    self.skip(of, rest, depth + 1)?;
                }
            },
            Node::Named(index) => {
                let node = self.named.get(*index).ok_or("its schema names no type")?;
                self.skip(node, rest, depth + 1)
            }
        }
    }
}

/// The types that a schema has given names.
#[derive(Default)]
struct Names {
    by_name: HashMap<String, usize>,
    nodes: Vec<Node>,
}

impl Names {
    fn node(&mut self, json: &Value, depth: usize) -> Result<Node, String> {
        if depth > MAX_DEPTH {
            return Err("its schema nests too deep".to_string());
        }
        if let Value::Array(branches) = json {
            let branches = branches.iter().map(|branch| self.node(branch, depth + 1));
            return Ok(Node::Union(branches.collect::<Result<_, _>>()?));
        }
        let of = match json {
            Value::Object(object) => object.get("type"),
            name => Some(name),
        };
        let name = match of {
            Some(Value::String(name)) => name.as_str(),
            // A type may be wrapped in an object of its own.
            Some(inner @ (Value::Object(_) | Value::Array(_))) => {
                return self.node(inner, depth + 1);
            }
            _ => return Err("its schema is none".to_string()),
        };
        let part = |part: &str| json.get(part).ok_or(format!("its schema lacks '{part}'"));
        let node = match name {
            "null" => Node::Nothing,
            "boolean" => Node::Fixed(1),
            "int" | "long" => Node::Number,
            "float" => Node::Fixed(4),
            "double" => Node::Fixed(8),
            "bytes" | "string" => Node::Bytes,
            "array" => Node::List(Box::new(self.node(part("items")?, depth + 1)?)),
            "map" => Node::Map(Box::new(self.node(part("values")?, depth + 1)?)),
            "enum" => {
                self.define(json, Node::Number);
                Node::Number
            }
            "fixed" => {
                let size = part("size")?
                    .as_u64()
                    .and_then(|size| usize::try_from(size).ok());
                let node = Node::Fixed(size.ok_or("its schema has a size that is none")?);
                self.define(json, node.clone());
                node
            }
            "record" => {
                let fields = part("fields")?
                    .as_array()
                    .ok_or("its schema has a record without fields")?;
                let fields = fields
                    .iter()
                    .map(|field| self.node(field.get("type").unwrap_or(&Value::Null), depth + 1));
                let node = Node::Record(fields.collect::<Result<_, _>>()?);
                self.define(json, node.clone());
                node
            }
            // A record cannot hold itself: it gets its name when it is complete.
            name => {
                let short = name.rsplit('.').next().unwrap_or(name);
                let index = self.by_name.get(short);
                Node::Named(*index.ok_or(format!("its schema does not know the type '{short}'"))?)
            }
        };
        Ok(node)
    }

    fn define(&mut self, json: &Value, node: Node) {
        if let Some(name) = json.get("name").and_then(Value::as_str) {
            let short = name.rsplit('.').next().unwrap_or(name);
            self.by_name.insert(short.to_string(), self.nodes.len());
            self.nodes.push(node);
        }
    }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], String> {
    let (taken, tail) = rest
        .split_at_checked(length)
        .ok_or("it ends in the middle of a value")?;
    *rest = tail;
    Ok(taken)
}

/// A variable-length zig-zag number.
fn long(rest: &mut &[u8]) -> Result<i64, String> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    Err("a number has more than 64 bits".to_string())
}

fn length(rest: &mut &[u8]) -> Result<usize, String> {
    let length = long(rest)?;
    usize::try_from(length).map_err(|_| format!("a length is {length}"))
}

fn bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], String> {
    let length = length(rest)?;
    take(rest, length)
}

/// The number of items that follow; if it is negative, their size in bytes comes first. Each item takes a byte at least,
/// in every schema of Iceberg's.
fn block_count(rest: &mut &[u8]) -> Result<usize, String> {
    let count = long(rest)?;
    if count < 0 {
        length(rest)?;
    }
    match usize::try_from(count.unsigned_abs()) {
        Ok(count) if count <= rest.len() => Ok(count),
        _ => Err(format!(
            "a list of {} items is in {} bytes",
            count.unsigned_abs(),
            rest.len()
        )),
    }
}

fn put_long(bytes: &mut Vec<u8>, value: usize) {
    let mut value = (value as u64) << 1;
    while value >= 0x80 {
        bytes.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
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
