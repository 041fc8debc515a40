//! What is made of UUIDs alone is a UUID.

use std::sync::Arc;

use arrow::array::{ArrayRef, FixedSizeBinaryArray, Int64Array};
use arrow::datatypes::{DataType, Field};
use datafusion::physical_plan::collect;
use iceberg::spec::PrimitiveType as P;
use tarn_catalog::is_uuid;

use super::codec::travel;
use super::lake::{Lake, rows};

/// The UUIDs of equal bytes.
fn uuids(bytes: &[Option<u8>]) -> ArrayRef {
    let values = bytes.iter().map(|byte| byte.map(|byte| [byte; 16]));
    let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, 16);
    Arc::new(array.expect("they are of one size"))
}

/// A table of (k, u, v, f): two UUIDs, and 16 bytes that are none.
async fn lake() -> Lake {
    let lake = Lake::new().await;
    lake.create(
        "t",
        &[
            ("k", P::Long),
            ("u", P::Uuid),
            ("v", P::Uuid),
            ("f", P::Fixed(16)),
        ],
        &[],
    )
    .await;
    lake.append(
        "t",
        vec![
            Arc::new(Int64Array::from(vec![1, 1, 2])),
            uuids(&[Some(0xaa), None, Some(0xcc)]),
            uuids(&[None, Some(0xbb), Some(0xcc)]),
            uuids(&[Some(1), Some(2), Some(3)]),
        ],
    )
    .await;
    lake
}

/// Whether a column holds UUIDs, by itself or in lists.
fn holds_uuids(field: &Field) -> bool {
    match field.data_type() {
        DataType::List(item) => holds_uuids(item),
        _ => is_uuid(field),
    }
}

/// The last column of the rows, each UUID cut down to its first byte; and whether it is one of UUIDs.
async fn last_column(lake: &Lake, sql: &str) -> (String, bool) {
    let here = lake.session();
    let frame = here.sql(sql).await;
    let frame = frame.unwrap_or_else(|e| panic!("{sql}: {e}"));
    let plan = frame.create_physical_plan().await;
    let plan = plan.unwrap_or_else(|e| panic!("{sql}: {e}"));
    let schema = plan.schema();
    let last = schema.fields().len() - 1;
    let marked = holds_uuids(schema.field(last));
    let (there, worker) = travel(lake, Arc::clone(&plan)).await;
    let mut texts = Vec::new();
    for (plan, context) in [(plan, here), (there, worker)] {
        let batches = collect(plan, context.task_ctx())
            .await
            .unwrap_or_else(|e| panic!("{sql}: {e}"));
        let columns: Vec<_> = batches
            .iter()
            .map(|batch| batch.project(&[last]).expect("a column"))
            .collect();
        let mut text = rows(&columns);
        for byte in ["aa", "bb", "cc", "01", "02", "03"] {
            text = text.replace(&byte.repeat(16), byte);
        }
        texts.push(text);
    }
    assert_eq!(texts[0], texts[1], "{sql}");
    (texts.remove(0), marked)
}

#[tokio::test]
async fn what_is_one_of_several_uuids_is_a_uuid() {
    let lake = lake().await;
    for (sql, values) in [
        ("SELECT min(u) FROM t", "aa"),
        ("SELECT max(u) AS m FROM t", "cc"),
        ("SELECT k, max(v) FROM t GROUP BY k ORDER BY k", "bb; cc"),
        (
            "SELECT k, min(u) FROM t GROUP BY k HAVING min(u) = 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa'",
            "aa",
        ),
        (
            "SELECT k, first_value(u ORDER BY k DESC) FROM t GROUP BY k HAVING k = 2",
            "cc",
        ),
        ("SELECT last_value(u ORDER BY k) FROM t", "cc"),
        ("SELECT coalesce(u, v) FROM t ORDER BY k, 1", "aa; bb; cc"),
        ("SELECT nullif(u, v) FROM t ORDER BY k, 1", "aa; ; "),
        ("SELECT greatest(u, v) FROM t WHERE k = 2", "cc"),
        (
            "SELECT CASE WHEN u IS NULL THEN v ELSE u END FROM t ORDER BY k, 1",
            "aa; bb; cc",
        ),
        (
            "SELECT CASE k WHEN 2 THEN u END FROM t ORDER BY 1",
            "cc; ; ",
        ),
        (
            "SELECT CASE WHEN k = 1 THEN NULL ELSE v END FROM t ORDER BY 1",
            "cc; ; ",
        ),
        (
            "SELECT u FROM t UNION SELECT v FROM t ORDER BY 1",
            "aa; bb; cc; ",
        ),
        (
            "SELECT min(u) FROM t UNION ALL SELECT coalesce(v, u) FROM t WHERE k = 2 ORDER BY 1",
            "aa; cc",
        ),
        (
            "SELECT u FROM t WHERE k = 2 UNION ALL SELECT NULL ORDER BY 1",
            "cc; ",
        ),
        (
            "SELECT NULL AS n UNION ALL SELECT u FROM t WHERE k = 2",
            "; cc",
        ),
        (
            "SELECT max(x) FROM (SELECT u AS x FROM t UNION ALL SELECT NULL UNION ALL SELECT min(v) FROM t) x",
            "cc",
        ),
        (
            "SELECT array_agg(u ORDER BY k, u) FROM t WHERE u IS NOT NULL",
            "[aa, cc]",
        ),
        ("SELECT make_array(u, v) FROM t WHERE k = 2", "[cc, cc]"),
        ("SELECT make_array(u, v)[2] FROM t WHERE k = 2", "cc"),
        (
            "SELECT u FROM t WHERE u IS NOT NULL GROUP BY u ORDER BY u",
            "aa; cc",
        ),
        (
            "SELECT coalesce(u, v) AS c FROM t GROUP BY coalesce(u, v) ORDER BY c",
            "aa; bb; cc",
        ),
        (
            "SELECT DISTINCT coalesce(u, v) AS c FROM t ORDER BY c",
            "aa; bb; cc",
        ),
        (
            "SELECT lag(u) OVER (ORDER BY k, u) FROM t ORDER BY 1",
            "aa; ; ",
        ),
        (
            "SELECT lead(v) OVER (ORDER BY k, v) FROM t ORDER BY k, 1",
            "cc; ; ",
        ),
        (
            "SELECT first_value(u) OVER (PARTITION BY k ORDER BY f ROWS UNBOUNDED PRECEDING) FROM t ORDER BY k",
            "aa; aa; cc",
        ),
        (
            "SELECT k, first_value(u) OVER (ORDER BY u) FROM t ORDER BY k",
            "aa; aa; aa",
        ),
        (
            "SELECT ifnull(u, v) FROM t WHERE k = 1 ORDER BY 1",
            "aa; bb",
        ),
        ("SELECT max(u) OVER () FROM t", "cc; cc; cc"),
        ("SELECT (SELECT max(u) FROM t)", "cc"),
        ("SELECT (SELECT u FROM t WHERE k = 2)", "cc"),
        (
            "SELECT k, (SELECT max(s.v) FROM t s WHERE s.k = t.k) FROM t ORDER BY k",
            "bb; bb; cc",
        ),
        (
            "WITH c AS (SELECT k, max(u) AS m FROM t GROUP BY k) SELECT max(m) FROM c",
            "cc",
        ),
        (
            "SELECT m FROM (SELECT max(u) AS m FROM t) x WHERE m = 'cccccccc-cccc-cccc-cccc-cccccccccccc'",
            "cc",
        ),
        (
            "SELECT m FROM (SELECT max(u) AS m FROM t) x WHERE m IN ('cccccccc-cccc-cccc-cccc-cccccccccccc')",
            "cc",
        ),
        (
            "SELECT coalesce(a.u, b.v) FROM t a LEFT JOIN t b ON a.k = b.k AND b.k = 1 ORDER BY a.k, 1",
            "aa; aa; bb; ; cc",
        ),
    ] {
        let (text, marked) = last_column(&lake, sql).await;
        assert_eq!(text, values, "{sql}");
        assert!(marked, "{sql} gives no UUIDs");
    }
}

#[tokio::test]
async fn bytes_that_may_be_none_are_none() {
    let lake = lake().await;
    for (sql, values) in [
        ("SELECT min(f) FROM t", "01"),
        ("SELECT coalesce(u, f) FROM t ORDER BY 1", "02; aa; cc"),
        (
            "SELECT CASE WHEN k = 1 THEN f ELSE u END FROM t ORDER BY 1",
            "01; 02; cc",
        ),
        ("SELECT array_agg(f ORDER BY f) FROM t", "[01, 02, 03]"),
        ("SELECT count(u) FROM t", "2"),
        (
            "SELECT CAST(max(u) AS VARCHAR) FROM t",
            "cccccccc-cccc-cccc-cccc-cccccccccccc",
        ),
        // Peers have one number, and one sum.
        (
            "SELECT rank() OVER (ORDER BY v) FROM t ORDER BY 1",
            "1; 2; 3",
        ),
        (
            "SELECT sum(k) OVER (ORDER BY x.u DESC) FROM (SELECT k, u FROM t UNION ALL SELECT k, u FROM t WHERE u IS NOT NULL) x \
             ORDER BY 1",
            "1; 5; 5; 7; 7",
        ),
    ] {
        let (text, marked) = last_column(&lake, sql).await;
        assert_eq!(text, values, "{sql}");
        assert!(!marked, "{sql} gives UUIDs");
    }
}
