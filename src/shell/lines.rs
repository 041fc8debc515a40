//! Plans as the text that they are: one line a row, without a grid around it.

use std::io;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::cells::printable;
use super::format::{Printer, rows};

pub struct Lines;

impl Lines {
    /// Whether a result is the plan that EXPLAIN gives.
    pub fn fits(schema: &SchemaRef) -> bool {
        matches!(&schema.fields()[..], [field] if field.name() == "Plan")
    }
}

impl Printer for Lines {
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn io::Write) -> io::Result<()> {
        for row in rows(batch)? {
            for cell in row {
                writeln!(out, "{}", printable(&cell.unwrap_or_default(), false))?;
            }
        }
        Ok(())
    }

    fn end(&mut self, _out: &mut dyn io::Write) -> io::Result<()> {
        Ok(())
    }
}
