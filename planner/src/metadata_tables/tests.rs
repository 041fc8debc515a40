//! Metadata tables say what was written.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use iceberg::spec::{PrimitiveType, Transform};

use crate::query_tests::lake::Lake;
use crate::query_tests::versions::{ask, pinned};

async fn answer(lake: &Lake, sql: &str) -> String {
    ask(lake, sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn columns(ids: &[i64], parts: &[Option<&str>], values: &[Option<f64>]) -> Vec<ArrayRef> {
    vec![
        Arc::new(Int64Array::from(ids.to_vec())),
        Arc::new(StringArray::from(parts.to_vec())),
        Arc::new(Float64Array::from(values.to_vec())),
    ]
}

/// `t(id, p, v)` by `p`: two commits. The first has two rows of `a` and one of `b`, the second one of `a` and one of
/// no partition value.
async fn partitioned() -> Lake {
    let lake = Lake::new().await;
    lake.create(
        "t",
        &[
            ("id", PrimitiveType::Long),
            ("p", PrimitiveType::String),
            ("v", PrimitiveType::Double),
        ],
        &[("p", Transform::Identity)],
    )
    .await;
    let first = columns(
        &[1, 2, 3],
        &[Some("a"), Some("a"), Some("b")],
        &[Some(1.5), None, Some(2.5)],
    );
    lake.append("t", first).await;
    lake.append(
        "t",
        columns(&[4, 5], &[Some("a"), None], &[Some(0.5), Some(9.0)]),
    )
    .await;
    lake
}

#[tokio::test]
async fn snapshots_and_their_log() {
    let lake = partitioned().await;
    assert_eq!(
        answer(
            &lake,
            "SELECT operation, summary['added-records'], summary['total-records'], parent_id IS NULL FROM t$snapshots \
             ORDER BY committed_at, 4 DESC"
        )
        .await,
        "append,3,3,true; append,2,5,false"
    );
    assert_eq!(
        answer(
            &lake,
            "SELECT s.snapshot_id = h.snapshot_id, h.is_current_ancestor FROM t.history h JOIN t.snapshots s \
             ON s.snapshot_id = h.snapshot_id"
        )
        .await,
        "true,true; true,true"
    );
    assert_eq!(
        answer(
            &lake,
            "SELECT name, type, max_reference_age_in_ms FROM `default`.t.refs"
        )
        .await,
        "main,BRANCH,"
    );
    // Made empty, then two commits.
    assert_eq!(
        answer(
            &lake,
            "SELECT latest_snapshot_id IS NULL, latest_sequence_number FROM lake.`default`.t.metadata_log_entries \
             ORDER BY latest_sequence_number NULLS FIRST"
        )
        .await,
        "true,; false,1; false,2"
    );
}

#[tokio::test]
async fn files_with_their_partitions_and_metrics() {
    let lake = partitioned().await;
    assert_eq!(
        answer(
            &lake,
            "SELECT content, file_format, spec_id, `partition`['p'], record_count, readable_metrics['v']['lower_bound'], \
             readable_metrics['v']['null_value_count'] FROM t$files ORDER BY 4 NULLS FIRST, 5"
        )
        .await,
        "0,PARQUET,0,,1,9.0,0; 0,PARQUET,0,a,1,0.5,0; 0,PARQUET,0,a,2,1.5,1; 0,PARQUET,0,b,1,2.5,0"
    );
    assert_eq!(
        answer(&lake, "SELECT count(*) FROM t$data_files").await,
        "4"
    );
    assert_eq!(
        answer(&lake, "SELECT count(*) FROM t$delete_files").await,
        "0"
    );
    assert_eq!(
        answer(
            &lake,
            "SELECT sum(map_values(value_counts)[1]) FROM t$all_files"
        )
        .await,
        "5"
    );
    assert_eq!(
        answer(
            &lake,
            "SELECT count(*), min(data_file['record_count']) FROM t$entries WHERE status = 1 AND sequence_number = 2"
        )
        .await,
        "2,1"
    );
    // The least id of the first file, as the spec serialises a long.
    assert_eq!(
        answer(
            &lake,
            "SELECT encode(map_values(lower_bounds)[1], 'hex') FROM t$files WHERE `partition`['p'] = 'b'"
        )
        .await,
        "0300000000000000"
    );
}

#[tokio::test]
async fn partitions_add_up_over_manifests() {
    let lake = partitioned().await;
    assert_eq!(
        answer(
            &lake,
            "SELECT `partition`['p'], spec_id, record_count, file_count, position_delete_file_count FROM t$partitions \
             ORDER BY 1 NULLS FIRST"
        )
        .await,
        ",0,1,1,0; a,0,3,2,0; b,0,1,1,0"
    );
    assert_eq!(
        answer(
            &lake,
            "SELECT p.file_count = count(f.file_path) FROM t$partitions p JOIN t$files f \
             ON p.`partition`['p'] = f.`partition`['p'] GROUP BY p.`partition`, p.file_count"
        )
        .await,
        "true; true"
    );
}

#[tokio::test]
async fn manifests_with_the_bounds_of_their_partitions() {
    let lake = partitioned().await;
    assert_eq!(
        answer(
            &lake,
            "SELECT content, added_data_files_count, deleted_data_files_count, added_delete_files_count, \
             partition_summaries[1]['contains_null'], partition_summaries[1]['lower_bound'], \
             partition_summaries[1]['upper_bound'] FROM t$manifests ORDER BY 5"
        )
        .await,
        "0,2,0,0,false,a,b; 0,2,0,0,true,a,a"
    );
    // The first manifest is of both snapshots.
    assert_eq!(
        answer(
            &lake,
            "SELECT count(*), count(DISTINCT path) FROM t$all_manifests"
        )
        .await,
        "3,2"
    );
    assert_eq!(
        answer(&lake, "SELECT count(*) FROM t$all_data_files").await,
        "4"
    );
}

#[tokio::test]
async fn another_snapshot_has_other_files() {
    let lake = partitioned().await;
    let first = pinned(&lake, "t").await.metadata().history()[0].snapshot_id;
    for (table, rows) in [
        ("files", 2),
        ("manifests", 1),
        ("partitions", 2),
        ("entries", 2),
    ] {
        let sql = format!("SELECT count(*) FROM t${table} FOR VERSION AS OF {first}");
        assert_eq!(answer(&lake, &sql).await, rows.to_string(), "{table}");
        let sql = format!("SELECT count(*) FROM t.{table} FOR VERSION AS OF 'main'");
        assert!(ask(&lake, &sql).await.is_ok(), "{table}");
    }
    let error = ask(
        &lake,
        &format!("SELECT * FROM t$snapshots FOR VERSION AS OF {first}"),
    )
    .await;
    assert!(
        error
            .expect_err("there is one of all")
            .contains("tells of the whole table")
    );
}

#[tokio::test]
async fn a_table_that_was_never_written_to_has_no_rows_in_them() {
    let lake = Lake::new().await;
    lake.create("e", &[("id", PrimitiveType::Long)], &[]).await;
    for table in [
        "snapshots",
        "history",
        "refs",
        "manifests",
        "files",
        "entries",
        "partitions",
        "all_files",
    ] {
        let sql = format!("SELECT count(*) FROM e${table}");
        assert_eq!(answer(&lake, &sql).await, "0", "{table}");
    }
    assert_eq!(
        answer(
            &lake,
            "SELECT latest_snapshot_id FROM e$metadata_log_entries"
        )
        .await,
        ""
    );
    // Not partitioned: no such columns.
    assert!(ask(&lake, "SELECT `partition` FROM e$files").await.is_err());
    assert!(
        ask(&lake, "SELECT spec_id FROM e$partitions")
            .await
            .is_err()
    );
    let error = ask(&lake, "SELECT * FROM nowhere$files")
        .await
        .expect_err("no such table");
    assert!(
        error.contains("table 'lake.default.nowhere' does not exist"),
        "{error}"
    );
}
