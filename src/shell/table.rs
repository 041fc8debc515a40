//! Results as a grid.

use std::io;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use comfy_table::{CellAlignment, ContentArrangement, presets};

use super::cells::{numeric, printable};
use super::format::{Printer, rows};

/// A grid, as wide as its widest values; numbers are on the right.
pub struct Table {
    grid: comfy_table::Table,
}

impl Table {
    pub fn new(schema: SchemaRef) -> Self {
        let mut grid = comfy_table::Table::new();
        grid.load_preset(presets::UTF8_FULL_CONDENSED)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(schema.fields().iter().map(|f| printable(f.name(), true)));
        for (column, numeric) in grid.column_iter_mut().zip(numeric(&schema)) {
            if numeric {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Self { grid }
    }
}

impl Printer for Table {
    fn batch(&mut self, batch: &RecordBatch, _out: &mut dyn io::Write) -> io::Result<()> {
        for row in rows(batch)? {
            let cells = row.into_iter().map(|cell| match cell {
                Some(text) => printable(&text, false),
                None => "NULL".to_string(),
            });
            self.grid.add_row(cells);
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        writeln!(out, "{}", self.grid)
    }
}
