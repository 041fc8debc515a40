//! Files and manifests that cannot match are not read, and those that can are.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Float64Array, Int32Array, Int64Array, StringArray, TimestampMicrosecondArray,
};
use iceberg::spec::{PrimitiveType as P, Transform};

use super::lake::Lake;

fn ids(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

#[tokio::test]
async fn manifests_are_skipped_by_their_summaries_and_files_by_their_partitions() {
    let lake = Lake::new().await;
    lake.create(
        "events",
        &[("id", P::Long), ("ts", P::Timestamp)],
        &[("ts", Transform::Day)],
    )
    .await;
    const DAY: i64 = 86_400_000_000;
    // Two appends of three days each: days 0, 1, 2 and 10, 11, 12; noon of each.
    for first in [0, 10] {
        let noons: TimestampMicrosecondArray = (first..first + 3)
            .map(|day| Some(day * DAY + DAY / 2))
            .collect();
        lake.append("events", vec![ids(first..first + 3), Arc::new(noons)])
            .await;
    }
    for (filter, manifests, files, answer) in [
        ("ts >= TIMESTAMP '1970-01-11 00:00:00'", 1, 3, "10; 11; 12"),
        ("ts >= TIMESTAMP '1970-01-12 00:00:00'", 1, 2, "11; 12"),
        // The day may hold it (before 1970 even the day after), and the file's own bounds rule it out.
        ("ts < TIMESTAMP '1969-12-31 00:00:00'", 0, 0, ""),
        ("ts < TIMESTAMP '1970-01-01 00:00:00'", 1, 0, ""),
        ("ts < TIMESTAMP '1970-01-01 06:00:00'", 1, 0, ""),
        ("CAST(ts AS DATE) = DATE '1970-01-02'", 1, 1, "1"),
        ("ts BETWEEN '1970-01-02' AND '1970-01-03'", 1, 1, "1"),
        ("ts >= '1970-01-02' AND ts < '1970-01-03'", 1, 1, "1"),
        ("date_trunc('day', ts) = '1970-01-02'", 1, 1, "1"),
        ("ts IS NULL", 0, 0, ""),
        ("ts IS NOT NULL AND id = 11", 2, 1, "11"),
        ("id IN (0, 12)", 2, 2, "0; 12"),
        ("id = 0 OR ts > '1970-01-12 20:00:00'", 2, 2, "0; 12"),
        ("id > 100", 2, 0, ""),
        ("NOT (id < 12)", 2, 1, "12"),
    ] {
        let sql = format!("SELECT id FROM events WHERE {filter} ORDER BY id");
        assert_eq!(lake.query(&sql).await.text, answer, "{filter}");
        assert_eq!(lake.manifests(&sql).await, (manifests, 2), "{filter}");
        assert_eq!(lake.files(&sql).await, (files, 6), "{filter}");
    }
}

#[tokio::test]
async fn buckets_are_skipped_by_hash() {
    let lake = Lake::new().await;
    lake.create(
        "users",
        &[("id", P::Long), ("name", P::String)],
        &[("id", Transform::Bucket(4))],
    )
    .await;
    let names = StringArray::from_iter_values((0..100).map(|i| format!("user {i}")));
    lake.append("users", vec![ids(0..100), Arc::new(names)])
        .await;
    assert_eq!(lake.files("SELECT * FROM users").await, (4, 4));
    // All buckets have values on both sides of 50, so bounds alone keep them all.
    assert_eq!(
        lake.files("SELECT * FROM users WHERE id > 50").await,
        (4, 4)
    );
    assert_eq!(
        lake.files("SELECT * FROM users WHERE id = 50").await,
        (1, 4)
    );
    assert_eq!(
        lake.query("SELECT name FROM users WHERE id = 50")
            .await
            .text,
        "user 50"
    );
    for i in [0, 7, 99] {
        let sql = format!("SELECT name FROM users WHERE id IN ({i}, {i})");
        assert_eq!(lake.query(&sql).await.text, format!("user {i}"));
    }
}

#[tokio::test]
async fn truncated_partitions_are_skipped() {
    let lake = Lake::new().await;
    lake.create(
        "codes",
        &[("n", P::Long), ("code", P::String)],
        &[
            ("n", Transform::Truncate(10)),
            ("code", Transform::Truncate(2)),
        ],
    )
    .await;
    lake.append(
        "codes",
        vec![
            ids([-15, -5, 5, 15]),
            Arc::new(StringArray::from(vec!["aab", "abb", "b", "bbc"])),
        ],
    )
    .await;
    for (filter, files, answer) in [
        ("n < -10", 1, "-15"),
        ("n >= -10 AND n < 0", 1, "-5"),
        ("n = 5", 1, "5"),
        ("code LIKE 'ab%'", 1, "-5"),
        ("code = 'b'", 1, "5"),
        ("code >= 'bb'", 1, "15"),
    ] {
        let sql = format!("SELECT n FROM codes WHERE {filter}");
        assert_eq!(lake.query(&sql).await.text, answer, "{filter}");
        assert_eq!(lake.files(&sql).await, (files, 4), "{filter}");
    }
}

#[tokio::test]
async fn null_partitions_and_all_null_files_are_told_apart() {
    let lake = Lake::new().await;
    lake.create(
        "shops",
        &[("id", P::Long), ("city", P::String)],
        &[("city", Transform::Identity)],
    )
    .await;
    lake.append(
        "shops",
        vec![
            ids([1, 2, 3]),
            Arc::new(StringArray::from(vec![Some("Bergen"), None, Some("Oslo")])),
        ],
    )
    .await;
    for (filter, files, answer) in [
        ("city IS NULL", 1, "2"),
        ("city IS NOT NULL", 2, "1; 3"),
        ("city = 'Oslo'", 1, "3"),
        ("city <> 'Oslo'", 1, "1"),
        ("city IN ('Oslo', 'Tromsø')", 1, "3"),
        ("city NOT IN ('Oslo')", 1, "1"),
        ("city LIKE '%rge%'", 1, "1"),
        ("city = 'Oslo' OR city IS NULL", 2, "2; 3"),
    ] {
        let sql = format!("SELECT id FROM shops WHERE {filter} ORDER BY id");
        assert_eq!(lake.query(&sql).await.text, answer, "{filter}");
        assert_eq!(lake.files(&sql).await, (files, 3), "{filter}");
        let plan = lake.explain(&sql).await;
        assert!(
            !plan.contains("FilterExec"),
            "the partition decides: {plan}"
        );
    }
}

#[tokio::test]
async fn nan_is_larger_than_every_bound() {
    let lake = Lake::new().await;
    lake.create("readings", &[("id", P::Long), ("v", P::Double)], &[])
        .await;
    lake.append(
        "readings",
        vec![
            ids([1, 2]),
            Arc::new(Float64Array::from(vec![1.0, f64::NAN])),
        ],
    )
    .await;
    lake.append(
        "readings",
        vec![ids([3, 4]), Arc::new(Float64Array::from(vec![1.0, 2.0]))],
    )
    .await;
    // NaN > 5 is true in SQL; the first file's bounds say 1 ..= 1.
    assert_eq!(
        lake.files("SELECT id FROM readings WHERE v > 5").await,
        (1, 2)
    );
    assert_eq!(
        lake.query("SELECT id FROM readings WHERE v > 5").await.text,
        "2"
    );
    assert_eq!(lake.query("SELECT max(v) FROM readings").await.text, "NaN");
}

#[tokio::test]
async fn what_was_skipped_is_explained_and_estimated() {
    let lake = Lake::new().await;
    lake.create(
        "t",
        &[("id", P::Long), ("part", P::Long)],
        &[("part", Transform::Identity)],
    )
    .await;
    lake.append("t", vec![ids(0..4), ids([0, 0, 1, 2])]).await;
    let sql = "SELECT id FROM t WHERE part = 0 AND id > 0";
    let plan = lake.explain(sql).await;
    assert!(plan.contains("table=lake.default.t, snapshot="), "{plan}");
    assert!(
        plan.contains("manifests=1/1 (0 skipped), files=1/3 (2 skipped), bytes="),
        "{plan}"
    );
    let answer = lake.query(sql).await;
    assert_eq!(answer.text, "1");
    let report = &answer.reports[0];
    assert_eq!(report.non_part_filter_cols, ["id"]);
    assert_eq!(
        (
            report.files.total,
            report.files.skipped,
            report.result_data_files
        ),
        (3, 2, 1)
    );
    assert_eq!(
        report.filter.replace(['`', '"'], ""),
        "(part = 0) AND (id > 0)"
    );
    let estimate = crate::estimate(&lake.plan(sql).await);
    assert_eq!(
        (estimate[0].files_total, estimate[0].files, estimate[0].rows),
        (3, 1, 2)
    );
    assert_eq!(estimate[0].bytes, report.data_in_bytes);
}

#[tokio::test]
async fn statistics_reach_the_optimiser_after_pruning() {
    use datafusion::common::stats::Precision;
    let lake = Lake::new().await;
    lake.create(
        "t",
        &[("id", P::Long), ("part", P::Long), ("s", P::String)],
        &[("part", Transform::Identity)],
    )
    .await;
    let words: StringArray = vec![Some("a"), None, Some("c"), Some("d")].into();
    assert_eq!(words.null_count(), 1);
    lake.append(
        "t",
        vec![ids([7, 8, 9, 10]), ids([0, 0, 1, 2]), Arc::new(words)],
    )
    .await;
    let plan = lake.plan("SELECT id, part, s FROM t WHERE part = 0").await;
    let statistics = plan.partition_statistics(None).expect("statistics");
    assert_eq!(statistics.num_rows, Precision::Exact(2));
    let exact = |v: i64| Precision::Exact(datafusion::scalar::ScalarValue::Int64(Some(v)));
    let [id, part, s] = statistics.column_statistics.as_slice() else {
        panic!("three columns")
    };
    assert_eq!(
        (&id.min_value, &id.max_value, &id.null_count),
        (&exact(7), &exact(8), &Precision::Exact(0))
    );
    assert_eq!((&part.min_value, &part.max_value), (&exact(0), &exact(0)));
    assert_eq!(s.null_count, Precision::Exact(1));
    assert!(
        matches!(s.min_value, Precision::Inexact(_)),
        "writers may cut strings: {:?}",
        s.min_value
    );
}

/// A condition that is NULL is not true, whatever partition values say of its other parts.
#[tokio::test]
async fn null_in_a_list_of_partition_values_keeps_no_row() {
    let lake = Lake::new().await;
    let columns = [("p", P::Int), ("d", P::Int)];
    lake.create("t", &columns, &[("p", Transform::Identity)])
        .await;
    let values =
        || -> ArrayRef { Arc::new(Int32Array::from(vec![Some(1), Some(2), None, Some(3)])) };
    lake.append("t", vec![values(), values()]).await;
    for (filter, kept) in [
        ("NOT IN (1, NULL)", "0"),
        ("NOT IN (NULL)", "0"),
        ("IN (1, NULL)", "1"),
        ("IN (NULL)", "0"),
        ("<> NULL", "0"),
        ("NOT IN (1, 2)", "1"),
    ] {
        for column in ["p", "d"] {
            for sql in [
                format!("SELECT count(*) FROM t WHERE {column} {filter}"),
                format!(
                    "SELECT count(d) + count(p) - count(d) FROM t WHERE {column} {filter} AND p > 0"
                ),
                format!("SELECT count(*) FROM t WHERE NOT (NOT ({column} {filter}))"),
            ] {
                assert_eq!(lake.query(&sql).await.text, kept, "{sql}");
            }
        }
    }
    let either = "SELECT count(*) FROM t WHERE p NOT IN (1, NULL) OR p = 2";
    assert_eq!(lake.query(either).await.text, "1");
}

/// Conditions on one value by two lists, for values in both, one and none of them, and for NULL: by the truth table of SQL.
#[tokio::test]
async fn two_lists_of_one_value_know_null() {
    let lake = Lake::new().await;
    let columns = [("p", P::Int), ("d", P::Int)];
    lake.create("t", &columns, &[("p", Transform::Identity)])
        .await;
    let held = [Some(1), Some(2), Some(3), None, Some(4)];
    let values = || -> ArrayRef { Arc::new(Int32Array::from(held.to_vec())) };
    lake.append("t", vec![values(), values()]).await;
    let is_in = |value: Option<i32>, list: &[Option<i32>], negated: bool| -> Option<bool> {
        let value = value?;
        let found = match list.contains(&Some(value)) {
            true => Some(true),
            false => (!list.contains(&None)).then_some(false),
        };
        found.map(|found| found != negated)
    };
    let joined = |op: &str, left: Option<bool>, right: Option<bool>| match (op, left, right) {
        ("AND", Some(false), _) | ("AND", _, Some(false)) => Some(false),
        ("OR", Some(true), _) | ("OR", _, Some(true)) => Some(true),
        (_, None, _) | (_, _, None) => None,
        ("AND", ..) => Some(true),
        _ => Some(false),
    };
    let lists: [(&str, &[Option<i32>]); 4] = [
        ("(1, 2)", &[Some(1), Some(2)]),
        ("(2, 3)", &[Some(2), Some(3)]),
        ("(3, 4)", &[Some(3), Some(4)]),
        ("(1, NULL)", &[Some(1), None]),
    ];
    for (left, left_items) in lists {
        for (right, right_items) in lists {
            for (op, negations) in [("AND", [false, true]), ("OR", [false, true])] {
                for (not_left, not_right) in negations
                    .into_iter()
                    .flat_map(|l| negations.map(|r| (l, r)))
                {
                    let word = |negated| if negated { "NOT IN" } else { "IN" };
                    let column = if not_left == not_right { "p" } else { "d" };
                    let condition = format!(
                        "{column} {} {left} {op} {column} {} {right}",
                        word(not_left),
                        word(not_right)
                    );
                    let right_value = |value| {
                        joined(
                            op,
                            is_in(value, left_items, not_left),
                            is_in(value, right_items, not_right),
                        )
                    };
                    for (sql, wanted) in [
                        (condition.clone(), true),
                        (format!("NOT ({condition})"), false),
                    ] {
                        let expected = held
                            .iter()
                            .filter(|value| right_value(**value) == Some(wanted))
                            .count();
                        let sql = format!("SELECT count(*) FROM t WHERE {sql}");
                        assert_eq!(lake.query(&sql).await.text, expected.to_string(), "{sql}");
                    }
                }
            }
        }
    }
    // What is in a list may be a column.
    for (condition, expected) in [
        ("d IN (p, 9) AND d IN (4, p + 0)", "4"),
        ("d NOT IN (p, 9) OR d NOT IN (p + 1, 8)", "4"),
    ] {
        let sql = format!("SELECT count(*) FROM t WHERE {condition}");
        assert_eq!(lake.query(&sql).await.text, expected, "{sql}");
    }
}
