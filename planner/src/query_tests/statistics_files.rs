//! Statistics files, as the optimiser reads them.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::collect;
use iceberg::spec::PrimitiveType;
use tarn_catalog::{
    CatalogSettings, Catalogs, DEFAULT_CATALOG, DEFAULT_DATABASE, NewSketch, PinnedTable,
    TableName, TableVersion,
};

use super::lake::Lake;
use crate::{ColumnStats, DistinctSource, NoVirtualSchemas, QueryCatalogs, session_builder};

/// 1,000 rows: `id` is different in each, `kind` is one of seven.
async fn lake_of_kinds() -> Lake {
    let lake = Lake::new().await;
    let columns = [("id", PrimitiveType::Long), ("kind", PrimitiveType::String)];
    lake.create("t", &columns, &[]).await;
    append(&lake, 0, 1000).await;
    lake
}

async fn append(lake: &Lake, from: i64, to: i64) {
    let ids: ArrayRef = Arc::new((from..to).collect::<Int64Array>());
    let kinds: StringArray = (from..to)
        .map(|n| Some(format!("kind {}", n % 7)))
        .collect();
    lake.append("t", vec![ids, Arc::new(kinds)]).await;
}

async fn pinned(lake: &Lake) -> PinnedTable {
    let catalog = lake.catalogs.get(DEFAULT_CATALOG).expect("a catalog");
    catalog.table(DEFAULT_DATABASE, "t").await.expect("a table")
}

async fn stats(lake: &Lake) -> Vec<ColumnStats> {
    let catalogs = QueryCatalogs::new(
        Arc::clone(&lake.catalogs),
        Arc::clone(&lake.stores),
        Arc::new(NoVirtualSchemas),
    );
    let state = session_builder(
        &lake.options,
        Arc::new(RuntimeEnv::default()),
        Arc::clone(&catalogs),
        DEFAULT_CATALOG,
        DEFAULT_DATABASE,
    )
    .expect("a session")
    .build();
    let name = TableName::new(DEFAULT_CATALOG, DEFAULT_DATABASE, "t");
    let table = catalogs
        .iceberg_table(&name, &TableVersion::Current)
        .await
        .expect("a table");
    table.column_stats(&state).await.expect("statistics")
}

/// The sketch of a column, by the function that `ANALYZE TABLE` calls.
async fn sketch(lake: &Lake, column: &str) -> Vec<u8> {
    let context = lake.session();
    let sql = format!("SELECT tarn_theta_sketch({column}) FROM t");
    let plan = context.sql(&sql).await.expect("a plan");
    let plan = plan.create_physical_plan().await.expect("a plan");
    let batches = collect(plan, context.task_ctx()).await.expect("a row");
    batches[0].column(0).as_binary::<i32>().value(0).to_vec()
}

async fn write(lake: &Lake, sketches: &[(&str, u64)]) -> String {
    let mut new = Vec::new();
    for (column, distinct) in sketches {
        new.push(NewSketch {
            field_id: if *column == "id" { 1 } else { 2 },
            distinct: *distinct,
            sketch: sketch(lake, column).await,
        });
    }
    let catalog = lake.catalogs.get(DEFAULT_CATALOG).expect("a catalog");
    catalog
        .set_statistics(&pinned(lake).await, new)
        .await
        .expect("statistics are committed")
}

/// The same files with other caches.
async fn reopened(lake: Lake) -> Lake {
    let catalogs = Catalogs::open(CatalogSettings::new(lake.folder.path()))
        .await
        .expect("catalogs open");
    Lake { catalogs, ..lake }
}

fn path_of(location: &str) -> &str {
    location.strip_prefix("file://").unwrap_or(location)
}

fn is_sketch(stats: &ColumnStats) -> bool {
    matches!(stats.source, DistinctSource::Sketch(_))
}

#[tokio::test]
async fn a_columns_distinct_values_are_those_of_its_statistics_file() {
    let lake = lake_of_kinds().await;
    let before = stats(&lake).await;
    // Bounds tell of whole numbers; of texts the size does, roughly.
    assert_eq!(before[0].distinct, Some(1000));
    assert_eq!(before[0].source, DistinctSource::Derived);
    assert!(!is_sketch(&before[1]));
    write(&lake, &[("kind", 7)]).await;
    let after = stats(&lake).await;
    assert_eq!(after[1].distinct, Some(7));
    let DistinctSource::Sketch(sketch) = &after[1].source else {
        panic!("{after:?}");
    };
    assert_eq!((sketch.snapshots_since, sketch.rows), (0, Some(1000)));
    assert_eq!((after[1].rows, after[1].nulls), (1000, Some(0)));
    assert_eq!(after[1].min.as_deref(), Some("kind 0"));
    assert_eq!(after[1].max.as_deref(), Some("kind 6"));
}

#[tokio::test]
async fn a_second_file_of_a_snapshot_keeps_the_first_ones_columns() {
    let lake = lake_of_kinds().await;
    write(&lake, &[("kind", 7)]).await;
    write(&lake, &[("id", 1000)]).await;
    let stats = stats(&lake).await;
    assert!(stats.iter().all(is_sketch), "{stats:?}");
    assert_eq!(
        (stats[0].distinct, stats[1].distinct),
        (Some(1000), Some(7))
    );
}

#[tokio::test]
async fn an_older_snapshots_file_counts_for_what_has_been_added() {
    let lake = lake_of_kinds().await;
    write(&lake, &[("kind", 7), ("id", 1000)]).await;
    append(&lake, 1000, 4000).await;
    let stats = stats(&lake).await;
    // Keys grow with the rows, kinds do not: 7 x (1 + 3 x 0.007).
    assert_eq!(
        (stats[0].distinct, stats[1].distinct),
        (Some(4000), Some(7))
    );
    let DistinctSource::Sketch(sketch) = &stats[1].source else {
        panic!("{stats:?}");
    };
    assert_eq!((sketch.snapshots_since, sketch.rows), (1, Some(1000)));
}

#[tokio::test]
async fn files_that_lie_are_not_believed() {
    let lake = lake_of_kinds().await;
    write(&lake, &[("kind", 0), ("id", 1_000_000)]).await;
    let stats = stats(&lake).await;
    assert!(!stats.iter().any(is_sketch), "{stats:?}");
    let sql = "SELECT count(*) FROM t JOIN t AS u ON t.id = u.id WHERE t.kind = 'kind 3'";
    assert_eq!(lake.query(sql).await.text, "143");
}

#[tokio::test]
async fn a_sketch_is_read_where_no_property_tells_and_a_corrupt_one_is_left_out() {
    let mut lake = lake_of_kinds().await;
    let file = write(&lake, &[("kind", 7)]).await;
    // As a writer leaves it that does not tell the number.
    let metadata = pinned(&lake).await;
    let metadata = path_of(metadata.metadata_location().expect("a file")).to_owned();
    let text = std::fs::read_to_string(&metadata).expect("metadata");
    assert!(text.contains("\"ndv\":\"7\""), "{text}");
    std::fs::write(&metadata, text.replace("\"ndv\":\"7\"", "\"x\":\"7\"")).expect("written");
    lake = reopened(lake).await;
    let read = stats(&lake).await;
    assert!(is_sketch(&read[1]));
    assert_eq!(read[1].distinct, Some(7));

    let whole = std::fs::read(path_of(&file)).expect("a file");
    let mut flipped = whole.clone();
    flipped[5] ^= 0xff;
    for bytes in [whole[..whole.len() / 2].to_vec(), Vec::new(), flipped] {
        std::fs::write(path_of(&file), bytes).expect("written");
        lake = reopened(lake).await;
        assert!(!is_sketch(&stats(&lake).await[1]));
        assert_eq!(
            lake.query("SELECT count(DISTINCT kind) FROM t").await.text,
            "7"
        );
    }
    std::fs::remove_file(path_of(&file)).expect("removed");
    lake = reopened(lake).await;
    assert!(!is_sketch(&stats(&lake).await[1]));
}
