//! Results as CSV (RFC 4180) with a header. NULL is nothing; an empty text is `""`.

use std::io;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::format::{Printer, rows};

pub struct Csv {
    /// Until it is written.
    header: Option<String>,
}

impl Csv {
    pub fn new(schema: SchemaRef) -> Self {
        let names: Vec<String> = schema.fields().iter().map(|f| quoted(f.name())).collect();
        Self {
            header: Some(names.join(",")),
        }
    }

    fn header(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        match self.header.take() {
            Some(header) => writeln!(out, "{header}"),
            None => Ok(()),
        }
    }
}

impl Printer for Csv {
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn io::Write) -> io::Result<()> {
        self.header(out)?;
        for row in rows(batch)? {
            let cells: Vec<String> = row
                .into_iter()
                .map(|c| c.map_or_else(String::new, |t| quoted(&t)))
                .collect();
            writeln!(out, "{}", cells.join(","))?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        self.header(out)
    }
}

fn quoted(text: &str) -> String {
    if text.is_empty() || text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}
