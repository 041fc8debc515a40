//! What a query names twice is computed once, and gives what it would give twice.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array};
use iceberg::spec::PrimitiveType;

use super::lake::Lake;
use super::versions::ask;

/// `sales`: rows 0 to 999 of shops 0 to 99, row `i` in shop `i % 100` for an amount of `i`. Shop `s` has sold
/// s + (s + 100) + … + (s + 900) = 10 s + 4500.
async fn sales() -> Lake {
    let lake = Lake::new().await;
    let columns = [
        ("shop", PrimitiveType::Int),
        ("amount", PrimitiveType::Long),
    ];
    lake.create("sales", &columns, &[]).await;
    let shop: ArrayRef = Arc::new((0..1000).map(|i| Some(i % 100)).collect::<Int32Array>());
    let amount: ArrayRef = Arc::new((0..1000).map(Some).collect::<Int64Array>());
    lake.append("sales", vec![shop, amount]).await;
    lake
}

const BEST_SHOP: &str = "WITH revenue AS (SELECT shop, sum(amount) AS total FROM sales GROUP BY shop) \
     SELECT shop, total FROM revenue WHERE total = (SELECT max(total) FROM revenue)";

fn shared(plan: &str) -> usize {
    plan.matches("SharedSubplanExec").count()
}

#[tokio::test]
async fn a_common_table_expression_is_computed_once() {
    let lake = sales().await;
    assert_eq!(shared(&lake.explain(BEST_SHOP).await), 2);
    let answer = lake.query(BEST_SHOP).await;
    assert_eq!(answer.text, "99,5490");
    let rows: u64 = answer.reports.iter().map(|report| report.rows_read).sum();
    assert_eq!(rows, 1000);
}

#[tokio::test]
async fn both_places_read_all_rows_and_one_may_stop_early() {
    let lake = sales().await;
    let with = "WITH revenue AS (SELECT shop, sum(amount) AS total FROM sales GROUP BY shop)";
    // Each shop has the same total as itself and no other.
    let pairs =
        format!("{with} SELECT count(*) FROM revenue a JOIN revenue b ON a.total = b.total");
    assert_eq!(lake.query(&pairs).await.text, "100");
    let first = format!(
        "{with} SELECT count(*), sum(total) FROM (SELECT total FROM revenue LIMIT 1) a \
         UNION ALL SELECT count(*), sum(total) FROM revenue ORDER BY 1 DESC LIMIT 1"
    );
    // 10 (0 + … + 99) + 100 * 4500 = 499500 = 0 + … + 999.
    assert_eq!(lake.query(&first).await.text, "100,499500");
}

#[tokio::test]
async fn rows_that_do_not_fit_into_memory_are_spilled() {
    let mut lake = Lake::new().await;
    lake.create("numbers", &[("n", PrimitiveType::Long)], &[])
        .await;
    let column: ArrayRef = Arc::new((0..400_000).map(Some).collect::<Int64Array>());
    lake.append("numbers", vec![column]).await;
    let sql = "WITH d AS (SELECT n, count(*) AS c FROM numbers GROUP BY n) \
         SELECT (SELECT sum(c + n) FROM d), (SELECT max(n - c) FROM d)";
    assert_eq!(shared(&lake.explain(sql).await), 2);
    lake.options.query_memory_bytes = Some(12_000_000);
    assert_eq!(lake.query(sql).await.text, "80000200000,399998");
}

#[tokio::test]
async fn what_differs_is_not_shared() {
    let lake = sales().await;
    let two = |a: &str, b: &str| format!("SELECT * FROM ({a}) a JOIN ({b}) b ON a.s = b.s");
    let total = "SELECT shop, sum(amount) AS s FROM sales GROUP BY shop";
    assert_eq!(shared(&lake.explain(&two(total, total)).await), 2);
    for other in [
        "SELECT shop, sum(amount) AS s FROM sales WHERE amount > 5 GROUP BY shop",
        "SELECT shop, max(amount) AS s FROM sales GROUP BY shop",
        "SELECT amount, sum(shop) AS s FROM sales GROUP BY amount",
    ] {
        assert_eq!(
            shared(&lake.explain(&two(total, other)).await),
            0,
            "{other}"
        );
    }
    let random = "SELECT shop, sum(amount + random()) AS s FROM sales GROUP BY shop";
    assert_eq!(shared(&lake.explain(&two(random, random)).await), 0);
    let rounds = format!(
        "WITH RECURSIVE r AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM r JOIN ({total}) a ON a.shop = n \
         JOIN ({total}) b ON b.shop = n WHERE n < 4) SELECT sum(n) FROM r"
    );
    assert_eq!(shared(&lake.explain(&rounds).await), 0);
    assert_eq!(lake.query(&rounds).await.text, "10");
}

#[tokio::test]
async fn two_snapshots_of_a_table_are_two_tables() {
    let lake = sales().await;
    let old = ask(&lake, "SELECT snapshot_id FROM sales$snapshots")
        .await
        .expect("a snapshot");
    let shop: ArrayRef = Arc::new(Int32Array::from(vec![7]));
    let amount: ArrayRef = Arc::new(Int64Array::from(vec![1_000_000]));
    lake.append("sales", vec![shop, amount]).await;
    let sql = format!(
        "SELECT n.total - o.total FROM (SELECT shop, sum(amount) AS total FROM sales GROUP BY shop) n \
         JOIN (SELECT shop, sum(amount) AS total FROM sales FOR VERSION AS OF {old} GROUP BY shop) o \
         ON n.shop = o.shop WHERE n.total <> o.total"
    );
    assert_eq!(ask(&lake, &sql).await, Ok("1000000".to_owned()));
}
