//! The ways a result can be printed.

use std::io;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::csv::Csv;
use super::json::Json;
use super::lines::Lines;
use super::markdown::Markdown;
use super::table::Table;
use super::vertical::Vertical;

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A grid
    Table,
    /// A line for each value
    Vertical,
    Csv,
    /// An array of objects
    Json,
    Markdown,
}

impl Format {
    pub const NAMES: &'static [&'static str] = &["table", "vertical", "csv", "json", "markdown"];

    pub fn parse(name: &str) -> Option<Self> {
        <Self as clap::ValueEnum>::from_str(name, true).ok()
    }

    /// Whether the format is for people: such results end with a line of rows and time, and long ones are cut.
    pub fn for_people(self) -> bool {
        matches!(self, Format::Table | Format::Vertical)
    }

    /// A printer of one result.
    pub fn printer(self, schema: SchemaRef) -> Box<dyn Printer + Send> {
        match self {
            Format::Table if Lines::fits(&schema) => Box::new(Lines),
            Format::Table => Box::new(Table::new(schema)),
            Format::Vertical => Box::new(Vertical::new(schema)),
            Format::Csv => Box::new(Csv::new(schema)),
            Format::Json => Box::new(Json::new()),
            Format::Markdown => Box::new(Markdown::new(schema)),
        }
    }
}

/// Prints one result as its batches come.
pub trait Printer {
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn io::Write) -> io::Result<()>;
    /// After the last batch, also if there was none.
    fn end(&mut self, out: &mut dyn io::Write) -> io::Result<()>;
}

/// The texts of a batch by row.
pub(super) fn rows(batch: &RecordBatch) -> io::Result<impl Iterator<Item = Vec<Option<String>>>> {
    let columns = super::cells::texts(batch).map_err(io::Error::other)?;
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    Ok(
        (0..batch.num_rows())
            .map(move |_| columns.iter_mut().map(|c| c.next().flatten()).collect()),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, Decimal128Array, Int64Array, ListArray, StringArray, TimestampMicrosecondArray,
    };
    use arrow::datatypes::{Field, Int32Type, Schema};

    use super::*;

    fn print(format: Format, columns: Vec<(&str, ArrayRef)>) -> String {
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, c)| Field::new(*name, c.data_type().clone(), true))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let arrays = columns.into_iter().map(|(_, c)| c).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap();
        let mut out = Vec::new();
        let mut printer = format.printer(schema);
        if batch.num_rows() > 0 {
            printer.batch(&batch, &mut out).unwrap();
        }
        printer.end(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Numbers, wide characters, quotes, NULL.
    fn small() -> Vec<(&'static str, ArrayRef)> {
        vec![
            ("id", Arc::new(Int64Array::from(vec![1, 22])) as ArrayRef),
            (
                "name",
                Arc::new(StringArray::from(vec![Some("小红, \"a|b\""), None])) as ArrayRef,
            ),
        ]
    }

    fn values() -> Vec<(&'static str, ArrayRef)> {
        let decimal = Decimal128Array::from(vec![Some(1_250), None])
            .with_precision_and_scale(12, 2)
            .unwrap();
        let list =
            ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None]);
        let time =
            TimestampMicrosecondArray::from(vec![1_772_409_600_000_000, 1_772_409_600_250_000]);
        vec![
            ("amount", Arc::new(decimal) as ArrayRef),
            ("tags", Arc::new(list) as ArrayRef),
            ("at", Arc::new(time) as ArrayRef),
        ]
    }

    #[test]
    fn tables() {
        assert_eq!(
            print(Format::Table, small()),
            "\
┌────┬─────────────┐
│ id ┆ name        │
╞════╪═════════════╡
│  1 ┆ 小红, \"a|b\" │
│ 22 ┆ NULL        │
└────┴─────────────┘
"
        );
        assert_eq!(
            print(Format::Table, values()),
            "\
┌────────┬──────────┬─────────────────────────┐
│ amount ┆ tags     ┆ at                      │
╞════════╪══════════╪═════════════════════════╡
│  12.50 ┆ [1,null] ┆ 2026-03-02 00:00:00     │
│   NULL ┆ NULL     ┆ 2026-03-02 00:00:00.250 │
└────────┴──────────┴─────────────────────────┘
"
        );
    }

    #[test]
    fn vertical() {
        assert_eq!(
            print(Format::Vertical, small()),
            "\
*************************** 1. row ***************************
  id: 1
name: 小红, \"a|b\"
*************************** 2. row ***************************
  id: 22
name: NULL
"
        );
    }

    #[test]
    fn csv() {
        assert_eq!(
            print(Format::Csv, small()),
            "id,name\n1,\"小红, \"\"a|b\"\"\"\n22,\n"
        );
        let empty: ArrayRef = Arc::new(StringArray::from(vec![Some(""), None, Some("a\nb")]));
        assert_eq!(
            print(Format::Csv, vec![("s", empty)]),
            "s\n\"\"\n\n\"a\nb\"\n"
        );
    }

    #[test]
    fn null_without_a_type() {
        let nulls: ArrayRef = Arc::new(arrow::array::NullArray::new(1));
        let print = |format| {
            print(
                format,
                vec![
                    ("NULL", Arc::clone(&nulls)),
                    ("n", Arc::new(Int64Array::from(vec![1]))),
                ],
            )
        };
        assert_eq!(print(Format::Csv), "NULL,n\n,1\n");
        assert!(print(Format::Table).contains("│ NULL ┆ 1 │"));
        assert!(print(Format::Vertical).contains("NULL: NULL"));
    }

    #[test]
    fn json() {
        assert_eq!(
            print(Format::Json, small()),
            "[\n{\"id\":1,\"name\":\"小红, \\\"a|b\\\"\"},\n{\"id\":22,\"name\":null}\n]\n"
        );
        assert_eq!(
            print(Format::Json, values()),
            "[\n{\"amount\":12.50,\"tags\":[1,null],\"at\":\"2026-03-02 00:00:00\"},\n\
             {\"amount\":null,\"tags\":null,\"at\":\"2026-03-02 00:00:00.250\"}\n]\n"
        );
        let none: ArrayRef = Arc::new(Int64Array::from(Vec::<i64>::new()));
        assert_eq!(print(Format::Json, vec![("n", none)]), "[]\n");
    }

    #[test]
    fn markdown() {
        assert_eq!(
            print(Format::Markdown, small()),
            "| id | name |\n|---:|---|\n| 1 | 小红, \"a\\|b\" |\n| 22 | NULL |\n"
        );
    }

    #[test]
    fn a_result_without_rows_still_has_its_header() {
        let none = || Arc::new(Int64Array::from(Vec::<i64>::new())) as ArrayRef;
        assert_eq!(print(Format::Csv, vec![("n", none())]), "n\n");
        assert_eq!(
            print(Format::Table, vec![("n", none())]),
            "┌───┐\n│ n │\n╞═══╡\n└───┘\n"
        );
    }

    #[test]
    fn a_plan_is_printed_as_it_is() {
        let plan: ArrayRef = Arc::new(StringArray::from(vec!["Stage 1", "  Scan"]));
        assert_eq!(
            print(Format::Table, vec![("Plan", Arc::clone(&plan))]),
            "Stage 1\n  Scan\n"
        );
        assert_eq!(
            print(Format::Csv, vec![("Plan", plan)]),
            "Plan\nStage 1\n  Scan\n"
        );
    }

    #[test]
    fn a_value_cannot_move_the_cursor() {
        let evil: ArrayRef = Arc::new(StringArray::from(vec!["\u{1b}[2J"]));
        assert!(!print(Format::Table, vec![("s", Arc::clone(&evil))]).contains('\u{1b}'));
        assert!(!print(Format::Vertical, vec![("s", evil)]).contains('\u{1b}'));
    }
}
