//! Names of partition fields inside manifests.
//!
//! A manifest is an Avro file whose schema has a field for each partition field. Avro names take fewer characters than
//! Iceberg's, so writers encode the others (`a.b` is `a_x2Eb`); the file's metadata keeps the names as they are.
//! Readers are to find the fields by id. The Iceberg crate finds them by the name in the metadata, so that has to be
//! encoded too, when writing and before reading. Types in a manifest's schema that the crate does not know are told it
//! as others at the same time (see [`newer_types`](crate::newer_types)).

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;

use crate::newer_types::{may_have_newer_types, tell_schema};

/// Replaces what an Avro name cannot have by its code, as other engines do: `a.b` is `a_x2Eb`, `1a` is `_1a`.
pub(crate) fn avro_name(name: &str) -> String {
    let mut safe = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '_' => safe.push(c),
            '0'..='9' if safe.is_empty() => {
                safe.push('_');
                safe.push(c);
            }
            '0'..='9' => safe.push(c),
            _ => safe.push_str(&format!("_x{:X}", c as u32)),
        }
    }
    safe
}

/// The bytes of a manifest whose metadata has Avro names. Bytes that are not an Avro file, and those that need no
/// change, are given back as they are.
pub(crate) fn with_avro_names(manifest: &[u8]) -> Cow<'_, [u8]> {
    rewritten(manifest).map_or(Cow::Borrowed(manifest), Cow::Owned)
}

fn rewritten(manifest: &[u8]) -> Option<Vec<u8>> {
    const MAGIC: &[u8] = b"Obj\x01";
    let mut rest = manifest.strip_prefix(MAGIC)?;
    let mut entries: Vec<(&[u8], Cow<'_, [u8]>)> = Vec::new();
    loop {
        let mut count = read_long(&mut rest)?;
        if count == 0 {
            break;
        }
        if count < 0 {
            // The block's size in bytes follows.
            read_long(&mut rest)?;
            count = count.checked_neg()?;
        }
        for _ in 0..count {
            let key = read_bytes(&mut rest)?;
            let value = read_bytes(&mut rest)?;
            entries.push((key, Cow::Borrowed(value)));
        }
    }
    let spec = entries.iter().find(|(key, _)| *key == b"partition-spec");
    let taken = spec.map(|(_, spec)| taken_names(spec)).unwrap_or_default();
    let mut changed = false;
    for (key, value) in &mut entries {
        let rewritten = match *key {
            b"partition-spec" => encoded_spec(value),
            b"schema" => told_schema(value, &taken),
            _ => None,
        };
        if let Some(rewritten) = rewritten {
            *value = Cow::Owned(rewritten);
            changed = true;
        }
    }
    if !changed {
        return None;
    }
    let mut bytes = MAGIC.to_vec();
    write_long(&mut bytes, entries.len() as i64);
    for (key, value) in entries {
        write_long(&mut bytes, key.len() as i64);
        bytes.extend_from_slice(key);
        write_long(&mut bytes, value.len() as i64);
        bytes.extend_from_slice(&value);
    }
    write_long(&mut bytes, 0);
    bytes.extend_from_slice(rest);
    Some(bytes)
}

/// The partition spec with Avro names; `None` if it has them already.
fn encoded_spec(json: &[u8]) -> Option<Vec<u8>> {
    let mut fields: Vec<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_slice(json).ok()?;
    let mut changed = false;
    for field in &mut fields {
        if let Some(serde_json::Value::String(name)) = field.get_mut("name") {
            let encoded = avro_name(name);
            changed |= *name != encoded;
            *name = encoded;
        }
    }
    changed.then(|| serde_json::to_vec(&fields).ok()).flatten()
}

/// The names of partition fields that are not their columns' own values, as Avro has them.
fn taken_names(spec: &[u8]) -> HashSet<String> {
    #[derive(Deserialize)]
    struct Field {
        name: String,
        transform: String,
    }
    let fields: Vec<Field> = serde_json::from_slice(spec).unwrap_or_default();
    let others = fields.into_iter().filter(|f| f.transform != "identity");
    others.map(|field| avro_name(&field.name)).collect()
}

/// The schema as the Iceberg crate can read it; `None` if it can as it is. One that it cannot read at all is for it to
/// complain of.
///
/// Of a manifest's schema only the ids and types count, and a column must not be named as a partition field is: the
/// crate refuses that, while a table of version 1 keeps a field that it dropped, void, under the column's name.
fn told_schema(json: &[u8], taken: &HashSet<String>) -> Option<Vec<u8>> {
    let newer = may_have_newer_types(json);
    if !newer && taken.is_empty() {
        return None;
    }
    let mut schema: serde_json::Value = serde_json::from_slice(json).ok()?;
    let mut changed = false;
    if newer {
        tell_schema(&mut schema).ok()?;
        changed = true;
    }
    let fields = schema.get_mut("fields").and_then(|f| f.as_array_mut());
    for field in fields.into_iter().flatten() {
        if let Some(serde_json::Value::String(name)) = field.get_mut("name")
            && taken.contains(name)
        {
            name.push_str("\u{1}column");
            changed = true;
        }
    }
    changed.then(|| serde_json::to_vec(&schema).ok()).flatten()
}

/// Avro's variable-length zig-zag number.
fn read_long(rest: &mut &[u8]) -> Option<i64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    None
}

fn write_long(bytes: &mut Vec<u8>, value: i64) {
    let mut value = ((value << 1) ^ (value >> 63)) as u64;
    while value >= 0x80 {
        bytes.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn read_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(read_long(rest)?).ok()?;
    let (bytes, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_avro_takes() {
        for (name, safe) in [
            ("day", "day"),
            ("st.x", "st_x2Ex"),
            ("1a", "_1a"),
            ("größe 1", "gr_xF6_xDFe_x201"),
        ] {
            assert_eq!(avro_name(name), safe);
        }
    }

    #[test]
    fn numbers_are_zig_zag() {
        for (value, bytes) in [
            (0, vec![0]),
            (-1, vec![1]),
            (1, vec![2]),
            (64, vec![0x80, 1]),
            (-65, vec![0x81, 1]),
        ] {
            let mut written = Vec::new();
            write_long(&mut written, value);
            assert_eq!(written, bytes);
            assert_eq!(read_long(&mut written.as_slice()), Some(value));
        }
        assert_eq!(read_long(&mut [0x80u8; 12].as_slice()), None);
    }

    #[test]
    fn a_void_field_may_be_named_as_its_column_is() {
        let spec = br#"[{"name":"s","transform":"void","source-id":1,"field-id":1000},
                        {"name":"t","transform":"identity","source-id":2,"field-id":1001}]"#;
        let schema =
            br#"{"type":"struct","fields":[{"id":1,"name":"s","required":false,"type":"string"},
                          {"id":2,"name":"t","required":false,"type":"string"}]}"#;
        let told = told_schema(schema, &taken_names(spec)).expect("it is changed");
        let told: serde_json::Value = serde_json::from_slice(&told).expect("JSON");
        assert_eq!(told["fields"][0]["name"], "s\u{1}column");
        assert_eq!(told["fields"][1]["name"], "t");
        assert_eq!(told_schema(schema, &HashSet::new()), None);
    }

    #[test]
    fn only_the_names_change() {
        let file = |spec: &str| {
            let mut bytes = b"Obj\x01".to_vec();
            write_long(&mut bytes, 2);
            for (key, value) in [("partition-spec", spec), ("content", "data")] {
                for part in [key, value] {
                    write_long(&mut bytes, part.len() as i64);
                    bytes.extend_from_slice(part.as_bytes());
                }
            }
            bytes.extend_from_slice(b"\x00the rest");
            bytes
        };
        let given = file(r#"[{"name":"a b","field-id":1000}]"#);
        let changed = with_avro_names(&given).into_owned();
        let text = String::from_utf8_lossy(&changed);
        assert!(
            text.contains(r#""name":"a_x20b""#) && text.ends_with("data\u{0}the rest"),
            "{text}"
        );

        for same in [
            file(r#"[{"name":"ab","field-id":1000}]"#),
            b"Obj\x01\x04".to_vec(),
            b"{}".to_vec(),
            Vec::new(),
        ] {
            assert!(matches!(with_avro_names(&same), Cow::Borrowed(_)));
        }
    }
}
