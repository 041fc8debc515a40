//! Shuffled joins of a table in which one key has 40 % of the rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::{ExecutionPlan, execute_stream_partitioned};
use futures::TryStreamExt;
use iceberg::spec::PrimitiveType;

use super::lake::Lake;

/// `facts`: of 20,000 keys `k` 8,000 are 7, 2,000 are null, the others 1000 to 1999. `dims`: the keys 0 to 1499, and 7 once
/// more. `t` is the key as text.
async fn lake() -> Lake {
    let mut lake = Lake::new().await;
    lake.options.target_partitions = 8;
    lake.options.skew_join_min_rows = Some(0);
    // Nothing is small enough to be built once.
    lake.broadcast_bytes = Some(0);
    let columns = [
        ("k", PrimitiveType::Long),
        ("t", PrimitiveType::String),
        ("v", PrimitiveType::Long),
    ];
    let facts = (0..20_000).map(|i| match i % 10 {
        0..4 => Some(7),
        4 => None,
        _ => Some(1000 + i % 1000),
    });
    let dims = (0..1500).map(Some).chain([Some(7)]);
    for (name, keys) in [
        ("facts", facts.collect::<Vec<Option<i64>>>()),
        ("dims", dims.collect()),
    ] {
        lake.create(name, &columns, &[]).await;
        let texts: StringArray = keys.iter().map(|k| k.map(|k| format!("k{k}"))).collect();
        let values = Int64Array::from_iter_values(0..keys.len() as i64);
        let keys: ArrayRef = Arc::new(Int64Array::from(keys));
        lake.append(name, vec![keys, Arc::new(texts), Arc::new(values)])
            .await;
    }
    lake
}

const ON: [&str; 3] = ["f.k = d.k", "f.t = d.t", "f.k = d.k AND f.t = d.t"];

/// Rows of each partition that the plan's join probes with.
async fn probed(lake: &Lake, sql: &str) -> Vec<usize> {
    let context = lake.session();
    let frame = context.sql(sql).await.expect("planned");
    let plan = frame.create_physical_plan().await.expect("planned");
    let mut probe = None;
    plan.apply(|node| {
        if let Some(join) = node.downcast_ref::<HashJoinExec>() {
            probe = Some(Arc::clone(join.right()));
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .expect("walked");
    let probe: Arc<dyn ExecutionPlan> = probe.expect("a hash join");
    let streams = execute_stream_partitioned(probe, context.task_ctx()).expect("runs");
    let counts = streams.into_iter().map(|stream| async {
        stream
            .try_fold(0, |rows, batch| async move { Ok(rows + batch.num_rows()) })
            .await
            .expect("rows")
    });
    futures::future::join_all(counts).await
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_heavy_key_go_to_all_partitions() {
    let mut lake = lake().await;
    for on in ON {
        let sql = format!("SELECT f.v, d.v FROM facts f JOIN dims d ON {on}");
        lake.options.skew_join_min_rows = None;
        let most = probed(&lake, &sql).await.into_iter().max();
        assert!(most >= Some(8_000), "{on}: {most:?}");
        lake.options.skew_join_min_rows = Some(0);
        let spread = probed(&lake, &sql).await;
        // A fair share is 2,500 (2,250 without the nulls, which an inner join drops before); by chance some get more.
        assert!(spread.iter().all(|rows| *rows < 5_000), "{on}: {spread:?}");
        assert!(spread.iter().sum::<usize>() >= 18_000, "{on}: {spread:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn spread_joins_give_the_rows_that_match() {
    let lake = lake().await;
    // 8,000 times two rows of key 7; of the other 10,000, which end in 500 to 999 (no match) as often as in 0 to 499, 5,000.
    let answers = [
        ("SELECT count(*) FROM facts f JOIN dims d ON {}", "21000"),
        (
            "SELECT count(*) FROM facts f LEFT JOIN dims d ON {}",
            "28000",
        ),
        (
            "SELECT count(*) FROM dims d RIGHT JOIN facts f ON {}",
            "28000",
        ),
        (
            "SELECT count(*) FROM facts f WHERE EXISTS (SELECT 1 FROM dims d WHERE {})",
            "13000",
        ),
        (
            "SELECT count(*) FROM facts f WHERE NOT EXISTS (SELECT 1 FROM dims d WHERE {})",
            "7000",
        ),
        (
            "SELECT count(*) FROM facts f JOIN dims d ON {} AND d.v > 1499",
            "8000",
        ),
    ];
    for (sql, count) in answers {
        for on in ON {
            let sql = sql.replace("{}", on);
            let plan = lake.explain(&sql).await;
            assert!(plan.contains("__salt"), "{sql}\n{plan}");
            // What is random shows now and then.
            for _ in 0..3 {
                assert_eq!(lake.query(&sql).await.text, count, "{sql}");
            }
        }
    }
    // Columns of both sides, through a projection: 1,500 is the second row of key 7, row 0 the first of facts.
    let sql = "SELECT d.v, f.v, d.t FROM facts f JOIN dims d ON f.k = d.k WHERE f.v < 1 ORDER BY 1";
    assert_eq!(lake.query(sql).await.text, "7,0,k7; 1500,0,k7");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_whose_partitions_are_used_above_is_not_spread() {
    let lake = lake().await;
    // Groups of the key, and another join by it, take the rows as the join has them.
    for (sql, answer) in [
        (
            "SELECT count(*), sum(n) FROM (SELECT f.k, count(*) AS n FROM facts f JOIN dims d ON f.k = d.k GROUP BY f.k) x",
            "251,21000",
        ),
        (
            "SELECT count(*) FROM facts f JOIN dims d ON f.k = d.k JOIN dims e ON f.k = e.k",
            "37000",
        ),
    ] {
        for _ in 0..3 {
            assert_eq!(lake.query(sql).await.text, answer, "{sql}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn joins_that_yield_build_rows_are_not_spread() {
    let lake = lake().await;
    // All 1,501 rows of dims: with matches 16,000 + 5,000, and those without: all but 7 (two rows) and 1000 to 1499's matched
    // ones, of which 1005 to 1009, 1015 and so on are in facts: 250.
    for (sql, answer) in [
        (
            "SELECT count(*), count(f.v) FROM dims d FULL JOIN facts f ON f.k = d.k",
            "29249,28000",
        ),
        (
            "SELECT count(*) FROM dims d WHERE EXISTS (SELECT 1 FROM facts f WHERE f.k = d.k)",
            "252",
        ),
        (
            "SELECT count(*) FROM dims d WHERE NOT EXISTS (SELECT 1 FROM facts f WHERE f.k = d.k)",
            "1249",
        ),
        (
            "SELECT count(*), count(f.v) FROM dims d LEFT JOIN facts f ON f.k = d.k",
            "22249,21000",
        ),
    ] {
        assert_eq!(lake.query(sql).await.text, answer, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_is_not_counted_as_read() {
    let lake = lake().await;
    let answer = lake
        .query("SELECT f.v, d.v FROM facts f JOIN dims d ON f.k = d.k")
        .await;
    let facts = answer.reports.iter().find(|report| report.table == "facts");
    assert_eq!(facts.expect("a scan of facts").rows_read, 20_000);
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_found_when_the_query_runs() {
    let lake = lake().await;
    let sql = "SELECT count(*) FROM facts f JOIN dims d ON f.k = d.k";
    let mut damaged = 0;
    let mut folders = vec![lake.folder.path().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("is listed") {
            let path = entry.expect("is listed").path();
            let of_facts = path.to_string_lossy().contains("/facts");
            if path.is_dir() {
                folders.push(path);
            } else if of_facts && path.extension().is_some_and(|of| of == "parquet") {
                std::fs::write(path, b"no Parquet").expect("is overwritten");
                damaged += 1;
            }
        }
    }
    assert_eq!(damaged, 1);
    lake.plan(sql).await;
    let error = lake.error(sql).await;
    assert!(error.contains(".parquet"), "{error}");
}
