//! Session options: `SetSessionOptions`, `GetSessionOptions` and `CloseSession` of the Flight protocol,
//! whose messages arrow-flight does not have yet.

use std::collections::HashMap;

use tarn_coordinator::{ErrorKind, Session, Statement};

/// A value of an option.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OptionValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 5")]
    pub value: Option<Value>,
}

/// The types a value may have.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(sfixed64, tag = "3")]
    Integer(i64),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(message, tag = "5")]
    List(TextList),
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct TextList {
    #[prost(string, repeated, tag = "1")]
    pub values: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SetSessionOptionsRequest {
    #[prost(map = "string, message", tag = "1")]
    pub session_options: HashMap<String, OptionValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SetSessionOptionsResult {
    #[prost(map = "string, message", tag = "1")]
    pub errors: HashMap<String, OptionError>,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct OptionError {
    #[prost(enumeration = "OptionErrorValue", tag = "1")]
    pub value: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum OptionErrorValue {
    Unspecified = 0,
    InvalidName = 1,
    InvalidValue = 2,
    Error = 3,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetSessionOptionsResult {
    #[prost(map = "string, message", tag = "1")]
    pub session_options: HashMap<String, OptionValue>,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct CloseSessionResult {
    /// 1: closed.
    #[prost(int32, tag = "1")]
    pub status: i32,
}

const CATALOG: &str = "catalog";
const SCHEMA: &str = "schema";
const QUERY_TIMEOUT: &str = "query_timeout";

/// Sets what a client asks for; what cannot be set is in the answer, with why.
pub(crate) async fn set(
    session: &Session,
    request: SetSessionOptionsRequest,
) -> SetSessionOptionsResult {
    let mut options = request.session_options;
    let mut errors = HashMap::new();
    let mut failed = |name: &str, value: OptionErrorValue| {
        errors.insert(
            name.to_owned(),
            OptionError {
                value: value as i32,
            },
        );
    };

    let (catalog, schema) = (text(options.remove(CATALOG)), text(options.remove(SCHEMA)));
    // A catalog that is current already says nothing about the schema: JDBC names it after logging in.
    let stays = schema.is_none() && catalog.as_ref() == Some(&session.current_catalog());
    if (catalog.is_some() || schema.is_some()) && !stays {
        let name = if schema.is_some() { SCHEMA } else { CATALOG };
        let place = Statement::Use {
            catalog,
            database: schema,
        };
        if session.execute(place, "USE").await.is_err() {
            failed(name, OptionErrorValue::InvalidValue);
        }
    }
    for (name, option) in options {
        let is_name =
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let literal = match option.value {
            Some(Value::Text(text)) => quoted(&text),
            Some(Value::Bool(on)) => u8::from(on).to_string(),
            Some(Value::Integer(number)) => number.to_string(),
            Some(Value::Double(number)) => number.to_string(),
            Some(Value::List(list)) => quoted(&list.values.join(",")),
            None => "DEFAULT".to_owned(),
        };
        if !is_name {
            failed(&name, OptionErrorValue::InvalidName);
            continue;
        }
        if let Err(error) = session
            .execute_sql(&format!("SET SESSION {name} = {literal}"))
            .await
        {
            failed(
                &name,
                match error.kind {
                    ErrorKind::NoSuchVariable => OptionErrorValue::InvalidName,
                    ErrorKind::WrongValueForVariable => OptionErrorValue::InvalidValue,
                    _ => OptionErrorValue::Error,
                },
            );
        }
    }
    SetSessionOptionsResult { errors }
}

/// The options that a client may want to know.
pub(crate) fn get(session: &Session) -> GetSessionOptionsResult {
    let mut session_options = HashMap::new();
    let mut give = |name: &str, value: Value| {
        session_options.insert(name.to_owned(), OptionValue { value: Some(value) });
    };
    give(CATALOG, Value::Text(session.current_catalog()));
    give(SCHEMA, Value::Text(session.current_database()));
    if let Some(timeout) = session.variable(QUERY_TIMEOUT) {
        let value = timeout.parse().map_or(Value::Text(timeout), Value::Integer);
        give(QUERY_TIMEOUT, value);
    }
    GetSessionOptionsResult { session_options }
}

fn text(option: Option<OptionValue>) -> Option<String> {
    match option?.value? {
        Value::Text(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// A string literal of the dialect.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}
