//! The schema of a file, and the Iceberg ids in it (Iceberg specification, Appendix A, "Avro").

use std::collections::HashMap;

use serde_json::Value;

use super::cursor::damaged;
use crate::formats::FileFormat;
use crate::formats::error::FormatError;
use crate::formats::file_fields::{FileField, FileShape};

/// No writer nests deeper; a schema that does would overflow the stack.
const MAX_DEPTH: usize = 100;

/// Names may be used again and again, so that a small text can describe a schema without end.
const MAX_NODES: usize = 1_000_000;

/// A type, with names resolved.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Null,
    Boolean,
    Int(Logical),
    Long(Logical),
    Float,
    Double,
    Bytes(Logical),
    String(Logical),
    Fixed(usize, Logical),
    Enum(Vec<String>),
    Record(Vec<Node>),
    Array(Box<Node>),
    Map(Box<Node>),
    Union(Vec<Node>),
}

/// What a value stands for. A logical type that we do not know, or on a type that it is not for, stands for nothing, as
/// the specification says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Logical {
    None,
    Decimal { precision: u8, scale: i8 },
    Date,
    TimeMillis,
    TimeMicros,
    TimestampMillis,
    TimestampMicros,
    TimestampNanos,
    Uuid,
}

impl Node {
    /// The fewest bytes that a value takes.
    pub(super) fn least_bytes(&self) -> usize {
        match self {
            Node::Null => 0,
            Node::Fixed(size, _) => *size,
            Node::Float => 4,
            Node::Double => 8,
            Node::Record(fields) => fields
                .iter()
                .fold(0, |sum, field| sum.saturating_add(field.least_bytes())),
            _ => 1,
        }
    }
}

/// The columns of a file: what they are called, and how their values are written.
#[derive(Debug)]
pub(super) struct FileSchema {
    pub(super) fields: Vec<FileField>,
    pub(super) nodes: Vec<Node>,
}

impl FileSchema {
    pub(super) fn parse(text: &str) -> Result<Self, FormatError> {
        let json: Value = serde_json::from_str(text)
            .map_err(|e| damaged(format!("its schema is not JSON: {e}")))?;
        let mut names = Names::default();
        let (shape, node) = names.resolve(&json, "", 0)?;
        match (shape, node) {
            (FileShape::Struct(fields), Node::Record(nodes)) => Ok(Self { fields, nodes }),
            _ => Err(damaged("its schema is not a record")),
        }
    }
}

/// The named types that were defined so far.
#[derive(Default)]
struct Names {
    defined: HashMap<String, (FileShape, Node)>,
    nodes: usize,
}

type Resolved = Result<(FileShape, Node), FormatError>;

impl Names {
    fn resolve(&mut self, schema: &Value, namespace: &str, depth: usize) -> Resolved {
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return Err(damaged("its schema nests too deep"));
        }
        match schema {
            Value::String(name) => self.named(name, &Value::Null, namespace, depth),
            Value::Array(branches) => self.union(branches, namespace, depth),
            Value::Object(object) => match object.get("type") {
                Some(Value::String(kind)) => match kind.as_str() {
                    "record" | "error" => self.record(schema, namespace, depth),
                    "array" => self.array(schema, namespace, depth),
                    "map" => self.map(schema, namespace, depth),
                    "fixed" => self.fixed(schema, namespace),
                    "enum" => self.enumeration(schema, namespace),
                    name => self.named(name, schema, namespace, depth),
                },
                Some(inner) => self.resolve(inner, namespace, depth + 1),
                None => Err(damaged("a type of its schema has no type")),
            },
            _ => Err(damaged(format!("its schema has a type '{schema}'"))),
        }
    }

    fn named(&mut self, name: &str, attributes: &Value, namespace: &str, depth: usize) -> Resolved {
        let leaf = |node: Node| Ok((FileShape::Leaf, node));
        match name {
            "null" => return leaf(Node::Null),
            "boolean" => return leaf(Node::Boolean),
            "int" => return leaf(Node::Int(int_logical(attributes))),
            "long" => return leaf(Node::Long(long_logical(attributes))),
            "float" => return leaf(Node::Float),
            "double" => return leaf(Node::Double),
            "bytes" => return leaf(Node::Bytes(decimal(attributes)?)),
            "string" => {
                let uuid = text(attributes, "logicalType") == Some("uuid");
                let logical = if uuid { Logical::Uuid } else { Logical::None };
                return leaf(Node::String(logical));
            }
            _ => {}
        }
        let known = self
            .defined
            .get(&full_name(name, namespace))
            .or_else(|| self.defined.get(name))
            .cloned();
        let (shape, node) = known.ok_or_else(|| {
            // A record that holds itself is not finished when its name is met.
            FormatError::unsupported(
                FileFormat::Avro,
                format!("the type '{name}', which its schema does not define before"),
            )
        })?;
        let (nodes, height) = extent(&node);
        self.nodes += nodes;
        if self.nodes > MAX_NODES || depth + height > MAX_DEPTH {
            return Err(damaged("its schema nests too deep"));
        }
        Ok((shape, node))
    }

    fn define(&mut self, schema: &Value, namespace: &str, resolved: &(FileShape, Node)) {
        if let Some(name) = text(schema, "name") {
            let namespace = text(schema, "namespace").unwrap_or(namespace);
            self.defined
                .insert(full_name(name, namespace), resolved.clone());
        }
    }

    fn record(&mut self, schema: &Value, namespace: &str, depth: usize) -> Resolved {
        let inside = match (text(schema, "namespace"), text(schema, "name")) {
            (Some(namespace), _) => namespace.to_string(),
            (None, Some(name)) if name.contains('.') => name
                .rsplit_once('.')
                .map_or("", |(space, _)| space)
                .to_string(),
            _ => namespace.to_string(),
        };
        let Some(Value::Array(members)) = schema.get("fields") else {
            return Err(damaged("a record of its schema has no fields"));
        };
        let mut fields = Vec::with_capacity(members.len());
        let mut nodes = Vec::with_capacity(members.len());
        for (number, member) in members.iter().enumerate() {
            let (Some(name), Some(of)) = (text(member, "name"), member.get("type")) else {
                return Err(damaged("a field of its schema has no name or type"));
            };
            let (shape, node) = self.resolve(of, &inside, depth + 1)?;
            fields.push(FileField {
                name: name.to_string(),
                id: id(member, "field-id")?,
                number,
                shape,
            });
            nodes.push(node);
        }
        let resolved = (FileShape::Struct(fields), Node::Record(nodes));
        self.define(schema, namespace, &resolved);
        Ok(resolved)
    }

    /// An array is a list, or a map whose keys are not strings.
    fn array(&mut self, schema: &Value, namespace: &str, depth: usize) -> Resolved {
        let items = schema
            .get("items")
            .ok_or_else(|| damaged("an array of its schema has no items"))?;
        let (shape, node) = self.resolve(items, namespace, depth + 1)?;
        if text(schema, "logicalType") == Some("map")
            && let FileShape::Struct(entries) = &shape
            && let [key, value] = entries.as_slice()
        {
            let shape = FileShape::Map(Box::new(key.clone()), Box::new(value.clone()));
            return Ok((shape, Node::Array(Box::new(node))));
        }
        let element = FileField {
            name: "element".to_string(),
            id: id(schema, "element-id")?,
            number: 0,
            shape,
        };
        Ok((
            FileShape::List(Box::new(element)),
            Node::Array(Box::new(node)),
        ))
    }

    fn map(&mut self, schema: &Value, namespace: &str, depth: usize) -> Resolved {
        let values = schema
            .get("values")
            .ok_or_else(|| damaged("a map of its schema has no values"))?;
        let (shape, node) = self.resolve(values, namespace, depth + 1)?;
        let field = |name: &str, attribute: &str, shape| {
            Ok::<_, FormatError>(Box::new(FileField {
                name: name.to_string(),
                id: id(schema, attribute)?,
                number: 0,
                shape,
            }))
        };
        Ok((
            FileShape::Map(
                field("key", "key-id", FileShape::Leaf)?,
                field("value", "value-id", shape)?,
            ),
            Node::Map(Box::new(node)),
        ))
    }

    fn fixed(&mut self, schema: &Value, namespace: &str) -> Resolved {
        let size = schema
            .get("size")
            .and_then(Value::as_u64)
            .and_then(|size| i32::try_from(size).ok())
            .ok_or_else(|| damaged("a fixed type of its schema has no size"))?;
        let logical = match text(schema, "logicalType") {
            Some("uuid") if size == 16 => Logical::Uuid,
            _ => decimal(schema)?,
        };
        let resolved = (FileShape::Leaf, Node::Fixed(size as usize, logical));
        self.define(schema, namespace, &resolved);
        Ok(resolved)
    }

    fn enumeration(&mut self, schema: &Value, namespace: &str) -> Resolved {
        let symbols = match schema.get("symbols") {
            Some(Value::Array(symbols)) => symbols
                .iter()
                .map(|symbol| symbol.as_str().map(str::to_string))
                .collect::<Option<Vec<_>>>(),
            _ => None,
        };
        let symbols = symbols.ok_or_else(|| damaged("an enum of its schema has no symbols"))?;
        let resolved = (FileShape::Leaf, Node::Enum(symbols));
        self.define(schema, namespace, &resolved);
        Ok(resolved)
    }

    /// A type or null has the shape of the type. Other unions can be stepped over, and not read.
    fn union(&mut self, branches: &[Value], namespace: &str, depth: usize) -> Resolved {
        let resolved = branches
            .iter()
            .map(|branch| self.resolve(branch, namespace, depth + 1))
            .collect::<Result<Vec<_>, _>>()?;
        let mut values = resolved
            .iter()
            .filter(|(_, node)| !matches!(node, Node::Null));
        let shape = match (values.next(), values.next()) {
            (Some((shape, _)), None) => shape.clone(),
            _ => FileShape::Leaf,
        };
        let nodes = resolved.into_iter().map(|(_, node)| node).collect();
        Ok((shape, Node::Union(nodes)))
    }
}

/// How many types there are in a type, and how deep they nest.
fn extent(node: &Node) -> (usize, usize) {
    let inside: &[Node] = match node {
        Node::Record(nodes) | Node::Union(nodes) => nodes,
        Node::Array(inner) | Node::Map(inner) => std::slice::from_ref(inner.as_ref()),
        _ => &[],
    };
    let (nodes, height) = inside
        .iter()
        .map(extent)
        .fold((0, 0), |(nodes, height), (n, h)| (nodes + n, height.max(h)));
    (nodes + 1, height + 1)
}

fn text<'a>(schema: &'a Value, key: &str) -> Option<&'a str> {
    schema.get(key).and_then(Value::as_str)
}

fn full_name(name: &str, namespace: &str) -> String {
    match namespace.is_empty() || name.contains('.') {
        true => name.to_string(),
        false => format!("{namespace}.{name}"),
    }
}

fn id(schema: &Value, key: &str) -> Result<Option<i32>, FormatError> {
    let Some(value) = schema.get(key) else {
        return Ok(None);
    };
    value
        .as_i64()
        .and_then(|id| i32::try_from(id).ok())
        .map(Some)
        .ok_or_else(|| {
            damaged(format!(
                "its schema has '{key}': {value}, which is no field id"
            ))
        })
}

fn int_logical(schema: &Value) -> Logical {
    match text(schema, "logicalType") {
        Some("date") => Logical::Date,
        Some("time-millis") => Logical::TimeMillis,
        _ => Logical::None,
    }
}

fn long_logical(schema: &Value) -> Logical {
    match text(schema, "logicalType") {
        Some("time-micros") => Logical::TimeMicros,
        Some("timestamp-millis" | "local-timestamp-millis") => Logical::TimestampMillis,
        Some("timestamp-micros" | "local-timestamp-micros") => Logical::TimestampMicros,
        Some("timestamp-nanos" | "local-timestamp-nanos") => Logical::TimestampNanos,
        _ => Logical::None,
    }
}

fn decimal(schema: &Value) -> Result<Logical, FormatError> {
    if text(schema, "logicalType") != Some("decimal") {
        return Ok(Logical::None);
    }
    let number = |key: &str| schema.get(key).map(Value::as_u64);
    let (precision, scale) = (number("precision"), number("scale").unwrap_or(Some(0)));
    match (precision.flatten(), scale) {
        (Some(precision @ 1..=38), Some(scale)) if scale <= precision => Ok(Logical::Decimal {
            precision: precision as u8,
            scale: scale as i8,
        }),
        _ => Err(FormatError::unsupported(
            FileFormat::Avro,
            format!("the type {schema}"),
        )),
    }
}
