//! Rows whose keys are in an equality delete file are not there, in its scope and nowhere else.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, Int32Array, Int64Array, StringArray, StructArray};
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::physical_plan::collect;
use iceberg::spec::{
    NestedField, PrimitiveType as P, Schema, StructType, Transform, Type, UnboundPartitionSpec,
};

use super::codec::travel;
use super::lake::{Lake, rows};

fn longs(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn words(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// A table of (id, k, v): ids 1..=6, k and v with nulls.
async fn lake() -> Lake {
    let mut lake = Lake::new().await;
    lake.create(
        "t",
        &[("id", P::Long), ("k", P::String), ("v", P::Int)],
        &[],
    )
    .await;
    let file = lake.write(
        "t.parquet",
        vec![
            (1, "id", longs(&[1, 2, 3, 4, 5, 6])),
            (
                2,
                "k",
                words(&[Some("a"), Some("a"), Some("b"), None, None, Some("c")]),
            ),
            (
                3,
                "v",
                Arc::new(Int32Array::from(vec![
                    Some(10),
                    Some(20),
                    Some(10),
                    Some(10),
                    None,
                    None,
                ])),
            ),
        ],
        4,
    );
    lake.commit("t", vec![file]).await;
    lake
}

async fn left(lake: &Lake) -> String {
    lake.query("SELECT id FROM t ORDER BY id").await.text
}

#[tokio::test]
async fn several_keys_nulls_and_columns_that_the_query_does_not_name() {
    let mut lake = lake().await;
    let composite = lake.equality_deletes(
        "composite.parquet",
        &[2, 3],
        vec![
            (2, "k", words(&[Some("a"), None, Some("c")])),
            (
                3,
                "v",
                Arc::new(Int32Array::from(vec![Some(10), None, Some(1)])),
            ),
        ],
    );
    // Another column in a delete file is no part of the key.
    let by_id = lake.equality_deletes(
        "id.parquet",
        &[1],
        vec![
            (1, "id", longs(&[3, 99])),
            (2, "k", words(&[Some("x"), None])),
        ],
    );
    lake.commit("t", vec![composite, by_id]).await;
    for late in [false, true] {
        lake.options.late_materialization = late;
        assert_eq!(left(&lake).await, "2; 4; 6");
        for (sql, answer) in [
            ("SELECT count(*) FROM t", "3"),
            (
                "SELECT min(id), max(id), count(k), count(v) FROM t",
                "2,6,2,2",
            ),
            ("SELECT v FROM t WHERE k = 'a'", "20"),
            ("SELECT id FROM t WHERE k IS NULL", "4"),
            ("SELECT id FROM t WHERE v = 10", "4"),
            ("SELECT id FROM t WHERE id = 3", ""),
            ("SELECT count(*) FROM (SELECT id FROM t LIMIT 4) x", "3"),
            ("SELECT k FROM t ORDER BY id LIMIT 1", "a"),
        ] {
            assert_eq!(lake.query(sql).await.text, answer, "{sql}, late {late}");
        }
    }
    let report = &lake.query("SELECT id FROM t").await.reports[0];
    assert_eq!((report.rows_deleted, report.rows_read), (3, 3));
    let plan = lake
        .plan("SELECT id, v FROM t WHERE id > 0 ORDER BY id")
        .await;
    let (plan, worker) = travel(&lake, plan).await;
    let batches = collect(plan, worker.task_ctx()).await.expect("rows");
    assert_eq!(rows(&batches), "2,20; 4,10; 6,");
}

#[tokio::test]
async fn a_key_that_is_written_anew_is_there() {
    let mut lake = lake().await;
    let row = |id: i64, v: i32| {
        vec![
            (1, "id", longs(&[id])),
            (2, "k", words(&[Some("again")])),
            (3, "v", Arc::new(Int32Array::from(vec![v])) as ArrayRef),
        ]
    };
    // In one commit, as streams do: the delete is of what was there before.
    let deletes = lake.equality_deletes("d1.parquet", &[1], vec![(1, "id", longs(&[1, 2]))]);
    let again = lake.write("again.parquet", row(1, 100), 10);
    lake.commit("t", vec![deletes, again]).await;
    assert_eq!(
        lake.query("SELECT id, v FROM t WHERE id < 3").await.text,
        "1,100"
    );
    let deletes = lake.equality_deletes("d2.parquet", &[1], vec![(1, "id", longs(&[1]))]);
    lake.commit("t", vec![deletes]).await;
    assert_eq!(left(&lake).await, "3; 4; 5; 6");
    let more = lake.write("more.parquet", row(1, 300), 10);
    lake.commit("t", vec![more]).await;
    assert_eq!(
        lake.query("SELECT id, v FROM t WHERE id < 3").await.text,
        "1,300"
    );
}

#[tokio::test]
async fn a_delete_in_one_partition_leaves_the_others_alone() {
    let mut lake = Lake::new().await;
    lake.create(
        "t",
        &[("id", P::Long), ("part", P::Long)],
        &[("part", Transform::Identity)],
    )
    .await;
    // Key 7 in both partitions.
    lake.append("t", vec![longs(&[1, 7, 7, 2]), longs(&[0, 0, 1, 1])])
        .await;
    let files = lake.data_files("t").await;
    let second = files
        .iter()
        .find(|file| format!("{:?}", file.partition).contains("Long(1)"))
        .expect("the second partition");
    let mut deletes = lake.equality_deletes("d.parquet", &[1], vec![(1, "id", longs(&[7]))]);
    deletes.partition(second.partition.clone());
    lake.commit("t", vec![deletes]).await;
    assert_eq!(
        lake.query("SELECT id, part FROM t ORDER BY part, id")
            .await
            .text,
        "1,0; 7,0; 2,1"
    );
    assert_eq!(
        lake.query("SELECT part FROM t WHERE id = 7").await.text,
        "0"
    );
    // A file of an unpartitioned spec deletes in all of them.
    lake.edit("t", |builder| {
        builder
            .add_default_partition_spec(UnboundPartitionSpec::builder().build())
            .expect("a spec")
    })
    .await;
    let global = lake.equality_deletes("g.parquet", &[1], vec![(1, "id", longs(&[1, 2]))]);
    lake.commit("t", vec![global]).await;
    assert_eq!(
        lake.query("SELECT id, part FROM t ORDER BY part, id")
            .await
            .text,
        "7,0"
    );
    // Not so in a file that was written under that spec later.
    let later = lake.write(
        "later.parquet",
        vec![(1, "id", longs(&[1])), (2, "part", longs(&[5]))],
        10,
    );
    lake.commit("t", vec![later]).await;
    assert_eq!(
        lake.query("SELECT id, part FROM t ORDER BY part, id")
            .await
            .text,
        "7,0; 1,5"
    );
}

#[tokio::test]
async fn keys_that_were_renamed_promoted_or_dropped_since_still_delete() {
    let mut lake = lake().await;
    let by_v = lake.equality_deletes(
        "v.parquet",
        &[3],
        vec![(3, "v", Arc::new(Int32Array::from(vec![20])))],
    );
    let by_k = lake.equality_deletes("k.parquet", &[2], vec![(2, "k", words(&[Some("b")]))]);
    lake.commit("t", vec![by_v, by_k]).await;
    assert_eq!(left(&lake).await, "1; 4; 5; 6");
    // v becomes a long of another name, k goes and another column takes its name.
    let optional = |id, name: &str, of| NestedField::optional(id, name, Type::Primitive(of)).into();
    let schema = Schema::builder()
        .with_fields(vec![
            optional(1, "id", P::Long),
            optional(3, "amount", P::Long),
            optional(4, "k", P::String),
        ])
        .build()
        .expect("a schema");
    lake.edit("t", |builder| {
        builder.add_current_schema(schema).expect("a schema")
    })
    .await;
    let query = "SELECT id, amount, k FROM t ORDER BY id";
    assert_eq!(lake.query(query).await.text, "1,10,; 4,10,; 5,,; 6,,");
    // Keys of the new schema: `amount` as a long, and the new `k`, which old files do not have.
    let amount = lake.equality_deletes(
        "a.parquet",
        &[3],
        vec![(3, "amount", longs(&[10, 1 << 40]))],
    );
    lake.commit("t", vec![amount]).await;
    assert_eq!(lake.query(query).await.text, "5,,; 6,,");
    let new_file = lake.write(
        "new.parquet",
        vec![
            (1, "id", longs(&[7, 8])),
            (3, "amount", longs(&[10, 20])),
            (4, "k", words(&[Some("b"), Some("z")])),
        ],
        10,
    );
    lake.commit("t", vec![new_file]).await;
    let new_k = lake.equality_deletes(
        "nk.parquet",
        &[4, 1],
        vec![
            (1, "id", longs(&[6, 8])),
            (4, "k", words(&[None, Some("z")])),
        ],
    );
    lake.commit("t", vec![new_k]).await;
    assert_eq!(lake.query(query).await.text, "5,,; 7,10,b");
    let plan = lake.plan(query).await;
    let (plan, worker) = travel(&lake, plan).await;
    let batches = collect(plan, worker.task_ctx()).await.expect("rows");
    assert_eq!(rows(&batches), "5,,; 7,10,b");
}

#[tokio::test]
async fn a_field_of_a_struct_and_a_widened_decimal_are_keys() {
    let mut lake = Lake::new().await;
    let decimal = |precision| P::Decimal {
        precision,
        scale: 2,
    };
    lake.create("t", &[("id", P::Long), ("d", decimal(9))], &[])
        .await;
    let inner = StructType::new(vec![
        NestedField::optional(4, "x", Type::Primitive(P::Long)).into(),
        NestedField::optional(5, "y", Type::Primitive(P::String)).into(),
    ]);
    let schema = |precision| {
        Schema::builder()
            .with_fields(vec![
                NestedField::optional(1, "id", Type::Primitive(P::Long)).into(),
                NestedField::optional(2, "d", Type::Primitive(decimal(precision))).into(),
                NestedField::optional(3, "s", Type::Struct(inner.clone())).into(),
            ])
            .build()
            .expect("a schema")
    };
    let first = schema(9);
    lake.edit("t", |builder| {
        builder.add_current_schema(first).expect("a schema")
    })
    .await;
    let field = |id: i32, name: &str, of| {
        Field::new(name, of, true)
            .with_metadata([("PARQUET:field_id".to_string(), id.to_string())].into())
    };
    let decimals = |values: &[i128], precision| -> ArrayRef {
        Arc::new(
            Decimal128Array::from(values.to_vec())
                .with_precision_and_scale(precision, 2)
                .expect("a decimal"),
        )
    };
    let structs = |x: &[i64], y: Option<&[Option<&str>]>| -> ArrayRef {
        let mut fields = vec![field(4, "x", DataType::Int64)];
        let mut arrays = vec![longs(x)];
        if let Some(y) = y {
            fields.push(field(5, "y", DataType::Utf8));
            arrays.push(words(y));
        }
        Arc::new(StructArray::new(Fields::from(fields), arrays, None))
    };
    let file = lake.write(
        "t.parquet",
        vec![
            (1, "id", longs(&[1, 2, 3])),
            (2, "d", decimals(&[100, 200, 300], 9)),
            (
                3,
                "s",
                structs(&[7, 8, 9], Some(&[Some("a"), None, Some("c")])),
            ),
        ],
        10,
    );
    lake.commit("t", vec![file]).await;
    let second = schema(20);
    lake.edit("t", |builder| {
        builder.add_current_schema(second).expect("a schema")
    })
    .await;
    let by_field =
        lake.equality_deletes("x.parquet", &[4], vec![(3, "s", structs(&[9, 10], None))]);
    let by_decimal = lake.equality_deletes(
        "d.parquet",
        &[2],
        vec![(2, "d", decimals(&[100, 10_i128.pow(18)], 20))],
    );
    lake.commit("t", vec![by_field, by_decimal]).await;
    assert_eq!(
        lake.query("SELECT id, s FROM t").await.text,
        "2,{x: 8, y: }"
    );
    assert_eq!(lake.query("SELECT count(*) FROM t").await.text, "1");
}

#[tokio::test]
async fn row_groups_and_delete_files_that_cannot_match_are_not_looked_at() {
    let mut lake = Lake::new().await;
    lake.create("t", &[("id", P::Long), ("k", P::Long)], &[])
        .await;
    let all: Vec<i64> = (0..5000).collect();
    let file = lake.write(
        "t.parquet",
        vec![(1, "id", longs(&all)), (2, "k", longs(&all))],
        1000,
    );
    lake.commit("t", vec![file]).await;
    // Bounds tell that one of the files has keys that a query for k = 1 or a data file cannot meet.
    let mut near = lake.equality_deletes("near.parquet", &[2], vec![(2, "k", longs(&[1, 4001]))]);
    near.lower_bounds([(2, iceberg::spec::Datum::long(1))].into())
        .upper_bounds([(2, iceberg::spec::Datum::long(4001))].into())
        .null_value_counts([(2, 0)].into());
    let mut far = lake.equality_deletes("far.parquet", &[2], vec![(2, "k", longs(&[2, 3]))]);
    far.lower_bounds([(2, iceberg::spec::Datum::long(2))].into())
        .upper_bounds([(2, iceberg::spec::Datum::long(3))].into())
        .null_value_counts([(2, 0)].into());
    lake.commit("t", vec![near, far]).await;
    assert_eq!(lake.query("SELECT count(*) FROM t").await.text, "4996");
    let answer = lake.query("SELECT id FROM t WHERE k = 1").await;
    assert_eq!(answer.text, "");
    assert_eq!(
        (
            answer.reports[0].delete_files.kept,
            answer.reports[0].delete_files.total
        ),
        (1, 2)
    );
    let answer = lake.query("SELECT id FROM t WHERE k >= 4000").await;
    assert_eq!(answer.reports[0].rows_read, 999);
    assert_eq!(
        lake.query("SELECT count(*), sum(id) FROM t WHERE id < 10")
            .await
            .text,
        "7,39"
    );
}

#[tokio::test]
async fn a_key_that_is_not_read_is_refused_by_name() {
    let mut lake = lake().await;
    let unknown = lake.equality_deletes("u.parquet", &[77], vec![(77, "u", longs(&[1]))]);
    lake.commit("t", vec![unknown]).await;
    let error = lake.error("SELECT id FROM t").await;
    assert!(
        error.contains("u.parquet' cannot be read: its equality field id 77 is in no schema"),
        "{error}"
    );
}
