//! Names of partition fields inside manifests.
//!
//! A manifest is an Avro file whose schema has a field for each partition field. Avro names take fewer characters than
//! Iceberg's, so writers encode the others (`a.b` is `a_x2Eb`); the file's metadata keeps the names as they are.
//! Readers are to find the fields by id. The Iceberg crate finds them by the name in the metadata, so that has to be
//! encoded too, when writing and before reading. Types in a manifest's schema that the crate does not know are told it
//! as others at the same time (see [`newer_types`](crate::newer_types), [`uuid_partitions`](crate::uuid_partitions)).

use std::borrow::Cow;
use std::collections::HashSet;

use iceberg::spec::Schema;
use serde::Deserialize;

use crate::newer_types::{may_have_newer_types, tell_schema};
use crate::uuid_partitions;

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

/// A manifest as the Iceberg crate can read it.
pub(crate) struct Told<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    /// Columns that are UUIDs, and were told to be 16 bytes (see [`uuid_partitions`]).
    pub(crate) uuids: HashSet<i32>,
}

/// The manifest with Avro names in its metadata, and with types that the crate knows. Bytes that are not an Avro file,
/// and those that need no change, are given back as they are.
pub(crate) fn told(manifest: &[u8]) -> Told<'_> {
    match rewritten(manifest) {
        Some((bytes, uuids)) => Told {
            bytes: Cow::Owned(bytes),
            uuids,
        },
        None => Told {
            bytes: Cow::Borrowed(manifest),
            uuids: HashSet::new(),
        },
    }
}

/// A manifest that was written with a told schema, with the table's own; the partition fields of these ids are UUIDs.
/// `None` if it is no manifest.
pub(crate) fn with_uuids(
    manifest: &[u8],
    schema: &Schema,
    fields: &HashSet<i32>,
) -> Option<Vec<u8>> {
    let (mut entries, rest) = header(manifest)?;
    for (key, value) in &mut entries {
        match *key {
            b"schema" => *value = Cow::Owned(serde_json::to_vec(schema).ok()?),
            b"avro.schema" => {
                let mut avro = serde_json::from_slice(value).ok()?;
                uuid_partitions::restore_avro_schema(&mut avro, fields);
                *value = Cow::Owned(serde_json::to_vec(&avro).ok()?);
            }
            _ => {}
        }
    }
    Some(with_header(entries, rest))
}

const MAGIC: &[u8] = b"Obj\x01";

type HeaderEntry<'a> = (&'a [u8], Cow<'a, [u8]>);

/// The metadata of an Avro file, and what comes after it.
fn header(file: &[u8]) -> Option<(Vec<HeaderEntry<'_>>, &[u8])> {
    let mut rest = file.strip_prefix(MAGIC)?;
    let mut entries: Vec<HeaderEntry<'_>> = Vec::new();
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
    Some((entries, rest))
}

fn with_header(entries: Vec<HeaderEntry<'_>>, rest: &[u8]) -> Vec<u8> {
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
    bytes
}

fn rewritten(manifest: &[u8]) -> Option<(Vec<u8>, HashSet<i32>)> {
    let (mut entries, rest) = header(manifest)?;
    let spec = entries.iter().find(|(key, _)| *key == b"partition-spec");
    let taken = spec.map(|(_, spec)| taken_names(spec)).unwrap_or_default();
    let mut own = spec
        .map(|(_, spec)| uuid_partitions::identity_sources(spec))
        .unwrap_or_default();
    let mut changed = false;
    let avro = entries.iter_mut().find(|(key, _)| *key == b"avro.schema");
    match avro.and_then(|(_, value)| Some((told_avro_schema(value)?, value))) {
        Some((told, value)) if !own.is_empty() => {
            *value = Cow::Owned(told);
            changed = true;
        }
        // Without UUIDs of 16 bytes none are to be told.
        _ => own.clear(),
    }
    let mut uuids = HashSet::new();
    for (key, value) in &mut entries {
        let rewritten = match *key {
            b"partition-spec" => encoded_spec(value),
            b"schema" => told_schema(value, &taken, &own, &mut uuids),
            _ => None,
        };
        if let Some(rewritten) = rewritten {
            *value = Cow::Owned(rewritten);
            changed = true;
        }
    }
    changed.then(|| (with_header(entries, rest), uuids))
}

/// The schema of the Avro file with UUIDs as 16 bytes; `None` if it has none.
fn told_avro_schema(json: &[u8]) -> Option<Vec<u8>> {
    if !json.windows(4).any(|text| text == b"uuid") {
        return None;
    }
    let mut schema = serde_json::from_slice(json).ok()?;
    let told = uuid_partitions::tell_avro_schema(&mut schema);
    told.then(|| serde_json::to_vec(&schema).ok()).flatten()
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
fn told_schema(
    json: &[u8],
    taken: &HashSet<String>,
    own: &HashSet<i32>,
    uuids: &mut HashSet<i32>,
) -> Option<Vec<u8>> {
    let newer = may_have_newer_types(json);
    if !newer && taken.is_empty() && own.is_empty() {
        return None;
    }
    let mut schema: serde_json::Value = serde_json::from_slice(json).ok()?;
    let mut changed = false;
    if newer {
        tell_schema(&mut schema).ok()?;
        changed = true;
    }
    *uuids = uuid_partitions::tell_schema(&mut schema, own);
    changed |= !uuids.is_empty();
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
        let told = told_schema(
            schema,
            &taken_names(spec),
            &HashSet::new(),
            &mut HashSet::new(),
        )
        .expect("it is changed");
        let told: serde_json::Value = serde_json::from_slice(&told).expect("JSON");
        assert_eq!(told["fields"][0]["name"], "s\u{1}column");
        assert_eq!(told["fields"][1]["name"], "t");
        let none = HashSet::new();
        assert_eq!(
            told_schema(schema, &HashSet::new(), &none, &mut HashSet::new()),
            None
        );
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
        let changed = told(&given).bytes.into_owned();
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
            assert!(matches!(told(&same).bytes, Cow::Borrowed(_)));
        }
    }
}
