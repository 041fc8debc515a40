//! Files against filters, with bounds and partition values as manifests have them.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::execution::context::ExecutionProps;
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::{Expr, cast, col, lit};
use datafusion::scalar::ScalarValue;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, Datum, FieldSummary, Literal,
    ManifestContentType, ManifestEntry, ManifestFile, ManifestStatus, NestedField, PartitionSpec,
    PrimitiveType as P, Schema, Struct, StructType, Transform, Type,
};
use tarn_catalog::DecodedManifest;

use super::{PruneFilter, TableLayout, prune_manifests};

const ROWS: u64 = 10;

fn schema() -> Schema {
    let field = |id, name: &str, of| NestedField::optional(id, name, Type::Primitive(of)).into();
    Schema::builder()
        .with_fields(vec![
            field(1, "i", P::Int),
            field(2, "s", P::String),
            field(3, "f", P::Double),
            field(4, "ts", P::Timestamp),
            field(
                5,
                "d",
                P::Decimal {
                    precision: 9,
                    scale: 2,
                },
            ),
        ])
        .build()
        .expect("a schema")
}

fn spec(id: i32, fields: &[(&str, Transform)]) -> PartitionSpec {
    let mut builder = PartitionSpec::builder(schema()).with_spec_id(id);
    for (i, (column, transform)) in fields.iter().enumerate() {
        builder = builder
            .add_partition_field(*column, format!("p{id}_{i}"), *transform)
            .expect("a field");
    }
    builder.build().expect("a spec")
}

#[derive(Default, Clone)]
struct File {
    lower: HashMap<i32, Datum>,
    upper: HashMap<i32, Datum>,
    nulls: HashMap<i32, u64>,
    nans: HashMap<i32, u64>,
    partition: Vec<Option<Literal>>,
}

impl File {
    fn bounds(id: i32, lower: Datum, upper: Datum) -> Self {
        Self {
            lower: HashMap::from([(id, lower)]),
            upper: HashMap::from([(id, upper)]),
            ..Self::default()
        }
    }

    fn partition(values: impl IntoIterator<Item = Option<Literal>>) -> Self {
        Self {
            partition: values.into_iter().collect(),
            ..Self::default()
        }
    }

    fn nulls(mut self, id: i32, count: u64) -> Self {
        self.nulls.insert(id, count);
        self
    }

    fn nans(mut self, id: i32, count: u64) -> Self {
        self.nans.insert(id, count);
        self
    }

    fn build(self) -> DataFile {
        DataFileBuilder::default()
            .content(DataContentType::Data)
            .file_path("file:///f.parquet".to_string())
            .file_format(DataFileFormat::Parquet)
            .partition(Struct::from_iter(self.partition))
            .record_count(ROWS)
            .file_size_in_bytes(100)
            .lower_bounds(self.lower)
            .upper_bounds(self.upper)
            .null_value_counts(self.nulls)
            .nan_value_counts(self.nans)
            .build()
            .expect("a file")
    }
}

fn manifest(spec_id: i32, files: Vec<File>) -> DecodedManifest {
    let entries = files
        .into_iter()
        .map(|file| {
            let entry = ManifestEntry::builder()
                .status(ManifestStatus::Added)
                .data_file(file.build())
                .build();
            Arc::new(entry)
        })
        .collect();
    DecodedManifest::new(entries, spec_id, ManifestContentType::Data)
}

fn kept(layout: &TableLayout, manifest: &DecodedManifest, filter: Expr) -> Vec<bool> {
    PruneFilter::new(&[filter], layout, &ExecutionProps::new())
        .expect("a filter")
        .prune_files(manifest, layout)
        .expect("it is evaluated")
}

fn unpartitioned() -> TableLayout {
    TableLayout::of_specs(&schema(), &[&PartitionSpec::unpartition_spec()], 0).expect("a layout")
}

fn text(value: &str) -> Expr {
    lit(ScalarValue::Utf8View(Some(value.to_string())))
}

#[test]
fn bounds_that_say_nothing_keep_the_file() {
    let layout = unpartitioned();
    let files = manifest(
        0,
        vec![
            File::bounds(1, Datum::int(10), Datum::int(20)),
            // No bounds at all; inverted ones; of a type that the column never had.
            File::default(),
            File::bounds(1, Datum::int(20), Datum::int(10)),
            File::bounds(1, Datum::string("a"), Datum::string("b")),
            // Only one side is known.
            File {
                upper: HashMap::from([(1, Datum::int(5))]),
                ..File::default()
            },
        ],
    );
    let keep = |filter| kept(&layout, &files, filter);
    assert_eq!(keep(col("i").gt(lit(30))), [false, true, true, true, false]);
    assert_eq!(keep(col("i").eq(lit(15))), [true, true, true, true, false]);
    assert_eq!(keep(col("i").lt(lit(10))), [false, true, true, true, true]);
    assert_eq!(
        keep(col("i").lt_eq(lit(9))),
        [false, true, true, true, true]
    );
    assert_eq!(
        keep(col("i").between(lit(21), lit(40))),
        [false, true, true, true, false]
    );
    assert_eq!(
        keep(col("i").gt(lit(30)).or(col("i").eq(lit(15)))),
        [true, true, true, true, false]
    );
    // Twenty values and more are no longer one OR: the file is held against the sorted list.
    let many = |from| col("i").in_list((from..from + 40).map(lit).collect(), false);
    assert_eq!(keep(many(21)), [false, true, true, true, false]);
    assert_eq!(keep(many(-20)), [true, true, true, true, true]);
}

#[test]
fn nulls_are_counted() {
    let layout = unpartitioned();
    let files = manifest(
        0,
        vec![
            File::bounds(1, Datum::int(1), Datum::int(2)).nulls(1, 0),
            File::bounds(1, Datum::int(1), Datum::int(2)).nulls(1, 3),
            File::default().nulls(1, ROWS),
            File::default(),
        ],
    );
    let keep = |filter| kept(&layout, &files, filter);
    assert_eq!(keep(col("i").is_null()), [false, true, true, true]);
    assert_eq!(keep(col("i").is_not_null()), [true, true, false, true]);
    assert_eq!(keep(col("i").eq(lit(1))), [true, true, false, true]);
    assert_eq!(
        keep(col("i").gt(lit(5)).or(col("i").is_null())),
        [false, true, true, true]
    );
}

#[test]
fn bounds_of_floats_hold_for_numbers_only() {
    let layout = unpartitioned();
    let bounds = || File::bounds(3, Datum::double(1.0), Datum::double(2.0));
    let files = manifest(
        0,
        vec![
            bounds().nans(3, 0),
            bounds().nans(3, 1),
            // Nobody counted.
            bounds(),
            File::bounds(3, Datum::double(f64::NAN), Datum::double(f64::NAN)).nans(3, 0),
        ],
    );
    let keep = |filter| kept(&layout, &files, filter);
    assert_eq!(keep(col("f").gt(lit(5.0))), [false, true, true, true]);
    // NaN is larger than that: what is kept is a number.
    assert_eq!(keep(col("f").lt(lit(0.5))), [false, false, false, true]);
    assert_eq!(keep(col("f").eq(lit(5.0))), [false, false, false, true]);
    assert_eq!(keep(col("f").eq(lit(f64::NAN))), [false, true, true, true]);
    assert_eq!(keep(col("f").eq(lit(1.5))), [true; 4]);
    // So it is where another conjunct says so, and not where a disjunct does.
    let bounded = col("f").gt(lit(5.0)).and(col("f").lt(lit(7.0)));
    assert_eq!(keep(bounded), [false, false, false, true]);
    let either = col("f").gt(lit(5.0)).or(col("f").lt(lit(0.5)));
    assert_eq!(keep(either), [false, true, true, true]);
    // Nothing but NaN, and null.
    let all_nan = File::default().nulls(3, 4).nans(3, ROWS - 4);
    let none = manifest(0, vec![all_nan]);
    assert_eq!(kept(&layout, &none, col("f").lt(lit(5.0))), [false]);
    assert_eq!(kept(&layout, &none, col("f").gt(lit(5.0))), [true]);
    // A bound of either zero holds for both.
    let zeros = manifest(
        0,
        vec![File::bounds(3, Datum::double(0.0), Datum::double(0.0)).nans(3, 0)],
    );
    assert_eq!(kept(&layout, &zeros, col("f").eq(lit(-0.0))), [true]);
    assert_eq!(kept(&layout, &zeros, col("f").lt(lit(0.0))), [true]);
    assert_eq!(kept(&layout, &zeros, col("f").lt(lit(-0.5))), [false]);
}

#[test]
fn truncated_bounds_of_strings_still_hold() {
    let layout = unpartitioned();
    // All values begin with "abc"; the upper bound was cut to three characters and raised.
    let files = manifest(
        0,
        vec![File::bounds(2, Datum::string("abc"), Datum::string("abd")).nulls(2, 0)],
    );
    let keep = |filter| kept(&layout, &files, filter)[0];
    assert!(keep(col("s").eq(text("abczzz"))));
    assert!(!keep(col("s").eq(text("abb"))));
    assert!(!keep(col("s").gt(text("abd"))));
    assert!(keep(col("s").like(text("abcd%"))));
    assert!(!keep(col("s").like(text("ac%"))));
    assert!(keep(col("s").not_like(text("ac%"))));
    assert!(keep(col("s").not_eq(text("abc"))));
}

#[test]
fn partition_values_become_bounds() {
    let spec = spec(
        7,
        &[
            ("ts", Transform::Day),
            ("i", Transform::Truncate(10)),
            ("s", Transform::Truncate(1)),
            ("d", Transform::Identity),
        ],
    );
    let layout = TableLayout::of_specs(&schema(), &[&spec], 7).expect("a layout");
    // 1970-01-03; -10 ..= -1; x…; 12.34.
    let file = File::partition([
        Some(Literal::int(2)),
        Some(Literal::int(-10)),
        Some(Literal::string("x")),
        Some(Literal::decimal(1234)),
    ]);
    let nulls = File::partition([None, None, None, None]);
    let files = manifest(7, vec![file, nulls]);
    let keep = |filter| kept(&layout, &files, filter);
    const DAY: i64 = 86_400_000_000;
    let time = |at| lit(ScalarValue::TimestampMicrosecond(Some(at), None));
    assert_eq!(keep(col("ts").gt_eq(time(3 * DAY))), [false, false]);
    assert_eq!(keep(col("ts").gt_eq(time(3 * DAY - 1))), [true, false]);
    assert_eq!(keep(col("ts").lt(time(2 * DAY))), [false, false]);
    let date = lit(ScalarValue::Date32(Some(2)));
    assert_eq!(
        keep(cast(col("ts"), arrow::datatypes::DataType::Date32).eq(date)),
        [true, false]
    );
    assert_eq!(keep(col("i").gt_eq(lit(0))), [false, false]);
    assert_eq!(keep(col("i").eq(lit(-1))), [true, false]);
    assert_eq!(keep(col("i").lt(lit(-10))), [false, false]);
    assert_eq!(keep(col("s").like(text("xy%"))), [true, false]);
    assert_eq!(keep(col("s").eq(text("ya"))), [false, false]);
    assert_eq!(keep(col("i").is_null()), [false, true]);
    let decimal = |v| lit(ScalarValue::Decimal128(Some(v), 9, 2));
    assert_eq!(keep(col("d").eq(decimal(1234))), [true, false]);
    assert_eq!(keep(col("d").gt(decimal(1234))), [false, false]);
    // Not true for nulls, hence for none of the rows.
    assert_eq!(keep(col("d").not_eq(decimal(1))), [true, false]);
}

#[test]
fn each_manifest_has_its_own_spec() {
    let (old, new) = (
        spec(0, &[("i", Transform::Identity)]),
        spec(1, &[("s", Transform::Identity)]),
    );
    let layout = TableLayout::of_specs(&schema(), &[&old, &new], 1).expect("a layout");
    let by_i = manifest(0, vec![File::partition([Some(Literal::int(5))])]);
    let by_s = manifest(1, vec![File::partition([Some(Literal::string("5"))])]);
    assert_eq!(kept(&layout, &by_i, col("i").eq(lit(6))), [false]);
    assert_eq!(kept(&layout, &by_s, col("i").eq(lit(6))), [true]);
    assert_eq!(kept(&layout, &by_s, col("s").eq(text("6"))), [false]);
    assert_eq!(kept(&layout, &by_i, col("s").eq(text("6"))), [true]);
}

#[test]
fn buckets_hold_equal_values_only() {
    let spec = spec(0, &[("i", Transform::Bucket(16))]);
    let layout = TableLayout::of_specs(&schema(), &[&spec], 0).expect("a layout");
    // The specification's example: 34 hashes to 2017239379, which is 3 modulo 16.
    let files = manifest(
        0,
        vec![
            File::partition([Some(Literal::int(3))]),
            File::partition([Some(Literal::int(4))]),
            File::partition([None]),
        ],
    );
    assert_eq!(
        kept(&layout, &files, col("i").eq(lit(34))),
        [true, false, false]
    );
    assert_eq!(
        kept(&layout, &files, col("i").not_eq(lit(34))),
        [true, true, false]
    );
    // Beside something else, and among others.
    assert_eq!(
        kept(&layout, &files, col("i").eq(lit(34)).or(col("i").is_null())),
        [true, false, true]
    );
    let null = lit(ScalarValue::Int32(None));
    assert_eq!(
        kept(
            &layout,
            &files,
            col("i").in_list(vec![lit(34), null], false)
        ),
        [true, false, false]
    );
    assert_eq!(
        kept(&layout, &files, col("i").in_list(vec![lit(34)], true)),
        [true, true, false]
    );
    assert_eq!(
        kept(&layout, &files, col("i").gt(lit(34))),
        [true, true, false]
    );
}

#[test]
fn fields_of_structs_have_bounds_and_partitions() {
    let inner = |id, name: &str, of| NestedField::optional(id, name, of).into();
    let deep = StructType::new(vec![inner(4, "c", Type::Primitive(P::String))]);
    let fields = vec![
        inner(3, "a", Type::Primitive(P::Int)),
        inner(2, "b", Type::Struct(deep)),
    ];
    let schema = Schema::builder()
        .with_fields(vec![inner(1, "s", Type::Struct(StructType::new(fields)))])
        .build()
        .expect("a schema");
    let spec = PartitionSpec::builder(schema.clone())
        .with_spec_id(0)
        .add_partition_field("s.b.c", "c", Transform::Identity)
        .expect("a field")
        .build()
        .expect("a spec");
    let layout = TableLayout::of_specs(&schema, &[&spec], 0).expect("a layout");
    let file = |value: &str| File {
        partition: vec![Some(Literal::string(value))],
        ..File::bounds(3, Datum::int(1), Datum::int(5)).nulls(3, 0)
    };
    let files = manifest(0, vec![file("x"), file("y")]);
    let keep = |filter| kept(&layout, &files, filter);
    let a = || get_field(col("s"), "a");
    let c = || get_field(get_field(col("s"), "b"), "c");
    assert_eq!(keep(a().eq(lit(6))), [false, false]);
    assert_eq!(keep(a().eq(lit(5))), [true, true]);
    assert_eq!(keep(a().is_null()), [false, false]);
    assert_eq!(keep(c().eq(lit("y"))), [false, true]);
    assert_eq!(keep(c().eq(lit("y")).and(a().lt(lit(1)))), [false, false]);
    assert_eq!(keep(col("s").is_null()), [true, true]);
}

fn summary(contains_null: bool, lower: Option<i32>, upper: Option<i32>) -> FieldSummary {
    let bytes = |v: Option<i32>| v.map(|v| Datum::int(v).to_bytes().expect("bytes"));
    FieldSummary {
        contains_null,
        contains_nan: Some(false),
        lower_bound: bytes(lower),
        upper_bound: bytes(upper),
    }
}

fn listed(spec_id: i32, partitions: Option<Vec<FieldSummary>>) -> ManifestFile {
    ManifestFile {
        manifest_path: "file:///m.avro".to_string(),
        manifest_length: 1,
        partition_spec_id: spec_id,
        content: ManifestContentType::Data,
        sequence_number: 1,
        min_sequence_number: 1,
        added_snapshot_id: 1,
        added_files_count: Some(1),
        existing_files_count: Some(0),
        deleted_files_count: Some(0),
        added_rows_count: Some(ROWS),
        existing_rows_count: Some(0),
        deleted_rows_count: Some(0),
        partitions,
        key_metadata: None,
        first_row_id: None,
    }
}

#[test]
fn manifests_are_ruled_out_by_summaries_of_their_own_spec() {
    let (months, numbers) = (
        spec(0, &[("ts", Transform::Month)]),
        spec(1, &[("i", Transform::Identity)]),
    );
    let layout = TableLayout::of_specs(&schema(), &[&months, &numbers], 1).expect("a layout");
    let manifests = [
        // January to March 1970; only nulls; unknown; and of the other spec 5 ..= 9, with nulls.
        listed(0, Some(vec![summary(false, Some(0), Some(2))])),
        listed(0, Some(vec![summary(true, None, None)])),
        listed(0, None),
        listed(1, Some(vec![summary(true, Some(5), Some(9))])),
    ];
    let manifests: Vec<&ManifestFile> = manifests.iter().collect();
    let keep = |filter: Expr| {
        let filter =
            PruneFilter::new(&[filter], &layout, &ExecutionProps::new()).expect("a filter");
        prune_manifests(&filter, &manifests, &layout)
    };
    // April 1st is day 90.
    let april = lit(ScalarValue::TimestampMicrosecond(
        Some(90 * 86_400_000_000),
        None,
    ));
    assert_eq!(
        keep(col("ts").gt_eq(april.clone())),
        [false, false, true, true]
    );
    assert_eq!(keep(col("ts").lt(april)), [true, false, true, true]);
    assert_eq!(keep(col("ts").is_null()), [false, true, true, true]);
    assert_eq!(keep(col("i").eq(lit(4))), [true, true, true, false]);
    assert_eq!(keep(col("i").eq(lit(5))), [true, true, true, true]);
    assert_eq!(keep(col("i").is_null()), [true, true, true, true]);
}
