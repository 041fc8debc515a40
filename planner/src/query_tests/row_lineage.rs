//! Row ids and sequence numbers, inherited from a file's entry where the file has none.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use iceberg::spec::PrimitiveType as P;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

use super::evolution::{Case, primitive, table, with_id};
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
