//! Results as a table of Markdown.

use std::io;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::cells::{numeric, printable};
use super::format::{Printer, rows};

pub struct Markdown {
    /// Until it is written.
    header: Option<String>,
}

impl Markdown {
    pub fn new(schema: SchemaRef) -> Self {
        let names: Vec<String> = schema.fields().iter().map(|f| escaped(f.name())).collect();
        let rules: Vec<&str> = numeric(&schema)
            .into_iter()
            .map(|n| if n { "---:" } else { "---" })
            .collect();
        Self {
            header: Some(format!("| {} |\n|{}|", names.join(" | "), rules.join("|"))),
        }
    }

    fn header(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        match self.header.take() {
            Some(header) => writeln!(out, "{header}"),
            None => Ok(()),
        }
    }
}

impl Printer for Markdown {
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn io::Write) -> io::Result<()> {
        self.header(out)?;
        for row in rows(batch)? {
            let cells: Vec<String> = row
                .into_iter()
                .map(|c| c.map_or_else(|| "NULL".to_string(), |t| escaped(&t)))
                .collect();
            writeln!(out, "| {} |", cells.join(" | "))?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        self.header(out)
    }
}

fn escaped(text: &str) -> String {
    printable(&text.replace('|', "\\|").replace('\n', "<br>"), true)
}
