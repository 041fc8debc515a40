//! Answers are right, whether they come from rows or from metadata.

use std::sync::Arc;

use arrow::array::{
    BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array,
    LargeBinaryArray, StringArray, TimestampMicrosecondArray,
};
use iceberg::spec::{PrimitiveType as P, Transform};

use super::lake::Lake;

/// Three appends of two days each: (id, name, day) with ids 1..=6; the last name is null.
async fn notes() -> Lake {
    let lake = Lake::new().await;
    lake.create(
        "notes",
        &[("id", P::Long), ("name", P::String), ("day", P::Date)],
        &[("day", Transform::Identity)],
    )
    .await;
    for append in 0..3i64 {
        let names = match append {
            2 => StringArray::from(vec![Some("e"), None]),
            n => StringArray::from(vec![["a", "c"][n as usize], ["b", "d"][n as usize]]),
        };
        lake.append(
            "notes",
            vec![
                Arc::new(Int64Array::from(vec![append * 2 + 1, append * 2 + 2])),
                Arc::new(names),
                Arc::new(Date32Array::from(vec![
                    append as i32 * 2,
                    append as i32 * 2 + 1,
                ])),
            ],
        )
        .await;
    }
    lake
}

#[tokio::test]
async fn rows_come_back_as_they_were_written() {
    let lake = notes().await;
    let answer = lake
        .query("SELECT id, name, day FROM notes ORDER BY id")
        .await;
    assert_eq!(
        answer.text,
        "1,a,1970-01-01; 2,b,1970-01-02; 3,c,1970-01-03; 4,d,1970-01-04; 5,e,1970-01-05; 6,,1970-01-06"
    );
    let report = &answer.reports[0];
    assert_eq!((report.rows_read, report.rows_in_files), (6, 6));
    assert_eq!(report.row_groups.total, 6);
    assert!(report.bytes_read > 0);
    assert_eq!(report.projected_columns, ["id", "name", "day"]);
}

#[tokio::test]
async fn a_filter_on_the_partition_is_answered_by_files_alone() {
    let lake = notes().await;
    let sql = "SELECT count(*) FROM notes WHERE day >= DATE '1970-01-03'";
    assert_eq!(lake.query(sql).await.text, "4");
    // Neither a filter nor a scan is left: the count is in the metadata.
    let plan = lake.explain(sql).await;
    assert!(
        !plan.contains("FilterExec") && !plan.contains("DataSourceExec"),
        "{plan}"
    );
    assert_eq!(lake.query("SELECT count(*) FROM notes").await.text, "6");
    assert_eq!(lake.query("SELECT count(name) FROM notes").await.text, "5");
    assert_eq!(
        lake.query("SELECT min(id), max(id) FROM notes").await.text,
        "1,6"
    );
    assert_eq!(
        lake.query("SELECT min(name), max(name) FROM notes")
            .await
            .text,
        "a,e"
    );
    assert_eq!(
        lake.query("SELECT count(*) FROM notes WHERE day IS NULL")
            .await
            .text,
        "0"
    );
    assert_eq!(
        lake.query("SELECT count(*) FROM notes WHERE day <> DATE '1970-01-03'")
            .await
            .text,
        "5"
    );
}

#[tokio::test]
async fn counts_of_limited_and_filtered_rows_are_not_taken_from_metadata() {
    let lake = notes().await;
    assert_eq!(
        lake.query("SELECT count(*) FROM (SELECT * FROM notes LIMIT 3) t")
            .await
            .text,
        "3"
    );
    assert_eq!(
        lake.query("SELECT count(*) FROM (SELECT id FROM notes LIMIT 3 OFFSET 2) t")
            .await
            .text,
        "3"
    );
    assert_eq!(
        lake.query("SELECT count(*) FROM notes WHERE id > 2 AND name IS NOT NULL")
            .await
            .text,
        "3"
    );
    assert_eq!(
        lake.query("SELECT max(id) FROM notes WHERE name < 'c'")
            .await
            .text,
        "2"
    );
}

#[tokio::test]
async fn a_limit_without_filter_reads_no_more_files_than_it_needs() {
    let lake = notes().await;
    assert_eq!(lake.files("SELECT * FROM notes LIMIT 2").await, (2, 6));
    assert_eq!(
        lake.files("SELECT * FROM notes WHERE id > 0 LIMIT 2").await,
        (6, 6)
    );
}

#[tokio::test]
async fn an_empty_table_has_no_rows() {
    let lake = Lake::new().await;
    lake.create("empty", &[("id", P::Long)], &[]).await;
    assert_eq!(lake.query("SELECT * FROM empty").await.text, "");
    assert_eq!(
        lake.query("SELECT count(*), max(id) FROM empty").await.text,
        "0,"
    );
}

#[tokio::test]
async fn all_types_are_read_with_and_without_late_materialization() {
    let mut lake = Lake::new().await;
    lake.create(
        "types",
        &[
            ("b", P::Boolean),
            ("i", P::Int),
            ("f", P::Double),
            (
                "d",
                P::Decimal {
                    precision: 12,
                    scale: 2,
                },
            ),
            ("t", P::Timestamp),
            ("z", P::Timestamptz),
            ("x", P::Binary),
        ],
        &[],
    )
    .await;
    lake.append(
        "types",
        vec![
            Arc::new(BooleanArray::from(vec![Some(true), None])),
            Arc::new(Int32Array::from(vec![Some(-1), None])),
            Arc::new(Float64Array::from(vec![Some(1.5), None])),
            Arc::new(
                Decimal128Array::from(vec![Some(12345), None])
                    .with_precision_and_scale(12, 2)
                    .expect("a decimal"),
            ),
            Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), None])),
            Arc::new(
                TimestampMicrosecondArray::from(vec![Some(1_000_000), None])
                    .with_timezone("+00:00"),
            ),
            Arc::new(LargeBinaryArray::from(vec![
                Some(b"\x01\x02".as_slice()),
                None,
            ])),
        ],
    )
    .await;
    let expected =
        "true,-1,1.5,123.45,1969-12-31T23:59:59.999999,1970-01-01T00:00:01Z,0102; ,,,,,,";
    for late in [false, true] {
        lake.options.late_materialization = late;
        assert_eq!(
            lake.query("SELECT * FROM types ORDER BY i NULLS LAST")
                .await
                .text,
            expected
        );
        for filter in [
            "b",
            "i = -1",
            "f > 1",
            "d = 123.45",
            "t < TIMESTAMP '1970-01-01 00:00:00'",
            "z = TIMESTAMP '1970-01-01 00:00:01'",
            "x = X'0102'",
        ] {
            let answer = lake
                .query(&format!("SELECT i FROM types WHERE {filter}"))
                .await;
            assert_eq!(answer.text, "-1", "{filter}, late materialization {late}");
        }
    }
}

/// Rows of several columns, structs and lists are counted in a memory that their number explains.
#[tokio::test]
async fn distinct_rows_are_counted_in_little_memory() {
    let mut lake = Lake::new().await;
    lake.options.query_memory_bytes = Some(96 << 20);
    lake.create("t", &[("a", P::Long), ("b", P::Long)], &[])
        .await;
    let numbers = |by: i64| Arc::new(Int64Array::from_iter_values((0..60_000).map(|n| n / by)));
    lake.append("t", vec![numbers(2), numbers(3)]).await;
    // Of six rows in a row there are four pairs: (0,0), (1,0), (1,1), (2,1).
    for (sql, rows) in [
        (
            "SELECT count(DISTINCT CASE WHEN a IS NOT NULL THEN struct(a, b) END) FROM t",
            "40000",
        ),
        (
            "SELECT count(DISTINCT struct(a, b)), count(DISTINCT make_array(b, a)), count(*) FROM t",
            "40000,40000,60000",
        ),
        (
            "SELECT b % 2, count(DISTINCT struct(a, b)) FROM t GROUP BY 1 ORDER BY 1",
            "0,20000; 1,20000",
        ),
    ] {
        assert_eq!(lake.query(sql).await.text, rows, "{sql}");
    }
}
