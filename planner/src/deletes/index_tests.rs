//! The rules of scope, case by case. Every data file and delete file is told by its name.

use std::collections::HashSet;
use std::sync::Arc;

use iceberg::metadata_columns::RESERVED_FIELD_ID_DELETE_FILE_PATH;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, Datum, Literal,
    ManifestContentType, ManifestEntry, ManifestStatus, NestedField, PartitionSpec, PrimitiveType,
    Schema, Struct, Transform, Type,
};
use tarn_catalog::DecodedManifest;

use super::{Applied, DeleteIndex, ValueRange, unpartitioned_specs};
use crate::prune::{TableLayout, column_bounds};

/// Specs 0 (unpartitioned), 1 and 2 (by p), 3 (by p once, void now).
fn schema() -> Schema {
    let column = |id, name: &str, of| NestedField::optional(id, name, Type::Primitive(of)).into();
    Schema::builder()
        .with_fields(vec![
            column(1, "k", PrimitiveType::Long),
            column(2, "p", PrimitiveType::Long),
        ])
        .build()
        .expect("a schema")
}

fn specs() -> Vec<Arc<PartitionSpec>> {
    [
        None,
        Some(Transform::Identity),
        Some(Transform::Identity),
        Some(Transform::Void),
    ]
    .into_iter()
    .enumerate()
    .map(|(id, transform)| {
        let mut builder = PartitionSpec::builder(schema()).with_spec_id(id as i32);
        if let Some(transform) = transform {
            builder = builder
                .add_partition_field("p", format!("p{id}"), transform)
                .expect("a field");
        }
        Arc::new(builder.build().expect("a spec"))
    })
    .collect()
}

#[derive(Clone)]
struct File {
    builder: DataFileBuilder,
    spec_id: i32,
    sequence: Option<i64>,
}

fn file(name: &str, content: DataContentType, spec_id: i32, p: Option<i64>) -> File {
    let mut builder = DataFileBuilder::default();
    let partition = match spec_id {
        0 => Struct::empty(),
        _ => Struct::from_iter([p.map(Literal::long)]),
    };
    builder
        .content(content)
        .file_path(name.to_string())
        .file_format(DataFileFormat::Parquet)
        .partition(partition)
        .record_count(10)
        .file_size_in_bytes(100);
    File {
        builder,
        spec_id,
        sequence: Some(1),
    }
}

fn data(name: &str, spec_id: i32, p: i64) -> File {
    file(name, DataContentType::Data, spec_id, Some(p))
}

fn positions(name: &str, spec_id: i32, p: i64) -> File {
    file(name, DataContentType::PositionDeletes, spec_id, Some(p))
}

fn equality(name: &str, spec_id: i32, p: i64) -> File {
    let mut file = file(name, DataContentType::EqualityDeletes, spec_id, Some(p));
    file.builder.equality_ids(Some(vec![1]));
    file
}

fn vector(name: &str, of: &str) -> File {
    let mut file = positions(name, 0, 0).of(of);
    file.builder
        .file_format(DataFileFormat::Puffin)
        .content_offset(Some(4))
        .content_size_in_bytes(Some(50));
    file
}

impl File {
    fn at(mut self, sequence: i64) -> Self {
        self.sequence = Some(sequence);
        self
    }

    fn of(mut self, data_file: &str) -> Self {
        self.builder
            .referenced_data_file(Some(data_file.to_string()));
        self
    }

    fn paths(mut self, lower: &str, upper: &str) -> Self {
        let id = RESERVED_FIELD_ID_DELETE_FILE_PATH;
        self.builder
            .lower_bounds([(id, Datum::string(lower))].into())
            .upper_bounds([(id, Datum::string(upper))].into());
        self
    }

    fn keys(mut self, lower: i64, upper: i64, nulls: u64) -> Self {
        self.builder
            .lower_bounds([(1, Datum::long(lower))].into())
            .upper_bounds([(1, Datum::long(upper))].into())
            .null_value_counts([(1, nulls)].into());
        self
    }

    fn entry(&self) -> ManifestEntry {
        let file: DataFile = self.builder.build().expect("a file");
        let builder = ManifestEntry::builder()
            .status(ManifestStatus::Existing)
            .data_file(file);
        match self.sequence {
            Some(sequence) => builder.sequence_number(sequence).build(),
            None => builder.build(),
        }
    }
}

fn manifest(file: &File, content: ManifestContentType) -> Arc<DecodedManifest> {
    Arc::new(DecodedManifest::new(
        vec![Arc::new(file.entry())],
        file.spec_id,
        content,
    ))
}

fn layout() -> TableLayout {
    let specs = specs();
    let specs: Vec<&PartitionSpec> = specs.iter().map(Arc::as_ref).collect();
    TableLayout::of_specs(&schema(), &specs, 1).expect("a layout")
}

fn index(deletes: &[File]) -> Result<DeleteIndex, String> {
    let manifests: Vec<_> = deletes
        .iter()
        .map(|file| manifest(file, ManifestContentType::Deletes))
        .collect();
    let specs = specs();
    let unpartitioned = unpartitioned_specs(specs.iter());
    assert_eq!(unpartitioned, HashSet::from([0, 3]));
    DeleteIndex::new(
        manifests.iter().map(|manifest| (manifest, &[][..])),
        &unpartitioned,
        &layout(),
    )
    .map_err(|e| e.to_string())
}

/// The names of the delete files that apply.
fn applied(deletes: &[File], data: &File) -> Result<Vec<String>, String> {
    let index = index(deletes)?;
    let layout = layout();
    let manifest = manifest(data, ManifestContentType::Data);
    let known: Vec<(usize, ValueRange)> = index
        .key_columns()
        .into_iter()
        .map(|column| {
            let bounds = column_bounds(&manifest, &layout.columns()[column]);
            (column, ValueRange::of(&bounds, 0, 10))
        })
        .collect();
    let applied = index
        .applied(data.spec_id, &manifest.entries[0], &known)
        .map_err(|e| e.to_string())?;
    let names = applied.numbers();
    Ok(names
        .map(|number| index.file(number).data_file().file_path().to_string())
        .collect())
}

#[test]
fn scope() {
    use std::slice::from_ref;
    for (what, delete, data, applies) in [
        // Sequence numbers: position deletes reach files of their own commit, equality deletes do not.
        (
            "position, older data",
            positions("d", 1, 7).at(5),
            data("f", 1, 7).at(4),
            true,
        ),
        (
            "position, same commit",
            positions("d", 1, 7).at(5),
            data("f", 1, 7).at(5),
            true,
        ),
        (
            "position, newer data",
            positions("d", 1, 7).at(5),
            data("f", 1, 7).at(6),
            false,
        ),
        (
            "equality, older data",
            equality("d", 1, 7).at(5),
            data("f", 1, 7).at(4),
            true,
        ),
        (
            "equality, same commit",
            equality("d", 1, 7).at(5),
            data("f", 1, 7).at(5),
            false,
        ),
        (
            "equality, newer data",
            equality("d", 1, 7).at(5),
            data("f", 1, 7).at(6),
            false,
        ),
        (
            "vector, older data",
            vector("d", "f").at(5),
            data("f", 0, 0).at(4),
            true,
        ),
        (
            "vector, same commit",
            vector("d", "f").at(5),
            data("f", 0, 0).at(5),
            true,
        ),
        // Partition and spec.
        (
            "position, another partition",
            positions("d", 1, 8).at(5),
            data("f", 1, 7),
            false,
        ),
        (
            "position, another spec",
            positions("d", 2, 7).at(5),
            data("f", 1, 7),
            false,
        ),
        (
            "position, unpartitioned, data partitioned",
            positions("d", 0, 0).at(5),
            data("f", 1, 7),
            false,
        ),
        (
            "position, unpartitioned both",
            positions("d", 0, 0).at(5),
            data("f", 0, 0),
            true,
        ),
        (
            "equality, another partition",
            equality("d", 1, 8).at(5),
            data("f", 1, 7),
            false,
        ),
        (
            "equality, another spec",
            equality("d", 2, 7).at(5),
            data("f", 1, 7),
            false,
        ),
        (
            "equality, global",
            equality("d", 0, 0).at(5),
            data("f", 1, 7),
            true,
        ),
        (
            "equality, global by void fields",
            equality("d", 3, 0).at(5),
            data("f", 1, 7),
            true,
        ),
        (
            "equality, global, same commit",
            equality("d", 0, 0).at(5),
            data("f", 1, 7).at(5),
            false,
        ),
        (
            "equality, partitioned, data not",
            equality("d", 1, 7).at(5),
            data("f", 0, 0),
            false,
        ),
        // The file that they name.
        (
            "position, names it",
            positions("d", 1, 7).at(5).of("f"),
            data("f", 1, 7),
            true,
        ),
        (
            "position, names another",
            positions("d", 1, 7).at(5).of("g"),
            data("f", 1, 7),
            false,
        ),
        (
            "position, names it, newer data",
            positions("d", 1, 7).at(5).of("f"),
            data("f", 1, 7).at(6),
            false,
        ),
        (
            "position, equal bounds name it",
            positions("d", 1, 7).at(5).paths("f", "f"),
            data("f", 1, 7),
            true,
        ),
        (
            "position, equal bounds name another",
            positions("d", 1, 7).at(5).paths("g", "g"),
            data("f", 1, 7),
            false,
        ),
        (
            "position, bounds around it",
            positions("d", 1, 7).at(5).paths("a", "z"),
            data("f", 1, 7),
            true,
        ),
        (
            "position, bounds above it",
            positions("d", 1, 7).at(5).paths("g", "z"),
            data("f", 1, 7),
            false,
        ),
        (
            "position, bounds below it",
            positions("d", 1, 7).at(5).paths("a", "e"),
            data("f", 1, 7),
            false,
        ),
        (
            "position, bounds of an unknown order",
            positions("d", 1, 7).at(5).paths("\u{ff5e}", "\u{1f600}"),
            data("f", 1, 7),
            true,
        ),
        (
            "vector of another",
            vector("d", "g").at(5),
            data("f", 0, 0),
            false,
        ),
        // Bounds of keys.
        (
            "keys meet",
            equality("d", 0, 0).at(5).keys(5, 9, 0),
            data("f", 0, 0).keys(1, 5, 0),
            true,
        ),
        (
            "keys do not meet",
            equality("d", 0, 0).at(5).keys(6, 9, 0),
            data("f", 0, 0).keys(1, 5, 0),
            false,
        ),
        (
            "keys meet in null",
            equality("d", 0, 0).at(5).keys(6, 9, 1),
            data("f", 0, 0).keys(1, 5, 1),
            true,
        ),
        (
            "keys unknown in data",
            equality("d", 0, 0).at(5).keys(6, 9, 0),
            data("f", 0, 0),
            true,
        ),
        (
            "keys unknown in deletes",
            equality("d", 0, 0).at(5),
            data("f", 0, 0).keys(1, 5, 0),
            true,
        ),
        (
            "keys inverted",
            equality("d", 0, 0).at(5).keys(9, 6, 0),
            data("f", 0, 0).keys(1, 5, 0),
            true,
        ),
    ] {
        let names = applied(from_ref(&delete), &data).expect("it is valid");
        let expected: &[&str] = if applies { &["d"] } else { &[] };
        assert_eq!(names, expected, "{what}");
    }
}

#[test]
fn a_vector_replaces_position_deletes_and_nothing_else() {
    let deletes = [
        positions("partition", 0, 0).at(5),
        positions("named", 0, 0).at(5).of("f"),
        vector("vector", "f").at(6),
        equality("keys", 0, 0).at(5),
    ];
    assert_eq!(
        applied(&deletes, &data("f", 0, 0)).expect("it is valid"),
        ["vector", "keys"]
    );
    assert_eq!(
        applied(&deletes, &data("g", 0, 0)).expect("it is valid"),
        ["partition", "keys"]
    );
}

#[test]
fn partition_values_that_were_promoted_since_are_the_same_partition() {
    let mut old = data("f", 1, 7);
    old.builder
        .partition(Struct::from_iter([Some(Literal::int(7))]));
    assert_eq!(
        applied(&[equality("d", 1, 7).at(5)], &old).expect("it is valid"),
        ["d"]
    );
}

#[test]
fn metadata_that_contradicts_itself_is_an_error() {
    let error =
        |deletes: &[File], data: &File| applied(deletes, data).expect_err("it is not valid");
    let f = data("f", 0, 0);
    assert!(
        error(&[vector("a", "f").at(5), vector("b", "f").at(6)], &f)
            .contains("two deletion vectors")
    );
    assert!(error(&[vector("a", "f").at(5)], &data("f", 0, 0).at(6)).contains("sequence number 6"));
    let mut nowhere = vector("a", "f").at(5);
    nowhere.builder.content_offset(None);
    assert!(error(&[nowhere], &f).contains("place in the file"));
    let mut negative = vector("a", "f").at(5);
    negative.builder.content_size_in_bytes(Some(-1));
    assert!(error(&[negative], &f).contains("place in the file"));
    let mut unnumbered = positions("a", 0, 0);
    unnumbered.sequence = None;
    assert!(error(&[unnumbered], &f).contains("no sequence number"));
    assert!(error(&[data("a", 0, 0)], &f).contains("it is a data file"));
    // Without deletes a data file's sequence number does not matter.
    let mut f = f;
    f.sequence = None;
    assert_eq!(applied(&[], &f), Ok(vec![]));
    assert!(Applied::default().is_empty());
}
