//! What metadata answers is right, and read from nowhere else; what it does not tell is read.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray,
};
use datafusion::physical_plan::collect;
use iceberg::spec::{PrimitiveType as P, Transform};

use super::codec::travel;
use super::lake::{Answer, Lake, rows};

const DAY_MICROS: i64 = 86_400_000_000;

/// (id, name, part, price, at): one append for each part of 0, 1, 2 and NULL, of three rows each, ids 1..=12. A name is
/// null in part 1, a price is NaN in part 2. Times are one a day from 1970-01-01 on.
async fn sales() -> Lake {
    let lake = Lake::new().await;
    lake.create(
        "sales",
        &[
            ("id", P::Long),
            ("name", P::String),
            ("part", P::Long),
            ("price", P::Double),
            ("at", P::Timestamp),
        ],
        &[("part", Transform::Identity)],
    )
    .await;
    for append in 0..4i64 {
        let ids: Vec<i64> = (append * 3 + 1..=append * 3 + 3).collect();
        let names: Vec<Option<String>> = ids
            .iter()
            .map(|id| (*id != 5).then(|| format!("a name of more than 16 letters, {id}")))
            .collect();
        let prices: Vec<f64> = ids
            .iter()
            .map(|id| if *id == 8 { f64::NAN } else { *id as f64 / 2.0 })
            .collect();
        let times: Vec<i64> = ids.iter().map(|id| (id - 1) * DAY_MICROS).collect();
        lake.append(
            "sales",
            vec![
                Arc::new(Int64Array::from(ids)),
                Arc::new(StringArray::from(names)),
                Arc::new(Int64Array::from(vec![(append < 3).then_some(append); 3])),
                Arc::new(Float64Array::from(prices)),
                Arc::new(TimestampMicrosecondArray::from(times)),
            ],
        )
        .await;
    }
    lake
}

/// Files that metadata answered for, files that were left to read, bytes that were read.
fn read(answer: &Answer) -> (u64, u64, bool) {
    assert_eq!(answer.reports.len(), 1);
    let report = &answer.reports[0];
    (
        report.files_answered,
        report.files.kept - report.files_answered,
        report.bytes_read > 0,
    )
}

/// Asserts the answer, that no file was opened for it, and how many answered.
async fn unread(lake: &Lake, sql: &str, expected: &str, files: u64) {
    let answer = lake.query(sql).await;
    assert_eq!(answer.text, expected, "{sql}");
    assert_eq!(read(&answer), (files, 0, false), "{sql}");
    let plan = lake.explain(sql).await;
    let files = format!(", files={files}, rows=");
    assert!(
        plan.contains("MetadataAnswerExec: table=") && plan.contains(&files),
        "{plan}"
    );
    assert!(!plan.contains("DataSourceExec"), "{plan}");
}

/// Asserts the answer, and how many files answered for themselves and how many were read.
async fn partly(lake: &Lake, sql: &str, expected: &str, answered: u64, left: u64) {
    let answer = lake.query(sql).await;
    assert_eq!(answer.text, expected, "{sql}");
    assert_eq!(read(&answer), (answered, left, true), "{sql}");
}

#[tokio::test]
async fn counts_and_extremes_are_answered_with_partition_filters() {
    let lake = sales().await;
    for (sql, expected, files) in [
        ("SELECT count(*) FROM sales", "12", 4),
        (
            "SELECT count(*), count(1), count(id), count(name), count(part), count(price) FROM sales",
            "12,12,12,11,9,12",
            4,
        ),
        (
            "SELECT min(id), max(id), min(at), max(part) FROM sales",
            "1,12,1970-01-01T00:00:00,2",
            4,
        ),
        ("SELECT max(id) FROM sales WHERE part = 1", "6", 1),
        (
            "SELECT count(*), max(id) FROM sales WHERE part IS NULL",
            "3,12",
            1,
        ),
        ("SELECT count(*) FROM sales WHERE part <> 1", "6", 2),
        (
            "SELECT count(*), max(id) FROM sales WHERE part IN (0, 2)",
            "6,9",
            2,
        ),
        (
            "SELECT count(*), max(id) FROM sales WHERE part = 7",
            "0,",
            0,
        ),
        (
            "SELECT count(*) + 1 FROM sales WHERE part > 0 HAVING count(*) > 2",
            "7",
            2,
        ),
        // Prices of part 1 are numbers, and none is zero.
        (
            "SELECT min(price), max(price) FROM sales WHERE part = 1",
            "2.0,3.0",
            1,
        ),
    ] {
        unread(&lake, sql, expected, files).await;
    }
}

#[tokio::test]
async fn groups_of_partition_columns_are_answered() {
    let lake = sales().await;
    for (sql, expected) in [
        (
            "SELECT part, count(*), min(id), max(id), count(name) FROM sales GROUP BY part ORDER BY part NULLS LAST",
            "0,3,1,3,3; 1,3,4,6,2; 2,3,7,9,3; ,3,10,12,3",
        ),
        (
            "SELECT part % 2 AS odd, count(*) FROM sales WHERE part IS NOT NULL GROUP BY part % 2 ORDER BY odd",
            "0,6; 1,3",
        ),
        (
            "SELECT count(*), part FROM sales WHERE part >= 1 GROUP BY part HAVING max(id) > 6 ORDER BY part",
            "3,2",
        ),
        (
            "SELECT DISTINCT part FROM sales ORDER BY part NULLS LAST",
            "0; 1; 2; ",
        ),
        ("SELECT count(DISTINCT part) FROM sales", "3"),
        (
            "SELECT part, count(*) FROM sales WHERE part = 9 GROUP BY part",
            "",
        ),
    ] {
        let answer = lake.query(sql).await;
        assert_eq!(answer.text, expected, "{sql}");
        let (_, left, opened) = read(&answer);
        assert_eq!((left, opened), (0, false), "{sql}");
    }
}

#[tokio::test]
async fn what_is_not_exact_is_read() {
    let lake = sales().await;
    // Bounds of texts are cut short, those of prices leave NaN out, which is the largest.
    partly(
        &lake,
        "SELECT min(name) FROM sales",
        "a name of more than 16 letters, 1",
        0,
        4,
    )
    .await;
    partly(&lake, "SELECT max(price) FROM sales", "NaN", 3, 1).await;
    partly(&lake, "SELECT sum(id), count(*) FROM sales", "78,12", 0, 4).await;
    partly(&lake, "SELECT count(DISTINCT id) FROM sales", "12", 0, 4).await;
    partly(
        &lake,
        "SELECT id % 2 AS odd, count(*) FROM sales GROUP BY id % 2 ORDER BY odd",
        "0,6; 1,6",
        0,
        4,
    )
    .await;
    partly(
        &lake,
        "SELECT count(*) FROM sales WHERE price > 2",
        "8",
        0,
        3,
    )
    .await;
}

#[tokio::test]
async fn files_that_pass_a_filter_whole_are_not_read() {
    let lake = sales().await;
    for (sql, expected, answered, left) in [
        ("SELECT count(*) FROM sales WHERE id > 2", "10", 3, 1),
        (
            "SELECT count(*), max(id) FROM sales WHERE id BETWEEN 2 AND 11",
            "10,11",
            2,
            2,
        ),
        (
            "SELECT count(*) FROM sales WHERE id >= 4 AND id <> 6",
            "8",
            2,
            1,
        ),
        (
            "SELECT part, count(*) FROM sales WHERE id > 2 AND part IS NOT NULL GROUP BY part ORDER BY part",
            "0,1; 1,3; 2,3",
            2,
            1,
        ),
        (
            "SELECT count(*), min(id) FROM sales WHERE at >= TIMESTAMP '1970-01-03 00:00:00'",
            "10,3",
            3,
            1,
        ),
        (
            "SELECT count(*) FROM sales WHERE name LIKE 'a name%' AND id < 9",
            "7",
            1,
            2,
        ),
        // The null of part 1 may be anywhere.
        ("SELECT count(*) FROM sales WHERE name >= 'a'", "11", 3, 1),
        (
            "SELECT count(*) FROM sales WHERE name IS NOT NULL",
            "11",
            3,
            1,
        ),
        (
            "SELECT count(*) FROM sales WHERE id < 3 OR id > 6",
            "8",
            2,
            1,
        ),
    ] {
        partly(&lake, sql, expected, answered, left).await;
    }
    for (sql, expected, files) in [
        ("SELECT count(*) FROM sales WHERE id > 3", "9", 3),
        (
            "SELECT count(*) FROM sales WHERE id IS NOT NULL AND id >= 1",
            "12",
            4,
        ),
        (
            "SELECT count(*), count(name) FROM sales WHERE id > 6 OR part = 1",
            "9,8",
            3,
        ),
    ] {
        unread(&lake, sql, expected, files).await;
    }
}

#[tokio::test]
async fn groups_of_what_follows_a_transform_are_answered() {
    let lake = Lake::new().await;
    lake.create(
        "log",
        &[("id", P::Long), ("at", P::Timestamp), ("day", P::Date)],
        &[("at", Transform::Month)],
    )
    .await;
    // The last of January, the first and last of February, all at noon; and one before 1970.
    let days = [30i64, 31, 58, -1];
    lake.append(
        "log",
        vec![
            Arc::new(Int64Array::from(vec![1, 2, 3, 4])),
            Arc::new(TimestampMicrosecondArray::from_iter_values(
                days.map(|day| day * DAY_MICROS + DAY_MICROS / 2),
            )),
            Arc::new(Date32Array::from_iter_values(days.map(|day| day as i32))),
        ],
    )
    .await;
    let sql = "SELECT date_trunc('month', at) AS month, count(*), max(id) FROM log \
               GROUP BY date_trunc('month', at) ORDER BY month";
    let answer = lake.query(sql).await;
    assert_eq!(
        answer.text,
        "1969-12-01T00:00:00,1,4; 1970-01-01T00:00:00,1,1; 1970-02-01T00:00:00,2,3"
    );
    assert_eq!(read(&answer), (3, 0, false));
    // All are at noon, and none of the files is of one time of the day for certain but those of one row.
    let sql = "SELECT CAST(at AS TIME) AS t, count(*) FROM log GROUP BY CAST(at AS TIME)";
    let answer = lake.query(sql).await;
    assert_eq!(answer.text, "12:00:00,4");
    assert_eq!(read(&answer), (2, 1, true));
    // Days differ within February, and are one in each of the others.
    let sql = "SELECT date_trunc('day', at) AS d, count(*) FROM log GROUP BY date_trunc('day', at) ORDER BY d";
    let answer = lake.query(sql).await;
    assert_eq!(
        answer.text,
        "1969-12-31T00:00:00,1; 1970-01-31T00:00:00,1; 1970-02-01T00:00:00,1; 1970-02-28T00:00:00,1"
    );
    assert_eq!(read(&answer), (2, 1, true));
}

#[tokio::test]
async fn files_with_deletes_are_read() {
    let mut lake = sales().await;
    let files = lake.data_files("sales").await;
    // The first row of the file of part 1: id 4.
    let second = files
        .iter()
        .find(|file| format!("{:?}", file.partition).contains("Long(1)"))
        .expect("a file of part 1");
    let deletes = lake.position_deletes("d.parquet", &[(&second.path, 0)], second);
    lake.commit("sales", vec![deletes]).await;
    partly(&lake, "SELECT count(*) FROM sales", "11", 3, 1).await;
    partly(
        &lake,
        "SELECT part, count(*), min(id) FROM sales GROUP BY part ORDER BY part NULLS LAST",
        "0,3,1; 1,2,5; 2,3,7; ,3,10",
        3,
        1,
    )
    .await;
    partly(&lake, "SELECT min(id) FROM sales WHERE part = 1", "5", 0, 1).await;
    unread(&lake, "SELECT min(id) FROM sales WHERE part = 2", "7", 1).await;
}

#[tokio::test]
async fn rows_that_do_not_all_reach_the_aggregate_are_read() {
    let lake = sales().await;
    for (sql, expected) in [
        ("SELECT count(*) FROM (SELECT id FROM sales LIMIT 5) t", "5"),
        (
            "SELECT count(*) FROM sales a JOIN sales b ON a.id = b.id",
            "12",
        ),
        (
            "SELECT count(*) FROM (SELECT DISTINCT id % 3 FROM sales) t",
            "3",
        ),
        (
            "SELECT max(n) FROM (SELECT part, count(*) AS n FROM sales GROUP BY part) t",
            "3",
        ),
        ("SELECT count(*) FROM sales WHERE rand() < 2", "12"),
    ] {
        assert_eq!(lake.query(sql).await.text, expected, "{sql}");
    }
}

#[tokio::test]
async fn an_answer_travels_beside_the_scan_of_the_rest() {
    let lake = sales().await;
    for (sql, expected) in [
        ("SELECT count(*), max(id) FROM sales WHERE id > 2", "10,12"),
        (
            "SELECT part, count(*) FROM sales WHERE id > 2 GROUP BY part ORDER BY part NULLS LAST",
            "0,1; 1,3; 2,3; ,3",
        ),
        ("SELECT min(part) FROM sales", "0"),
    ] {
        let (plan, worker) = travel(&lake, lake.plan(sql).await).await;
        let batches = collect(plan, worker.task_ctx()).await.expect("it runs");
        assert_eq!(rows(&batches), expected, "{sql}");
    }
}

#[tokio::test]
async fn files_of_one_value_answer_for_any_group() {
    let lake = Lake::new().await;
    lake.create("t", &[("id", P::Long), ("n", P::Long)], &[])
        .await;
    let longs = |values: &[Option<i64>]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
    lake.append("t", vec![longs(&[Some(1), Some(2)]), longs(&[None, None])])
        .await;
    lake.append("t", vec![longs(&[Some(3)]), longs(&[Some(-7)])])
        .await;
    for (sql, expected) in [
        (
            "SELECT min(n), max(n), count(n), count(*) FROM t",
            "-7,-7,1,3",
        ),
        (
            "SELECT n, count(*) FROM t GROUP BY n ORDER BY n NULLS LAST",
            "-7,1; ,2",
        ),
    ] {
        let answer = lake.query(sql).await;
        assert_eq!(answer.text, expected, "{sql}");
        // Both files are of one value each.
        assert_eq!(read(&answer), (2, 0, false), "{sql}");
    }
}
