//! Files of the reference implementation, and what becomes of them when they are damaged.

use arrow::array::{Array, AsArray, BooleanArray};
use arrow::datatypes::Int64Type;
use bytes::Bytes;
use proptest::prelude::*;

use crate::formats::FileFormat;
use crate::formats::error::FormatError;
use crate::formats::fixture_files::{FixtureTable, read, values};
use crate::formats::type_rows::{EVOLVED, NULLS, ROWS};

const AVRO: FileFormat = FileFormat::Avro;

#[tokio::test]
async fn all_types_come_out_as_the_reference_implementation_has_them() {
    let rows = FixtureTable::open("formats/avro_types")
        .rows("-00001.avro", AVRO)
        .await;
    assert_eq!(values(&rows), ROWS);
    for (row, nulls) in NULLS {
        let found = rows.columns().iter().filter(|column| column.is_null(row));
        assert_eq!(found.count(), nulls, "row {row}");
    }
}

#[tokio::test]
async fn columns_are_found_by_id_at_any_depth() {
    let rows = FixtureTable::open("formats/avro_evolved")
        .rows("-00001.avro", AVRO)
        .await;
    assert_eq!(values(&rows), EVOLVED);
}

#[tokio::test]
async fn every_codec_of_the_reference_implementation_is_read() {
    let rows = FixtureTable::open("formats/codecs_avro")
        .rows("-00001.avro", AVRO)
        .await;
    let found = values(&rows);
    assert_eq!(found.len(), 80);
    for (number, row) in found.iter().enumerate() {
        assert_eq!(row[0], number.to_string());
        assert!(row[1].ends_with(&format!("-{}", number % 20)), "{row:?}");
    }
}

/// `id` of 0 to 99 in two blocks, by that codec.
fn blocks(codec: &str, compress: impl Fn(&[u8]) -> Vec<u8>, counts: [u64; 2]) -> Bytes {
    let zigzag = |mut value: u64| {
        value <<= 1;
        let mut bytes = Vec::new();
        while value > 0x7f {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    };
    let mut file = b"Obj\x01".to_vec();
    let schema = r#"{"type": "record", "name": "r", "fields": [{"name": "id", "type": "long", "field-id": 1}]}"#;
    file.extend(zigzag(2));
    for text in ["avro.schema", schema, "avro.codec", codec] {
        file.extend(zigzag(text.len() as u64));
        file.extend(text.as_bytes());
    }
    file.push(0);
    let marker = [7; 16];
    file.extend(marker);
    for (block, count) in counts.into_iter().enumerate() {
        let records: Vec<u8> = (0..50)
            .flat_map(|id| zigzag(id + 50 * block as u64))
            .collect();
        let records = compress(&records);
        file.extend(zigzag(count));
        file.extend(zigzag(records.len() as u64));
        file.extend(records);
        file.extend(marker);
    }
    Bytes::from(file)
}

fn ids() -> FixtureTable {
    FixtureTable::of_columns(&[("id", iceberg::spec::PrimitiveType::Long)])
}

async fn read_ids(bytes: Bytes) -> Result<Vec<i64>, FormatError> {
    let mut found = Vec::new();
    for rows in read(ids().request(bytes, AVRO, &[])).await? {
        let numbers = rows.batch.column(0).as_primitive::<Int64Type>();
        assert_eq!(rows.first_row, found.len() as u64);
        found.extend(numbers.values().iter().copied());
    }
    Ok(found)
}

#[tokio::test]
async fn the_rarer_codecs_are_read_and_unknown_ones_are_named() {
    use std::io::Write;
    let all: Vec<i64> = (0..100).collect();
    let bzip2 = |bytes: &[u8]| {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
        encoder.write_all(bytes).expect("it compresses");
        encoder.finish().expect("it compresses")
    };
    let xz = |bytes: &[u8]| {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
        encoder.write_all(bytes).expect("it compresses");
        encoder.finish().expect("it compresses")
    };
    let found = read_ids(blocks("bzip2", bzip2, [50, 50])).await;
    assert_eq!(found.expect("bzip2"), all);
    let found = read_ids(blocks("xz", xz, [50, 50])).await;
    assert_eq!(found.expect("xz"), all);
    let error = read_ids(blocks("lzw", <[u8]>::to_vec, [50, 50])).await;
    let error = error.expect_err("nobody knows it").to_string();
    assert!(error.contains("codec 'lzw'"), "{error}");
}

#[tokio::test]
async fn a_wrong_count_a_wrong_checksum_and_a_wrong_marker_are_errors() {
    let plain = |counts| blocks("null", <[u8]>::to_vec, counts);
    assert_eq!(
        read_ids(plain([50, 50])).await.expect("it reads").len(),
        100
    );
    for counts in [[49, 50], [50, 51], [0, 50], [50, u64::MAX >> 1]] {
        assert!(read_ids(plain(counts)).await.is_err(), "{counts:?}");
    }
    let mut wrong = plain([50, 50]).to_vec();
    *wrong.last_mut().expect("a marker") = 8;
    assert!(read_ids(Bytes::from(wrong)).await.is_err());
    let snappy = |checksum: u32| {
        move |bytes: &[u8]| {
            let mut encoded = snap::raw::Encoder::new()
                .compress_vec(bytes)
                .expect("it compresses");
            encoded.extend((crc32fast::hash(bytes) ^ checksum).to_be_bytes());
            encoded
        }
    };
    assert!(
        read_ids(blocks("snappy", snappy(0), [50, 50]))
            .await
            .is_ok()
    );
    let error = read_ids(blocks("snappy", snappy(1), [50, 50])).await;
    let error = error.expect_err("it was changed").to_string();
    assert!(error.contains("checksum"), "{error}");
}

#[tokio::test]
async fn only_the_part_that_a_file_starts_in_reads_it() {
    let bytes = blocks("null", <[u8]>::to_vec, [50, 50]);
    for (range, rows) in [(0..10, 100), (10..1_000, 0)] {
        let mut request = ids().request(bytes.clone(), AVRO, &[]);
        request.range = Some(range);
        let found = read(request).await.expect("it reads");
        assert_eq!(
            found.iter().map(|r| r.batch.num_rows()).sum::<usize>(),
            rows
        );
    }
    let mut count = ids().request(bytes, AVRO, &[]);
    count.fields.clear();
    let found = read(count).await.expect("it reads");
    assert_eq!(found.iter().map(|r| r.batch.num_rows()).sum::<usize>(), 100);
}

#[tokio::test]
async fn a_missing_column_is_a_constant_a_default_or_null() {
    let table = FixtureTable::open("formats/avro_types");
    let bytes = table.data("-00001.avro").remove(0);
    let mut request = table.request(bytes, AVRO, &["c_boolean", "c_int", "c_long"]);
    for (position, field) in request.fields.iter_mut().enumerate() {
        let mut other = field.field.as_ref().clone();
        other.id = 1_000 + position as i32;
        field.field = other.into();
    }
    request.fields[0].constant = Some(datafusion::scalar::ScalarValue::Boolean(Some(true)));
    let mut with_default = request.fields[2].field.as_ref().clone();
    with_default.initial_default = Some(iceberg::spec::Literal::long(7));
    request.fields[2].field = with_default.into();
    let rows = read(request).await.expect("it reads");
    let batch = &rows[0].batch;
    let expected = BooleanArray::from(vec![true; batch.num_rows()]);
    assert_eq!(batch.column(0).as_boolean(), &expected);
    assert_eq!(batch.column(1).null_count(), batch.num_rows());
    assert_eq!(batch.column(2).as_primitive::<Int64Type>().value(0), 7);
}

#[tokio::test]
async fn a_file_that_is_cut_off_is_an_error() {
    let table = FixtureTable::open("formats/avro_types");
    let bytes = table.data("-00001.avro").remove(0);
    // After the header, a file without blocks is a whole one.
    let marker: [u8; 16] = bytes[bytes.len() - 16..].try_into().expect("a marker");
    let header = bytes
        .windows(16)
        .position(|w| w == marker)
        .expect("it is there")
        + 16;
    for length in (0..bytes.len()).filter(|length| *length != header) {
        let request = table.request(bytes.slice(..length), AVRO, &[]);
        assert!(read(request).await.is_err(), "{length} bytes");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// What a damaged file says may be wrong, but reading it ends, and takes no more memory than it has to.
    #[test]
    fn damage_never_panics(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let table = FixtureTable::open("formats/avro_types");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        for bytes in table.data("-00001.avro") {
            let mut bytes = bytes.to_vec();
            for (position, byte) in &damage {
                let position = position.index(bytes.len());
                bytes[position] = *byte;
            }
            let _ = runtime.block_on(read(table.request(Bytes::from(bytes), AVRO, &[])));
        }
    }
}
