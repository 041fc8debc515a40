//! A query for the first rows of an order opens the files that can have them, and no more.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use datafusion::physical_plan::collect;
use iceberg::spec::PrimitiveType as P;

use super::codec::travel;
use super::lake::{Lake, rows};
use crate::finish_scan_reports;

const FILES: i64 = 20;
const ROWS: i64 = 100;

/// Twenty files of a hundred rows (id, name, n), each with the ids of one hundred, in an order of files that is none of
/// ids. Names are in the order of ids; `n` is null in the file of the ids from 700 on, else the id.
async fn lake() -> Lake {
    let mut lake = Lake::new().await;
    lake.options.target_partitions = 1;
    // A filter gathers its rows to whole batches, here of less than a file's rows.
    lake.options.batch_rows = 40;
    lake.create(
        "t",
        &[("id", P::Long), ("name", P::String), ("n", P::Long)],
        &[],
    )
    .await;
    for file in 0..FILES {
        let first = (file * 7 % FILES) * ROWS;
        let ids: Vec<i64> = (first..first + ROWS).collect();
        let names: Vec<String> = ids
            .iter()
            .map(|id| format!("{id:05}, a name of some length"))
            .collect();
        let n: Int64Array = ids.iter().map(|id| (first != 700).then_some(*id)).collect();
        lake.append(
            "t",
            vec![
                Arc::new(Int64Array::from(ids)),
                Arc::new(StringArray::from(names)),
                Arc::new(n) as ArrayRef,
            ],
        )
        .await;
    }
    lake
}

/// Answers, and the most files that may be opened for them: one is opened ahead of the one that is read.
const QUERIES: [(&str, &str, u64); 7] = [
    ("SELECT id FROM t ORDER BY id LIMIT 3", "0; 1; 2", 2),
    (
        "SELECT id FROM t ORDER BY id DESC LIMIT 3",
        "1999; 1998; 1997",
        2,
    ),
    (
        "SELECT id FROM t WHERE id > 250 ORDER BY id LIMIT 2",
        "251; 252",
        2,
    ),
    ("SELECT id FROM t ORDER BY name LIMIT 2", "0; 1", 2),
    (
        "SELECT id FROM t ORDER BY name DESC LIMIT 2",
        "1999; 1998",
        2,
    ),
    ("SELECT n FROM t ORDER BY n NULLS FIRST LIMIT 2", "; ", 2),
    (
        "SELECT n FROM t ORDER BY n DESC NULLS LAST LIMIT 1",
        "1999",
        2,
    ),
];

#[tokio::test]
async fn files_that_can_no_longer_matter_are_not_opened() {
    let lake = lake().await;
    for (sql, expected, most) in QUERIES {
        let answer = lake.query(sql).await;
        assert_eq!(answer.text, expected, "{sql}");
        let opened = answer.reports[0].files_opened;
        assert!((1..=most).contains(&opened), "{sql}: {opened} files");
    }
    let all = lake.query("SELECT sum(id) FROM t").await;
    assert_eq!(all.reports[0].files_opened, FILES as u64);
}

#[tokio::test]
async fn nor_are_they_in_another_process() {
    let lake = lake().await;
    for (sql, expected, most) in QUERIES {
        let (plan, worker) = travel(&lake, lake.plan(sql).await).await;
        // What a worker does with each fragment.
        let plan = relinked(plan, &worker);
        let batches = collect(Arc::clone(&plan), worker.task_ctx())
            .await
            .expect("it runs");
        assert_eq!(rows(&batches), expected, "{sql}");
        let opened = finish_scan_reports(&plan)[0].files_opened;
        assert!((1..=most).contains(&opened), "{sql}: {opened} files");
    }
}

fn relinked(
    plan: Arc<dyn datafusion::physical_plan::ExecutionPlan>,
    worker: &datafusion::prelude::SessionContext,
) -> Arc<dyn datafusion::physical_plan::ExecutionPlan> {
    use datafusion::physical_optimizer::PhysicalOptimizerRule;
    use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
    let state = worker.state();
    FilterPushdown::new_post_optimization()
        .optimize(plan, state.config_options())
        .expect("filters are pushed down")
}

#[tokio::test]
async fn a_limit_ends_the_reading() {
    let lake = lake().await;
    for (sql, most) in [
        ("SELECT id FROM t WHERE id % 2 = 0 LIMIT 5", 2),
        ("SELECT id FROM t WHERE name LIKE '%length' LIMIT 120", 3),
    ] {
        let answer = lake.query(sql).await;
        let opened = answer.reports[0].files_opened;
        assert!((1..=most).contains(&opened), "{sql}: {opened} files");
    }
}
