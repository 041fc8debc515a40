//! MySQL's functions of JSON, on text that holds JSON.
//!
//! What they give is text, too, written as MySQL writes it: `{"a": 1, "bb": [2, 3]}`, members by the length of their names
//! and then by their bytes. Text that is no JSON is an error, as in MySQL (3141), but for `JSON_VALID` and `JSON_UNQUOTE`.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, StringArray, StringBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type};
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err, plan_err};
use datafusion::logical_expr::{ReturnFieldArgs, ScalarUDF};
use serde_json::{Map, Number, Value};

use super::json_path::JsonPath;
use super::row_function::{Kind, RowFunction, returns_integer, returns_text, typed};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    const MANY: &[Kind] = &[Kind::Any; 64];
    vec![
        RowFunction::new("json_extract", &[Kind::Text; 16], returns_text, extract)
            .optional(14)
            .udf(),
        RowFunction::new("json_value", &[Kind::Text; 2], returns_text, value).udf(),
        RowFunction::new("json_unquote", &[Kind::Text], returns_text, |args, _| {
            let texts = typed::<StringArray>(&args[0])?;
            Ok(Arc::new(
                texts
                    .iter()
                    .map(|text| text.map(unquoted))
                    .collect::<StringArray>(),
            ))
        })
        .udf(),
        RowFunction::new("json_quote", &[Kind::Text], returns_text, |args, _| {
            let texts = typed::<StringArray>(&args[0])?;
            let quoted = texts
                .iter()
                .map(|text| text.map(|text| Value::from(text).to_string()));
            Ok(Arc::new(quoted.collect::<StringArray>()))
        })
        .udf(),
        RowFunction::new("json_valid", &[Kind::Text], returns_integer, |args, _| {
            let texts = typed::<StringArray>(&args[0])?;
            let valid = |text: &str| i64::from(serde_json::from_str::<Value>(text).is_ok());
            Ok(Arc::new(
                texts
                    .iter()
                    .map(|text| text.map(valid))
                    .collect::<Int64Array>(),
            ))
        })
        .udf(),
        RowFunction::new(
            "json_length",
            &[Kind::Text; 2],
            returns_integer,
            |args, _| {
                let lengths = at_path("json_length", args, |found| Some(length(found)))?;
                Ok(Arc::new(lengths.into_iter().collect::<Int64Array>()))
            },
        )
        .optional(1)
        .udf(),
        RowFunction::new("json_type", &[Kind::Text], returns_text, |args, _| {
            let types = at_path("json_type", args, |found| Some(type_name(found)))?;
            Ok(Arc::new(types.into_iter().collect::<StringArray>()))
        })
        .udf(),
        RowFunction::new("json_keys", &[Kind::Text; 2], returns_text, |args, _| {
            let keys = at_path("json_keys", args, |found| match found {
                Value::Object(members) => {
                    let names = ordered(members)
                        .into_iter()
                        .map(|(name, _)| Value::from(name));
                    Some(written(&Value::Array(names.collect())))
                }
                _ => None,
            })?;
            Ok(Arc::new(keys.into_iter().collect::<StringArray>()))
        })
        .optional(1)
        .udf(),
        RowFunction::new("json_contains", &[Kind::Text; 3], returns_integer, contains)
            .optional(1)
            .udf(),
        RowFunction::new("json_array", MANY, returns_text, |args, _| {
            by_row(args, |values| Ok(Value::Array(values)))
        })
        .optional(MANY.len())
        .udf(),
        RowFunction::new("json_object", MANY, returns_pairs, object)
            .optional(MANY.len())
            .udf(),
    ]
}

/// Members in MySQL's order.
pub(super) fn ordered(members: &Map<String, Value>) -> Vec<(&str, &Value)> {
    let mut members: Vec<(&str, &Value)> = members
        .iter()
        .map(|(name, value)| (name.as_str(), value))
        .collect();
    members.sort_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)));
    members
}

/// JSON as MySQL writes it.
fn written(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Array(cells) => {
            text.push('[');
            for (n, cell) in cells.iter().enumerate() {
                if n > 0 {
                    text.push_str(", ");
                }
                write(cell, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push('{');
            for (n, (name, member)) in ordered(members).into_iter().enumerate() {
                if n > 0 {
                    text.push_str(", ");
                }
                text.push_str(&Value::from(name).to_string());
                text.push_str(": ");
                write(member, text);
            }
            text.push('}');
        }
        other => text.push_str(&other.to_string()),
    }
}

/// The text that a JSON string stands for; other text is as it is.
fn unquoted(text: &str) -> String {
    match text.starts_with('"') && text.ends_with('"') && text.len() > 1 {
        true => serde_json::from_str(text).unwrap_or_else(|_| text.to_owned()),
        false => text.to_owned(),
    }
}

fn length(value: &Value) -> i64 {
    let length = match value {
        Value::Array(cells) => cells.len(),
        Value::Object(members) => members.len(),
        _ => 1,
    };
    i64::try_from(length).unwrap_or(i64::MAX)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "NULL",
        Value::Bool(_) => "BOOLEAN",
        Value::Number(number) if number.is_i64() => "INTEGER",
        Value::Number(number) if number.is_u64() => "UNSIGNED INTEGER",
        Value::Number(_) => "DOUBLE",
        Value::String(_) => "STRING",
        Value::Array(_) => "ARRAY",
        Value::Object(_) => "OBJECT",
    }
}

fn document(function: &str, argument: usize, text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| {
        exec_datafusion_err!(
            "Invalid JSON text in argument {argument} to function {function}: {error}"
        )
    })
}

/// The paths of one argument, which are the same in all rows more often than not.
struct Paths<'a> {
    texts: &'a StringArray,
    last: Option<(&'a str, Arc<JsonPath>)>,
}

impl<'a> Paths<'a> {
    fn new(argument: &'a ArrayRef) -> Result<Self> {
        Ok(Self {
            texts: typed::<StringArray>(argument)?,
            last: None,
        })
    }

    fn row(&mut self, row: usize) -> Result<Option<Arc<JsonPath>>> {
        if self.texts.is_null(row) {
            return Ok(None);
        }
        let text = self.texts.value(row);
        if let Some((known, path)) = &self.last
            && *known == text
        {
            return Ok(Some(Arc::clone(path)));
        }
        let Some(path) = JsonPath::parse(text) else {
            return exec_err!("Invalid JSON path expression '{text}'");
        };
        let path = Arc::new(path);
        self.last = Some((text, Arc::clone(&path)));
        Ok(Some(path))
    }
}

fn extract(args: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let texts = typed::<StringArray>(&args[0])?;
    let mut paths = args[1..]
        .iter()
        .map(Paths::new)
        .collect::<Result<Vec<_>>>()?;
    let mut extracted = StringBuilder::new();
    'rows: for row in 0..texts.len() {
        let mut at = Vec::with_capacity(paths.len());
        for path in &mut paths {
            match path.row(row)? {
                Some(path) => at.push(path),
                None => {
                    extracted.append_null();
                    continue 'rows;
                }
            }
        }
        if texts.is_null(row) {
            extracted.append_null();
            continue;
        }
        let document = document("json_extract", 1, texts.value(row))?;
        let found: Vec<&Value> = at.iter().flat_map(|path| path.find(&document)).collect();
        let many = at.len() > 1 || at.iter().any(|path| path.is_many());
        match found.as_slice() {
            [] => extracted.append_null(),
            [only] if !many => extracted.append_value(written(only)),
            found => {
                let found = found.iter().map(|value| (*value).clone()).collect();
                extracted.append_value(written(&Value::Array(found)));
            }
        }
    }
    Ok(Arc::new(extracted.finish()))
}

/// A scalar as text; an object or an array is none.
fn value(args: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let values = at_path("json_value", args, |found| match found {
        Value::Null | Value::Array(_) | Value::Object(_) => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    })?;
    Ok(Arc::new(values.into_iter().collect::<StringArray>()))
}

/// What `of` makes of the value at the path that the second argument is, or of the whole document.
fn at_path<T>(
    function: &str,
    args: &[ArrayRef],
    of: impl Fn(&Value) -> Option<T>,
) -> Result<Vec<Option<T>>> {
    let texts = typed::<StringArray>(&args[0])?;
    let mut paths = args.get(1).map(Paths::new).transpose()?;
    (0..texts.len())
        .map(|row| {
            let path = match &mut paths {
                Some(paths) => match paths.row(row)? {
                    Some(path) => Some(path),
                    None => return Ok(None),
                },
                None => None,
            };
            if texts.is_null(row) {
                return Ok(None);
            }
            let document = document(function, 1, texts.value(row))?;
            let found = match path {
                Some(path) => path.find(&document),
                None => vec![&document],
            };
            Ok(match found.as_slice() {
                [only] => of(only),
                _ => None,
            })
        })
        .collect()
}

fn contains(args: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let (texts, candidates) = (
        typed::<StringArray>(&args[0])?,
        typed::<StringArray>(&args[1])?,
    );
    let mut paths = args.get(2).map(Paths::new).transpose()?;
    let rows = (0..texts.len()).map(|row| {
        let path = match &mut paths {
            Some(paths) => match paths.row(row)? {
                Some(path) => Some(path),
                None => return Ok(None),
            },
            None => None,
        };
        if texts.is_null(row) || candidates.is_null(row) {
            return Ok(None);
        }
        let target = document("json_contains", 1, texts.value(row))?;
        let candidate = document("json_contains", 2, candidates.value(row))?;
        let found = match path {
            Some(path) => path.find(&target),
            None => vec![&target],
        };
        Ok(match found.as_slice() {
            [only] => Some(i64::from(is_in(&candidate, only))),
            _ => None,
        })
    });
    Ok(Arc::new(rows.collect::<Result<Int64Array>>()?))
}

/// Whether a document holds another: MySQL's rules of `JSON_CONTAINS`.
fn is_in(candidate: &Value, target: &Value) -> bool {
    match (candidate, target) {
        (Value::Array(wanted), Value::Array(_)) => {
            wanted.iter().all(|wanted| is_in(wanted, target))
        }
        (wanted, Value::Array(cells)) => cells.iter().any(|cell| is_in(wanted, cell)),
        (Value::Object(wanted), Value::Object(members)) => wanted.iter().all(|(name, wanted)| {
            members
                .get(name)
                .is_some_and(|member| is_in(wanted, member))
        }),
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (a, b) => a == b,
    }
}

fn returns_pairs(args: &ReturnFieldArgs<'_>) -> Result<DataType> {
    match args.arg_fields.len() % 2 {
        0 => Ok(DataType::Utf8),
        _ => plan_err!("Incorrect parameter count in the call to native function 'json_object'"),
    }
}

fn object(args: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    by_row(args, |values| {
        let mut members = Map::new();
        let mut values = values.into_iter();
        while let (Some(name), Some(value)) = (values.next(), values.next()) {
            let name = match name {
                Value::String(name) => name,
                Value::Null => {
                    return exec_err!("JSON documents may not contain NULL member names.");
                }
                other => other.to_string(),
            };
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    })
}

/// One document for each row, made of the values of the arguments.
fn by_row(args: &[ArrayRef], make: impl Fn(Vec<Value>) -> Result<Value>) -> Result<ArrayRef> {
    let columns = args.iter().map(values_of).collect::<Result<Vec<_>>>()?;
    // Without arguments there is one value for all rows.
    let rows = args.first().map_or(1, |column| column.len());
    let documents = (0..rows).map(|row| {
        let values = columns.iter().map(|column| column[row].clone()).collect();
        Ok(Some(written(&make(values)?)))
    });
    Ok(Arc::new(documents.collect::<Result<StringArray>>()?))
}

/// SQL's values as JSON's: numbers and truth values as such, all else as text.
fn values_of(column: &ArrayRef) -> Result<Vec<Value>> {
    let of = column.data_type();
    let or_null = |value: Option<Value>| value.unwrap_or(Value::Null);
    Ok(match of {
        DataType::Null => vec![Value::Null; column.len()],
        DataType::Boolean => {
            let values: &BooleanArray = column.as_boolean();
            values
                .iter()
                .map(|value| or_null(value.map(Value::from)))
                .collect()
        }
        of if of.is_integer() && *of != DataType::UInt64 => {
            let values = cast(column, &DataType::Int64)?;
            let values = values.as_primitive::<Int64Type>();
            values
                .iter()
                .map(|value| or_null(value.map(Value::from)))
                .collect()
        }
        DataType::Float32 => {
            let values = column.as_primitive::<Float32Type>();
            values
                .iter()
                .map(|value| or_null(value.map(Value::from)))
                .collect()
        }
        DataType::Float64 => {
            let values = column.as_primitive::<Float64Type>();
            values
                .iter()
                .map(|value| or_null(value.map(Value::from)))
                .collect()
        }
        of => {
            let texts = cast(column, &DataType::Utf8).map_err(DataFusionError::from)?;
            let texts = typed::<StringArray>(&texts)?;
            let number = of.is_decimal() || *of == DataType::UInt64;
            let value = |text: &str| match text.parse::<Number>() {
                Ok(found) if number => Value::Number(found),
                _ => Value::from(text),
            };
            texts.iter().map(|text| or_null(text.map(value))).collect()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_written_as_mysql_writes_it() {
        let value = serde_json::from_str(r#"{"bb":[1,2.5,true,null],"a":"x\"y","c":{}}"#).unwrap();
        assert_eq!(
            written(&value),
            r#"{"a": "x\"y", "c": {}, "bb": [1, 2.5, true, null]}"#
        );
    }

    #[test]
    fn what_a_document_contains() {
        let holds = |target: &str, candidate: &str| {
            let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            is_in(&parsed(candidate), &parsed(target))
        };
        assert!(holds(r#"{"a": 1, "b": {"c": 4}}"#, r#"{"a": 1}"#));
        assert!(holds(r#"{"a": 1, "b": {"c": 4}}"#, r#"{"b": {"c": 4}}"#));
        assert!(!holds(r#"{"a": 1, "b": 2}"#, "1"));
        assert!(holds("[1, 2, [3, 4]]", "[1, 3]"));
        assert!(holds("[1, 2]", "1.0"));
        assert!(!holds("[1, 2]", r#""1""#));
        assert!(!holds("1", "[1]"));
    }
}
