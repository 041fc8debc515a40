//! Filters that joins and TopK hand down, where tables have columns of the same name.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use iceberg::spec::PrimitiveType;

use super::lake::Lake;

async fn table(lake: &Lake, name: &str, columns: &[(&str, &[i64])]) {
    let fields: Vec<_> = columns
        .iter()
        .map(|(column, _)| (*column, PrimitiveType::Long))
        .collect();
    lake.create(name, &fields, &[]).await;
    let arrays = columns
        .iter()
        .map(|(_, values)| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef)
        .collect();
    lake.append(name, arrays).await;
}

#[tokio::test]
async fn the_order_with_the_smallest_payment() {
    for reorder in [false, true] {
        let mut lake = Lake::new().await;
        lake.options.join_reorder = reorder;
        table(
            &lake,
            "orders",
            &[("amount", &[100, 200, 300]), ("id", &[1, 2, 3])],
        )
        .await;
        table(
            &lake,
            "payments",
            &[("id", &[1, 2, 3]), ("amount", &[30, 20, 10])],
        )
        .await;
        table(&lake, "customers", &[("id", &[1, 2, 3])]).await;
        let answer = lake
            .query(
                "SELECT o.amount, p.amount FROM orders o JOIN payments p ON o.id = p.id JOIN customers c ON p.id = c.id \
                 ORDER BY p.amount LIMIT 1",
            )
            .await;
        assert_eq!(answer.text, "300,10");
    }
}

#[tokio::test]
async fn a_key_that_has_the_name_of_another_column_finds_its_rows() {
    for reorder in [false, true] {
        let mut lake = Lake::new().await;
        lake.options.join_reorder = reorder;
        table(&lake, "a", &[("id", &[1, 2]), ("kind", &[10, 20])]).await;
        table(&lake, "b", &[("id", &[10, 30])]).await;
        for (sql, rows) in [
            (
                "SELECT s.id, j.aid, j.bid FROM b s JOIN (SELECT a.id AS aid, b.id AS bid FROM a LEFT JOIN b ON a.kind = b.id) j \
                 ON s.id = j.bid",
                "10,1,10",
            ),
            (
                "SELECT s.id, count(*) FROM b s JOIN (SELECT a.id AS aid, b.id FROM a LEFT JOIN b ON a.kind = b.id \
                 GROUP BY a.id, b.id) j ON s.id = j.id GROUP BY s.id",
                "10,1",
            ),
            (
                "SELECT a.id FROM a JOIN b ON a.kind = b.id WHERE b.id IN (SELECT id FROM b WHERE id < 20)",
                "1",
            ),
        ] {
            assert_eq!(lake.query(sql).await.text, rows, "{sql}");
        }
    }
}

#[tokio::test]
async fn a_null_on_the_right_of_not_in_is_never_left_out() {
    let lake = Lake::new().await;
    table(&lake, "few", &[("k", &[7])]).await;
    lake.create("a", &[("k", PrimitiveType::Long)], &[]).await;
    let keys = Int64Array::from(vec![Some(0), Some(1), None]);
    lake.append("a", vec![Arc::new(keys)]).await;
    let not_in = "SELECT k FROM a WHERE k NOT IN (SELECT k FROM few) ORDER BY k";
    assert_eq!(lake.query(not_in).await.text, "0; 1");
    // 7 and NULL are in one file, whose bounds are 7: no key of `a` is there.
    lake.create("more", &[("k", PrimitiveType::Long)], &[])
        .await;
    let keys = Int64Array::from(vec![Some(7), None]);
    lake.append("more", vec![Arc::new(keys)]).await;
    let not_in = "SELECT k FROM a WHERE k NOT IN (SELECT k FROM more) ORDER BY k";
    assert_eq!(lake.query(not_in).await.text, "");
    let nothing = "SELECT count(*) FROM a WHERE k NOT IN (SELECT k FROM more WHERE k > 9)";
    assert_eq!(lake.query(nothing).await.text, "3");
    // What is asked of the left side is not asked of the right.
    for condition in ["k >= 0", "k = 1", "k > 0 AND k < 5", "k IN (0, 1)"] {
        for (table, rows) in [("more", "0"), ("few", "1; 2")] {
            let sql = format!(
                "SELECT count(*) FROM a WHERE {condition} AND k NOT IN (SELECT k FROM {table})"
            );
            let answer = lake.query(&sql).await.text;
            assert!(
                rows.split("; ").any(|rows| rows == answer),
                "{sql}: {answer}"
            );
        }
    }
}

/// A condition on the side that an outer join fills with NULLs stays on it, though the other side has a column of its name.
#[tokio::test]
async fn a_condition_above_a_join_whose_sides_are_swapped() {
    for reorder in [false, true] {
        let mut lake = Lake::new().await;
        lake.options.join_reorder = reorder;
        let numbers: Vec<i64> = (0..1000).collect();
        table(&lake, "big", &[("k", &numbers), ("v", &numbers)]).await;
        table(&lake, "small", &[("k", &[0, 2, 4]), ("w", &[0, 1, 2])]).await;
        for (sql, rows) in [
            (
                "SELECT count(*), sum(b.k) FROM big a RIGHT JOIN small b ON a.k = b.k AND a.v <> b.w WHERE a.k IS NULL",
                "1,0",
            ),
            (
                "SELECT count(*), sum(b.k) FROM small b LEFT JOIN big a ON a.k = b.k AND a.v <> b.w WHERE a.k IS NULL",
                "1,0",
            ),
            (
                "SELECT count(*), sum(a.k) FROM big a LEFT JOIN small b ON a.k = b.k AND a.v <> b.w WHERE b.k IS NULL",
                "998,499494",
            ),
            (
                "SELECT count(*), sum(a.k) FROM small b RIGHT JOIN big a ON a.k = b.k AND a.v <> b.w WHERE b.k IS NULL",
                "998,499494",
            ),
            (
                "SELECT count(*) FROM big a FULL JOIN small b ON a.k = b.k AND a.v <> b.w WHERE b.k IS NULL OR a.k IS NULL",
                "999",
            ),
        ] {
            assert_eq!(lake.query(sql).await.text, rows, "{reorder}: {sql}");
        }
    }
}

#[tokio::test]
async fn a_filter_that_is_the_scans_own_stays() {
    let mut lake = Lake::new().await;
    lake.options.join_reorder = false;
    table(&lake, "a", &[("id", &[1, 2]), ("kind", &[10, 20])]).await;
    table(&lake, "b", &[("id", &[10, 30])]).await;
    let plan = lake
        .explain("SELECT a.id, b.id FROM b JOIN a ON a.kind = b.id")
        .await;
    assert!(plan.contains("DynamicFilter"), "{plan}");
}

/// What is built has no values, so the filter that the join knows then would rule out every file of the other side.
#[tokio::test]
async fn nulls_find_nulls_where_they_are_equal() {
    let lake = Lake::new().await;
    let nullable =
        |values: &[Option<i64>]| -> ArrayRef { Arc::new(Int64Array::from(values.to_vec())) };
    for (name, values) in [
        ("few", vec![None, None]),
        ("many", vec![None, Some(1), Some(2), Some(3), None, Some(5)]),
    ] {
        lake.create(name, &[("k", PrimitiveType::Long)], &[]).await;
        lake.append(name, vec![nullable(&values)]).await;
    }
    for (sql, rows) in [
        (
            "SELECT count(*) FROM few JOIN many ON few.k <=> many.k",
            "4",
        ),
        (
            "SELECT count(*), sum(n) FROM few JOIN (SELECT k, count(*) AS n FROM many GROUP BY k) m ON few.k <=> m.k",
            "2,4",
        ),
        (
            "SELECT count(*) FROM many WHERE EXISTS (SELECT 1 FROM few WHERE few.k <=> many.k)",
            "2",
        ),
        ("SELECT count(*) FROM few JOIN many ON few.k = many.k", "0"),
    ] {
        assert_eq!(lake.query(sql).await.text, rows, "{sql}");
    }
}

/// Of two joins in one query, one by `=` and one by `<=>`, each keeps its own.
#[tokio::test]
async fn nulls_are_equal_only_where_they_are_said_to_be() {
    for reorder in [false, true] {
        let mut lake = Lake::new().await;
        lake.options.join_reorder = reorder;
        for name in ["a", "b", "c"] {
            let values: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(1), Some(2)]));
            lake.create(name, &[("k", PrimitiveType::Long)], &[]).await;
            lake.append(name, vec![values]).await;
        }
        for (from, rows) in [
            ("a JOIN b ON a.k = b.k JOIN c ON b.k <=> c.k", "2"),
            ("a JOIN b ON a.k <=> b.k JOIN c ON b.k = c.k", "2"),
            ("a JOIN b ON a.k <=> b.k JOIN c ON b.k <=> c.k", "3"),
            ("a, b, c WHERE a.k = b.k AND b.k <=> c.k", "2"),
            ("a, b, c WHERE a.k <=> b.k AND b.k <=> c.k", "3"),
        ] {
            let sql = format!("SELECT count(*) FROM {from}");
            assert_eq!(lake.query(&sql).await.text, rows, "{sql}");
        }
    }
}

/// What a join repeats is made distinct again, though a `GROUP BY` below had made it so.
#[tokio::test]
async fn distinct_above_a_join_with_groups() {
    for reorder in [false, true] {
        let mut lake = Lake::new().await;
        lake.options.join_reorder = reorder;
        table(&lake, "x", &[("k", &[1, 1, 2, 3])]).await;
        table(&lake, "y", &[("k", &[1, 1, 2, 4]), ("j", &[0, 5, 0, 0])]).await;
        let groups = "(SELECT k, count(*) AS v FROM y GROUP BY k) g";
        for (sql, rows) in [
            (
                format!("SELECT DISTINCT g.k FROM x JOIN {groups} ON x.k = g.k ORDER BY 1"),
                "1; 2",
            ),
            (
                format!("SELECT count(*) FROM (SELECT DISTINCT g.k FROM x LEFT JOIN {groups} ON x.k = g.k) d"),
                "3",
            ),
            (
                "SELECT DISTINCT k FROM (SELECT k, j FROM y GROUP BY k, j) g ORDER BY 1".to_string(),
                "1; 2; 4",
            ),
            (
                "SELECT g.k FROM x JOIN (SELECT DISTINCT k FROM y) g ON x.k = g.k UNION SELECT 9 ORDER BY 1".to_string(),
                "1; 2; 9",
            ),
        ] {
            assert_eq!(lake.query(&sql).await.text, rows, "{reorder}: {sql}");
        }
    }
}

/// A semi join that builds on the subquery has the columns of its right side: `a.k`, `g`, `b.k`, `c.k`. A projection to the first
/// two and the last was split as if `a.k` came from the left.
#[tokio::test]
async fn a_semi_join_whose_columns_are_called_like_those_of_the_other_side() {
    let many: Vec<i64> = (1..=1000).collect();
    let tens: Vec<i64> = many.iter().map(|k| k * 10).collect();
    let lake = Lake::new().await;
    table(&lake, "a", &[("k", &many), ("g", &tens)]).await;
    table(&lake, "b", &[("k", &many)]).await;
    table(&lake, "c", &[("k", &[1, 2, 3])]).await;
    table(&lake, "few", &[("k", &[2, 3])]).await;
    for (kind, row) in [("", "2,5,50,5"), ("NOT", "998,500495,5004950,1")] {
        let sql = format!(
            "SELECT count(*), sum(a.k), sum(a.g), sum(c.k) FROM a FULL JOIN b ON a.k = b.k FULL JOIN c ON a.k = c.k \
             WHERE {kind} EXISTS (SELECT k FROM few WHERE few.k = b.k)"
        );
        let plan = lake.explain(&sql).await;
        assert!(plan.contains("join_type=Right"), "{plan}");
        assert_eq!(lake.query(&sql).await.text, row, "{sql}");
    }
}

/// The first file has the greatest `a`. What an aggregate knows of `a` alone says nothing of the other's rows.
#[tokio::test]
async fn a_maximum_of_a_column_beside_one_of_an_expression() {
    let mut lake = Lake::new().await;
    lake.options.target_partitions = 2;
    lake.options.batch_rows = 1;
    // Of files with one value in each column metadata would know even the sums.
    table(&lake, "t", &[("a", &[100, 99]), ("b", &[1, 1])]).await;
    // By the time that the last files are opened, 100 is known.
    for b in [1i64, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1000, -1000] {
        let columns = [vec![1, 0], vec![b, b - b.signum()]]
            .map(|it| Arc::new(Int64Array::from(it)) as ArrayRef);
        lake.append("t", columns.to_vec()).await;
    }
    for (sql, row) in [
        ("SELECT max(a), max(a + b) FROM t", "100,1001"),
        ("SELECT max(a + b), max(a) FROM t", "1001,100"),
        ("SELECT min(a), min(a + b), max(b) FROM t", "0,-999,1000"),
        ("SELECT max(a), max(b) FROM t WHERE b <> 7", "100,1000"),
        ("SELECT max(a), max(abs(b)) FROM t WHERE b <> 7", "100,1000"),
    ] {
        // Which files are open when hangs on the time.
        for _ in 0..20 {
            assert_eq!(lake.query(sql).await.text, row, "{sql}");
        }
    }
}
