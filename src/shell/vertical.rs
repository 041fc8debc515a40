//! Results with a line for each value, for rows that are too wide for a grid.

use std::io;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::cells::printable;
use super::format::{Printer, rows};

pub struct Vertical {
    names: Vec<String>,
    width: usize,
    row: u64,
}

impl Vertical {
    pub fn new(schema: SchemaRef) -> Self {
        let names: Vec<String> = schema
            .fields()
            .iter()
            .map(|f| printable(f.name(), true))
            .collect();
        let width = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
        Self {
            names,
            width,
            row: 0,
        }
    }
}

impl Printer for Vertical {
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn io::Write) -> io::Result<()> {
        const STARS: &str = "***************************";
        for row in rows(batch)? {
            self.row += 1;
            writeln!(out, "{STARS} {}. row {STARS}", self.row)?;
            for (name, cell) in self.names.iter().zip(row) {
                let text = cell.map_or_else(|| "NULL".to_string(), |text| printable(&text, false));
                writeln!(out, "{name:>width$}: {text}", width = self.width)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, _out: &mut dyn io::Write) -> io::Result<()> {
        Ok(())
    }
}
