//! Catalogs, tables and appends on real files.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
    StructArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema as ArrowSchema};
use iceberg::spec::{
    Datum, Literal, ManifestEntryRef, NestedField, PrimitiveType, Schema, Struct, StructType,
    Transform, Type,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tarn_catalog::{
    Catalog, CatalogError, CatalogSettings, Catalogs, NewTable, PartitionField, PinnedTable,
    WriteOptions,
};
use tempfile::TempDir;

async fn open(dir: &TempDir) -> Arc<Catalogs> {
    Catalogs::open(CatalogSettings::new(dir.path()))
        .await
        .unwrap()
}

async fn lake(dir: &TempDir) -> Arc<Catalog> {
    open(dir).await.get("lake").unwrap()
}

fn schema() -> Schema {
    let fields = vec![
        NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long)),
        NestedField::optional(2, "day", Type::Primitive(PrimitiveType::Date)),
        NestedField::optional(3, "note", Type::Primitive(PrimitiveType::String)),
        NestedField::optional(4, "price", Type::Primitive(PrimitiveType::Double)),
        NestedField::optional(
            5,
            "amount",
            Type::Primitive(PrimitiveType::Decimal {
                precision: 12,
                scale: 2,
            }),
        ),
    ];
    Schema::builder()
        .with_fields(fields.into_iter().map(Arc::new))
        .build()
        .unwrap()
}

fn rows(rows: &[(i64, i32, Option<&str>, f64, i128)]) -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "id",
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|r| r.0))),
        ),
        (
            "day",
            Arc::new(Date32Array::from_iter_values(rows.iter().map(|r| r.1))),
        ),
        (
            "note",
            Arc::new(StringArray::from_iter(rows.iter().map(|r| r.2))),
        ),
        (
            "price",
            Arc::new(Float64Array::from_iter_values(rows.iter().map(|r| r.3))),
        ),
        (
            "amount",
            Arc::new(
                Decimal128Array::from_iter_values(rows.iter().map(|r| r.4))
                    .with_precision_and_scale(12, 2)
                    .unwrap(),
            ),
        ),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn ids(from: i64, to: i64) -> RecordBatch {
    rows(
        &(from..to)
            .map(|id| (id, (id % 3) as i32, None, 0.5, 1))
            .collect::<Vec<_>>(),
    )
}

async fn entries(table: &PinnedTable) -> Vec<ManifestEntryRef> {
    let mut entries = Vec::new();
    for manifest in table.manifests().await.unwrap().iter() {
        entries.extend(
            table
                .manifest(manifest)
                .await
                .unwrap()
                .entries
                .iter()
                .cloned(),
        );
    }
    entries
}

fn file_rows(path: &str) -> Vec<RecordBatch> {
    let file = std::fs::File::open(path.strip_prefix("file://").unwrap_or(path)).unwrap();
    ParquetRecordBatchReaderBuilder::try_new(file)
        .unwrap()
        .build()
        .unwrap()
        .map(|batch| batch.unwrap())
        .collect()
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path))
        } else {
            found.push(path)
        }
    }
    found
}

async fn append(
    catalog: &Catalog,
    table: &str,
    batches: Vec<RecordBatch>,
) -> tarn_catalog::AppendSummary {
    let mut writer = catalog
        .append("default", table, WriteOptions::default())
        .await
        .unwrap();
    for batch in batches {
        writer.write(batch).await.unwrap();
    }
    writer.commit().await.unwrap()
}

#[tokio::test]
async fn appended_rows_are_there_with_their_metrics() {
    let dir = tempfile::tempdir().unwrap();
    let lake = lake(&dir).await;
    lake.create_table("default", NewTable::new("t", schema()))
        .await
        .unwrap();

    let long = "a text of more than sixteen characters";
    let summary = append(
        &lake,
        "t",
        vec![
            rows(&[(7, 10, Some(long), 1.5, 12345), (3, 11, None, f64::NAN, -5)]),
            rows(&[(5, 9, Some("b"), -2.0, 0)]),
        ],
    )
    .await;
    assert_eq!((summary.rows, summary.files), (3, 1));

    let table = lake.table("default", "t").await.unwrap();
    assert_eq!(
        table.snapshot().unwrap().snapshot_id(),
        summary.snapshot_id.unwrap()
    );
    let properties = &table.snapshot().unwrap().summary().additional_properties;
    assert_eq!(properties["total-records"], "3");
    assert_eq!(properties["added-data-files"], "1");

    let entries = entries(&table).await;
    assert_eq!(entries.len(), 1);
    let (entry, file) = (&entries[0], entries[0].data_file());
    assert_eq!(entry.snapshot_id(), summary.snapshot_id);
    assert_eq!(entry.sequence_number(), Some(1));
    assert_eq!(file.record_count(), 3);
    assert_eq!(file.file_size_in_bytes(), summary.bytes);
    for id in 1..=5 {
        assert_eq!(file.value_counts()[&id], 3);
        assert!(file.column_sizes()[&id] > 0);
    }
    assert_eq!(
        file.null_value_counts(),
        &HashMap::from([(1, 0), (2, 0), (3, 1), (4, 0), (5, 0)])
    );
    assert_eq!(file.nan_value_counts(), &HashMap::from([(4, 1)]));
    assert_eq!(file.lower_bounds()[&1], Datum::long(3));
    assert_eq!(file.upper_bounds()[&1], Datum::long(7));
    assert_eq!(file.lower_bounds()[&2], Datum::date(9));
    assert_eq!(file.upper_bounds()[&2], Datum::date(11));
    assert_eq!(file.lower_bounds()[&3], Datum::string("a text of more t"));
    assert_eq!(file.upper_bounds()[&3], Datum::string("b"));
    assert_eq!(file.lower_bounds()[&4], Datum::double(-2.0));
    assert_eq!(file.upper_bounds()[&4], Datum::double(1.5));
    assert_eq!(file.lower_bounds()[&5].to_string(), "-0.05");
    assert_eq!(file.upper_bounds()[&5].to_string(), "123.45");

    let read = file_rows(file.file_path());
    let read_ids: Vec<i64> = read
        .iter()
        .flat_map(|batch| {
            batch
                .column(0)
                .as_any()
                .downcast_ref::<Int64Array>()
                .unwrap()
                .values()
                .to_vec()
        })
        .collect();
    assert_eq!(read_ids, [7, 3, 5]);
}

#[tokio::test]
async fn rows_are_clustered_by_partition() {
    let dir = tempfile::tempdir().unwrap();
    let lake = lake(&dir).await;
    let partition = vec![
        PartitionField {
            column: "day".to_string(),
            transform: Transform::Month,
            name: None,
        },
        PartitionField {
            column: "id".to_string(),
            transform: Transform::Bucket(2),
            name: None,
        },
    ];
    lake.create_table(
        "default",
        NewTable {
            partition,
            ..NewTable::new("t", schema())
        },
    )
    .await
    .unwrap();

    // Days 0 and 40 of 1970 are in months 0 and 1. Many small mixed batches still make one file a partition.
    let batches = (0..50)
        .map(|i| rows(&[(i, 0, None, 0.0, 0), (i + 100, 40, None, 0.0, 0)]))
        .collect();
    let summary = append(&lake, "t", batches).await;
    assert_eq!(summary.rows, 100);

    let entries = entries(&lake.table("default", "t").await.unwrap()).await;
    let mut partitions: Vec<(Struct, u64)> = entries
        .iter()
        .map(|e| (e.data_file().partition().clone(), e.record_count()))
        .collect();
    partitions.sort_by_key(|(values, _)| format!("{values:?}"));
    partitions.dedup_by_key(|(values, _)| values.clone());
    assert_eq!(partitions.len(), 4, "{partitions:?}");
    assert_eq!(entries.len(), 4);
    assert_eq!(partitions.iter().map(|(_, rows)| rows).sum::<u64>(), 100);
    for entry in &entries {
        let month = match entry.data_file().partition().iter().next().unwrap() {
            Some(Literal::Primitive(iceberg::spec::PrimitiveLiteral::Int(month))) => *month,
            other => panic!("{other:?}"),
        };
        assert!(
            entry
                .file_path()
                .contains(&format!("/data/day_month=1970-{:02}/id_bucket=", month + 1))
        );
        let expected = if month == 0 {
            Datum::date(0)
        } else {
            Datum::date(40)
        };
        assert_eq!(entry.data_file().lower_bounds()[&2], expected);
    }
}

#[tokio::test]
async fn many_partitions_are_written_within_few_open_files_and_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let lake = lake(&dir).await;
    let partition = vec![PartitionField {
        column: "id".to_string(),
        transform: Transform::Identity,
        name: None,
    }];
    lake.create_table(
        "default",
        NewTable {
            partition,
            ..NewTable::new("t", schema())
        },
    )
    .await
    .unwrap();

    let options = WriteOptions {
        max_open_files: 2,
        buffer_bytes: 1024,
        ..WriteOptions::default()
    };
    let mut writer = lake.append("default", "t", options).await.unwrap();
    for _ in 0..3 {
        writer.write(ids(0, 40)).await.unwrap();
    }
    let summary = writer.commit().await.unwrap();
    assert_eq!(summary.rows, 120);

    let mut by_partition: BTreeMap<String, u64> = BTreeMap::new();
    for entry in entries(&lake.table("default", "t").await.unwrap()).await {
        *by_partition
            .entry(format!("{:?}", entry.data_file().partition()))
            .or_default() += entry.record_count();
    }
    assert_eq!(by_partition.len(), 40);
    assert!(by_partition.values().all(|rows| *rows == 3));
}

#[tokio::test]
async fn a_large_append_rolls_files_and_row_groups() {
    let dir = tempfile::tempdir().unwrap();
    let lake = lake(&dir).await;
    let properties = HashMap::from([(
        "write.parquet.row-group-limit".to_string(),
        "1000".to_string(),
    )]);
    lake.create_table(
        "default",
        NewTable {
            properties,
            ..NewTable::new("t", schema())
        },
    )
    .await
    .unwrap();

    let options = WriteOptions {
        target_file_bytes: 100_000,
        ..WriteOptions::default()
    };
    let mut writer = lake.append("default", "t", options).await.unwrap();
    writer.write(ids(0, 4500)).await.unwrap();
    writer.write(ids(4500, 6000)).await.unwrap();
    let summary = writer.commit().await.unwrap();
    assert_eq!(summary.rows, 6000);
    assert!(summary.files >= 2, "{summary:?}");

    let mut entries = entries(&lake.table("default", "t").await.unwrap()).await;
    entries.sort_by_key(|entry| entry.file_path().to_string());
    let mut next = 0;
    for entry in entries {
        // Row order is kept, so files do not overlap.
        let file = entry.data_file();
        assert_eq!(file.lower_bounds()[&1], Datum::long(next));
        next += file.record_count() as i64;
        assert_eq!(file.upper_bounds()[&1], Datum::long(next - 1));
        assert_eq!(
            file.split_offsets().unwrap().len() as u64,
            file.record_count().div_ceil(1000)
        );
    }
    assert_eq!(next, 6000);
}

#[tokio::test]
async fn concurrent_appends_from_two_processes_all_survive() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (lake(&dir).await, lake(&dir).await);
    one.create_table("default", NewTable::new("t", schema()))
        .await
        .unwrap();

    let mut tasks = Vec::new();
    for i in 0..8 {
        let catalog = if i % 2 == 0 { one.clone() } else { two.clone() };
        tasks.push(tokio::spawn(async move {
            append(&catalog, "t", vec![ids(i * 10, i * 10 + 10)]).await
        }));
    }
    let mut snapshots = Vec::new();
    for task in tasks {
        snapshots.push(task.await.unwrap().snapshot_id.unwrap());
    }
    let table = two.table("default", "t").await.unwrap();
    let entries = entries(&table).await;
    assert_eq!(entries.len(), 8);
    assert_eq!(entries.iter().map(|e| e.record_count()).sum::<u64>(), 80);
    let mut sequence: Vec<i64> = entries
        .iter()
        .map(|e| e.sequence_number().unwrap())
        .collect();
    sequence.sort_unstable();
    assert_eq!(sequence, (1..=8).collect::<Vec<_>>());
    assert!(
        snapshots
            .iter()
            .all(|id| table.metadata().snapshot_by_id(*id).is_some())
    );
    assert_eq!(
        table.snapshot().unwrap().summary().additional_properties["total-records"],
        "80"
    );
    // Attempts that lost left nothing: a metadata file for the creation and each commit, a list and a manifest each.
    let location = table
        .metadata()
        .location()
        .strip_prefix("file://")
        .unwrap()
        .to_string();
    assert_eq!(
        files_below(Path::new(&location).join("metadata").as_path()).len(),
        9 + 8 + 8
    );
}

#[tokio::test]
async fn an_append_that_is_aborted_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let lake = lake(&dir).await;
    let table = lake
        .create_table("default", NewTable::new("t", schema()))
        .await
        .unwrap();
    let location = PathBuf::from(table.metadata().location().strip_prefix("file://").unwrap());
    let before = files_below(&location);

    let options = || WriteOptions {
        target_file_bytes: 1,
        ..WriteOptions::default()
    };
    let mut writer = lake.append("default", "t", options()).await.unwrap();
    writer.write(ids(0, 100)).await.unwrap();
    writer.abort().await;
    assert_eq!(files_below(&location), before);

    // A NULL in a required column fails, and so does its commit's caller; dropping the writer cleans up.
    let mut writer = lake.append("default", "t", options()).await.unwrap();
    writer.write(ids(0, 100)).await.unwrap();
    let schema = ArrowSchema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("day", DataType::Date32, true),
        Field::new("note", DataType::Utf8, true),
        Field::new("price", DataType::Float64, true),
        Field::new("amount", DataType::Decimal128(12, 2), true),
    ]);
    let nulls = RecordBatch::try_new(
        Arc::new(schema.clone()),
        schema
            .fields()
            .iter()
            .map(|field| arrow::array::new_null_array(field.data_type(), 1))
            .collect(),
    )
    .unwrap();
    let error = writer.write(nulls).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "column 'id' of table 'lake.default.t': it is required, and cannot be NULL"
    );
    drop(writer);
    let mut tries = 0;
    while files_below(&location) != before {
        tries += 1;
        assert!(tries < 10_000, "{:?}", files_below(&location));
        tokio::task::yield_now().await;
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    assert!(
        lake.table("default", "t")
            .await
            .unwrap()
            .snapshot()
            .is_none()
    );
}

#[tokio::test]
async fn create_table_as_shows_nothing_before_its_commit() {
    let dir = tempfile::tempdir().unwrap();
    let lake = lake(&dir).await;
    let options = WriteOptions::default;
    let mut writer = lake
        .create_table_as("default", NewTable::new("t", schema()), options())
        .await
        .unwrap();
    writer.write(ids(0, 10)).await.unwrap();
    assert!(lake.list_tables("default").await.unwrap().is_empty());
    let summary = writer.commit().await.unwrap();
    let table = lake.table("default", "t").await.unwrap();
    assert_eq!(
        table.snapshot().unwrap().snapshot_id(),
        summary.snapshot_id.unwrap()
    );
    assert_eq!(entries(&table).await[0].record_count(), 10);
    assert_eq!(table.metadata().history().len(), 1);

    // Aborted: no table, no files.
    let warehouse = dir.path().join("warehouse");
    let before = files_below(&warehouse);
    let mut writer = lake
        .create_table_as("default", NewTable::new("u", schema()), options())
        .await
        .unwrap();
    writer.write(ids(0, 10)).await.unwrap();
    writer.abort().await;
    assert_eq!(lake.list_tables("default").await.unwrap(), ["t"]);
    assert_eq!(files_below(&warehouse), before);

    // Somebody else was faster: an error, and no files.
    let mut writer = lake
        .create_table_as("default", NewTable::new("v", schema()), options())
        .await
        .unwrap();
    writer.write(ids(0, 10)).await.unwrap();
    lake.create_table("default", NewTable::new("v", schema()))
        .await
        .unwrap();
    let before = files_below(&warehouse).len();
    let error = writer.commit().await.unwrap_err();
    assert!(matches!(error, CatalogError::TableExists { .. }), "{error}");
    assert_eq!(files_below(&warehouse).len(), before);

    // No rows make an empty table.
    let writer = lake
        .create_table_as("default", NewTable::new("w", schema()), options())
        .await
        .unwrap();
    assert_eq!(writer.commit().await.unwrap().snapshot_id, None);
    assert!(
        lake.table("default", "w")
            .await
            .unwrap()
            .snapshot()
            .is_none()
    );
}

#[tokio::test]
async fn databases_and_tables_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let lake = lake(&dir).await;
    lake.create_database("sales", HashMap::new(), false)
        .await
        .unwrap();
    assert_eq!(lake.list_databases().await.unwrap(), ["default", "sales"]);
    let error = lake
        .create_database("sales", HashMap::new(), false)
        .await
        .unwrap_err();
    assert!(matches!(error, CatalogError::DatabaseExists { .. }));
    lake.create_database("sales", HashMap::new(), true)
        .await
        .unwrap();

    lake.create_table("sales", NewTable::new("orders", schema()))
        .await
        .unwrap();
    let error = lake
        .create_table("sales", NewTable::new("orders", schema()))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "table 'lake.sales.orders' already exists"
    );
    let again = NewTable {
        if_not_exists: true,
        ..NewTable::new("orders", schema())
    };
    lake.create_table("sales", again).await.unwrap();

    let error = lake.table("sales", "ordrs").await.unwrap_err().to_string();
    assert_eq!(
        error,
        "table 'lake.sales.ordrs' does not exist; did you mean 'orders'?"
    );
    let error = lake.table("salse", "orders").await.unwrap_err().to_string();
    assert_eq!(
        error,
        "database 'lake.salse' does not exist; did you mean 'sales'?"
    );

    let error = lake.drop_database("sales", false, false).await.unwrap_err();
    assert!(matches!(
        error,
        CatalogError::DatabaseNotEmpty { tables: 1, .. }
    ));
    let location = lake
        .table("sales", "orders")
        .await
        .unwrap()
        .metadata()
        .location()
        .to_string();
    lake.drop_table("sales", "orders", false, true)
        .await
        .unwrap();
    assert!(!Path::new(location.strip_prefix("file://").unwrap()).exists());
    assert!(
        lake.drop_table("sales", "orders", false, false)
            .await
            .is_err()
    );
    lake.drop_table("sales", "orders", true, false)
        .await
        .unwrap();
    lake.create_table("sales", NewTable::new("orders", schema()))
        .await
        .unwrap();
    lake.drop_database("sales", false, true).await.unwrap();
    assert!(!lake.database_exists("sales").await.unwrap());
}

#[tokio::test]
async fn catalogs_are_remembered_and_their_secrets_are_not_shown() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = other.path().join("other.db");
    std::fs::File::create(&file).unwrap();
    let properties: BTreeMap<String, String> = [
        ("type", "sql".to_string()),
        ("uri", format!("sqlite://{}", file.display())),
        (
            "warehouse",
            format!("file://{}", other.path().join("a warehouse").display()),
        ),
        ("s3.secret-access-key", "hush".to_string()),
    ]
    .map(|(key, value)| (key.to_string(), value))
    .into();
    let catalogs = open(&dir).await;
    catalogs
        .create_catalog("far", properties.clone(), false)
        .await
        .unwrap();
    assert!(matches!(
        catalogs.create_catalog("far", properties, false).await,
        Err(CatalogError::CatalogExists { .. })
    ));
    // A catalog whose server is not there is made, and listed, all the same.
    let down = [
        ("uri".to_string(), "http://127.0.0.1:1".to_string()),
        ("token".to_string(), "hush".to_string()),
    ];
    catalogs
        .create_catalog("down", down.into(), false)
        .await
        .unwrap();

    let catalogs = open(&dir).await;
    assert_eq!(catalogs.names(), ["down", "far", "lake"]);
    let far = catalogs.get("far").unwrap();
    far.create_database("db", HashMap::new(), false)
        .await
        .unwrap();
    far.create_table("db", NewTable::new("t", schema()))
        .await
        .unwrap();
    let mut writer = far
        .append("db", "t", WriteOptions::default())
        .await
        .unwrap();
    writer.write(ids(0, 3)).await.unwrap();
    writer.commit().await.unwrap();
    assert_eq!(entries(&far.table("db", "t").await.unwrap()).await.len(), 1);
    assert!(
        !catalogs
            .get("lake")
            .unwrap()
            .database_exists("db")
            .await
            .unwrap()
    );

    assert_eq!(far.shown_properties()["s3.secret-access-key"], "******");
    let shown = format!("{catalogs:?} {far:?}");
    assert!(!shown.contains("hush"), "{shown}");
    for catalog in ["far", "down"] {
        let shown = format!("{:?}", catalogs.get(catalog).unwrap().shown_properties());
        assert!(!shown.contains("hush"), "{shown}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(dir.path().join("catalogs.json"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(matches!(
        catalogs.drop_catalog("lake", false).await,
        Err(CatalogError::CatalogFixed { .. })
    ));
    catalogs.drop_catalog("far", false).await.unwrap();
    assert_eq!(open(&dir).await.names(), ["down", "lake"]);
    let error = catalogs.get("lakke").unwrap_err().to_string();
    assert_eq!(
        error,
        "catalog 'lakke' does not exist; did you mean 'lake'?"
    );
}

#[tokio::test]
async fn metadata_that_is_missing_or_broken_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let first = lake(&dir).await;
    first
        .create_table("default", NewTable::new("t", schema()))
        .await
        .unwrap();
    append(&first, "t", vec![ids(0, 10)]).await;
    let table = first.table("default", "t").await.unwrap();
    let list = table.snapshot().unwrap().manifest_list().to_string();
    let manifest = table.manifests().await.unwrap()[0].manifest_path.clone();
    let metadata = table.metadata_location().unwrap().to_string();
    let path = |location: &str| PathBuf::from(location.strip_prefix("file://").unwrap());

    // A new process has nothing cached.
    for file in [&manifest, &list, &metadata] {
        let whole = std::fs::read(path(file)).unwrap();
        for broken in [
            Vec::new(),
            whole[..whole.len() / 2].to_vec(),
            b"{}".to_vec(),
            vec![0xff; 300],
        ] {
            std::fs::write(path(file), &broken).unwrap();
            let error = read_all(&dir).await.unwrap_err();
            assert!(
                matches!(&error, CatalogError::Corrupt { file: named, .. } if named == file),
                "{error}"
            );
        }
        std::fs::remove_file(path(file)).unwrap();
        let error = read_all(&dir).await.unwrap_err();
        assert!(
            matches!(&error, CatalogError::MissingFile { file: named, .. } if named == file),
            "{error}"
        );
        std::fs::write(path(file), &whole).unwrap();
    }
    assert_eq!(read_all(&dir).await.unwrap(), 1);

    // A version that is not known need not even parse.
    let text = String::from_utf8(std::fs::read(path(&metadata)).unwrap()).unwrap();
    let newer = text.replace("\"format-version\":2", "\"format-version\":4");
    assert_ne!(newer, text);
    std::fs::write(path(&metadata), newer).unwrap();
    let error = read_all(&dir).await.unwrap_err().to_string();
    assert!(
        error.contains("'lake.default.t' uses version 4 of the Iceberg table format"),
        "{error}"
    );
}

async fn read_all(dir: &TempDir) -> Result<usize, CatalogError> {
    let table = lake(dir).await.table("default", "t").await?;
    let mut entries = 0;
    for manifest in table.manifests().await?.iter() {
        entries += table.manifest(manifest).await?.entries.len();
    }
    Ok(entries)
}

#[tokio::test]
async fn a_commit_by_another_is_seen_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (lake(&dir).await, lake(&dir).await);
    one.create_table("default", NewTable::new("t", schema()))
        .await
        .unwrap();
    let pinned = two.table("default", "t").await.unwrap();
    assert!(pinned.snapshot().is_none());
    append(&one, "t", vec![ids(0, 1)]).await;
    assert!(
        two.table("default", "t")
            .await
            .unwrap()
            .snapshot()
            .is_some()
    );
    // What was pinned stays.
    assert!(pinned.snapshot().is_none());
}

#[tokio::test]
async fn version_one_tables_are_written_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let lake = lake(&dir).await;
    lake.create_table(
        "default",
        NewTable {
            format_version: 1,
            ..NewTable::new("t", schema())
        },
    )
    .await
    .unwrap();
    append(&lake, "t", vec![ids(0, 5)]).await;
    append(&lake, "t", vec![ids(5, 9)]).await;
    let entries = entries(&lake.table("default", "t").await.unwrap()).await;
    assert_eq!(entries.iter().map(|e| e.record_count()).sum::<u64>(), 9);
    assert!(entries.iter().all(|e| e.sequence_number() == Some(0)));
}

#[tokio::test]
async fn partition_values_with_odd_characters_make_readable_files() {
    let dir = tempfile::tempdir().unwrap();
    let lake = lake(&dir).await;
    let partition = vec![PartitionField {
        column: "note".to_string(),
        transform: Transform::Identity,
        name: None,
    }];
    lake.create_table(
        "default",
        NewTable {
            partition,
            ..NewTable::new("t", schema())
        },
    )
    .await
    .unwrap();
    let notes = ["a/b", "..", "50%", "größe 1", "x=y?z#1", ""];
    append(
        &lake,
        "t",
        vec![rows(&notes.map(|note| (1, 0, Some(note), 0.0, 0)))],
    )
    .await;
    let mut found: Vec<String> = Vec::new();
    for entry in entries(&lake.table("default", "t").await.unwrap()).await {
        let read = file_rows(entry.file_path());
        let note = read[0]
            .column(2)
            .as_any()
            .downcast_ref::<StringArray>()
            .unwrap()
            .value(0)
            .to_string();
        assert_eq!(
            entry.data_file().partition().iter().next().unwrap(),
            Some(&Literal::string(note.as_str()))
        );
        found.push(note);
    }
    found.sort();
    let mut expected = notes.map(str::to_string).to_vec();
    expected.sort();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn partition_fields_may_have_any_name() {
    let dir = tempfile::tempdir().unwrap();
    let lake = lake(&dir).await;
    let inner = NestedField::optional(3, "x", Type::Primitive(PrimitiveType::Long));
    let fields = vec![
        NestedField::optional(1, "größe 1", Type::Primitive(PrimitiveType::Long)),
        NestedField::optional(
            2,
            "st",
            Type::Struct(StructType::new(vec![Arc::new(inner)])),
        ),
    ];
    let schema = Schema::builder()
        .with_fields(fields.into_iter().map(Arc::new))
        .build()
        .unwrap();
    let by = |column: &str| PartitionField {
        column: column.to_string(),
        transform: Transform::Identity,
        name: None,
    };
    let spec = NewTable {
        partition: vec![by("größe 1"), by("st.x")],
        ..NewTable::new("t", schema)
    };
    lake.create_table("default", spec).await.unwrap();

    let field = Arc::new(Field::new("x", DataType::Int64, true));
    let inner = StructArray::from(vec![(
        field,
        Arc::new(Int64Array::from(vec![7, 7])) as ArrayRef,
    )]);
    let batch = RecordBatch::try_from_iter([
        ("a", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef),
        ("b", Arc::new(inner) as ArrayRef),
    ])
    .unwrap();
    append(&lake, "t", vec![batch]).await;
    let table = lake.table("default", "t").await.unwrap();
    let names: Vec<&str> = table
        .metadata()
        .default_partition_spec()
        .fields()
        .iter()
        .map(|f| f.name.as_str())
        .collect();
    assert_eq!(names, ["größe 1", "st.x"]);
    let mut values: Vec<Struct> = Vec::new();
    for entry in entries(&table).await {
        values.push(entry.data_file().partition().clone());
        assert_eq!(entry.data_file().lower_bounds()[&3], Datum::long(7));
    }
    let tuple = |a| Struct::from_iter([Some(Literal::long(a)), Some(Literal::long(7))]);
    assert_eq!(values, [tuple(1), tuple(2)]);
}

#[tokio::test]
async fn batches_of_other_types_are_converted() {
    let dir = tempfile::tempdir().unwrap();
    let lake = lake(&dir).await;
    let fields = vec![
        NestedField::optional(1, "n", Type::Primitive(PrimitiveType::Long)),
        NestedField::optional(2, "ts", Type::Primitive(PrimitiveType::Timestamptz)),
        NestedField::optional(3, "u", Type::Primitive(PrimitiveType::Uuid)),
    ];
    let schema = Schema::builder()
        .with_fields(fields.into_iter().map(Arc::new))
        .build()
        .unwrap();
    lake.create_table("default", NewTable::new("t", schema))
        .await
        .unwrap();
    let uuid = [7u8; 16];
    let batch = RecordBatch::try_from_iter([
        (
            "a",
            Arc::new(arrow::array::Int32Array::from(vec![4])) as ArrayRef,
        ),
        (
            "b",
            Arc::new(TimestampMicrosecondArray::from(vec![1_000_000])) as ArrayRef,
        ),
        (
            "c",
            Arc::new(arrow::array::FixedSizeBinaryArray::from(vec![&uuid])) as ArrayRef,
        ),
    ])
    .unwrap();
    append(&lake, "t", vec![batch]).await;
    let entries = entries(&lake.table("default", "t").await.unwrap()).await;
    let file = entries[0].data_file();
    assert_eq!(file.lower_bounds()[&1], Datum::long(4));
    assert_eq!(
        file.lower_bounds()[&2],
        Datum::timestamptz_micros(1_000_000)
    );
    let parquet = std::fs::File::open(file.file_path().strip_prefix("file://").unwrap()).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(parquet).unwrap();
    let kinds: Vec<_> = builder
        .parquet_schema()
        .columns()
        .iter()
        .map(|c| c.logical_type_ref().cloned())
        .collect();
    assert_eq!(kinds[2], Some(parquet::basic::LogicalType::Uuid));
}
