//! Thrift's values as a tree, so that what a server says is kept whole, fields that nobody here knows included.

use std::collections::BTreeMap;

use thrift::protocol::{
    TFieldIdentifier, TInputProtocol, TListIdentifier, TMapIdentifier, TOutputProtocol,
    TSetIdentifier, TStructIdentifier, TType,
};
use thrift::{Error, ProtocolError, ProtocolErrorKind, Result};

/// How deep structures may nest.
const MAX_DEPTH: u32 = 32;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Bool(bool),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    Double(f64),
    /// A text or bytes: Thrift does not tell them apart.
    Bytes(Vec<u8>),
    List(TType, Vec<Value>),
    Set(TType, Vec<Value>),
    Map(TType, TType, Vec<(Value, Value)>),
    Struct(Fields),
}

/// A structure's fields by their ids.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Fields(pub(super) BTreeMap<i16, Value>);

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

impl Value {
    pub(super) fn texts(texts: impl IntoIterator<Item = (String, String)>) -> Self {
        let pairs = texts.into_iter().map(|(key, value)| {
            (
                Self::Bytes(key.into_bytes()),
                Self::Bytes(value.into_bytes()),
            )
        });
        Self::Map(TType::String, TType::String, pairs.collect())
    }

    pub(super) fn structs(fields: impl IntoIterator<Item = Fields>) -> Self {
        let values = fields.into_iter().map(Self::Struct);
        Self::List(TType::Struct, values.collect())
    }

    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Bytes(bytes) => String::from_utf8(bytes.clone()).ok(),
            _ => None,
        }
    }

    /// The texts of a list.
    pub(super) fn list_of_texts(&self) -> Option<Vec<String>> {
        match self {
            Self::List(_, values) => values.iter().map(Self::text).collect(),
            _ => None,
        }
    }

    /// The texts of a map by their keys; those that are no texts are left out.
    pub(super) fn map_of_texts(&self) -> BTreeMap<String, String> {
        match self {
            Self::Map(_, _, pairs) => pairs
                .iter()
                .filter_map(|(key, value)| Some((key.text()?, value.text()?)))
                .collect(),
            _ => BTreeMap::new(),
        }
    }

    fn kind(&self) -> TType {
        match self {
            Self::Bool(_) => TType::Bool,
            Self::I8(_) => TType::I08,
            Self::I16(_) => TType::I16,
            Self::I32(_) => TType::I32,
            Self::I64(_) => TType::I64,
            Self::Double(_) => TType::Double,
            Self::Bytes(_) => TType::String,
            Self::List(..) => TType::List,
            Self::Set(..) => TType::Set,
            Self::Map(..) => TType::Map,
            Self::Struct(_) => TType::Struct,
        }
    }

    pub(super) fn write(&self, out: &mut dyn TOutputProtocol) -> Result<()> {
        match self {
            Self::Bool(value) => out.write_bool(*value),
            Self::I8(value) => out.write_i8(*value),
            Self::I16(value) => out.write_i16(*value),
            Self::I32(value) => out.write_i32(*value),
            Self::I64(value) => out.write_i64(*value),
            Self::Double(value) => out.write_double(*value),
            Self::Bytes(value) => out.write_bytes(value),
            Self::List(of, values) => {
                out.write_list_begin(&TListIdentifier::new(*of, size(values.len())?))?;
                values.iter().try_for_each(|value| value.write(out))?;
                out.write_list_end()
            }
            Self::Set(of, values) => {
                out.write_set_begin(&TSetIdentifier::new(*of, size(values.len())?))?;
                values.iter().try_for_each(|value| value.write(out))?;
                out.write_set_end()
            }
            Self::Map(keys, values, pairs) => {
                out.write_map_begin(&TMapIdentifier::new(*keys, *values, size(pairs.len())?))?;
                for (key, value) in pairs {
                    key.write(out)?;
                    value.write(out)?;
                }
                out.write_map_end()
            }
            Self::Struct(fields) => fields.write(out),
        }
    }

    fn read(of: TType, input: &mut dyn TInputProtocol, depth: u32) -> Result<Self> {
        let depth = depth
            .checked_sub(1)
            .ok_or_else(|| invalid("it nests too deep"))?;
        Ok(match of {
            TType::Bool => Self::Bool(input.read_bool()?),
            TType::I08 => Self::I8(input.read_i8()?),
            TType::I16 => Self::I16(input.read_i16()?),
            TType::I32 => Self::I32(input.read_i32()?),
            TType::I64 => Self::I64(input.read_i64()?),
            TType::Double => Self::Double(input.read_double()?),
            TType::String | TType::Utf7 => Self::Bytes(input.read_bytes()?),
            TType::List => {
                let list = input.read_list_begin()?;
                // Not made room for ahead: the size is only what the server says.
                let mut values = Vec::new();
                for _ in 0..list.size {
                    values.push(Self::read(list.element_type, input, depth)?);
                }
                input.read_list_end()?;
                Self::List(list.element_type, values)
            }
            TType::Set => {
                let set = input.read_set_begin()?;
                let mut values = Vec::new();
                for _ in 0..set.size {
                    values.push(Self::read(set.element_type, input, depth)?);
                }
                input.read_set_end()?;
                Self::Set(set.element_type, values)
            }
            TType::Map => {
                let map = input.read_map_begin()?;
                // An empty map need not say of what it is.
                let (keys, values) = (
                    map.key_type.unwrap_or(TType::String),
                    map.value_type.unwrap_or(TType::String),
                );
                let mut pairs = Vec::new();
                for _ in 0..map.size {
                    let key = Self::read(keys, input, depth)?;
                    pairs.push((key, Self::read(values, input, depth)?));
                }
                input.read_map_end()?;
                Self::Map(keys, values, pairs)
            }
            TType::Struct => Self::Struct(Fields::read_at(input, depth)?),
            other => return Err(invalid(&format!("it has a value of the type {other:?}"))),
        })
    }
}

impl Fields {
    /// A structure of the fields that are there.
    pub(super) fn of(fields: impl IntoIterator<Item = (i16, Value)>) -> Self {
        Self(fields.into_iter().collect())
    }

    pub(super) fn text(&self, id: i16) -> Option<String> {
        self.0.get(&id)?.text()
    }

    pub(super) fn texts(&self, id: i16) -> BTreeMap<String, String> {
        self.0.get(&id).map(Value::map_of_texts).unwrap_or_default()
    }

    pub(super) fn write(&self, out: &mut dyn TOutputProtocol) -> Result<()> {
        out.write_struct_begin(&TStructIdentifier::new(""))?;
        for (id, value) in &self.0 {
            out.write_field_begin(&TFieldIdentifier::new("", value.kind(), *id))?;
            value.write(out)?;
            out.write_field_end()?;
        }
        out.write_field_stop()?;
        out.write_struct_end()
    }

    pub(super) fn read(input: &mut dyn TInputProtocol) -> Result<Self> {
        Self::read_at(input, MAX_DEPTH)
    }

    fn read_at(input: &mut dyn TInputProtocol, depth: u32) -> Result<Self> {
        input.read_struct_begin()?;
        let mut fields = BTreeMap::new();
        loop {
            let field = input.read_field_begin()?;
            if field.field_type == TType::Stop {
                break;
            }
            let id = field.id.ok_or_else(|| invalid("a field has no id"))?;
            fields.insert(id, Value::read(field.field_type, input, depth)?);
            input.read_field_end()?;
        }
        input.read_struct_end()?;
        Ok(Self(fields))
    }
}

fn size(length: usize) -> Result<i32> {
    i32::try_from(length).map_err(|_| invalid("there is too much of it"))
}

fn invalid(reason: &str) -> Error {
    Error::Protocol(ProtocolError::new(ProtocolErrorKind::InvalidData, reason))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol};

    use super::*;

    fn written(fields: &Fields) -> Vec<u8> {
        let mut bytes = Vec::new();
        fields
            .write(&mut TBinaryOutputProtocol::new(&mut bytes, true))
            .unwrap();
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Fields> {
        Fields::read(&mut TBinaryInputProtocol::new(Cursor::new(bytes), true))
    }

    #[test]
    fn every_kind_of_value_comes_back_as_it_was() {
        let inner = Fields::of([(1, Value::from("ä")), (7, Value::Bool(true))]);
        let fields = Fields::of([
            (1, Value::I8(-1)),
            (2, Value::I16(-2)),
            (3, Value::I32(3)),
            (4, Value::I64(1 << 40)),
            (5, Value::Double(0.5)),
            (6, Value::texts([("k".to_string(), "v".to_string())])),
            (8, Value::structs([inner.clone(), Fields::default()])),
            (9, Value::Set(TType::I32, vec![Value::I32(1)])),
            (300, Value::Struct(inner)),
        ]);
        assert_eq!(read(&written(&fields)).unwrap(), fields);
    }

    #[test]
    fn a_structure_is_written_as_thrift_says() {
        // Field 1 of type string (11) with 2 bytes, then the stop.
        let bytes = written(&Fields::of([(1, Value::from("hi"))]));
        assert_eq!(bytes, [11, 0, 1, 0, 0, 0, 2, b'h', b'i', 0]);
    }

    #[test]
    fn what_makes_no_sense_is_an_error() {
        let deep: Vec<u8> = [12, 0, 1].repeat(100);
        // A list of 2^31 - 1 texts, of which none is there; a text of less than no bytes; an unknown type.
        let long = vec![15, 0, 1, 11, 0x7f, 0xff, 0xff, 0xff];
        let negative = vec![11, 0, 1, 0xff, 0xff, 0xff, 0xff];
        for bytes in [deep, long, negative, vec![99, 0, 1], vec![]] {
            assert!(read(&bytes).is_err(), "{bytes:?}");
        }
    }
}
