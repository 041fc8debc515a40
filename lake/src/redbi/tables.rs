//! The tables: columns, partitioning, and how rows become columns.

use std::sync::Arc;

use iceberg::spec::Transform;
use tarn_catalog::PartitionField;

use crate::columns::{
    Column, Kind, bools, dates, decimals, decimals_or_null, doubles, ints, ints_or_null, longs,
    longs_or_null, strings, timestamps,
};
use crate::load::{Chunk, Table};

use super::RedbiSize;
use super::dimensions::{Item, Note, Shop, User, item, note, shop, user};
use super::events::{Event, Popularity, events, slices};

const MONEY: Kind = Kind::Decimal { precision: 12 };

const EVENTS: &[Column] = &[
    ("event_id", Kind::Long, false),
    ("event_time", Kind::Timestamp, false),
    ("user_id", Kind::Long, false),
    ("session_id", Kind::Long, false),
    ("event_type", Kind::Text, false),
    ("channel", Kind::Text, false),
    ("note_id", Kind::Long, true),
    ("item_id", Kind::Long, true),
    ("shop_id", Kind::Long, true),
    ("platform", Kind::Text, false),
    ("app_version", Kind::Text, false),
    ("position", Kind::Int, true),
    ("duration_ms", Kind::Long, true),
    ("quantity", Kind::Int, true),
    ("amount", MONEY, true),
];

const USERS: &[Column] = &[
    ("user_id", Kind::Long, false),
    ("nickname", Kind::Text, false),
    ("gender", Kind::Text, false),
    ("age_band", Kind::Text, false),
    ("city", Kind::Text, false),
    ("country", Kind::Text, false),
    ("city_tier", Kind::Int, false),
    ("platform", Kind::Text, false),
    ("signup_channel", Kind::Text, false),
    ("signup_date", Kind::Date, false),
    ("level", Kind::Int, false),
    ("is_creator", Kind::Bool, false),
];

const NOTES: &[Column] = &[
    ("note_id", Kind::Long, false),
    ("author_id", Kind::Long, false),
    ("title", Kind::Text, false),
    ("category", Kind::Text, false),
    ("note_type", Kind::Text, false),
    ("item_id", Kind::Long, true),
    ("is_sponsored", Kind::Bool, false),
    ("video_seconds", Kind::Int, true),
    ("published_at", Kind::Timestamp, false),
];

const SHOPS: &[Column] = &[
    ("shop_id", Kind::Long, false),
    ("name", Kind::Text, false),
    ("kind", Kind::Text, false),
    ("category", Kind::Text, false),
    ("city", Kind::Text, false),
    ("country", Kind::Text, false),
    ("rating", Kind::Double, false),
    ("opened_on", Kind::Date, false),
];

const ITEMS: &[Column] = &[
    ("item_id", Kind::Long, false),
    ("shop_id", Kind::Long, false),
    ("name", Kind::Text, false),
    ("category", Kind::Text, false),
    ("price", MONEY, false),
    ("listed_on", Kind::Date, false),
    ("in_stock", Kind::Bool, false),
];

const CHUNK_ROWS: u64 = 50_000;
/// About three files for each of the seven days.
const FILES: u64 = 21;
const LEAST_FILE_ROWS: u64 = 5_000;
/// Bytes of a row in Arrow's form, about.
const ROW_BYTES: u64 = 120;

/// The tables of a size, dimensions first.
pub(super) fn tables(size: RedbiSize) -> Vec<Table> {
    let popularity = Arc::new(Popularity::of(&size));
    let mark = format!(
        "redbi events={} users={} notes={} shops={} items={} seed={} version=1",
        size.events, size.users, size.notes, size.shops, size.items, size.seed
    );
    let dimension =
        |name, columns, rows: u64, chunk: Arc<dyn Fn(u64) -> Chunk + Send + Sync>| Table {
            name,
            columns,
            partition: Vec::new(),
            mark: mark.clone(),
            rows,
            chunks: rows.div_ceil(CHUNK_ROWS),
            file_rows: size.events.div_ceil(FILES).max(LEAST_FILE_ROWS),
            row_bytes: ROW_BYTES,
            chunk,
        };
    let users = dimension(
        "users",
        USERS,
        size.users,
        Arc::new(move |i| user_columns(&keyed(size.users, i, |k| user(&size, k)))),
    );
    let p = Arc::clone(&popularity);
    let notes = dimension(
        "notes",
        NOTES,
        size.notes,
        Arc::new(move |i| {
            note_columns(&keyed(size.notes, i, |k| {
                note(&size, &p.users, &p.items, k)
            }))
        }),
    );
    let shops = dimension(
        "shops",
        SHOPS,
        size.shops,
        Arc::new(move |i| shop_columns(&keyed(size.shops, i, |k| shop(&size, k)))),
    );
    let p = Arc::clone(&popularity);
    let items = dimension(
        "items",
        ITEMS,
        size.items,
        Arc::new(move |i| item_columns(&keyed(size.items, i, |k| item(&size, &p.shops, k)))),
    );
    let slices = slices(size.events, CHUNK_ROWS);
    let events = Table {
        name: "events",
        columns: EVENTS,
        partition: vec![PartitionField {
            column: "event_time".to_string(),
            transform: Transform::Day,
            name: None,
        }],
        mark,
        rows: size.events,
        chunks: slices.len() as u64,
        file_rows: size.events.div_ceil(FILES).max(LEAST_FILE_ROWS),
        row_bytes: ROW_BYTES,
        chunk: Arc::new(move |i| event_columns(&events(&size, &popularity, slices[i as usize]))),
    };
    vec![shops, items, users, notes, events]
}

/// The rows of chunk `i` of a dimension of `n` rows; keys count from 1.
fn keyed<R>(n: u64, i: u64, row: impl Fn(i64) -> R) -> Vec<R> {
    let first = i * CHUNK_ROWS;
    (first..n.min(first + CHUNK_ROWS))
        .map(|k| row(k as i64 + 1))
        .collect()
}

fn event_columns(rows: &[Event]) -> Chunk {
    vec![
        longs(rows, |r| r.event_id),
        timestamps(rows, |r| r.event_time),
        longs(rows, |r| r.user_id),
        longs(rows, |r| r.session_id),
        strings(rows, |r| r.event_type),
        strings(rows, |r| r.channel),
        longs_or_null(rows, |r| r.note_id),
        longs_or_null(rows, |r| r.item_id),
        longs_or_null(rows, |r| r.shop_id),
        strings(rows, |r| r.platform),
        strings(rows, |r| r.app_version),
        ints_or_null(rows, |r| r.position),
        longs_or_null(rows, |r| r.duration_ms),
        ints_or_null(rows, |r| r.quantity),
        decimals_or_null(rows, 12, |r| r.amount),
    ]
}

fn user_columns(rows: &[User]) -> Chunk {
    vec![
        longs(rows, |r| r.user_id),
        strings(rows, |r| &r.nickname),
        strings(rows, |r| r.gender),
        strings(rows, |r| r.age_band),
        strings(rows, |r| r.city),
        strings(rows, |r| r.country),
        ints(rows, |r| r.city_tier),
        strings(rows, |r| r.platform),
        strings(rows, |r| r.signup_channel),
        dates(rows, |r| r.signup_date),
        ints(rows, |r| r.level),
        bools(rows, |r| r.is_creator),
    ]
}

fn note_columns(rows: &[Note]) -> Chunk {
    vec![
        longs(rows, |r| r.note_id),
        longs(rows, |r| r.author_id),
        strings(rows, |r| &r.title),
        strings(rows, |r| r.category),
        strings(rows, |r| r.note_type),
        longs_or_null(rows, |r| r.item_id),
        bools(rows, |r| r.is_sponsored),
        ints_or_null(rows, |r| r.video_seconds),
        timestamps(rows, |r| r.published_at),
    ]
}

fn shop_columns(rows: &[Shop]) -> Chunk {
    vec![
        longs(rows, |r| r.shop_id),
        strings(rows, |r| &r.name),
        strings(rows, |r| r.kind),
        strings(rows, |r| r.category),
        strings(rows, |r| r.city),
        strings(rows, |r| r.country),
        doubles(rows, |r| r.rating),
        dates(rows, |r| r.opened_on),
    ]
}

fn item_columns(rows: &[Item]) -> Chunk {
    vec![
        longs(rows, |r| r.item_id),
        longs(rows, |r| r.shop_id),
        strings(rows, |r| &r.name),
        strings(rows, |r| r.category),
        decimals(rows, 12, |r| r.price),
        dates(rows, |r| r.listed_on),
        bools(rows, |r| r.in_stock),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_their_rows_and_declared_types() {
        let size = RedbiSize::of_events(120_000);
        for table in tables(size) {
            let schema = crate::columns::schema(table.name, table.columns).unwrap();
            let schema = iceberg::arrow::schema_to_arrow_schema(&schema).unwrap();
            let types: Vec<_> = schema
                .fields()
                .iter()
                .map(|f| f.data_type().clone())
                .collect();
            let mut rows = 0;
            for i in 0..table.chunks {
                let chunk = (table.chunk)(i);
                assert_eq!(
                    chunk
                        .iter()
                        .map(|c| c.data_type().clone())
                        .collect::<Vec<_>>(),
                    types,
                    "{}",
                    table.name
                );
                rows += chunk[0].len() as u64;
            }
            assert_eq!(rows, table.rows, "{}", table.name);
        }
    }

    #[test]
    fn keys_point_at_rows_that_are_there() {
        let size = RedbiSize::of_events(1_000);
        let popularity = Popularity::of(&size);
        for key in 1..=size.items as i64 {
            let item = item(&size, &popularity.shops, key);
            assert!((1..=size.shops as i64).contains(&item.shop_id));
            assert!(item.price > 0);
        }
        for key in 1..=size.notes as i64 {
            let note = note(&size, &popularity.users, &popularity.items, key);
            assert!((1..=size.users as i64).contains(&note.author_id));
            assert!(
                note.item_id
                    .is_none_or(|i| (1..=size.items as i64).contains(&i))
            );
        }
    }

    #[test]
    fn the_default_has_more_than_two_million_events() {
        assert!(RedbiSize::default().events >= 2_000_000);
    }
}
