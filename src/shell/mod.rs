//! `tarn sql`: the shell.

mod cells;
mod csv;
mod editor;
mod execute;
mod format;
mod interactive;
mod json;
mod lines;
mod markdown;
mod meta;
mod names;
mod output;
mod progress;
mod script;
mod split;
mod table;
mod vertical;

pub use execute::{Display, ExecuteError, duration_text, execute};
pub use format::Format;
pub use interactive::interactive;
pub use script::{Script, run_script};
