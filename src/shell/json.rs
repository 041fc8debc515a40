//! Results as a JSON array of objects, a line for each row.

use std::io;

use arrow::array::RecordBatch;
use arrow::json::writer::LineDelimited;
use arrow::json::{Writer, WriterBuilder};

use super::format::Printer;

#[derive(Default)]
pub struct Json {
    begun: bool,
}

impl Json {
    pub fn new() -> Self {
        Self::default()
    }
}

impl Printer for Json {
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn io::Write) -> io::Result<()> {
        let mut writer: Writer<_, LineDelimited> = WriterBuilder::new()
            .with_explicit_nulls(true)
            .with_timestamp_format("%Y-%m-%d %H:%M:%S%.f".to_string())
            .with_timestamp_tz_format("%Y-%m-%d %H:%M:%S%.f%:z".to_string())
            .build(Vec::new());
        writer
            .write(batch)
            .and_then(|()| writer.finish())
            .map_err(io::Error::other)?;
        for line in writer
            .into_inner()
            .split(|b| *b == b'\n')
            .filter(|line| !line.is_empty())
        {
            out.write_all(if self.begun { b",\n" } else { b"[\n" })?;
            out.write_all(line)?;
            self.begun = true;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        out.write_all(if self.begun { b"\n]\n" } else { b"[]\n" })
    }
}
