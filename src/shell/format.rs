//! The ways a result can be printed.

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Table,
    Vertical,
    Csv,
    Json,
    Markdown,
}
