//! Entries of a manifest, straight from Avro's bytes ("Manifests" in the specification).
//!
//! Fields are found by their ids, as the specification asks, so that it does not matter what a writer calls a partition field.
//! Nothing is built between the bytes and the entries: a table has some hundred thousand of them, with several hundred
//! values each.

use std::collections::HashMap;

use iceberg::metadata_columns::get_metadata_field;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, Datum, Literal, ManifestEntry,
    ManifestStatus, PrimitiveLiteral, PrimitiveType, Schema, Struct, Transform,
};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::avro_guard::{MARKER_BYTES, header};
use crate::avro_names::avro_name;
use crate::avro_schema::{AvroSchema, Field, Node, array, bytes, length, long, take};
use crate::newer_types::{may_have_newer_types, tell_schema};

/// The fields of an entry and of its data file, for files that do not tell ids.
const FIELDS: [(&str, i32); 25] = [
    ("status", 0),
    ("snapshot_id", 1),
    ("data_file", 2),
    ("sequence_number", 3),
    ("file_sequence_number", 4),
    ("file_path", 100),
    ("file_format", 101),
    ("partition", 102),
    ("record_count", 103),
    ("file_size_in_bytes", 104),
    ("column_sizes", 108),
    ("value_counts", 109),
    ("null_value_counts", 110),
    ("lower_bounds", 125),
    ("upper_bounds", 128),
    ("key_metadata", 131),
    ("split_offsets", 132),
    ("content", 134),
    ("equality_ids", 135),
    ("nan_value_counts", 137),
    ("sort_order_id", 140),
    ("first_row_id", 142),
    ("referenced_data_file", 143),
    ("content_offset", 144),
    ("content_size_in_bytes", 145),
];

/// The id of a spec's first field, where version 1 does not tell it.
const FIRST_PARTITION_FIELD: i32 = 1000;

fn id_of(field: &Field) -> Option<i32> {
    let by_name = || FIELDS.iter().find(|(name, _)| *name == field.name);
    field.id.or_else(|| by_name().map(|(_, id)| *id))
}

/// All entries of a manifest that [`checked`](crate::avro_guard::checked) has unpacked; an error is what is wrong with it.
pub(crate) fn decode_entries(file: &[u8]) -> Result<Vec<ManifestEntry>, String> {
    let (header, mut rest) = header(file)?;
    let entry = |key: &str| {
        let found = header.iter().find(|(name, _)| *name == key.as_bytes());
        found.map(|(_, value)| *value)
    };
    let decoder = Decoder::new(&entry)?;
    take(&mut rest, MARKER_BYTES)?;
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let count = length(&mut rest)?;
        let mut records = bytes(&mut rest)?;
        take(&mut rest, MARKER_BYTES)?;
        for _ in 0..count {
            entries.push(decoder.entry(&mut records)?);
        }
    }
    Ok(entries)
}

struct Decoder {
    avro: AvroSchema,
    /// The table's, when the manifest was written.
    schema: Schema,
    partition: Vec<PartitionValue>,
    spec_id: i32,
    /// Entries of version 1 have no sequence numbers.
    first_version: bool,
}

/// A field of the partition spec.
struct PartitionValue {
    id: i32,
    name: String,
    /// `None`: its column is not in the schema any more.
    of: Option<PrimitiveType>,
}

impl Decoder {
    fn new<'a>(entry: &impl Fn(&str) -> Option<&'a [u8]>) -> Result<Self, String> {
        let required = |key| entry(key).ok_or(format!("its header lacks '{key}'"));
        let avro = json(required("avro.schema")?, "avro.schema")?;
        let text = required("schema")?;
        let mut schema = json(text, "schema")?;
        if may_have_newer_types(text) {
            tell_schema(&mut schema)?;
        }
        let schema: Schema =
            serde_json::from_value(schema).map_err(|e| format!("its table schema: {e}"))?;
        let number = |key| -> Result<i32, String> {
            let Some(text) = entry(key) else {
                return Ok(0);
            };
            let text = String::from_utf8_lossy(text);
            text.parse()
                .map_err(|_| format!("its '{key}' is '{text}', which is no number"))
        };
        Ok(Self {
            avro: AvroSchema::new(&avro)?,
            partition: partition_values(required("partition-spec")?, &schema)?,
            schema,
            spec_id: number("partition-spec-id")?,
            first_version: entry("format-version").is_none() || number("format-version")? == 1,
        })
    }

    fn entry(&self, rest: &mut &[u8]) -> Result<ManifestEntry, String> {
        let Node::Record(fields) = &self.avro.root else {
            return Err("its schema is not of entries".to_string());
        };
        let (mut status, mut snapshot_id, mut file) = (None, None, None);
        let (mut sequence_number, mut file_sequence_number) = (None, None);
        for field in fields {
            let node = &field.node;
            match id_of(field) {
                Some(0) => status = self.int(node, rest)?,
                Some(1) => snapshot_id = self.avro.number(node, rest)?,
                Some(2) => file = self.data_file(node, rest)?,
                Some(3) => sequence_number = self.avro.number(node, rest)?,
                Some(4) => file_sequence_number = self.avro.number(node, rest)?,
                _ => self.avro.skip(node, rest, 0)?,
            }
        }
        if self.first_version {
            (sequence_number, file_sequence_number) = (Some(0), Some(0));
        }
        let status = status.ok_or("an entry has no status")?;
        Ok(ManifestEntry {
            status: ManifestStatus::try_from(status)
                .map_err(|_| format!("an entry's status is {status}"))?,
            snapshot_id,
            sequence_number,
            file_sequence_number,
            data_file: file.ok_or("an entry has no data file")?,
        })
    }

    fn data_file(&self, node: &Node, rest: &mut &[u8]) -> Result<Option<DataFile>, String> {
        let fields = match self.avro.present(node, rest)? {
            None => return Ok(None),
            Some(Node::Record(fields)) => fields,
            Some(_) => return Err("a data file is not a record".to_string()),
        };
        let mut file = DataFileBuilder::default();
        file.content(DataContentType::Data)
            .partition_spec_id(self.spec_id);
        for field in fields {
            self.data_file_field(&mut file, field, rest)
                .map_err(|reason| format!("'{}' of a data file: {reason}", field.name))?;
        }
        file.build().map(Some).map_err(|e| e.to_string())
    }

    fn data_file_field(
        &self,
        file: &mut DataFileBuilder,
        field: &Field,
        rest: &mut &[u8],
    ) -> Result<(), String> {
        let (avro, node) = (&self.avro, &field.node);
        match id_of(field) {
            Some(100) => {
                if let Some(path) = self.text(node, rest)? {
                    file.file_path(path.to_string());
                }
            }
            Some(101) => {
                if let Some(format) = self.text(node, rest)? {
                    let known: Result<DataFileFormat, _> = format.parse();
                    file.file_format(known.map_err(|_| format!("no format is '{format}'"))?);
                }
            }
            Some(102) => {
                file.partition(self.partition(node, rest)?);
            }
            Some(103) => {
                if let Some(rows) = avro.number(node, rest)? {
                    file.record_count(not_negative(rows)?);
                }
            }
            Some(104) => {
                if let Some(bytes) = avro.number(node, rest)? {
                    file.file_size_in_bytes(not_negative(bytes)?);
                }
            }
            Some(108) => {
                file.column_sizes(self.counts(node, rest)?);
            }
            Some(109) => {
                file.value_counts(self.counts(node, rest)?);
            }
            Some(110) => {
                file.null_value_counts(self.counts(node, rest)?);
            }
            Some(137) => {
                file.nan_value_counts(self.counts(node, rest)?);
            }
            Some(125) => {
                file.lower_bounds(self.bounds(node, rest)?);
            }
            Some(128) => {
                file.upper_bounds(self.bounds(node, rest)?);
            }
            Some(131) => {
                file.key_metadata(avro.bytes(node, rest)?.map(<[u8]>::to_vec));
            }
            Some(132) => {
                file.split_offsets(self.numbers(node, rest)?);
            }
            Some(134) => {
                let content = self.int(node, rest)?.unwrap_or(0);
                let known = DataContentType::try_from(content);
                file.content(known.map_err(|_| format!("no content is {content}"))?);
            }
            Some(135) => {
                let ids = self.numbers(node, rest)?;
                let ids = ids.map(|ids| ids.into_iter().map(fits).collect::<Result<_, _>>());
                file.equality_ids(ids.transpose()?);
            }
            Some(140) => {
                if let Some(order) = self.int(node, rest)? {
                    file.sort_order_id(order);
                }
            }
            Some(142) => {
                file.first_row_id(avro.number(node, rest)?);
            }
            Some(143) => {
                file.referenced_data_file(self.text(node, rest)?.map(str::to_string));
            }
            Some(144) => {
                file.content_offset(avro.number(node, rest)?);
            }
            Some(145) => {
                file.content_size_in_bytes(avro.number(node, rest)?);
            }
            _ => avro.skip(node, rest, 0)?,
        }
        Ok(())
    }

    fn int(&self, node: &Node, rest: &mut &[u8]) -> Result<Option<i32>, String> {
        self.avro.number(node, rest)?.map(fits).transpose()
    }

    fn text<'a>(&self, node: &Node, rest: &mut &'a [u8]) -> Result<Option<&'a str>, String> {
        let bytes = self.avro.bytes(node, rest)?;
        bytes.map(utf8).transpose()
    }

    fn numbers(&self, node: &Node, rest: &mut &[u8]) -> Result<Option<Vec<i64>>, String> {
        let mut numbers = Vec::new();
        let there = self.avro.items(node, rest, |item, rest| {
            numbers.extend(self.avro.number(item, rest)?);
            Ok(())
        })?;
        Ok(there.then_some(numbers))
    }

    /// A map from column ids, which Avro has as a list of keys and values.
    fn map<'a>(
        &self,
        node: &Node,
        rest: &mut &'a [u8],
        mut put: impl FnMut(i32, &Node, &mut &'a [u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        self.avro.items(node, rest, |item, rest| match item {
            Node::Record(fields) => match fields.as_slice() {
                [key, value] => {
                    let id = self.int(&key.node, rest)?.ok_or("a column's id is null")?;
                    put(id, &value.node, rest)
                }
                _ => Err("its items are not keys and values".to_string()),
            },
            _ => Err("its items are not keys and values".to_string()),
        })?;
        Ok(())
    }

    fn counts(&self, node: &Node, rest: &mut &[u8]) -> Result<HashMap<i32, u64>, String> {
        let mut counts = HashMap::new();
        self.map(node, rest, |id, node, rest| {
            // A negative count says nothing.
            if let Some(Ok(count)) = self.avro.number(node, rest)?.map(u64::try_from) {
                counts.insert(id, count);
            }
            Ok(())
        })?;
        Ok(counts)
    }

    fn bounds(&self, node: &Node, rest: &mut &[u8]) -> Result<HashMap<i32, Datum>, String> {
        let mut bounds = HashMap::new();
        self.map(node, rest, |id, node, rest| {
            let bytes = self.avro.bytes(node, rest)?;
            let field = self.schema.field_by_id(id);
            let field = field.or_else(|| get_metadata_field(id).ok());
            let of = field.and_then(|field| field.field_type.as_primitive_type());
            // A bound that is not of the column's type bounds nothing.
            if let (Some(bytes), Some(of)) = (bytes, of)
                && let Ok(bound) = Datum::try_from_bytes(bytes, of.clone())
            {
                bounds.insert(id, bound);
            }
            Ok(())
        })?;
        Ok(bounds)
    }

    /// The values in the order of the spec's fields.
    fn partition(&self, node: &Node, rest: &mut &[u8]) -> Result<Struct, String> {
        let mut values = vec![None; self.partition.len()];
        match self.avro.present(node, rest)? {
            None => {}
            Some(Node::Record(fields)) => {
                for field in fields {
                    let place = self.partition.iter().position(|value| match field.id {
                        Some(id) => value.id == id,
                        None => value.name == field.name,
                    });
                    match place {
                        Some(place) => {
                            let of = self.partition[place].of.as_ref();
                            values[place] = self
                                .literal(&field.node, rest, of)
                                .map_err(|reason| format!("'{}': {reason}", field.name))?;
                        }
                        None => self.avro.skip(&field.node, rest, 0)?,
                    }
                }
            }
            Some(_) => return Err("it is not a record".to_string()),
        }
        Ok(Struct::from_iter(values))
    }

    fn literal(
        &self,
        node: &Node,
        rest: &mut &[u8],
        of: Option<&PrimitiveType>,
    ) -> Result<Option<Literal>, String> {
        let Some(node) = self.avro.present(node, rest)? else {
            return Ok(None);
        };
        use PrimitiveType as T;
        let literal = match (node, of) {
            (Node::Boolean, Some(T::Boolean) | None) => Literal::bool(take(rest, 1)? != [0]),
            (Node::Number, Some(T::Int | T::Date)) => {
                Literal::Primitive(PrimitiveLiteral::Int(fits(long(rest)?)?))
            }
            (
                Node::Number,
                Some(
                    T::Long
                    | T::Time
                    | T::Timestamp
                    | T::Timestamptz
                    | T::TimestampNs
                    | T::TimestamptzNs,
                )
                | None,
            ) => Literal::long(long(rest)?),
            (Node::Float, Some(T::Double)) => {
                Literal::double(f64::from(f32::from_le_bytes(array(rest)?)))
            }
            (Node::Float, Some(T::Float) | None) => {
                Literal::float(f32::from_le_bytes(array(rest)?))
            }
            (Node::Double, Some(T::Double) | None) => {
                Literal::double(f64::from_le_bytes(array(rest)?))
            }
            (Node::Text, Some(T::Uuid)) => {
                let text = utf8(bytes(rest)?)?;
                let uuid = Uuid::parse_str(text);
                Literal::uuid(uuid.map_err(|_| format!("'{text}' is no UUID"))?)
            }
            (Node::Text, Some(T::String) | None) => Literal::string(utf8(bytes(rest)?)?),
            (Node::Bytes | Node::Fixed(_), of) => {
                let bytes = match node {
                    Node::Fixed(length) => take(rest, *length)?,
                    _ => bytes(rest)?,
                };
                match of {
                    Some(T::Uuid) => {
                        let uuid = Uuid::from_slice(bytes);
                        Literal::uuid(
                            uuid.map_err(|_| format!("a UUID has {} bytes", bytes.len()))?,
                        )
                    }
                    Some(T::Decimal { .. }) => Literal::Primitive(PrimitiveLiteral::Int128(
                        unscaled(bytes).ok_or("a decimal has more than 16 bytes")?,
                    )),
                    Some(T::Fixed(_) | T::Binary) | None => {
                        Literal::Primitive(PrimitiveLiteral::Binary(bytes.to_vec()))
                    }
                    Some(other) => return Err(format!("bytes are where {other} should be")),
                }
            }
            (_, Some(of)) => return Err(format!("{node:?} is where {of} should be")),
            (_, None) => return Err(format!("{node:?} is no partition value")),
        };
        Ok(Some(literal))
    }
}

fn partition_values(spec: &[u8], schema: &Schema) -> Result<Vec<PartitionValue>, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    struct Field {
        name: String,
        transform: Transform,
        source_id: i32,
        field_id: Option<i32>,
    }
    let fields: Vec<Field> =
        serde_json::from_slice(spec).map_err(|e| format!("its 'partition-spec': {e}"))?;
    let values = fields.into_iter().enumerate().map(|(number, field)| {
        let source = schema.field_by_id(field.source_id);
        let of = source.and_then(|source| field.transform.result_type(&source.field_type).ok());
        PartitionValue {
            // Version 1 counts them where it does not tell.
            id: field
                .field_id
                .unwrap_or(FIRST_PARTITION_FIELD + number as i32),
            name: avro_name(&field.name),
            of: of.and_then(|of| of.as_primitive_type().cloned()),
        }
    });
    Ok(values.collect())
}

fn json(text: &[u8], what: &str) -> Result<Value, String> {
    serde_json::from_slice(text).map_err(|e| format!("its '{what}': {e}"))
}

fn utf8(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| "a text is not UTF-8".to_string())
}

fn fits(number: i64) -> Result<i32, String> {
    i32::try_from(number).map_err(|_| format!("{number} is where an int should be"))
}

fn not_negative(number: i64) -> Result<u64, String> {
    u64::try_from(number).map_err(|_| format!("it is {number}"))
}

/// The number of a decimal: big-endian, of as few bytes as it takes or more.
fn unscaled(bytes: &[u8]) -> Option<i128> {
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    let start = 16_usize.checked_sub(bytes.len())?;
    wide[start..].copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use iceberg::spec::Manifest;

    use super::*;
    use crate::avro_guard::checked;

    fn manifests(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("the fixtures are there") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                manifests(&path, found);
            } else if name.ends_with(".avro")
                && !name.starts_with("snap-")
                && path.components().any(|part| part.as_os_str() == "metadata")
            {
                found.push(path);
            }
        }
    }

    /// Against the Iceberg crate's reader, on manifests that Iceberg Java wrote.
    #[test]
    fn entries_are_those_that_another_reader_finds() {
        let mut files = Vec::new();
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/iceberg");
        manifests(&fixtures, &mut files);
        let (mut compared, mut entries) = (0, 0);
        for file in &files {
            let bytes = std::fs::read(file).expect("a manifest");
            let plain = checked(&bytes, 10_000_000).expect("a sound file");
            let ours = decode_entries(&plain).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            // It does not know some types, and finds no partition field that Avro calls otherwise.
            let Ok(theirs) = Manifest::parse_avro(&bytes) else {
                continue;
            };
            let fields = theirs.metadata().partition_spec().fields();
            if fields
                .iter()
                .any(|field| field.name != avro_name(&field.name))
            {
                continue;
            }
            let theirs: Vec<_> = theirs
                .entries()
                .iter()
                .map(|e| e.as_ref().clone())
                .collect();
            assert_eq!(ours, theirs, "{}", file.display());
            compared += 1;
            entries += ours.len();
        }
        assert!(
            compared > 100 && entries > 300,
            "{compared} of {}, {entries}",
            files.len()
        );
    }

    #[test]
    fn partition_fields_are_known_by_id_and_may_be_called_anything() {
        let schema: Schema = serde_json::from_str(
            r#"{"type":"struct","schema-id":0,"fields":[
                {"id":1,"name":"s","required":false,"type":"string"},
                {"id":2,"name":"t","required":false,"type":"timestamp"}]}"#,
        )
        .expect("a schema");
        let spec = br#"[{"name":"s","transform":"void","source-id":1,"field-id":1000},
                        {"name":"t's day","transform":"day","source-id":2,"field-id":1001},
                        {"name":"gone","transform":"bucket[4]","source-id":9,"field-id":1002}]"#;
        let values = partition_values(spec, &schema).expect("a spec");
        let told: Vec<_> = values
            .into_iter()
            .map(|value| (value.id, value.name, value.of))
            .collect();
        assert_eq!(
            told,
            [
                (1000, "s".into(), Some(PrimitiveType::String)),
                (1001, "t_x27s_x20day".into(), Some(PrimitiveType::Date)),
                (1002, "gone".into(), None),
            ]
        );
    }

    #[test]
    fn decimals_are_of_any_width() {
        assert_eq!(unscaled(&[]), Some(0));
        assert_eq!(unscaled(&[0xff]), Some(-1));
        assert_eq!(unscaled(&[0, 0xff]), Some(255));
        assert_eq!(unscaled(&[0x80, 0, 0]), Some(-8_388_608));
        assert_eq!(unscaled(&i128::MIN.to_be_bytes()), Some(i128::MIN));
        assert_eq!(unscaled(&[0; 17]), None);
    }
}
