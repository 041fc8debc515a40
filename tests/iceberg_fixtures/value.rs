//! Values as the fixtures' README spells them, from the file, from Arrow and from MySQL.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type, TimeUnit};
use arrow::temporal_conversions as time;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::Value as Json;

/// A type of Iceberg, as far as values of it are spelt in different ways.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    Boolean,
    Float,
    Double,
    Timestamp {
        zone: bool,
    },
    Bytes,
    Decimal {
        scale: usize,
    },
    Variant,
    Unknown,
    /// Its text is spelt in one way only: whole numbers, dates, times, strings, UUIDs.
    Plain,
    Struct(Vec<(String, Type)>),
    List(Box<Type>),
    Map(Box<Type>, Box<Type>),
}

impl Type {
    /// `struct<a: int, b: list<string>>`, `decimal(9, 2)`, `fixed[3]`, …
    pub fn parse(text: &str) -> Self {
        let inside = |kind: &str| {
            text.strip_prefix(kind)?
                .strip_prefix('<')?
                .strip_suffix('>')
        };
        if let Some(fields) = inside("struct") {
            let fields = split(fields);
            return Self::Struct(
                fields
                    .iter()
                    .map(|field| {
                        let (name, of) = field.split_once(": ").expect("a name and a type");
                        (name.to_owned(), Self::parse(of))
                    })
                    .collect(),
            );
        }
        if let Some(element) = inside("list") {
            return Self::List(Box::new(Self::parse(element)));
        }
        if let Some(entry) = inside("map") {
            let [key, value] = split(entry)[..] else {
                panic!("a map has a key and a value: {text}");
            };
            return Self::Map(Box::new(Self::parse(key)), Box::new(Self::parse(value)));
        }
        match text.split(['(', '[']).next().unwrap_or_default() {
            "boolean" => Self::Boolean,
            "float" => Self::Float,
            "double" => Self::Double,
            "timestamp" | "timestamp_ns" => Self::Timestamp { zone: false },
            "timestamptz" | "timestamptz_ns" => Self::Timestamp { zone: true },
            "binary" | "fixed" => Self::Bytes,
            "decimal" => {
                let scale = text.trim_end_matches(')').rsplit(' ').next();
                Self::Decimal {
                    scale: scale.and_then(|s| s.parse().ok()).expect("a scale"),
                }
            }
            "variant" => Self::Variant,
            "unknown" => Self::Unknown,
            "int" | "long" | "date" | "time" | "string" | "uuid" => Self::Plain,
            _ => panic!("unknown type {text}"),
        }
    }
}

/// Splits at commas that are in no brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, vec![]);
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

pub type Row = Vec<Value>;

/// A value in the one spelling that all are compared in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    Null,
    Text(String),
    Struct(Vec<(String, Value)>),
    List(Vec<Value>),
    /// Sorted by key.
    Map(Vec<(Value, Value)>),
}

impl Value {
    fn map(mut entries: Vec<(Value, Value)>) -> Self {
        entries.sort();
        Self::Map(entries)
    }

    /// A value of `queries.jsonl`.
    pub fn expected(json: &Json, of: &Type) -> Self {
        match (of, json) {
            (_, Json::Null) => Self::Null,
            (Type::Struct(fields), Json::Object(values)) => Self::Struct(
                fields
                    .iter()
                    .map(|(name, of)| (name.clone(), Self::expected(&values[name], of)))
                    .collect(),
            ),
            (Type::List(of), Json::Array(values)) => {
                Self::List(values.iter().map(|v| Self::expected(v, of)).collect())
            }
            (Type::Map(key, value), Json::Array(entries)) => Self::map(
                entries
                    .iter()
                    .map(|entry| {
                        (
                            Self::expected(&entry[0], key),
                            Self::expected(&entry[1], value),
                        )
                    })
                    .collect(),
            ),
            (Type::Float | Type::Double, number) => {
                let value = match number {
                    Json::String(text) => text.parse().expect("a number"),
                    other => other.as_f64().expect("a number"),
                };
                // serde_json reads the last digit of some doubles otherwise; it is none of a float's.
                let value = match of {
                    Type::Float => f64::from(value as f32),
                    _ => value,
                };
                Self::Text(float(value))
            }
            (Type::Variant, Json::String(text)) => Self::Text(variant(text)),
            // The smallest ones have more zeros than their scale has digits.
            (Type::Decimal { scale }, Json::String(text)) => {
                let digits = text.split_once('.').map_or(0, |(_, digits)| digits.len());
                let (number, zeros) = text.split_at(text.len() - digits.saturating_sub(*scale));
                assert!(zeros.chars().all(|c| c == '0'), "{text} is no {of:?}");
                Self::Text(number.to_owned())
            }
            (_, Json::String(text)) => Self::Text(text.clone()),
            (_, other) => Self::Text(other.to_string()),
        }
    }

    /// A value of an answer by Flight SQL. An error if it is of no type that `of` may come as.
    pub fn of_arrow(array: &ArrayRef, row: usize, of: &Type) -> Result<Self, String> {
        if array.data_type() == &DataType::Null || array.is_null(row) {
            return Ok(Self::Null);
        }
        let strange = || Err(format!("{of:?} came as {}", array.data_type()));
        let text = match (of, array.data_type()) {
            (Type::Struct(fields), DataType::Struct(names)) if fields.len() == names.len() => {
                let columns = array.as_struct().columns().iter().zip(names);
                return Ok(Self::Struct(
                    columns
                        .zip(fields)
                        .map(|((column, name), (_, of))| {
                            Ok((name.name().clone(), Self::of_arrow(column, row, of)?))
                        })
                        .collect::<Result<_, String>>()?,
                ));
            }
            (Type::List(of), DataType::List(_)) => {
                let items = array.as_list::<i32>().value(row);
                return Ok(Self::List(
                    (0..items.len())
                        .map(|i| Self::of_arrow(&items, i, of))
                        .collect::<Result<_, _>>()?,
                ));
            }
            (Type::Map(key, value), DataType::Map(..)) => {
                let entries = array.as_map().value(row);
                return Ok(Self::map(
                    (0..entries.len())
                        .map(|i| {
                            Ok((
                                Self::of_arrow(entries.column(0), i, key)?,
                                Self::of_arrow(entries.column(1), i, value)?,
                            ))
                        })
                        .collect::<Result<_, String>>()?,
                ));
            }
            (Type::Float, DataType::Float32) => {
                float(f64::from(array.as_primitive::<Float32Type>().value(row)))
            }
            (Type::Double, DataType::Float64) => {
                float(array.as_primitive::<Float64Type>().value(row))
            }
            (Type::Timestamp { zone }, DataType::Timestamp(unit, found))
                if *zone == found.is_some() =>
            {
                let ticks = arrow::compute::cast(array, &DataType::Int64)
                    .map_err(|e| e.to_string())?
                    .as_primitive::<Int64Type>()
                    .value(row);
                let (at, format) = match unit {
                    TimeUnit::Microsecond => (
                        time::timestamp_us_to_datetime(ticks),
                        "%Y-%m-%dT%H:%M:%S%.6f",
                    ),
                    TimeUnit::Nanosecond => (
                        time::timestamp_ns_to_datetime(ticks),
                        "%Y-%m-%dT%H:%M:%S%.9f",
                    ),
                    _ => return strange(),
                };
                let at = at.ok_or_else(|| format!("{ticks} is no time"))?;
                format!("{}{}", at.format(format), if *zone { "Z" } else { "" })
            }
            (Type::Plain, DataType::Time64(TimeUnit::Microsecond)) => {
                let ticks = arrow::compute::cast(array, &DataType::Int64)
                    .map_err(|e| e.to_string())?
                    .as_primitive::<Int64Type>()
                    .value(row);
                time::time64us_to_time(ticks)
                    .ok_or_else(|| format!("{ticks} is no time"))?
                    .format("%H:%M:%S%.6f")
                    .to_string()
            }
            (
                Type::Bytes,
                DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_),
            )
            | (
                Type::Boolean | Type::Plain | Type::Decimal { .. },
                DataType::Boolean
                | DataType::Int8
                | DataType::Int16
                | DataType::Int32
                | DataType::Int64
                | DataType::UInt8
                | DataType::UInt16
                | DataType::UInt32
                | DataType::UInt64
                | DataType::Decimal128(..)
                | DataType::Date32
                | DataType::Utf8,
            ) => displayed(array, row)?,
            (Type::Plain, DataType::FixedSizeBinary(16)) => {
                let digits = displayed(array, row)?;
                [
                    &digits[..8],
                    &digits[8..12],
                    &digits[12..16],
                    &digits[16..20],
                    &digits[20..],
                ]
                .join("-")
            }
            (Type::Variant, DataType::Utf8) => variant(&displayed(array, row)?),
            _ => return strange(),
        };
        Ok(Self::Text(text))
    }

    /// A cell of an answer by MySQL, as `clients/mysql_queries.py` prints it.
    pub fn of_mysql(cell: &Json, of: &Type) -> Result<Self, String> {
        let bytes: Vec<u8> = match cell {
            Json::Null => return Ok(Self::Null),
            Json::Object(json) => {
                return match of {
                    Type::Variant => {
                        Self::of_text(json["text"].as_str().unwrap_or_default().to_owned(), of)
                    }
                    _ => Self::of_mysql_json(&json["json"], of),
                };
            }
            Json::String(text) => text.chars().map(|c| c as u8).collect(),
            other => return Err(format!("no cell: {other}")),
        };
        if *of == Type::Bytes {
            return Ok(Self::Text(
                bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            ));
        }
        let text = String::from_utf8(bytes).map_err(|e| e.to_string())?;
        match (of, text.as_str()) {
            (Type::Boolean, "1") => Ok(Self::Text("true".to_owned())),
            (Type::Boolean, "0") => Ok(Self::Text("false".to_owned())),
            (Type::Struct(_) | Type::List(_) | Type::Map(..), _) => {
                Err(format!("no column of type JSON: {text}"))
            }
            _ => Self::of_text(text, of),
        }
    }

    fn of_text(text: String, of: &Type) -> Result<Self, String> {
        Ok(Self::Text(match of {
            Type::Float => float(f64::from(text.parse::<f32>().map_err(|e| e.to_string())?)),
            Type::Double => float(
                text.parse()
                    .map_err(|e: std::num::ParseFloatError| e.to_string())?,
            ),
            Type::Timestamp { zone } => {
                format!(
                    "{}{}",
                    text.replacen(' ', "T", 1),
                    if *zone { "Z" } else { "" }
                )
            }
            Type::Variant => variant(&text),
            _ => text,
        }))
    }

    /// What is inside of a column of type JSON.
    fn of_mysql_json(json: &Json, of: &Type) -> Result<Self, String> {
        let pairs = |object: &Json| -> Option<Vec<(String, Json)>> {
            object["pairs"]
                .as_array()?
                .iter()
                .map(|pair| Some((pair[0].as_str()?.to_owned(), pair[1].clone())))
                .collect()
        };
        match (of, json) {
            (_, Json::Null) => Ok(Self::Null),
            (Type::Struct(fields), object @ Json::Object(_)) => Ok(Self::Struct(
                pairs(object)
                    .ok_or("no object")?
                    .into_iter()
                    .zip(fields)
                    .map(|((name, value), (_, of))| Ok((name, Self::of_mysql_json(&value, of)?)))
                    .collect::<Result<_, String>>()?,
            )),
            (Type::Map(key, value), object @ Json::Object(_)) => Ok(Self::map(
                pairs(object)
                    .ok_or("no object")?
                    .into_iter()
                    .map(|(k, v)| Ok((Self::of_text(k, key)?, Self::of_mysql_json(&v, value)?)))
                    .collect::<Result<_, String>>()?,
            )),
            (Type::List(of), Json::Array(values)) => Ok(Self::List(
                values
                    .iter()
                    .map(|value| Self::of_mysql_json(value, of))
                    .collect::<Result<_, _>>()?,
            )),
            (_, Json::Bool(value)) => Ok(Self::Text(value.to_string())),
            (_, Json::String(text)) => Self::of_text(text.clone(), of),
            (_, other) => Err(format!("{other} is no {of:?}")),
        }
    }
}

fn displayed(array: &ArrayRef, row: usize) -> Result<String, String> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options).map_err(|e| e.to_string())?;
    formatter
        .value(row)
        .try_to_string()
        .map_err(|e| e.to_string())
}

/// Tells the zeros apart, and all NaNs are one.
fn float(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else {
        format!("{value:?}")
    }
}

/// JSON in one spelling. What is no JSON is left as it is, and will differ.
fn variant(text: &str) -> String {
    serde_json::from_str::<Json>(text).map_or_else(|_| text.to_owned(), |json| json.to_string())
}
