//! Names of partition fields inside manifests.
//!
//! A manifest is an Avro file whose schema has a field for each partition field. Avro names take fewer characters than
//! Iceberg's, so writers encode the others (`a.b` is `a_x2Eb`); the file's metadata keeps the names as they are.
//! Readers are to find the fields by id, as [`manifest_decoder`](crate::manifest_decoder) does. The Iceberg crate, which writes manifests
//! here, takes the name in the metadata, so that has to be encoded too.

use std::borrow::Cow;
use std::collections::HashSet;

use iceberg::spec::Schema;

use crate::avro_guard::{self, MAGIC};
use crate::avro_schema::put_long;
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

/// A manifest list with the counts of files under the names that version 1 had first, by which alone the Iceberg crate finds them;
/// writers since have called them otherwise. `None` if nothing is to be renamed.
pub(crate) fn with_first_names(list: &[u8]) -> Option<Vec<u8>> {
    const NAMES: [(&str, &str); 3] = [
        ("added_files_count", "added_data_files_count"),
        ("existing_files_count", "existing_data_files_count"),
        ("deleted_files_count", "deleted_data_files_count"),
    ];
    let (mut entries, rest) = header(list)?;
    let (_, schema) = entries.iter_mut().find(|(key, _)| *key == b"avro.schema")?;
    let mut told: serde_json::Value = serde_json::from_slice(schema).ok()?;
    let mut renamed = false;
    for field in told.get_mut("fields")?.as_array_mut()? {
        let Some(name) = field.get_mut("name") else {
            continue;
        };
        if let Some((_, first)) = NAMES.iter().find(|(since, _)| name == since) {
            *name = serde_json::Value::from(*first);
            renamed = true;
        }
    }
    *schema = Cow::Owned(serde_json::to_vec(&told).ok()?);
    renamed.then(|| with_header(entries, rest))
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

type HeaderEntry<'a> = (&'a [u8], Cow<'a, [u8]>);

/// The metadata of an Avro file, to be changed, and what comes after it.
fn header(file: &[u8]) -> Option<(Vec<HeaderEntry<'_>>, &[u8])> {
    let (entries, rest) = avro_guard::header(file).ok()?;
    let entries = entries.into_iter();
    Some((
        entries
            .map(|(key, value)| (key, Cow::Borrowed(value)))
            .collect(),
        rest,
    ))
}

fn with_header(entries: Vec<HeaderEntry<'_>>, rest: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    put_long(&mut bytes, entries.len());
    for (key, value) in entries {
        put_long(&mut bytes, key.len());
        bytes.extend_from_slice(key);
        put_long(&mut bytes, value.len());
        bytes.extend_from_slice(&value);
    }
    put_long(&mut bytes, 0);
    bytes.extend_from_slice(rest);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_files_get_their_first_names() {
        let file = |schema: &str| {
            let schema = Cow::Owned(schema.as_bytes().to_vec());
            with_header(vec![(b"avro.schema".as_slice(), schema)], b"the rest")
        };
        let since = r#"{"fields":[{"name":"manifest_path","type":"string"},{"name":"added_files_count","type":["null","int"]},
            {"name":"existing_files_count","type":["null","int"]},{"name":"deleted_files_count","type":["null","int"]}]}"#;
        let renamed = with_first_names(&file(since)).expect("there are such names");
        let (entries, rest) = header(&renamed).expect("a file");
        let text = String::from_utf8_lossy(&entries[0].1);
        for name in ["added", "existing", "deleted"] {
            assert!(
                text.contains(&format!("\"{name}_data_files_count\"")),
                "{text}"
            );
            assert!(!text.contains(&format!("\"{name}_files_count\"")), "{text}");
        }
        assert!(text.contains("manifest_path") && rest == b"the rest");
        assert_eq!(with_first_names(&renamed), None);
        assert_eq!(with_first_names(b"{}"), None);
    }

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
}
