//! Where results go: the terminal, or a file that `\o` named.

use std::fs::File;
use std::io::{self, BufWriter, Write};

/// The place of results.
pub enum Output {
    Terminal(io::Stdout),
    File(BufWriter<File>),
}

impl Output {
    pub fn terminal() -> Self {
        Output::Terminal(io::stdout())
    }

    /// Makes the file, or empties it.
    pub fn file(path: &str) -> io::Result<Self> {
        Ok(Output::File(BufWriter::new(File::create(path)?)))
    }

    pub fn is_terminal(&self) -> bool {
        matches!(self, Output::Terminal(out) if io::IsTerminal::is_terminal(out))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Terminal(out) => out.write(bytes),
            Output::File(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Terminal(out) => out.flush(),
            Output::File(out) => out.flush(),
        }
    }
}
