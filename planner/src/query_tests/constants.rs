//! Columns that are the same in all rows of a part of a plan, and not above or below it.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use iceberg::spec::PrimitiveType;

use super::lake::Lake;

/// `small`: keys 0 to 9, ten of each; `large`: the same, 5,000 of each. `v` numbers the rows.
async fn lake(target_partitions: usize) -> Lake {
    let mut lake = Lake::new().await;
    lake.options.target_partitions = target_partitions;
    let columns = [("k", PrimitiveType::Long), ("v", PrimitiveType::Long)];
    for (name, count) in [("small", 100), ("large", 50_000)] {
        lake.create(name, &columns, &[]).await;
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values((0..count).map(|v| v % 10)));
        let numbers = Arc::new(Int64Array::from_iter_values(0..count));
        lake.append(name, vec![keys, numbers]).await;
    }
    lake
}

/// Keys 0 to 4 have a row with v < 5 in `small`, one each: half of the rows of `large` have a flag.
#[tokio::test]
async fn a_constant_of_the_side_that_an_outer_join_fills_with_nulls() {
    for (partitions, workers) in [(1, 0), (2, 0), (4, 3)] {
        let mut lake = lake(partitions).await;
        lake.options.workers = (0..workers).map(|i| format!("http://w{i}")).collect();
        for (sql, answer) in [
            (
                "SELECT count(*) FROM (SELECT flag, row_number() OVER (ORDER BY flag NULLS FIRST) AS n FROM \
                 (SELECT a.flag FROM large b LEFT JOIN (SELECT k, 1 AS flag FROM small WHERE v < 5) a ON a.k = b.k)) \
                 WHERE n > 25000 AND flag = 1",
                "25000",
            ),
            (
                "SELECT a.flag, b.v FROM large b LEFT JOIN (SELECT k, 1 AS flag FROM small WHERE v < 5) a ON a.k = b.k \
                 ORDER BY a.flag NULLS FIRST, b.v LIMIT 2",
                ",5; ,6",
            ),
            (
                "SELECT max(n) FROM (SELECT count(*) OVER (PARTITION BY a.k) AS n FROM \
                 (SELECT k FROM small WHERE k = 7) a RIGHT JOIN large b ON a.k = b.k)",
                "50000",
            ),
            (
                "SELECT a.k, count(*) FROM (SELECT k FROM small WHERE k = 7) a RIGHT JOIN large b ON a.k = b.k GROUP BY a.k ORDER BY 1 NULLS FIRST",
                ",45000; 7,50000",
            ),
            (
                "SELECT a.k, b.k, count(*) FROM (SELECT k FROM small WHERE k = 7) a FULL JOIN (SELECT k FROM large WHERE k = 3) b \
                 ON a.k = b.k GROUP BY 1, 2 ORDER BY 1 NULLS FIRST",
                ",3,5000; 7,,10",
            ),
            (
                "SELECT DISTINCT a.k FROM (SELECT k FROM small WHERE k = 7) a RIGHT JOIN large b ON a.k = b.k AND b.v >= 0 ORDER BY 1 NULLS FIRST",
                "; 7",
            ),
        ] {
            let sql = sql.replace("a.v + b.v > 0", "b.v >= 0");
            assert_eq!(
                lake.query(&sql).await.text,
                answer,
                "{partitions}, {workers}: {sql}"
            );
        }
    }
}

/// The filter stands above the aggregate, and prunes the files of the scan below it, whose rows have other values too.
#[tokio::test]
async fn a_column_that_a_scan_prunes_by_is_not_constant() {
    let mut lake = Lake::new().await;
    lake.options.target_partitions = 1;
    let columns = [("k", PrimitiveType::Long), ("j", PrimitiveType::Long)];
    lake.create("t", &columns, &[]).await;
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![7; 20_000]));
    let others = Arc::new(Int64Array::from_iter_values((0..20_000).map(|i| i % 3)));
    lake.append("t", vec![keys, others]).await;
    lake.create("u", &columns, &[]).await;
    let one = |value| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
    lake.append("u", vec![one(7), one(0)]).await;
    for sql in [
        "SELECT count(*) FROM (SELECT DISTINCT k, j FROM t) WHERE j = 1",
        "SELECT count(*) FROM u a LEFT JOIN (SELECT DISTINCT k, j, 1 AS v FROM t) b ON a.k = b.k AND a.j <> b.v \
         LEFT JOIN u c ON b.k = c.k AND b.v > c.j WHERE b.j = 1",
    ] {
        for reorder in [false, true] {
            lake.options.join_reorder = reorder;
            assert_eq!(lake.query(sql).await.text, "1", "{reorder}: {sql}");
        }
    }
}
