//! Equality deletes by fields of structs, as schemas come and go: the key is a field id, and keeps its values in files.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array, Int64Array, StringArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{Field, Fields};
use datafusion::physical_plan::collect;
use iceberg::spec::{
    DataContentType, DataFileBuilder, DataFileFormat, FormatVersion, ListType, Literal,
    NestedField, NestedFieldRef, PrimitiveType as P, Schema, Struct, StructType, Transform, Type,
    UnboundPartitionSpec,
};

use super::codec::travel;
use super::evolution::{optional, primitive, table};
use super::lake::{Lake, rows};
use crate::formats::FixtureTable;

fn ints(values: &[i32]) -> ArrayRef {
    Arc::new(Int32Array::from(values.to_vec()))
}

fn longs(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn words(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// Structs of fields by id and name, null where `there` is false.
fn structs(fields: Vec<(i32, &str, ArrayRef)>, there: &[bool]) -> ArrayRef {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = fields
        .into_iter()
        .map(|(id, name, array)| {
            let field = Field::new(name, array.data_type().clone(), true)
                .with_metadata([("PARQUET:field_id".to_string(), id.to_string())].into());
            (field, array)
        })
        .unzip();
    Arc::new(StructArray::new(
        Fields::from(fields),
        arrays,
        Some(NullBuffer::from(there.to_vec())),
    ))
}

fn of(fields: Vec<NestedFieldRef>) -> Type {
    Type::Struct(StructType::new(fields))
}

async fn evolve(lake: &mut Lake, schema: Schema) {
    lake.edit("t", |builder| {
        builder.add_current_schema(schema).expect("a schema")
    })
    .await;
}

/// The ids that are left: in this process, with and without late materialization, and on a worker.
async fn left(lake: &mut Lake) -> String {
    let sql = "SELECT id FROM t ORDER BY id";
    lake.options.late_materialization = true;
    let late = lake.query(sql).await.text;
    lake.options.late_materialization = false;
    let text = lake.query(sql).await.text;
    assert_eq!(text, late);
    let plan = lake.plan(sql).await;
    let (plan, worker) = travel(lake, plan).await;
    let batches = collect(plan, worker.task_ctx()).await.expect("rows");
    assert_eq!(rows(&batches), text);
    let counted = lake.query("SELECT count(*) FROM t").await.text;
    let ids = text.split("; ").filter(|id| !id.is_empty());
    assert_eq!(counted, ids.count().to_string());
    text
}

/// `s<x int, y string, in<z long, w long = 42>>`, where `w` came late, becomes `s<xx long, y long>`: what was `y` went,
/// and so did all of `in`.
///
/// | id | x | old y | in.z | in.w |
/// |---|---|---|---|---|
/// | 1 | 1 | a | 10 | 42 by default |
/// | 2 | 2 | null | `in` is null | |
/// | 3 | `s` is null | | | |
/// | 4 | 4 | d | 40 | 42 by default |
/// | 5 | 5 | e | null | 42 |
/// | 6 | 6 | f | 60 | 7 |
/// | 7 | 7 | the file has neither `y` nor `in` | | |
async fn evolved() -> Lake {
    let mut lake = Lake::new().await;
    lake.create("t", &[("id", P::Long)], &[]).await;
    lake.edit("t", |builder| {
        builder
            .upgrade_format_version(FormatVersion::V3)
            .expect("a version")
    })
    .await;
    let z = primitive(6, "z", P::Long);
    let w = NestedField::optional(7, "w", Type::Primitive(P::Long))
        .with_initial_default(Literal::long(42));
    let columns = |inner: Vec<NestedFieldRef>| {
        table(vec![
            primitive(1, "id", P::Long),
            optional(
                2,
                "s",
                of(vec![
                    primitive(3, "x", P::Int),
                    primitive(4, "y", P::String),
                    optional(5, "in", of(inner)),
                ]),
            ),
        ])
    };
    evolve(&mut lake, columns(vec![Arc::clone(&z)])).await;
    let inner = structs(
        vec![(6, "z", longs(&[Some(10), None, None, Some(40)]))],
        &[true, false, false, true],
    );
    let s = structs(
        vec![
            (3, "x", ints(&[1, 2, 0, 4])),
            (4, "y", words(&[Some("a"), None, Some("d"), Some("d")])),
            (5, "in", inner),
        ],
        &[true, true, false, true],
    );
    let ids = longs(&[Some(1), Some(2), Some(3), Some(4)]);
    let file = lake.write("f1.parquet", vec![(1, "id", ids), (2, "s", s)], 3);
    lake.commit("t", vec![file]).await;
    evolve(&mut lake, columns(vec![z, w.into()])).await;
    let inner = structs(
        vec![
            (6, "z", longs(&[None, Some(60)])),
            (7, "w", longs(&[Some(42), Some(7)])),
        ],
        &[true, true],
    );
    let s = structs(
        vec![
            (3, "x", ints(&[5, 6])),
            (4, "y", words(&[Some("e"), Some("f")])),
            (5, "in", inner),
        ],
        &[true, true],
    );
    let ids = longs(&[Some(5), Some(6)]);
    let file = lake.write("f2.parquet", vec![(1, "id", ids), (2, "s", s)], 10);
    lake.commit("t", vec![file]).await;
    let newest = table(vec![
        primitive(1, "id", P::Long),
        optional(
            2,
            "s",
            of(vec![
                primitive(3, "xx", P::Long),
                primitive(8, "y", P::Long),
            ]),
        ),
    ]);
    evolve(&mut lake, newest).await;
    let s = structs(
        vec![(3, "xx", longs(&[Some(7)])), (8, "y", longs(&[Some(70)]))],
        &[true],
    );
    let ids = longs(&[Some(7)]);
    let file = lake.write("f3.parquet", vec![(1, "id", ids), (2, "s", s)], 10);
    lake.commit("t", vec![file]).await;
    lake
}

#[tokio::test]
async fn dropped_fields_of_structs_are_keys_at_any_depth() {
    let mut lake = evolved().await;
    assert_eq!(left(&mut lake).await, "1; 2; 3; 4; 5; 6; 7");
    // The text below the null struct of id 3 is no value.
    let y = structs(
        vec![(4, "y", words(&[Some("d"), Some("none")]))],
        &[true, true],
    );
    let by_y = lake.equality_deletes("y.parquet", &[4], vec![(2, "s", y)]);
    lake.commit("t", vec![by_y]).await;
    assert_eq!(left(&mut lake).await, "1; 2; 3; 5; 6; 7");
    // A field that is still there, under another name and of a wider type, with one that is not: both parts in one struct.
    let parts = structs(
        vec![
            (3, "xx", longs(&[Some(2), Some(6), Some(1)])),
            (
                5,
                "in",
                structs(
                    vec![(6, "z", longs(&[None, Some(60), Some(11)]))],
                    &[false, true, true],
                ),
            ),
        ],
        &[true, true, true],
    );
    let by_parts = lake.equality_deletes("p.parquet", &[3, 6], vec![(2, "s", parts)]);
    lake.commit("t", vec![by_parts]).await;
    assert_eq!(left(&mut lake).await, "1; 3; 5; 7");
    let answers = lake.query("SELECT id, s FROM t ORDER BY id").await.text;
    assert_eq!(
        answers,
        "1,{xx: 1, y: }; 3,; 5,{xx: 5, y: }; 7,{xx: 7, y: 70}"
    );
    // By its default and as it was written.
    let w = structs(vec![(7, "w", longs(&[Some(42)]))], &[true]);
    let w = structs(vec![(5, "in", w)], &[true]);
    let by_w = lake.equality_deletes("w.parquet", &[7], vec![(2, "s", w)]);
    lake.commit("t", vec![by_w]).await;
    assert_eq!(left(&mut lake).await, "3; 7");
    // Null in the delete file, where the struct is null, and where the file has no such field; the new `y` is another.
    let y = structs(vec![(4, "y", words(&[None]))], &[true]);
    let by_null = lake.equality_deletes("n.parquet", &[4], vec![(2, "s", y)]);
    let again = structs(vec![(3, "xx", longs(&[Some(8)]))], &[true]);
    let ids = longs(&[Some(8)]);
    let later = lake.write("f4.parquet", vec![(1, "id", ids), (2, "s", again)], 10);
    lake.commit("t", vec![by_null, later]).await;
    assert_eq!(left(&mut lake).await, "8");
}

#[tokio::test]
async fn a_struct_whose_fields_went_one_after_the_other_is_a_key() {
    let mut lake = evolved().await;
    // First `s.y`, then all of `s`: the parts of one key are in schemas of their own.
    evolve(
        &mut lake,
        table(vec![
            primitive(1, "id", P::Long),
            primitive(9, "s", P::Long),
        ]),
    )
    .await;
    let parts = structs(
        vec![
            (8, "y", longs(&[Some(70), None])),
            (4, "y_before", words(&[None, Some("a")])),
        ],
        &[true, true],
    );
    let by_parts = lake.equality_deletes(
        "p.parquet",
        &[1, 4, 8],
        vec![
            (1, "id", longs(&[Some(7), Some(1)])),
            (2, "s_before", parts),
        ],
    );
    lake.commit("t", vec![by_parts]).await;
    assert_eq!(left(&mut lake).await, "2; 3; 4; 5; 6");
}

#[tokio::test]
async fn orc_and_avro_files_have_dropped_fields_of_structs_too() {
    for (name, ending, format) in [
        ("formats/orc_evolved", ".orc", DataFileFormat::Orc),
        ("formats/avro_evolved", "-00001.avro", DataFileFormat::Avro),
    ] {
        // (1, s {x: 1, y: y1}) and (2, null) in a file without `z`; (3, s {z: 3, x: 33, y: y3}).
        let fixture = FixtureTable::open(name);
        let mut lake = Lake::new().await;
        lake.create("t", &[("id", P::Int)], &[]).await;
        let former = Schema::clone(&fixture.schema)
            .into_builder()
            .with_schema_id(5);
        evolve(&mut lake, former.build().expect("a schema")).await;
        let mut files = Vec::new();
        for (number, bytes) in fixture.data(ending).into_iter().enumerate() {
            let (path, location) = lake.new_file(&format!("{number}{ending}"));
            std::fs::write(&path, &bytes).expect("a file");
            let mut file = DataFileBuilder::default();
            file.content(DataContentType::Data)
                .file_path(location)
                .file_format(format)
                .partition(Struct::empty())
                .partition_spec_id(0)
                .record_count(2 - number as u64)
                .file_size_in_bytes(bytes.len() as u64);
            files.push(file);
        }
        lake.commit("t", files).await;
        let narrow = table(vec![
            primitive(1, "id", P::Long),
            optional(4, "s", of(vec![primitive(6, "x", P::Long)])),
        ]);
        evolve(&mut lake, narrow).await;
        assert_eq!(left(&mut lake).await, "1; 2; 3", "{name}");
        // A null `z` is that of the file without it, and so is the one below no struct. With `y` it is of one row.
        let s = structs(
            vec![(9, "z", ints(&[7])), (7, "y", words(&[Some("y1")]))],
            &[true],
        );
        let none = lake.equality_deletes("none.parquet", &[7, 9], vec![(4, "s", s)]);
        lake.commit("t", vec![none]).await;
        assert_eq!(left(&mut lake).await, "1; 2; 3", "{name}");
        let s = structs(
            vec![
                (
                    9,
                    "z",
                    Arc::new(Int32Array::from(vec![None, Some(3)])) as ArrayRef,
                ),
                (7, "y", words(&[Some("y1"), Some("y2")])),
            ],
            &[true, true],
        );
        let one = lake.equality_deletes("one.parquet", &[7, 9], vec![(4, "s", s)]);
        lake.commit("t", vec![one]).await;
        assert_eq!(left(&mut lake).await, "2; 3", "{name}");
        let s = structs(
            vec![(6, "x", longs(&[Some(33)])), (9, "z", ints(&[3]))],
            &[true],
        );
        let promoted = lake.equality_deletes("x.parquet", &[6, 9], vec![(4, "s", s)]);
        lake.commit("t", vec![promoted]).await;
        assert_eq!(left(&mut lake).await, "2", "{name}");
        // All of the struct went.
        evolve(&mut lake, table(vec![primitive(1, "id", P::Long)])).await;
        let s = structs(vec![(9, "z", ints(&[0]))], &[false]);
        let null = lake.equality_deletes("null.parquet", &[9], vec![(4, "s", s)]);
        lake.commit("t", vec![null]).await;
        assert_eq!(left(&mut lake).await, "", "{name}");
    }
}

#[tokio::test]
async fn the_partition_of_a_file_has_the_value_of_a_dropped_key() {
    let mut lake = Lake::new().await;
    lake.create(
        "t",
        &[("id", P::Long), ("part", P::Long)],
        &[("part", Transform::Identity)],
    )
    .await;
    let file = |lake: &Lake, name: &str, ids: &[i64], part: Option<i64>, has_column: bool| {
        let ids: Vec<Option<i64>> = ids.iter().copied().map(Some).collect();
        let mut columns = vec![(1, "id", longs(&ids))];
        if has_column {
            columns.push((2, "part", longs(&vec![part; ids.len()])));
        }
        let mut file = lake.write(name, columns, 10);
        file.partition(Struct::from_iter([part.map(Literal::long)]));
        file
    };
    let files = vec![
        file(&lake, "f1.parquet", &[1, 2], Some(1), false),
        file(&lake, "f2.parquet", &[3, 4], Some(2), true),
        file(&lake, "f3.parquet", &[5], None, false),
    ];
    lake.commit("t", files).await;
    lake.edit("t", |builder| {
        builder
            .add_default_partition_spec(UnboundPartitionSpec::builder().build())
            .expect("a spec")
    })
    .await;
    evolve(&mut lake, table(vec![primitive(1, "id", P::Long)])).await;
    assert_eq!(left(&mut lake).await, "1; 2; 3; 4; 5");
    // Of no partition, so in all of them.
    let deletes = lake.equality_deletes(
        "d.parquet",
        &[1, 2],
        vec![
            (
                1,
                "id",
                longs(&[Some(1), Some(2), Some(3), Some(4), Some(5)]),
            ),
            (2, "part", longs(&[Some(1), None, Some(2), None, None])),
        ],
    );
    lake.commit("t", vec![deletes]).await;
    assert_eq!(left(&mut lake).await, "2; 4");
}

#[tokio::test]
async fn a_field_in_a_list_is_no_key() {
    let mut lake = Lake::new().await;
    lake.create("t", &[("id", P::Long)], &[]).await;
    let element = NestedField::list_element(3, of(vec![primitive(4, "x", P::Long)]), false);
    let columns = table(vec![
        primitive(1, "id", P::Long),
        optional(2, "l", Type::List(ListType::new(element.into()))),
    ]);
    evolve(&mut lake, columns).await;
    let file = lake.write("t.parquet", vec![(1, "id", longs(&[Some(1)]))], 10);
    lake.commit("t", vec![file]).await;
    let deletes = lake.equality_deletes("d.parquet", &[4], vec![(4, "x", longs(&[Some(1)]))]);
    lake.commit("t", vec![deletes]).await;
    let error = lake.error("SELECT id FROM t").await;
    assert!(
        error.contains("equality deletes by a field that is in a list or map"),
        "{error}"
    );
}
