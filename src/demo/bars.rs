//! Progress bars for tables that are being made.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tarn_lake::Progress;

/// A bar for each table on a terminal, a line for each that is finished elsewhere. A table that was there already is
/// passed over in silence.
pub struct Bars {
    all: MultiProgress,
    tables: Mutex<HashMap<String, ProgressBar>>,
    terminal: bool,
}

impl Bars {
    pub fn new() -> Self {
        Self {
            all: MultiProgress::new(),
            tables: Mutex::new(HashMap::new()),
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Whether any table had to be made.
    pub fn made_any(&self) -> bool {
        !self
            .tables
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }

    fn bar(&self, label: &str, total: u64) -> ProgressBar {
        let style = ProgressStyle::with_template(
            "  {prefix:16} {bar:30} {human_pos:>10} of {human_len} rows  {elapsed}",
        )
        .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = self.all.add(ProgressBar::new(total).with_style(style));
        bar.set_prefix(label.to_string());
        bar
    }
}

impl Progress for Bars {
    fn step(&self, label: &str, done: u64, total: u64) {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if !tables.contains_key(label) && done >= total {
            return;
        }
        let bar = tables
            .entry(label.to_string())
            .or_insert_with(|| self.bar(label, total));
        bar.set_position(done);
        if done >= total && !bar.is_finished() {
            bar.finish();
            if !self.terminal {
                eprintln!("  {label}: {total} rows");
            }
        }
    }
}
