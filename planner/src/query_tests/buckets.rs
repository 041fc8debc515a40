//! Joins and aggregates by buckets: the same rows as without, and no shuffle.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, StringArray};
use iceberg::spec::{PrimitiveType, Transform};

use super::lake::Lake;

const INT: PrimitiveType = PrimitiveType::Int;
const LONG: PrimitiveType = PrimitiveType::Long;
const TEXT: PrimitiveType = PrimitiveType::String;

fn keys(values: impl IntoIterator<Item = Option<i64>>) -> Vec<Option<i64>> {
    values.into_iter().collect()
}

fn long(keys: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(keys.to_vec()))
}

fn int(keys: &[Option<i64>]) -> ArrayRef {
    let keys: Int32Array = keys.iter().map(|key| key.map(|key| key as i32)).collect();
    Arc::new(keys)
}

fn text(keys: &[Option<i64>]) -> ArrayRef {
    let keys: StringArray = keys
        .iter()
        .map(|key| key.map(|key| format!("k{key}")))
        .collect();
    Arc::new(keys)
}

fn numbers(count: usize) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(0..count as i64))
}

/// Tables by buckets of `k`, and a copy of each without (`plain_…`):
///
/// - `events`, 4 buckets: keys 0 to 199 modulo 60, some null;
/// - `users`, 8 buckets: keys 0 to 49, and two nulls;
/// - `items`, 4 buckets of an `int`: even keys 0 to 98;
/// - `few`, 4 buckets: keys 7 and null, so that most buckets are empty;
/// - `names`, 4 buckets of text.
async fn lake() -> Lake {
    let mut lake = Lake::new().await;
    lake.options.workers = (0..3).map(|i| format!("http://w{i}")).collect();
    let events = keys((0..200).map(|i| (i % 11 != 0).then_some(i % 60)));
    let users = keys((0..50).map(Some).chain([None, None]));
    let items = keys((0..50).map(|i| Some(2 * i)));
    let few = keys([Some(7), None]);
    let tables: [(&str, u32, PrimitiveType, ArrayRef); 5] = [
        ("events", 4, LONG, long(&events)),
        ("users", 8, LONG, long(&users)),
        ("items", 4, INT, int(&items)),
        ("few", 4, LONG, long(&few)),
        ("names", 4, TEXT, text(&users)),
    ];
    for (name, buckets, key, values) in tables {
        let columns = [("k", key), ("v", LONG)];
        let v = numbers(values.len());
        lake.create(name, &columns, &[("k", Transform::Bucket(buckets))])
            .await;
        lake.append(name, vec![Arc::clone(&values), Arc::clone(&v)])
            .await;
        let plain = format!("plain_{name}");
        lake.create(&plain, &columns, &[]).await;
        lake.append(&plain, vec![values, v]).await;
    }
    lake
}

fn without_buckets(sql: &str) -> String {
    let mut sql = sql.to_string();
    for table in ["events", "users", "items", "few", "names"] {
        sql = sql.replace(&format!(" {table}"), &format!(" plain_{table}"));
    }
    sql
}

async fn sorted(lake: &Lake, sql: &str) -> Vec<String> {
    let mut rows: Vec<String> = lake
        .query(sql)
        .await
        .text
        .split("; ")
        .map(String::from)
        .collect();
    rows.sort();
    rows
}

/// The answer is that of the tables without buckets, and the plan shuffles nothing.
async fn colocated(lake: &Lake, sql: &str) {
    let plan = lake.explain(sql).await;
    assert!(
        !plan.contains("RepartitionExec") && !plan.contains("CollectLeft"),
        "{sql}\n{plan}"
    );
    same_rows(lake, sql).await;
}

async fn same_rows(lake: &Lake, sql: &str) {
    let plain = without_buckets(sql);
    assert!(!lake.explain(&plain).await.contains("buckets="), "{plain}");
    let expected = sorted(lake, &plain).await;
    // What goes wrong here goes wrong now and then.
    for _ in 0..3 {
        assert_eq!(sorted(lake, sql).await, expected, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn joins_of_all_kinds_find_their_rows_bucket_by_bucket() {
    let lake = lake().await;
    for kind in ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"] {
        for (a, b) in [
            ("events", "users"),
            ("users", "events"),
            ("events", "items"),
            ("few", "users"),
            ("users", "few"),
            ("events", "events"),
        ] {
            let sql = format!("SELECT a.k, a.v, b.k, b.v FROM {a} a {kind} {b} b ON a.k = b.k");
            colocated(&lake, &sql).await;
        }
    }
    for sql in [
        "SELECT * FROM events a WHERE k IN (SELECT k FROM users WHERE v > 20)",
        "SELECT * FROM events a WHERE EXISTS (SELECT 1 FROM users b WHERE b.k = a.k AND b.v > a.v)",
        "SELECT * FROM events a WHERE NOT EXISTS (SELECT 1 FROM users b WHERE b.k = a.k)",
        "SELECT * FROM users a WHERE NOT EXISTS (SELECT 1 FROM few b WHERE b.k = a.k)",
        "SELECT a.v, b.v FROM users a JOIN few b ON a.k <=> b.k",
        "SELECT a.v, b.v FROM events a LEFT JOIN users b ON a.k = b.k AND a.v < b.v",
        "SELECT a.v, b.v FROM names a JOIN names b ON a.k = b.k",
    ] {
        colocated(&lake, sql).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_two_tables_meet_in_one_chain() {
    let lake = lake().await;
    for sql in [
        "SELECT a.v, b.v, c.v FROM events a JOIN users b ON a.k = b.k JOIN items c ON b.k = c.k",
        "SELECT a.v, b.v, c.v FROM events a LEFT JOIN users b ON a.k = b.k LEFT JOIN items c ON a.k = c.k",
        "SELECT a.v, b.v, c.v, d.v FROM events a JOIN users b ON a.k = b.k JOIN few c ON a.k = c.k \
         RIGHT JOIN users d ON d.k = c.k",
        "SELECT b.k, count(*), sum(a.v) FROM events a JOIN users b ON a.k = b.k GROUP BY b.k",
    ] {
        colocated(&lake, sql).await;
    }
    // The right side of a left join is null where nothing matched: such rows are in no bucket of it.
    same_rows(
        &lake,
        "SELECT a.v, c.v FROM few a LEFT JOIN users b ON a.k = b.k FULL JOIN items c ON b.k = c.k",
    )
    .await;
    same_rows(
        &lake,
        "SELECT b.k, count(*) FROM events a LEFT JOIN few b ON a.k = b.k GROUP BY b.k",
    )
    .await;
    same_rows(
        &lake,
        "SELECT b.k, count(*) FROM events a FULL JOIN users b ON a.k = b.k GROUP BY b.k",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_leaves_the_buckets_in_their_places() {
    let lake = lake().await;
    for sql in [
        "SELECT a.v, b.v FROM events a JOIN users b ON a.k = b.k WHERE a.k = 17",
        "SELECT a.v, b.v FROM events a LEFT JOIN users b ON a.k = b.k AND b.k IN (3, 17, 44)",
        "SELECT a.v, b.v FROM events a LEFT JOIN users b ON a.k = b.k AND b.v > 1000",
        "SELECT a.v, b.v FROM events a FULL JOIN (SELECT * FROM users WHERE k < 5) b ON a.k = b.k",
    ] {
        same_rows(&lake, sql).await;
        let plan = lake.explain(sql).await;
        assert!(
            !plan.contains("RepartitionExec: partitioning=Hash"),
            "{sql}\n{plan}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn aggregates_and_windows_by_the_buckets_run_in_one_phase() {
    let lake = lake().await;
    for sql in [
        "SELECT k, count(*), sum(v) FROM events GROUP BY k",
        "SELECT k, v % 3, count(*) FROM events GROUP BY k, v % 3",
        "SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) FROM events",
        "SELECT k, v, sum(v) OVER (PARTITION BY k) FROM events",
        "SELECT k, count(DISTINCT v) FROM events GROUP BY k",
    ] {
        colocated(&lake, sql).await;
        let plan = lake.explain(sql).await;
        assert!(!plan.contains("mode=Partial"), "{sql}\n{plan}");
    }
    let sql = "SELECT count(DISTINCT k) FROM events";
    assert_eq!(lake.query(sql).await.text, "60");
    // By other columns, or by sets of them that leave the bucket's out, rows must meet elsewhere.
    for sql in [
        "SELECT v % 3, count(*) FROM events GROUP BY v % 3",
        "SELECT k + 1, count(*) FROM events GROUP BY k + 1",
        "SELECT k, v, sum(v) OVER (PARTITION BY v % 5) FROM events",
    ] {
        same_rows(&lake, sql).await;
        assert!(!lake.explain(sql).await.contains("buckets="), "{sql}");
    }
}

/// Metadata answers what no file is read for; it does not take a part away from what buckets do without a shuffle.
#[tokio::test(flavor = "multi_thread")]
async fn metadata_answers_beside_buckets() {
    let lake = lake().await;
    for (sql, answer) in [
        (
            "SELECT count(*), count(k), min(k), max(k) FROM users",
            "52,50,0,49",
        ),
        ("SELECT count(*) FROM items WHERE k IS NOT NULL", "50"),
        // Null is the one key of its file.
        (
            "SELECT k, count(*) FROM users WHERE k IS NULL GROUP BY k",
            ",2",
        ),
        (
            "SELECT k, count(*), max(v) FROM few GROUP BY k ORDER BY k",
            "7,1,0; ,1,1",
        ),
    ] {
        let plan = lake.explain(sql).await;
        assert!(
            plan.contains("MetadataAnswerExec") && !plan.contains("DataSourceExec"),
            "{sql}\n{plan}"
        );
        assert_eq!(lake.query(sql).await.text, answer, "{sql}");
    }
    // The file of nulls could answer for itself; but then the others would be shuffled.
    for sql in [
        "SELECT k, count(*) FROM events GROUP BY k",
        "SELECT k, count(*), min(v), max(v) FROM users GROUP BY k",
        "SELECT DISTINCT k FROM events",
        "SELECT count(DISTINCT k) FROM events",
        "SELECT a.k, a.n, b.v FROM (SELECT k, count(*) AS n FROM events GROUP BY k) a JOIN users b ON a.k = b.k",
    ] {
        let plan = lake.explain(sql).await;
        assert!(
            !plan.contains("RepartitionExec") && !plan.contains("MetadataAnswerExec"),
            "{sql}\n{plan}"
        );
        same_rows(&lake, sql).await;
    }
}

/// Where metadata answers for most of a table, the rest is small enough to be shuffled.
#[tokio::test(flavor = "multi_thread")]
async fn metadata_answers_for_most_of_a_table_in_buckets() {
    let lake = Lake::new().await;
    lake.create(
        "t",
        &[("k", LONG), ("v", LONG)],
        &[("k", Transform::Bucket(4))],
    )
    .await;
    for key in 0..10 {
        lake.append("t", vec![long(&[Some(key); 3]), numbers(3)])
            .await;
    }
    // Keys 0 to 63 are in all four buckets, and more than one of them in each.
    let rest = keys((0..64).map(Some));
    lake.append("t", vec![long(&rest), numbers(64)]).await;
    let sql = "SELECT k, count(*) FROM t GROUP BY k ORDER BY k";
    let answer = lake.query(sql).await;
    let expected: Vec<String> = (0..64)
        .map(|key| format!("{key},{}", if key < 10 { 4 } else { 1 }))
        .collect();
    assert_eq!(answer.text, expected.join("; "));
    assert_eq!(answer.reports[0].files_answered, 10);
}

/// A table without files is in any buckets, whichever of its columns are asked for.
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_table_is_joined_by_a_column_that_is_not_its_first() {
    let lake = lake().await;
    lake.create("nobody", &[("k", LONG), ("v", LONG)], &[])
        .await;
    for (kind, rows) in [("JOIN", "0"), ("LEFT JOIN", "200"), ("RIGHT JOIN", "0")] {
        let sql = format!("SELECT count(*) FROM events a {kind} nobody b ON a.k = b.v");
        assert_eq!(lake.query(&sql).await.text, rows, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_in_the_same_buckets_is_joined_otherwise() {
    let lake = lake().await;
    for sql in [
        "SELECT a.v, b.v FROM events a JOIN users b ON a.k = b.v",
        "SELECT a.v, b.v FROM events a JOIN users b ON a.k = b.k + 1",
        "SELECT a.v, b.v FROM events a JOIN users b ON CAST(a.k AS DOUBLE) = CAST(b.k AS DOUBLE)",
        "SELECT * FROM users WHERE k NOT IN (SELECT k FROM items)",
        "SELECT * FROM users WHERE k NOT IN (SELECT k FROM few)",
    ] {
        same_rows(&lake, sql).await;
        assert!(!lake.explain(sql).await.contains("BucketJoinExec"), "{sql}");
    }
}

/// Without broadcasts, so small as the tables are.
async fn lake_of_big_tables() -> Lake {
    let mut lake = lake().await;
    lake.broadcast_bytes = Some(0);
    lake
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_without_buckets_are_sent_to_the_buckets_of_the_others() {
    let lake = lake_of_big_tables().await;
    for kind in ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"] {
        for (a, b) in [
            ("events", "plain_users"),
            ("plain_events", "users"),
            ("few", "plain_events"),
            ("names", "plain_names"),
            ("plain_events", "items"),
            ("(SELECT v AS k, v FROM users)", "events"),
        ] {
            let sql = format!("SELECT a.k, a.v, b.k, b.v FROM {a} a {kind} {b} b ON a.k = b.k");
            let plan = lake.explain(&sql).await;
            assert!(plan.contains("BucketJoinExec"), "{sql}\n{plan}");
            let shuffles = plan.matches("RepartitionExec: partitioning=Hash").count();
            assert_eq!(shuffles, 1, "{sql}\n{plan}");
            same_rows(&lake, &sql).await;
        }
    }
    for sql in [
        // Both joins and the aggregate above run by the buckets of events.
        "SELECT a.k, count(*), sum(c.v) FROM events a JOIN plain_users b ON a.k = b.k \
         LEFT JOIN plain_items c ON a.k = c.k GROUP BY a.k",
        // The number of buckets that are told apart is that of the coarsest.
        "SELECT a.v, b.v, c.v FROM users a JOIN plain_events b ON a.k = b.k JOIN events c ON a.k = c.k",
        "SELECT a.v, b.v FROM events a JOIN plain_users b ON a.k <=> b.k",
        "SELECT a.v FROM events a WHERE NOT EXISTS (SELECT 1 FROM plain_users b WHERE b.k = a.k)",
        "SELECT a.v FROM plain_events a WHERE EXISTS (SELECT 1 FROM users b WHERE b.k = a.k)",
        // The window counts on an order that the rows had before they were sent.
        "SELECT a.v, sum(a.v) OVER (PARTITION BY a.k) FROM plain_events a \
         WHERE NOT EXISTS (SELECT 1 FROM users b WHERE b.k = a.k)",
    ] {
        let plan = lake.explain(sql).await;
        assert!(plan.contains("tarn_bucket_route"), "{sql}\n{plan}");
        same_rows(&lake, sql).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_table_without_buckets_leaves_the_others_theirs() {
    let lake = lake().await;
    let sql = "SELECT a.v, b.v, s.v FROM events a JOIN plain_few s ON a.v = s.v JOIN users b ON a.k = b.k";
    let plan = lake.explain(sql).await;
    assert!(plan.contains("BucketJoinExec"), "{plan}");
    same_rows(&lake, sql).await;
}

/// Someone's file has the partition of one bucket and rows of all.
/// The broadcast join's partitions wait for each other, and most of them are not read: their buckets have no rows to join with.
#[tokio::test(flavor = "multi_thread")]
async fn a_broadcast_join_under_buckets_does_not_wait_for_partitions_that_nobody_reads() {
    let lake = lake().await;
    for sql in [
        "SELECT e.v, n.v FROM few f JOIN (SELECT a.k, a.v FROM events a JOIN plain_names n ON a.v = n.v) e ON e.k = f.k \
         JOIN plain_names n ON n.v = e.v",
        "SELECT e.v, f.v FROM (SELECT a.k, a.v FROM events a JOIN plain_names n ON a.v = n.v) e JOIN few f ON e.k = f.k",
    ] {
        let plan = lake.explain(sql).await;
        assert!(
            plan.contains("SharedBuildExec") && plan.contains("BucketJoinExec"),
            "{plan}"
        );
        let rows = tokio::time::timeout(std::time::Duration::from_secs(60), sorted(&lake, sql));
        let rows = rows.await.expect("the query hangs");
        assert_eq!(rows, sorted(&lake, &without_buckets(sql)).await, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_rows_of_another_bucket_is_an_error_that_names_it() {
    let mut lake = Lake::new().await;
    for table in ["a", "b"] {
        let columns = [("k", LONG), ("v", LONG)];
        lake.create(table, &columns, &[("k", Transform::Bucket(4))])
            .await;
        let rows = keys((0..8).map(Some));
        lake.append(table, vec![long(&rows), numbers(8)]).await;
    }
    let sql = "SELECT count(*) FROM a JOIN b ON a.k = b.k";
    assert_eq!(lake.query(sql).await.text, "8");
    let files = lake.data_files("b").await;
    assert!(files.len() > 1, "the keys are in more than one bucket");
    let rows = keys((0..8).map(Some));
    let mut wrong = lake.write(
        "wrong.parquet",
        vec![(1, "k", long(&rows)), (2, "v", numbers(8))],
        100,
    );
    wrong.partition(files[0].partition.clone());
    lake.commit("b", vec![wrong]).await;
    for sql in [
        sql,
        "SELECT a.k FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
        "SELECT k, count(*), sum(v) FROM b GROUP BY k",
        "SELECT k, sum(v) OVER (PARTITION BY k) FROM b",
    ] {
        let error = lake.error(sql).await;
        assert!(
            error.contains("b'")
                && error.contains("wrong.parquet")
                && error.contains("rows of other buckets"),
            "{sql}\n{error}"
        );
    }
    // Who does not count on the buckets finds all rows.
    lake.options.bucket_joins = false;
    assert_eq!(lake.query(sql).await.text, "16");
}
