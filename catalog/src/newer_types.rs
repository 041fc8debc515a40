//! Types of format version 3 that the Iceberg crate does not know.
//!
//! The crate is told another type before it parses a schema, and a mark in the field's `doc`, the one text of a field
//! that it carries along unread (to workers, too), keeps what the type is:
//!
//! | type      | told as  | why                                                                            |
//! |-----------|----------|--------------------------------------------------------------------------------|
//! | `unknown` | `string` | it is null in every row and in no file                                         |
//! | `variant` | `binary` | bounds of variants are bytes of a format of their own; nothing compares to them |
//!
//! Other new types (`geometry`, `geography`) are refused by name, as is a default value that cannot be read: the
//! crate would leave it out, and rows would be null that are not.

use iceberg::spec::{Literal, NestedField, Schema, StructType, Type};
use serde_json::Value;

/// A type that the crate was told another one for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewerType {
    /// Always null.
    Unknown,
    /// A value that carries its own type, as the Parquet project's variant encoding has it.
    Variant,
}

impl NewerType {
    const ALL: [NewerType; 2] = [NewerType::Unknown, NewerType::Variant];

    /// The name that the specification has for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            NewerType::Unknown => "unknown",
            NewerType::Variant => "variant",
        }
    }

    fn told_as(self) -> &'static str {
        match self {
            NewerType::Unknown => "string",
            NewerType::Variant => "binary",
        }
    }

    /// Begins the `doc` of a field of this type. A control character is in no text that somebody typed.
    fn mark(self) -> String {
        format!("\u{1}{}\u{1}", self.name())
    }

    /// The type of a field, if it is one of these.
    pub fn of(field: &NestedField) -> Option<Self> {
        let doc = field.doc.as_deref()?;
        Self::ALL
            .into_iter()
            .find(|newer| doc.starts_with(&newer.mark()))
    }
}

/// The comment of a field, without a mark.
pub fn field_comment(field: &NestedField) -> &str {
    let doc = field.doc.as_deref().unwrap_or_default();
    match NewerType::of(field) {
        Some(newer) => doc.strip_prefix(&newer.mark()).unwrap_or(doc),
        None => doc,
    }
}

/// Rewrites all schemas of table metadata. An error is the name of a feature that is not supported.
pub(crate) fn tell_metadata(metadata: &mut Value) -> Result<(), String> {
    let Some(metadata) = metadata.as_object_mut() else {
        return Ok(());
    };
    if let Some(schema) = metadata.get_mut("schema") {
        tell_schema(schema)?;
    }
    for schema in metadata
        .get_mut("schemas")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        tell_schema(schema)?;
    }
    Ok(())
}

/// A column of one of these types, by its full name; inside lists and maps there are none.
pub(crate) fn newer_type_within(schema: &Schema) -> Option<(String, NewerType)> {
    fn within(of: &StructType, outer: &str) -> Option<(String, NewerType)> {
        of.fields().iter().find_map(|field| {
            let name = format!("{outer}{}", field.name);
            match (NewerType::of(field), field.field_type.as_ref()) {
                (Some(newer), _) => Some((name, newer)),
                (None, Type::Struct(inner)) => within(inner, &format!("{name}.")),
                _ => None,
            }
        })
    }
    within(schema.as_struct(), "")
}

/// Puts the types that the crate was told others for back into the text of table metadata that it wrote.
pub(crate) fn restore_metadata(metadata: &mut Value) {
    match metadata {
        Value::Object(object) => {
            let doc = object.get("doc").and_then(Value::as_str);
            let marked = doc.and_then(|doc| {
                let newer = NewerType::ALL
                    .into_iter()
                    .find(|newer| doc.starts_with(&newer.mark()))?;
                Some((newer, doc[newer.mark().len()..].to_string()))
            });
            if let Some((newer, doc)) = marked {
                object.insert("type".to_string(), newer.name().into());
                match doc.is_empty() {
                    true => object.remove("doc"),
                    false => object.insert("doc".to_string(), doc.into()),
                };
            }
            object.values_mut().for_each(restore_metadata);
        }
        Value::Array(values) => values.iter_mut().for_each(restore_metadata),
        _ => {}
    }
}

/// Rewrites one schema.
pub(crate) fn tell_schema(schema: &mut Value) -> Result<(), String> {
    tell_type(schema)
}

/// Whether a schema's text may have to be rewritten.
pub(crate) fn may_have_newer_types(schema: &[u8]) -> bool {
    let text = String::from_utf8_lossy(schema);
    ["\"unknown\"", "\"variant\"", "\"geometry", "\"geography"]
        .iter()
        .any(|name| text.contains(name))
}

fn tell_type(of: &mut Value) -> Result<(), String> {
    if let Value::String(name) = of {
        return refuse(name);
    }
    match of.get("type").and_then(Value::as_str) {
        Some("struct") => {
            let fields = of.get_mut("fields").and_then(Value::as_array_mut);
            fields.into_iter().flatten().try_for_each(tell_field)
        }
        Some("list") => of.get_mut("element").map_or(Ok(()), tell_type),
        Some("map") => ["key", "value"]
            .into_iter()
            .try_for_each(|part| of.get_mut(part).map_or(Ok(()), tell_type)),
        // What is none of these is left to the crate to complain of.
        _ => Ok(()),
    }
}

fn tell_field(field: &mut Value) -> Result<(), String> {
    let newer = field.get("type").and_then(Value::as_str).and_then(|name| {
        NewerType::ALL
            .into_iter()
            .find(|newer| newer.name() == name)
    });
    let Some(newer) = newer else {
        if let Some(of) = field.get_mut("type") {
            tell_type(of)?;
        }
        return check_default(field);
    };
    if let Some(field) = field.as_object_mut() {
        let doc = field.get("doc").and_then(Value::as_str).unwrap_or_default();
        let doc = format!("{}{doc}", newer.mark());
        field.insert("doc".to_string(), doc.into());
        field.insert("type".to_string(), newer.told_as().into());
        // The specification has their default be null.
        field.remove("initial-default");
        field.remove("write-default");
    }
    Ok(())
}

/// Inside lists and maps there is no field, hence no `doc`, to mark.
fn refuse(name: &str) -> Result<(), String> {
    if name == "unknown" || name == "variant" {
        return Err(format!("the type '{name}' inside a list or a map"));
    }
    // With parameters: `geometry(srid:4326)`.
    let bare = name.split('(').next().unwrap_or(name).trim();
    if bare == "geometry" || bare == "geography" {
        return Err(format!("the type '{bare}'"));
    }
    Ok(())
}

fn check_default(field: &Value) -> Result<(), String> {
    let Some(default) = field.get("initial-default").filter(|d| !d.is_null()) else {
        return Ok(());
    };
    let name = field
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let of: Type = match field
        .get("type")
        .map(|of| serde_json::from_value(of.clone()))
    {
        Some(Ok(of)) => of,
        // The crate says what is wrong with the type.
        _ => return Ok(()),
    };
    let read = match &of {
        Type::Primitive(_) => Literal::try_from_json(default.clone(), &of),
        _ => {
            return Err(format!(
                "a default value for the column '{name}', which is of type {of}"
            ));
        }
    };
    match read {
        Ok(Some(_)) => Ok(()),
        _ => Err(format!(
            "the default value {default} of column '{name}', which is of type {of}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iceberg::spec::{PrimitiveType, Schema};
    use serde_json::json;

    fn told(fields: Value) -> Result<Schema, String> {
        let mut schema = json!({"type": "struct", "schema-id": 0, "fields": fields});
        tell_schema(&mut schema)?;
        Ok(serde_json::from_value(schema).expect("the crate reads it"))
    }

    #[test]
    fn newer_types_are_told_as_older_ones_and_marked() {
        let schema = told(json!([
            {"id": 1, "name": "u", "required": false, "type": "unknown"},
            {"id": 2, "name": "v", "required": false, "type": "variant", "doc": "any value"},
            {"id": 3, "name": "s", "required": false, "type":
                {"type": "struct", "fields": [{"id": 4, "name": "w", "required": false, "type": "variant"}]}},
            {"id": 5, "name": "n", "required": false, "type": "int", "doc": "a number"},
        ]))
        .expect("all are known");
        let field = |id| schema.field_by_id(id).expect("it is there");
        assert_eq!(NewerType::of(field(1)), Some(NewerType::Unknown));
        assert_eq!(*field(1).field_type, Type::Primitive(PrimitiveType::String));
        assert_eq!(NewerType::of(field(2)), Some(NewerType::Variant));
        assert_eq!(*field(2).field_type, Type::Primitive(PrimitiveType::Binary));
        assert_eq!(field_comment(field(2)), "any value");
        assert_eq!(NewerType::of(field(4)), Some(NewerType::Variant));
        assert_eq!(NewerType::of(field(5)), None);
        assert_eq!(field_comment(field(5)), "a number");
    }

    #[test]
    fn types_are_written_back_as_they_were_read() {
        let schema = json!({"type": "struct", "schema-id": 0, "fields": [
            {"id": 1, "name": "u", "required": false, "type": "unknown"},
            {"id": 2, "name": "v", "required": false, "type": "variant", "doc": "any value"},
            {"id": 3, "name": "s", "required": false, "type":
                {"type": "struct", "fields": [{"id": 4, "name": "w", "required": false, "type": "variant"}]}},
            {"id": 5, "name": "n", "required": false, "type": "int", "doc": "a number"},
        ]});
        let mut told = json!({"schemas": [schema]});
        tell_metadata(&mut told).expect("all are known");
        let parsed: Schema = serde_json::from_value(told["schemas"][0].clone()).expect("a schema");
        assert_eq!(
            newer_type_within(&parsed),
            Some(("u".to_string(), NewerType::Unknown))
        );
        let mut written = json!({"schemas": [serde_json::to_value(&parsed).expect("its text")]});
        restore_metadata(&mut written);
        assert_eq!(written, json!({"schemas": [schema]}));
    }

    #[test]
    fn what_cannot_be_read_is_refused_by_name() {
        for (of, name) in [
            (json!("geometry(srid:4326)"), "type 'geometry'"),
            (json!("geography"), "type 'geography'"),
            (
                json!({"type": "list", "element-id": 9, "element": "variant", "element-required": false}),
                "'variant' inside a list",
            ),
        ] {
            let error = told(json!([{"id": 1, "name": "c", "required": false, "type": of}]))
                .expect_err("it is not read");
            assert!(error.contains(name), "{error}");
        }
        let error = told(json!([
            {"id": 1, "name": "c", "required": false, "type": "int", "initial-default": "seven"}
        ]))
        .expect_err("the crate would leave it out");
        assert!(
            error.contains("\"seven\"") && error.contains("'c'"),
            "{error}"
        );
    }
}
