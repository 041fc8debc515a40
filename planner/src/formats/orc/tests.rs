//! Files of the reference implementation, and what becomes of them when they are damaged.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Int64Type, TimeUnit, TimestampMicrosecondType};
use bytes::Bytes;
use proptest::prelude::*;

use crate::formats::FileFormat;
use crate::formats::error::FormatError;
use crate::formats::fixture_files::{FixtureTable, read, values};
use crate::formats::type_rows::{EVOLVED, NULLS, ROWS};

const ORC: FileFormat = FileFormat::Orc;

#[tokio::test]
async fn all_types_come_out_as_the_reference_implementation_has_them() {
    let rows = FixtureTable::open("formats/orc_types")
        .rows(".orc", ORC)
        .await;
    assert_eq!(values(&rows), ROWS);
    for (row, nulls) in NULLS {
        let found = rows.columns().iter().filter(|column| column.is_null(row));
        assert_eq!(found.count(), nulls, "row {row}");
    }
}

#[tokio::test]
async fn columns_are_found_by_id_at_any_depth() {
    let rows = FixtureTable::open("formats/orc_evolved")
        .rows(".orc", ORC)
        .await;
    assert_eq!(values(&rows), EVOLVED);
}

#[tokio::test]
async fn every_codec_is_read() {
    let rows = FixtureTable::open("formats/codecs_orc")
        .rows(".orc", ORC)
        .await;
    assert_eq!(rows.num_rows(), 100);
    let found = values(&rows);
    for codec in ["none", "zlib", "snappy", "lz4", "zstd"] {
        let of_codec = found.iter().filter(|row| row[1].starts_with(codec));
        assert_eq!(of_codec.count(), 20, "{codec}");
    }
}

#[tokio::test]
async fn a_file_without_ids_is_read_by_the_name_mapping() {
    let table = FixtureTable::open("formats/mapped_orc");
    let bytes = FixtureTable::folder("formats/orc_source")
        .data(".orc")
        .remove(0);
    let read_rows = read(table.request(bytes.clone(), ORC, &["id", "dec"]));
    let rows = read_rows.await.expect("it reads");
    let first = values(&rows[0].batch);
    assert_eq!(&first[..2], [["0", "0.00"], ["1", "0.25"]]);
    let mut unmapped = table.request(bytes, ORC, &["id"]);
    unmapped.name_mapping = None;
    let error = read(unmapped).await.expect_err("there are no ids");
    assert!(matches!(error, FormatError::NoFieldIds), "{error}");
}

/// `testdata/stripes.orc` was written by the C++ library: `n` of 0 to 19999 in small stripes, without ids.
fn stripes() -> (FixtureTable, Bytes) {
    let bytes = include_bytes!("testdata/stripes.orc");
    (
        FixtureTable::of_columns(&[("n", iceberg::spec::PrimitiveType::Long)]),
        Bytes::from_static(bytes),
    )
}

#[tokio::test]
async fn parts_of_a_file_have_each_row_once_and_know_its_position() {
    let (table, bytes) = stripes();
    let size = bytes.len() as u64;
    for part in [size, size / 2 + 1, 700, 100] {
        let mut found = Vec::new();
        let mut parts_with_rows = 0;
        let mut start = 0;
        while start < size {
            let mut request = table.request(bytes.clone(), ORC, &[]);
            request.range = Some(start..(start + part).min(size));
            start += part;
            let rows = read(request).await.expect("it reads");
            parts_with_rows += usize::from(!rows.is_empty());
            for rows in rows {
                let numbers = rows.batch.column(0).as_primitive::<Int64Type>();
                // Each value is its row's position.
                assert_eq!(numbers.value(0) as u64, rows.first_row);
                found.extend(numbers.values().iter().copied());
            }
        }
        found.sort_unstable();
        assert_eq!(found, (0..20_000).collect::<Vec<i64>>(), "parts of {part}");
        assert!(part == size || parts_with_rows > 1, "parts of {part}");
    }
}

#[tokio::test]
async fn rows_are_counted_without_columns() {
    let (table, bytes) = stripes();
    let mut request = table.request(bytes, ORC, &[]);
    request.fields.clear();
    request.name_mapping = None;
    let rows = read(request).await.expect("it reads");
    let counts = rows.iter().map(|rows| rows.batch.num_rows());
    assert_eq!(counts.sum::<usize>(), 20_000);
}

#[tokio::test]
async fn a_timestamp_without_a_zone_is_not_an_instant() {
    let table = FixtureTable::open("formats/orc_types");
    for (column, other) in [("c_ts", Some("UTC")), ("c_tstz", None)] {
        let bytes = table.data(".orc").remove(0);
        let mut request = table.request(bytes, ORC, &[column]);
        let wanted = &mut request.fields[0];
        let zone = other.map(Into::into);
        wanted.arrow = std::sync::Arc::new(
            wanted
                .arrow
                .as_ref()
                .clone()
                .with_data_type(DataType::Timestamp(TimeUnit::Microsecond, zone)),
        );
        let error = read(request).await.expect_err("it is something else");
        assert!(error.to_string().contains("an instant"), "{error}");
    }
}

#[tokio::test]
async fn a_file_that_is_cut_off_anywhere_is_an_error() {
    let table = FixtureTable::open("formats/orc_types");
    let bytes = table.data(".orc").remove(0);
    for length in 0..bytes.len() {
        let request = table.request(bytes.slice(..length), ORC, &[]);
        assert!(read(request).await.is_err(), "{length} bytes");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// What a damaged file says may be wrong, but reading it ends, and takes no more memory than it has to.
    #[test]
    fn damage_never_panics(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let table = FixtureTable::open("formats/orc_types");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        for bytes in table.data(".orc") {
            let mut bytes = bytes.to_vec();
            for (position, byte) in &damage {
                let position = position.index(bytes.len());
                bytes[position] = *byte;
            }
            let _ = runtime.block_on(read(table.request(Bytes::from(bytes), ORC, &[])));
        }
    }
}

/// Seconds and nanoseconds in runs of version 1, as one literal each.
fn timestamps(zone: chrono_tz::Tz, seconds: u8, nanos: u8) -> i64 {
    use super::columns::timestamp::TimestampReader;
    use super::run_length::{IntegerRuns, Version};
    use super::stream::Stream;
    let runs = |byte: u8| Stream::new(Bytes::from(vec![0xff, byte]), None);
    let mut reader = TimestampReader::new(
        IntegerRuns::signed(runs(seconds), Version::V1),
        IntegerRuns::unsigned(runs(nanos), Version::V1),
        Some(zone),
        &DataType::Timestamp(TimeUnit::Microsecond, None),
    );
    reader.next().expect("a timestamp")
}

#[test]
fn a_timestamp_is_what_the_writer_s_clock_said() {
    let text = |micros: i64| {
        let array = arrow::array::PrimitiveArray::<TimestampMicrosecondType>::from(vec![micros]);
        arrow::util::display::array_value_to_string(&array, 0).expect("it is printed")
    };
    // 0 seconds after the start of 2015, in whichever zone; 0x0e is 1 and six zeros, which is a millisecond.
    for zone in [
        chrono_tz::UTC,
        chrono_tz::America::Los_Angeles,
        chrono_tz::Asia::Kolkata,
    ] {
        assert_eq!(
            text(timestamps(zone, 0, 0)),
            "2015-01-01T00:00:00",
            "{zone}"
        );
        assert_eq!(
            text(timestamps(zone, 2, 0x0d)),
            "2015-01-01T00:00:01.001",
            "{zone}"
        );
    }
}
