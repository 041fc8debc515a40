//! Rows that position deletes and deletion vectors name are not there.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use datafusion::common::stats::Precision;
use datafusion::physical_plan::collect;
use iceberg::spec::{FormatVersion, PrimitiveType as P, Transform};

use super::codec::travel;
use super::deleting::Listed;
use super::lake::{Lake, rows};
use crate::iceberg_scans;

fn ids(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

/// A table of (id, part), ids 0..12 in three partitions of four rows each: 0..4, 4..8, 8..12.
async fn lake() -> (Lake, Vec<Listed>) {
    let lake = Lake::new().await;
    lake.create(
        "t",
        &[("id", P::Long), ("part", P::Long)],
        &[("part", Transform::Identity)],
    )
    .await;
    lake.append("t", vec![ids(0..12), ids((0..12).map(|i| i / 4))])
        .await;
    let mut files = lake.data_files("t").await;
    files.sort_by_key(|file| format!("{:?}", file.partition));
    assert_eq!(files.len(), 3);
    (lake, files)
}

async fn left(lake: &Lake) -> String {
    lake.query("SELECT id FROM t ORDER BY id").await.text
}

#[tokio::test]
async fn positions_are_deleted_by_file_and_by_partition() {
    let (mut lake, files) = lake().await;
    let [first, second, third] = files.as_slice() else {
        panic!("three files")
    };
    // One file names its data file; another has rows of two partitions' files but is of the second's; a third deletes
    // a position again.
    let mut named = lake.position_deletes("d1.parquet", &[(&first.path, 1)], first);
    named.referenced_data_file(Some(first.path.clone()));
    let of_partition = lake.position_deletes(
        "d2.parquet",
        &[(&second.path, 0), (&second.path, 3), (&third.path, 0)],
        second,
    );
    let again = lake.position_deletes("d3.parquet", &[(&second.path, 3)], second);
    lake.commit("t", vec![named, of_partition, again]).await;
    assert_eq!(left(&lake).await, "0; 2; 3; 5; 6; 8; 9; 10; 11");
    for (sql, answer) in [
        ("SELECT count(*) FROM t", "9"),
        ("SELECT count(*) FROM t WHERE part = 1", "2"),
        ("SELECT min(id), max(id), count(id) FROM t", "0,11,9"),
        ("SELECT min(id), max(id) FROM t WHERE part = 1", "5,6"),
        ("SELECT count(*) FROM (SELECT id FROM t LIMIT 8) x", "8"),
        (
            "SELECT part, count(*) FROM t GROUP BY part ORDER BY part",
            "0,3; 1,2; 2,4",
        ),
        (
            "SELECT id FROM t WHERE id IN (1, 2, 4, 5, 8)  ORDER BY id",
            "2; 5; 8",
        ),
        (
            "SELECT part FROM t WHERE id > 6 ORDER BY id LIMIT 2",
            "2; 2",
        ),
    ] {
        assert_eq!(lake.query(sql).await.text, answer, "{sql}");
    }
    let answer = lake.query("SELECT id FROM t WHERE part = 1").await;
    let report = &answer.reports[0];
    assert_eq!(
        (report.delete_files.kept, report.delete_files.total),
        (2, 3)
    );
    assert_eq!((report.rows_deleted, report.rows_read), (2, 2));
    let plan = lake.explain("SELECT id FROM t WHERE part = 1").await;
    assert!(plan.contains("delete_files=2/3"), "{plan}");
}

#[tokio::test]
async fn rows_that_were_added_after_the_deletes_stay() {
    let (mut lake, files) = lake().await;
    let deletes = lake.position_deletes("d.parquet", &[(&files[0].path, 0)], &files[0]);
    lake.commit("t", vec![deletes]).await;
    // A data file of a later sequence number that deletes name by accident.
    let later = lake.write(
        "later.parquet",
        vec![(1, "id", ids([100])), (2, "part", ids([0]))],
        10,
    );
    let later = {
        let mut later = later;
        later.partition(files[0].partition.clone());
        later
    };
    let path = lake.new_file("later.parquet").1;
    let early = lake.position_deletes("e.parquet", &[(&path, 0)], &files[0]);
    lake.commit("t", vec![early]).await;
    lake.commit("t", vec![later]).await;
    assert_eq!(left(&lake).await, "1; 2; 3; 4; 5; 6; 7; 8; 9; 10; 11; 100");
    // In the same commit it does apply.
    let mut same = lake.write(
        "same.parquet",
        vec![(1, "id", ids([200, 201])), (2, "part", ids([0, 0]))],
        10,
    );
    same.partition(files[0].partition.clone());
    let path = lake.new_file("same.parquet").1;
    let deletes = lake.position_deletes("s.parquet", &[(&path, 1)], &files[0]);
    lake.commit("t", vec![same, deletes]).await;
    assert_eq!(
        left(&lake).await,
        "1; 2; 3; 4; 5; 6; 7; 8; 9; 10; 11; 100; 200"
    );
}

#[tokio::test]
async fn a_deletion_vector_stands_for_all_position_deletes_of_its_file() {
    let (mut lake, files) = lake().await;
    let [first, second, third] = files.as_slice() else {
        panic!("three files")
    };
    let deletes = [
        lake.position_deletes("d1.parquet", &[(&first.path, 1)], first),
        lake.position_deletes("d2.parquet", &[(&second.path, 1)], second),
    ];
    lake.commit("t", deletes.to_vec()).await;
    assert_eq!(left(&lake).await, "0; 2; 3; 4; 6; 7; 8; 9; 10; 11");
    lake.edit("t", |builder| {
        builder
            .upgrade_format_version(FormatVersion::V3)
            .expect("version 3")
    })
    .await;
    // The first's vector does not repeat position 1 (a writer would); the second still has its delete file.
    let vectors = lake.vectors("v.puffin", &[(first, &[0, 2]), (third, &[0, 1, 2, 3])]);
    lake.commit("t", vectors).await;
    assert_eq!(left(&lake).await, "1; 3; 4; 6; 7");
    assert_eq!(lake.query("SELECT count(*) FROM t").await.text, "5");
    assert_eq!(
        lake.query("SELECT count(*), max(id) FROM t WHERE part = 2")
            .await
            .text,
        "0,"
    );
    let report = &lake.query("SELECT part FROM t").await.reports[0];
    assert_eq!(
        (report.delete_files.kept, report.delete_files.total),
        (3, 4)
    );
    // Unread, the rows that are left are known as well as may be: 12 - 2 - 4 - 1.
    assert_eq!(report.rows_in_files, 5);
    let plan = lake.plan("SELECT id FROM t").await;
    let statistics = plan.partition_statistics(None).expect("statistics");
    assert_eq!(statistics.num_rows, Precision::Inexact(5));
    assert!(matches!(
        statistics.column_statistics[0].min_value,
        Precision::Inexact(_)
    ));
}

#[tokio::test]
async fn a_limit_keeps_as_many_files_as_it_needs_of_what_is_left() {
    let (mut lake, files) = lake().await;
    let deletes: Vec<_> = files
        .iter()
        .enumerate()
        .map(|(i, file)| {
            let rows: Vec<(&str, i64)> = (0..3).map(|at| (file.path.as_str(), at)).collect();
            lake.position_deletes(&format!("d{i}.parquet"), &rows, file)
        })
        .collect();
    lake.commit("t", deletes).await;
    assert_eq!(left(&lake).await, "3; 7; 11");
    assert_eq!(lake.files("SELECT id FROM t LIMIT 2").await, (2, 3));
    assert_eq!(
        lake.query("SELECT count(*) FROM (SELECT id FROM t LIMIT 3) x")
            .await
            .text,
        "3"
    );
}

/// A table of one file of ten row groups of 1000 rows, `id` and its text, with those positions deleted.
async fn ten_groups(deleted: &[i64]) -> Lake {
    let mut lake = Lake::new().await;
    lake.create("t", &[("id", P::Long), ("s", P::String)], &[])
        .await;
    let texts = StringArray::from_iter_values((0..10_000).map(|i| format!("row {i}")));
    let file = lake.write(
        "t.parquet",
        vec![(1, "id", ids(0..10_000)), (2, "s", Arc::new(texts))],
        1000,
    );
    lake.commit("t", vec![file]).await;
    let files = lake.data_files("t").await;
    let rows: Vec<(&str, i64)> = deleted
        .iter()
        .map(|position| (files[0].path.as_str(), *position))
        .collect();
    let deletes = lake.position_deletes("d.parquet", &rows, &files[0]);
    lake.commit("t", vec![deletes]).await;
    lake
}

#[tokio::test]
async fn splits_row_groups_pages_and_limits_see_the_same_rows() {
    // All of row group 2, every tenth row of 3 and 4, the edges of 5, and the last row.
    let deleted: Vec<i64> = (2000..3000)
        .chain((3000..5000).step_by(10))
        .chain([5000, 5999, 9999])
        .collect();
    let gone: HashSet<i64> = deleted.iter().copied().collect();
    let is_left = |i: &i64| !gone.contains(i);
    let mut lake = ten_groups(&deleted).await;
    let expected = |from: i64, to: i64| (from..to).filter(is_left).count().to_string();
    for (late, partitions) in [(false, 1), (true, 1), (false, 4), (true, 4)] {
        lake.options.late_materialization = late;
        lake.options.target_partitions = partitions;
        let context = lake.session();
        context
            .sql("SET datafusion.optimizer.repartition_file_min_size = 1000")
            .await
            .expect("it is set");
        for (filter, from, to) in [
            ("true", 0, 10_000),
            ("id >= 1990 AND id < 3020", 1990, 3020),
            ("id BETWEEN 4990 AND 5001", 4990, 5002),
            ("id >= 9990", 9990, 10_000),
            ("s <> 'row 1' AND id < 2", 0, 1),
        ] {
            for select in ["count(*)", "count(s)"] {
                let sql = format!("SELECT {select} FROM t WHERE {filter}");
                let frame = context.sql(&sql).await.expect("a plan");
                let answer = rows(&frame.collect().await.expect("rows"));
                assert_eq!(
                    answer,
                    expected(from, to),
                    "{sql}, late {late}, {partitions} partitions"
                );
            }
        }
        // The filter matches row group 2 wholly by its statistics, so that a limit might be content with it.
        for (sql, answer) in [
            (
                "SELECT count(*) FROM (SELECT id FROM t WHERE id >= 2000 LIMIT 900) x",
                "900",
            ),
            (
                "SELECT count(*) FROM (SELECT id FROM t WHERE id >= 2000 AND id < 4000 LIMIT 950) x",
                "900",
            ),
            (
                "SELECT count(*) FROM (SELECT id FROM t LIMIT 9000) x",
                "8797",
            ),
            ("SELECT id FROM t ORDER BY id DESC LIMIT 2", "9998; 9997"),
            (
                "SELECT id FROM t WHERE id >= 2500 ORDER BY id LIMIT 2",
                "3001; 3002",
            ),
            ("SELECT s FROM t WHERE id IN (2500, 3010, 3011)", "row 3011"),
        ] {
            assert_eq!(lake.query(sql).await.text, answer, "{sql}, late {late}");
        }
    }
    let report = &lake.query("SELECT id FROM t WHERE id >= 0").await.reports[0];
    assert_eq!(report.rows_deleted, deleted.len() as u64);
    // A delete file is read once, however many queries and splits want it.
    let first = &lake.query("SELECT id FROM t WHERE id = 7777").await.reports[0];
    assert!(first.bytes_read < report.data_in_bytes, "{first:?}");
}

#[tokio::test]
async fn deletes_travel_to_workers() {
    let (mut lake, files) = lake().await;
    let position = lake.position_deletes("d.parquet", &[(&files[1].path, 2)], &files[1]);
    let other = lake.position_deletes("o.parquet", &[(&files[0].path, 0)], &files[0]);
    lake.commit("t", vec![position, other]).await;
    lake.edit("t", |builder| {
        builder
            .upgrade_format_version(FormatVersion::V3)
            .expect("version 3")
    })
    .await;
    let vectors = lake.vectors("v.puffin", &[(&files[2], &[3])]);
    lake.commit("t", vectors).await;
    for sql in [
        "SELECT id FROM t ORDER BY id",
        "SELECT id FROM t WHERE part >= 0 ORDER BY id",
    ] {
        let plan = lake.plan(sql).await;
        let before = iceberg_scans(&plan);
        let (plan, worker) = travel(&lake, plan).await;
        let after = iceberg_scans(&plan);
        assert_eq!(before[0].report, after[0].report);
        let batches = collect(plan, worker.task_ctx()).await.expect("rows");
        assert_eq!(rows(&batches), "1; 2; 3; 4; 5; 7; 8; 9; 10", "{sql}");
    }
}

#[tokio::test]
async fn a_bad_delete_file_is_named() {
    let (mut lake, files) = lake().await;
    let gone = lake.position_deletes("gone.parquet", &[(&files[0].path, 2)], &files[0]);
    std::fs::remove_file(lake.new_file("gone.parquet").0).expect("it was there");
    lake.commit("t", vec![gone]).await;
    let error = lake.error("SELECT id FROM t").await;
    assert!(
        error.contains("table 'lake.default.t': delete file 'file://")
            && error.contains("gone.parquet' cannot be read:"),
        "{error}"
    );
    // The other partitions are not concerned.
    assert_eq!(
        lake.query("SELECT count(id) FROM t WHERE part = 2")
            .await
            .text,
        "4"
    );
}

#[tokio::test]
async fn a_bad_deletion_vector_is_named() {
    let (mut lake, files) = lake().await;
    lake.edit("t", |builder| {
        builder
            .upgrade_format_version(FormatVersion::V3)
            .expect("version 3")
    })
    .await;
    let vectors = lake.vectors("v.puffin", &[(&files[0], &[0]), (&files[1], &[1])]);
    lake.commit("t", vectors).await;
    let (path, _) = lake.new_file("v.puffin");
    let mut bytes = std::fs::read(&path).expect("it is there");
    bytes[30] ^= 1;
    std::fs::write(&path, &bytes).expect("it is written");
    let error = lake.error("SELECT id FROM t WHERE part = 0").await;
    assert!(
        error.contains("v.puffin' cannot be read: the deletion vector at 4: its checksum"),
        "{error}"
    );
    assert_eq!(
        lake.query("SELECT id FROM t WHERE part = 1").await.text,
        "4; 6; 7"
    );
    // Two vectors for one file contradict the specification.
    let vectors = lake.vectors("w.puffin", &[(&files[1], &[2])]);
    lake.commit("t", vectors).await;
    let error = lake.error("SELECT id FROM t WHERE part = 1").await;
    assert!(error.contains("has two deletion vectors"), "{error}");
}
