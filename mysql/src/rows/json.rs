//! Lists, structs and maps as JSON text.
//!
//! Numbers are written as numbers (decimals with all their digits), booleans as `true` and `false`,
//! dates and times as the strings that a column of theirs would show, bytes as hexadecimal digits.
//! Map keys are always strings, as JSON wants it.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field};

use super::value::{ValueError, ValueWriter, value_writer};

type Written = Result<(), ValueError>;

/// Appends a JSON string.
pub(super) fn put_json_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..=0x1f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// An array inside a nested one.
struct Child<'a> {
    nulls: Option<NullBuffer>,
    writer: Box<dyn ValueWriter + 'a>,
}

impl<'a> Child<'a> {
    fn new(field: &Field, array: &'a ArrayRef) -> Result<Self, ValueError> {
        Ok(Self {
            nulls: array.logical_nulls(),
            writer: value_writer(field, array)?,
        })
    }

    fn put(&self, row: usize, out: &mut Vec<u8>) -> Written {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        self.writer.json(row, out)
    }
}

type RangeOfRow<'a> = Box<dyn Fn(usize) -> Range<usize> + Send + 'a>;

pub(super) struct JsonWriter<'a>(Shape<'a>);

enum Shape<'a> {
    List {
        range: RangeOfRow<'a>,
        items: Child<'a>,
    },
    /// Each field's name, as `"name":`, and its values.
    Struct(Vec<(Vec<u8>, Child<'a>)>),
    Map {
        range: RangeOfRow<'a>,
        keys: Child<'a>,
        values: Child<'a>,
    },
}

impl<'a> JsonWriter<'a> {
    pub fn new(array: &'a ArrayRef) -> Result<Self, ValueError> {
        let list = |range, field: &Field, items| -> Result<Shape<'a>, ValueError> {
            Ok(Shape::List {
                range,
                items: Child::new(field, items)?,
            })
        };
        Ok(Self(match array.data_type() {
            DataType::List(field) => {
                let array = array.as_list::<i32>();
                let offsets = array.offsets();
                let range = move |row: usize| offsets[row] as usize..offsets[row + 1] as usize;
                list(Box::new(range), field, array.values())?
            }
            DataType::LargeList(field) => {
                let array = array.as_list::<i64>();
                let offsets = array.offsets();
                let range = move |row: usize| offsets[row] as usize..offsets[row + 1] as usize;
                list(Box::new(range), field, array.values())?
            }
            DataType::ListView(field) => {
                let array = array.as_list_view::<i32>();
                let range = move |row: usize| {
                    let start = array.value_offset(row) as usize;
                    start..start + array.value_size(row) as usize
                };
                list(Box::new(range), field, array.values())?
            }
            DataType::LargeListView(field) => {
                let array = array.as_list_view::<i64>();
                let range = move |row: usize| {
                    let start = array.value_offset(row) as usize;
                    start..start + array.value_size(row) as usize
                };
                list(Box::new(range), field, array.values())?
            }
            DataType::FixedSizeList(field, _) => {
                let array = array.as_fixed_size_list();
                let length = array.value_length() as usize;
                let range = move |row: usize| row * length..(row + 1) * length;
                list(Box::new(range), field, array.values())?
            }
            DataType::Struct(fields) => {
                let array = array.as_struct();
                let columns = fields.iter().zip(array.columns()).map(|(field, column)| {
                    let mut name = vec![];
                    put_json_string(&mut name, field.name());
                    name.push(b':');
                    Ok((name, Child::new(field, column)?))
                });
                Shape::Struct(columns.collect::<Result<_, ValueError>>()?)
            }
            DataType::Map(entries, _) => {
                let DataType::Struct(fields) = entries.data_type() else {
                    return Err(ValueError::NoMysqlType(array.data_type().to_string()));
                };
                let [key, value] = fields.as_ref() else {
                    return Err(ValueError::NoMysqlType(array.data_type().to_string()));
                };
                let map = array.as_map();
                let offsets = map.offsets();
                Shape::Map {
                    range: Box::new(move |row| offsets[row] as usize..offsets[row + 1] as usize),
                    keys: Child::new(key, map.keys())?,
                    values: Child::new(value, map.values())?,
                }
            }
            other => return Err(ValueError::NoMysqlType(other.to_string())),
        }))
    }
}

impl ValueWriter for JsonWriter<'_> {
    fn text(&self, row: usize, out: &mut Vec<u8>) -> Written {
        match &self.0 {
            Shape::List { range, items } => {
                out.push(b'[');
                for (index, item) in range(row).enumerate() {
                    put_comma(out, index);
                    items.put(item, out)?;
                }
                out.push(b']');
            }
            Shape::Struct(fields) => {
                out.push(b'{');
                for (index, (name, values)) in fields.iter().enumerate() {
                    put_comma(out, index);
                    out.extend_from_slice(name);
                    values.put(row, out)?;
                }
                out.push(b'}');
            }
            Shape::Map {
                range,
                keys,
                values,
            } => {
                out.push(b'{');
                for (index, entry) in range(row).enumerate() {
                    put_comma(out, index);
                    put_key(out, |out| keys.put(entry, out))?;
                    out.push(b':');
                    values.put(entry, out)?;
                }
                out.push(b'}');
            }
        }
        Ok(())
    }

    fn json(&self, row: usize, out: &mut Vec<u8>) -> Written {
        self.text(row, out)
    }
}

fn put_comma(out: &mut Vec<u8>, index: usize) {
    if index > 0 {
        out.push(b',');
    }
}

/// Appends what `put` appends, as a string if it is not one already.
fn put_key(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>) -> Written) -> Written {
    let start = out.len();
    put(out)?;
    if out.get(start) != Some(&b'"') {
        let key = out.split_off(start);
        put_json_string(out, &String::from_utf8_lossy(&key));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array,
        Int32Builder, ListArray, MapBuilder, MapFieldNames, StringArray, StringBuilder,
        StructArray,
    };
    use arrow::datatypes::Int32Type;
    use std::sync::Arc;

    fn json(array: &ArrayRef, row: usize) -> String {
        let mut out = vec![];
        JsonWriter::new(array).unwrap().text(row, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).expect("valid JSON");
        text
    }

    #[test]
    fn lists() {
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([
            Some(vec![Some(1), None, Some(-3)]),
            Some(vec![]),
            Some(vec![Some(9)]),
        ]);
        let array: ArrayRef = Arc::new(lists.clone());
        assert_eq!(json(&array, 0), "[1,null,-3]");
        assert_eq!(json(&array, 1), "[]");
        let sliced: ArrayRef = Arc::new(lists.slice(2, 1));
        assert_eq!(json(&sliced, 0), "[9]");
    }

    #[test]
    fn structs_of_every_kind_of_leaf() {
        let fields: Vec<(Arc<Field>, ArrayRef)> = [
            ("b", Arc::new(BooleanArray::from(vec![true])) as ArrayRef),
            (
                "d",
                Arc::new(
                    Decimal128Array::from(vec![12_345])
                        .with_precision_and_scale(9, 3)
                        .unwrap(),
                ),
            ),
            ("f", Arc::new(Float64Array::from(vec![f64::NAN]))),
            ("day", Arc::new(Date32Array::from(vec![0]))),
            (
                "s \"q\"",
                Arc::new(StringArray::from(vec!["a\"\\\n\u{1}é"])),
            ),
            ("x", Arc::new(BinaryArray::from(vec![&b"\x00\xab"[..]]))),
            ("n", Arc::new(StringArray::from(vec![None::<&str>]))),
        ]
        .into_iter()
        .map(|(name, array)| {
            (
                Arc::new(Field::new(name, array.data_type().clone(), true)),
                array,
            )
        })
        .collect();
        let array: ArrayRef = Arc::new(StructArray::from(fields));
        assert_eq!(
            json(&array, 0),
            r#"{"b":true,"d":12.345,"f":"NaN","day":"1970-01-01","s \"q\"":"a\"\\\n\u0001é","x":"00ab","n":null}"#
        );
    }

    #[test]
    fn maps_have_strings_as_keys() {
        let mut builder = MapBuilder::new(
            Some(MapFieldNames::default()),
            Int32Builder::new(),
            StringBuilder::new(),
        );
        builder.keys().append_value(1);
        builder.values().append_value("one");
        builder.keys().append_value(2);
        builder.values().append_null();
        builder.append(true).unwrap();
        let array: ArrayRef = Arc::new(builder.finish());
        assert_eq!(json(&array, 0), r#"{"1":"one","2":null}"#);
    }

    #[test]
    fn nested_in_nested() {
        let inner: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([
            Some(vec![Some(1)]),
            None,
        ]));
        let field = Arc::new(Field::new("l", inner.data_type().clone(), true));
        let array: ArrayRef = Arc::new(StructArray::from(vec![
            (field, inner),
            (
                Arc::new(Field::new("i", DataType::Int32, true)),
                Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef,
            ),
        ]));
        assert_eq!(json(&array, 0), r#"{"l":[1],"i":1}"#);
        assert_eq!(json(&array, 1), r#"{"l":null,"i":2}"#);
    }
}
