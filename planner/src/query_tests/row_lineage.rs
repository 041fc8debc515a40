//! Row ids and sequence numbers, inherited from a file's entry where the file has none.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use iceberg::spec::{FormatVersion, PrimitiveType as P};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

use super::evolution::{Case, primitive, table, with_id};
use super::lake::Lake;
use crate::scan::{FileConstants, inherited, with_row_lineage};

/// The reserved field ids.
const ROW_ID: i32 = 2_147_483_540;
const LAST_UPDATED: i32 = 2_147_483_539;

/// A file of 1000 rows in row groups of 100, read with columns of row lineage.
fn case(columns: Vec<(Field, ArrayRef)>, first_row_id: Option<i64>) -> Case {
    let schema = with_row_lineage(&table(vec![primitive(1, "n", P::Long)])).expect("a schema");
    let mut case = Case::new(schema, columns.clone());
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let batch =
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("the columns fit");
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(100))
        .set_data_page_row_count_limit(10)
        .set_write_batch_size(10)
        .build();
    let file = File::create(case.folder.path().join("f.parquet")).expect("a file");
    let mut writer =
        ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a writer");
    writer.write(&batch).expect("rows are written");
    writer.close().expect("the file is closed");
    let constants = inherited(first_row_id, Some(9));
    case.constants = Some(FileConstants(Arc::new(HashMap::from(constants))));
    case
}

fn numbers() -> (Field, ArrayRef) {
    let field = with_id(Field::new("n", DataType::Int64, true), 1);
    (field, Arc::new(Int64Array::from_iter_values(0..1000)))
}

fn longs(name: &str, id: i32, values: impl Iterator<Item = Option<i64>>) -> (Field, ArrayRef) {
    let field = with_id(Field::new(name, DataType::Int64, true), id);
    (field, Arc::new(values.collect::<Int64Array>()))
}

#[tokio::test]
async fn a_row_id_is_the_position_in_the_file_whatever_is_skipped() {
    let case = case(vec![numbers()], Some(5000));
    assert_eq!(
        case.answer(
            "SELECT count(*), min(_row_id), max(_row_id), sum(_row_id - n), min(_last_updated_sequence_number) FROM t"
        )
        .await,
        "1000,5000,5999,5000000,9"
    );
    for (filter, answer) in [
        // Row groups, pages, rows.
        ("n = 731", "731,5731"),
        ("n >= 998", "998,5998; 999,5999"),
        ("n IN (0, 555)", "0,5000; 555,5555"),
        ("_row_id = 5123", "123,5123"),
        ("_row_id >= 5990 AND n < 992", "990,5990; 991,5991"),
        ("_row_id < 5000", ""),
    ] {
        let sql = format!("SELECT n, _row_id FROM t WHERE {filter} ORDER BY n");
        assert_eq!(case.answer(&sql).await, answer, "{filter}");
    }
    assert_eq!(
        case.answer("SELECT n FROM t ORDER BY _row_id DESC LIMIT 2")
            .await,
        "999; 998"
    );
}

#[tokio::test]
async fn what_a_file_says_goes_before_what_is_inherited() {
    let own = (0..1000).map(|n| (n % 2 == 0).then_some(n * 10));
    let changed = (0..1000).map(|n| (n == 4).then_some(3));
    let case = case(
        vec![
            numbers(),
            longs("_row_id", ROW_ID, own),
            longs("_last_updated_sequence_number", LAST_UPDATED, changed),
        ],
        Some(7000),
    );
    assert_eq!(
        case.answer(
            "SELECT n, _row_id, _last_updated_sequence_number FROM t WHERE n IN (3, 4) ORDER BY n"
        )
        .await,
        "3,7003,9; 4,40,3"
    );
}

#[tokio::test]
async fn rows_of_before_version_three_have_no_ids() {
    let case = case(vec![numbers()], None);
    assert_eq!(
        case.answer("SELECT count(_row_id), count(_last_updated_sequence_number), count(n) FROM t")
            .await,
        "0,0,1000"
    );
}

#[tokio::test]
async fn rows_of_an_upgraded_table_are_numbered_with_the_next_append() {
    let mut lake = Lake::new().await;
    lake.create("t", &[("id", P::Long)], &[]).await;
    let ids = |ids: &[i64]| vec![Arc::new(Int64Array::from(ids.to_vec())) as ArrayRef];
    lake.append("t", ids(&[1, 2])).await;
    lake.append("t", ids(&[3])).await;
    lake.edit("t", |metadata| {
        metadata
            .upgrade_format_version(FormatVersion::V3)
            .expect("it can be upgraded")
    })
    .await;
    lake.append("t", ids(&[4, 5])).await;
    let pinned = lake.pinned("t").await;
    assert_eq!(pinned.metadata().next_row_id(), 5);
    // All rows got their ids with this snapshot: the new ones first, in the order of the manifest list.
    let snapshot = pinned.snapshot().expect("a snapshot");
    assert_eq!(snapshot.row_range(), Some((0, 5)));

    lake.append("t", ids(&[6])).await;
    let pinned = lake.pinned("t").await;
    assert_eq!(pinned.metadata().next_row_id(), 6);
    let snapshot = pinned.snapshot().expect("a snapshot");
    assert_eq!(snapshot.row_range(), Some((5, 1)));
    let manifests = pinned.manifests().await.expect("manifests");
    let first_ids: Vec<_> = manifests
        .iter()
        .map(|manifest| (manifest.added_rows_count, manifest.first_row_id))
        .collect();
    assert_eq!(
        first_ids,
        [
            (Some(1), Some(5)),
            (Some(2), Some(0)),
            (Some(1), Some(2)),
            (Some(2), Some(3)),
        ]
    );
    assert_eq!(
        lake.query("SELECT id FROM t ORDER BY id").await.text,
        "1; 2; 3; 4; 5; 6"
    );
}
