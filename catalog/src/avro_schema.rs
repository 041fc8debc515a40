//! The schema of an Avro file, and how the values that it describes are read: as much as guarding a file and decoding a
//! manifest take.

use std::collections::HashMap;

use serde_json::Value;

/// Schemas, and what they describe, nest no deeper.
const MAX_DEPTH: usize = 64;
const CUT_OFF: &str = "it ends in the middle of a value";

/// How a value is encoded.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Null,
    Boolean,
    /// An int, a long or an enum.
    Number,
    Float,
    Double,
    Bytes,
    Text,
    /// So many bytes.
    Fixed(usize),
    Record(Vec<Field>),
    Union(Vec<Node>),
    List(Box<Node>),
    Map(Box<Node>),
    /// One that the schema defined before, by its place among these.
    Named(usize),
}

/// A field of a record.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    /// Its `field-id`, which Iceberg finds it by.
    pub id: Option<i32>,
    pub name: String,
    pub node: Node,
}

/// The schema of an Avro file.
pub(crate) struct AvroSchema {
    pub root: Node,
    named: Vec<Node>,
}

impl AvroSchema {
    /// By its JSON; an error is what is wrong with it.
    pub(crate) fn new(json: &Value) -> Result<Self, String> {
        let mut names = Names::default();
        let root = names.node(json, 0)?;
        Ok(Self {
            root,
            named: names.nodes,
        })
    }

    /// Goes past one value.
    pub(crate) fn skip(&self, node: &Node, rest: &mut &[u8], depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err("its values nest too deep".to_string());
        }
        match node {
            Node::Null => Ok(()),
            Node::Boolean => take(rest, 1).map(|_| ()),
            Node::Float => take(rest, 4).map(|_| ()),
            Node::Double => take(rest, 8).map(|_| ()),
            Node::Fixed(length) => take(rest, *length).map(|_| ()),
            Node::Number => long(rest).map(|_| ()),
            Node::Bytes | Node::Text => bytes(rest).map(|_| ()),
            Node::Record(fields) => fields
                .iter()
                .try_for_each(|field| self.skip(&field.node, rest, depth + 1)),
            Node::Union(branches) => self.skip(branch(branches, rest)?, rest, depth + 1),
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
            Node::Named(_) => self.skip(self.resolved(node)?, rest, depth + 1),
        }
    }

    fn resolved<'n>(&'n self, node: &'n Node) -> Result<&'n Node, String> {
        match node {
            Node::Named(index) => {
                let named = self.named.get(*index);
                named.ok_or_else(|| "its schema names no type".to_string())
            }
            node => Ok(node),
        }
    }

    /// How the value that follows is encoded; `None` for a null.
    pub(crate) fn present<'n>(
        &'n self,
        node: &'n Node,
        rest: &mut &[u8],
    ) -> Result<Option<&'n Node>, String> {
        let node = match self.resolved(node)? {
            Node::Union(branches) => self.resolved(branch(branches, rest)?)?,
            node => node,
        };
        Ok(match node {
            Node::Null => None,
            node => Some(node),
        })
    }

    /// A whole number, or none.
    pub(crate) fn number(&self, node: &Node, rest: &mut &[u8]) -> Result<Option<i64>, String> {
        match self.present(node, rest)? {
            None => Ok(None),
            Some(Node::Number) => long(rest).map(Some),
            Some(node) => Err(format!("{node:?} is where a number should be")),
        }
    }

    /// Bytes or a text, or none.
    pub(crate) fn bytes<'a>(
        &self,
        node: &Node,
        rest: &mut &'a [u8],
    ) -> Result<Option<&'a [u8]>, String> {
        match self.present(node, rest)? {
            None => Ok(None),
            Some(Node::Bytes | Node::Text) => bytes(rest).map(Some),
            Some(Node::Fixed(length)) => take(rest, *length).map(Some),
            Some(node) => Err(format!("{node:?} is where bytes should be")),
        }
    }

    /// Goes through the items of a list; whether there is one.
    pub(crate) fn items<'a>(
        &self,
        node: &Node,
        rest: &mut &'a [u8],
        mut each: impl FnMut(&Node, &mut &'a [u8]) -> Result<(), String>,
    ) -> Result<bool, String> {
        let item = match self.present(node, rest)? {
            None => return Ok(false),
            Some(Node::List(item)) => self.resolved(item)?,
            Some(node) => return Err(format!("{node:?} is where a list should be")),
        };
        loop {
            let count = block_count(rest)?;
            if count == 0 {
                return Ok(true);
            }
            for _ in 0..count {
                each(item, rest)?;
            }
        }
    }
}

fn branch<'n>(branches: &'n [Node], rest: &mut &[u8]) -> Result<&'n Node, String> {
    let number = usize::try_from(long(rest)?).ok();
    let branch = number.and_then(|number| branches.get(number));
    branch.ok_or_else(|| "a union has no such branch".to_string())
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
            "null" => Node::Null,
            "boolean" => Node::Boolean,
            "int" | "long" => Node::Number,
            "float" => Node::Float,
            "double" => Node::Double,
            "bytes" => Node::Bytes,
            "string" => Node::Text,
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
                let fields = fields.iter().map(|field| {
                    let id = field.get("field-id").and_then(Value::as_i64);
                    let name = field.get("name").and_then(Value::as_str);
                    Ok(Field {
                        id: id.and_then(|id| i32::try_from(id).ok()),
                        name: name.unwrap_or_default().to_string(),
                        node: self.node(field.get("type").unwrap_or(&Value::Null), depth + 1)?,
                    })
                });
                let node = Node::Record(fields.collect::<Result<_, String>>()?);
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

pub(crate) fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], String> {
    let (taken, tail) = rest.split_at_checked(length).ok_or(CUT_OFF)?;
    *rest = tail;
    Ok(taken)
}

/// So many bytes.
pub(crate) fn array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], String> {
    let (taken, tail) = rest.split_first_chunk().ok_or(CUT_OFF)?;
    *rest = tail;
    Ok(*taken)
}

/// A variable-length zig-zag number.
pub(crate) fn long(rest: &mut &[u8]) -> Result<i64, String> {
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

pub(crate) fn length(rest: &mut &[u8]) -> Result<usize, String> {
    let length = long(rest)?;
    usize::try_from(length).map_err(|_| format!("a length is {length}"))
}

pub(crate) fn bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], String> {
    let length = length(rest)?;
    take(rest, length)
}

/// The number of items that follow; if it is negative, their size in bytes comes first. Each item takes a byte at least,
/// in every schema of Iceberg's.
pub(crate) fn block_count(rest: &mut &[u8]) -> Result<usize, String> {
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

/// Writes a length as such a number.
pub(crate) fn put_long(bytes: &mut Vec<u8>, value: usize) {
    let mut value = (value as u64) << 1;
    while value >= 0x80 {
        bytes.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_zig_zag() {
        for (value, bytes) in [
            (0, vec![0]),
            (-1, vec![1]),
            (1, vec![2]),
            (64, vec![0x80, 1]),
            (-65, vec![0x81, 1]),
        ] {
            assert_eq!(long(&mut bytes.as_slice()), Ok(value));
        }
        assert!(long(&mut [0x80u8; 12].as_slice()).is_err());
    }
}
