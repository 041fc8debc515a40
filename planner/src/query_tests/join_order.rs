//! Joins in another order than they are written give the same rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, StringArray};
use iceberg::spec::PrimitiveType;

use super::lake::Lake;

/// Numbers that look random and are the same each time.
fn numbers(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    }
}

/// Tables `a` to `e` of 14 rows: `k` is the row's number, `x` and `y` are from 0 to 6 or null.
async fn small_tables() -> Lake {
    let lake = Lake::new().await;
    let mut number = numbers(7);
    for table in ["a", "b", "c", "d", "e"] {
        lake.create(
            table,
            &[
                ("k", PrimitiveType::Int),
                ("x", PrimitiveType::Int),
                ("y", PrimitiveType::Int),
            ],
            &[],
        )
        .await;
        let mut column = || -> ArrayRef {
            let values = (0..14).map(|_| match number(9) {
                0 => None,
                value => Some((value % 7) as i32),
            });
            Arc::new(values.collect::<Int32Array>())
        };
        let (x, y) = (column(), column());
        let k: ArrayRef = Arc::new((0..14).collect::<Int32Array>());
        lake.append(table, vec![k, x, y]).await;
    }
    lake
}

/// A query that joins some of the tables in some way.
fn random_query(seed: u64) -> String {
    let mut number = numbers(seed);
    let tables = ["a", "b", "c", "d", "e"];
    let relations = 2 + number(4) as usize;
    let mut from = format!("{} AS r0", tables[number(5) as usize]);
    let mut wheres: Vec<String> = Vec::new();
    for i in 1..relations {
        let table = tables[number(5) as usize];
        let other = number(i as u64);
        let column = |n: u64| ["x", "y"][(n % 2) as usize];
        let equal = format!(
            "r{i}.{} = r{other}.{}",
            column(number(2)),
            column(number(2))
        );
        let further = match number(4) {
            0 => format!(" AND r{i}.y > {}", number(5)),
            1 => format!(" AND r{i}.y <> r{other}.x"),
            _ => String::new(),
        };
        match number(6) {
            0 | 1 => from += &format!(" JOIN {table} AS r{i} ON {equal}{further}"),
            2 | 3 => from += &format!(" LEFT JOIN {table} AS r{i} ON {equal}{further}"),
            4 => from += &format!(" RIGHT JOIN {table} AS r{i} ON {equal}{further}"),
            _ => {
                from += &format!(" CROSS JOIN {table} AS r{i}");
                wheres.push(equal);
            }
        }
    }
    for _ in 0..number(4) {
        let table = tables[number(5) as usize];
        let (i, j, k) = (
            number(relations as u64),
            number(relations as u64),
            number(relations as u64),
        );
        let value = number(7);
        wheres.push(match number(8) {
            0 => format!("r{i}.x IN (SELECT s.y FROM {table} AS s WHERE s.x < {value})"),
            1 => format!(
                "EXISTS (SELECT 1 FROM {table} AS s WHERE s.x = r{i}.x AND s.y <> r{i}.y)"
            ),
            2 => format!("NOT EXISTS (SELECT 1 FROM {table} AS s WHERE s.x = r{i}.y)"),
            3 => format!(
                "r{i}.x NOT IN (SELECT s.y FROM {table} AS s WHERE s.y IS NOT NULL AND s.x > {value})"
            ),
            4 => format!("coalesce(r{i}.y, 0) + r{j}.x = r{k}.y"),
            5 => format!("(r{i}.x < r{j}.y OR r{k}.y = {value})"),
            6 => format!("coalesce(r{i}.y, {value}) > 2"),
            _ => format!("r{i}.y >= (SELECT min(s.x) FROM {table} AS s)"),
        });
    }
    let columns: Vec<String> = (0..relations)
        .map(|i| format!("r{i}.k AS k{i}, r{i}.y AS y{i}"))
        .collect();
    let filter = match wheres.is_empty() {
        true => String::new(),
        false => format!(" WHERE {}", wheres.join(" AND ")),
    };
    format!("SELECT {} FROM {from}{filter}", columns.join(", "))
}

fn sorted(text: &str) -> Vec<&str> {
    let mut rows: Vec<&str> = text.split("; ").collect();
    rows.sort_unstable();
    rows
}

#[tokio::test]
async fn random_joins_give_the_same_rows_in_any_order() {
    let mut lake = small_tables().await;
    for seed in 0..60 {
        let sql = random_query(seed);
        lake.options.join_reorder = false;
        let written = lake.query(&sql).await.text;
        lake.options.join_reorder = true;
        let ordered = lake.query(&sql).await.text;
        assert!(
            sorted(&written) == sorted(&ordered),
            "seed {seed}: {sql}\nas written: {} rows\nordered: {} rows\n{}",
            sorted(&written).len(),
            sorted(&ordered).len(),
            lake.explain(&sql).await,
        );
    }
}

/// `sales`: 20,000 rows of 1,000 items, 100 days and 50 stores; `item`, `day`, `store` have a row for each, in 10
/// kinds, months and countries.
async fn star() -> Lake {
    let lake = Lake::new().await;
    let int = PrimitiveType::Int;
    lake.create(
        "sales",
        &[
            ("item_id", int.clone()),
            ("day_id", int.clone()),
            ("store_id", int.clone()),
            ("price", PrimitiveType::Long),
        ],
        &[],
    )
    .await;
    let ints = |rows: i32, value: fn(i32) -> i32| -> ArrayRef {
        Arc::new((0..rows).map(value).collect::<Int32Array>())
    };
    lake.append(
        "sales",
        vec![
            ints(20_000, |n| n % 1000),
            ints(20_000, |n| n / 200),
            ints(20_000, |n| n % 50),
            Arc::new((0..20_000).collect::<Int64Array>()),
        ],
    )
    .await;
    for (table, rows) in [("item", 1000), ("day", 100), ("store", 50)] {
        lake.create(
            table,
            &[
                ("id", int.clone()),
                ("kind", int.clone()),
                ("name", PrimitiveType::String),
            ],
            &[],
        )
        .await;
        let names: StringArray = (0..rows).map(|n| Some(format!("{table} {n}"))).collect();
        lake.append(
            table,
            vec![ints(rows, |n| n), ints(rows, |n| n % 10), Arc::new(names)],
        )
        .await;
    }
    lake
}

#[tokio::test]
async fn tables_that_only_the_facts_link_are_not_crossed() {
    let lake = star().await;
    let sql = "SELECT count(*) FROM item, day, store, sales \
               WHERE item.id = item_id AND day.id = day_id AND store.id = store_id AND store.kind = 3 AND day.kind < 5";
    let plan = lake.explain(sql).await;
    assert!(
        !plan.contains("CrossJoin") && !plan.contains("NestedLoop"),
        "{plan}"
    );
    // Half of the days' ids end in 0 to 4, and a tenth of the stores' in 3: day n / 200, store n % 50.
    assert_eq!(lake.query(sql).await.text, "1000");
}

#[tokio::test]
async fn the_filtered_dimension_is_joined_first_and_the_facts_are_probed() {
    let lake = star().await;
    let sql = "SELECT sum(price) FROM sales JOIN item ON item.id = item_id JOIN day ON day.id = day_id \
               JOIN store ON store.id = store_id WHERE store.name = 'store 7'";
    let plan = lake.explain(sql).await;
    let place = |what: &str| plan.find(what).unwrap_or_else(|| panic!("{what}: {plan}"));
    // The deepest join, which the plan shows last, is the one of the sales with their store.
    let deepest = plan.rfind("HashJoinExec").expect("a join");
    let line = plan[deepest..].lines().next().unwrap_or_default();
    assert!(line.contains("store_id"), "{plan}");
    // What is built comes first.
    assert!(
        place("table=lake.default.store,") < place("table=lake.default.sales,"),
        "{plan}"
    );
    // Every 50th of the numbers below 20,000, from 7 on.
    let wanted: i64 = (0..400).map(|n| n * 50 + 7).sum();
    assert_eq!(lake.query(sql).await.text, wanted.to_string());
}

#[tokio::test]
async fn a_semi_join_that_leaves_few_rows_comes_before_other_joins() {
    let lake = star().await;
    let sql = "SELECT count(*) FROM sales JOIN item ON item.id = item_id JOIN day ON day.id = day_id \
               WHERE day_id IN (SELECT id FROM store WHERE name = 'store 7')";
    let plan = lake.explain(sql).await;
    let deepest = plan.rfind("HashJoinExec").expect("a join");
    let line = plan[deepest..].lines().next().unwrap_or_default();
    assert!(line.contains("Semi"), "{plan}");
    assert_eq!(lake.query(sql).await.text, "200");
}

#[tokio::test]
async fn a_cross_join_that_the_text_asks_for_is_one() {
    let lake = star().await;
    let sql = "SELECT count(*) FROM day CROSS JOIN store WHERE day.kind = 1";
    assert_eq!(lake.query(sql).await.text, "500");
}

#[tokio::test]
async fn an_aggregate_computes_only_the_groups_that_its_join_looks_for() {
    let mut lake = star().await;
    let dearer = |filter: &str| {
        format!(
            "SELECT sum(price) FROM sales JOIN item ON item.id = item_id WHERE {filter} \
             AND price > (SELECT avg(price) FROM sales AS others WHERE others.item_id = item.id)"
        )
    };
    // Item 7 is in rows 7, 1007 … 19007, on average 9507: ten are dearer, 10007 to 19007.
    let one = dearer("item.name = 'item 7'");
    let plan = lake.explain(&one).await;
    let aggregate = plan
        .find("AggregateExec: mode=Partial, gby=[item_id")
        .expect("by item");
    assert!(plan[aggregate..].contains("Semi"), "{plan}");
    assert_eq!(lake.query(&one).await.text, "145070");
    // Nine of ten items are left: not worth it.
    let most = lake.explain(&dearer("item.kind <> 3")).await;
    assert!(!most.contains("Semi"), "{most}");
    // Day 7 has the rows 1400 to 1599.
    let by_semi_join = "SELECT sum(price) FROM sales WHERE day_id IN (SELECT id FROM store WHERE name = 'store 7') \
         AND price > (SELECT avg(price) FROM sales AS others WHERE others.day_id = sales.day_id)";
    let plan = lake.explain(by_semi_join).await;
    assert_eq!(plan.matches("Semi").count(), 2, "{plan}");
    assert_eq!(lake.query(by_semi_join).await.text, "154950");
    lake.options.join_reorder = false;
    assert_eq!(lake.query(&one).await.text, "145070");
    assert_eq!(lake.query(by_semi_join).await.text, "154950");
}

#[tokio::test]
async fn an_aggregate_of_joins_below_projections_is_reduced_too() {
    let lake = star().await;
    // The store of row n is n % 50 and its item n % 1000: item 30 is only sold in store 30, by the rows 30, 1030 … 19030.
    let sql = "SELECT t.n, t.total FROM item JOIN \
         (SELECT item_id AS i, total, n FROM (SELECT item_id, sum(price) AS total, count(*) AS n FROM sales \
             JOIN store ON store.id = store_id WHERE store.kind = 0 GROUP BY item_id HAVING count(*) > 1) AS a) AS t \
         ON t.i = item.id WHERE item.name = 'item 30'";
    let plan = lake.explain(sql).await;
    assert!(plan.contains("Semi"), "{plan}");
    assert_eq!(lake.query(sql).await.text, "20,190600");
}

#[tokio::test]
async fn what_is_built_once_is_told_by_the_estimates_that_ordered_the_joins() {
    let mut lake = star().await;
    // DataFusion takes a filter to keep a fifth of the 1000 items, and knows nothing of the groups.
    lake.broadcast_bytes = Some(1000);
    let sql = "SELECT sum(price) FROM sales JOIN item ON item.id = item_id WHERE item.name = 'item 7' \
         AND price > (SELECT avg(price) FROM sales AS others WHERE others.item_id = item.id)";
    let plan = lake.explain(sql).await;
    assert!(plan.contains("mode=CollectLeft"), "{plan}");
    assert!(!plan.contains("mode=Partitioned"), "{plan}");
    assert!(!plan.contains("SizeEstimate"), "{plan}");
    assert_eq!(lake.query(sql).await.text, "145070");
    lake.options.join_reorder = false;
    assert!(lake.explain(sql).await.contains("mode=Partitioned"));
}
