//! `tarn sql`.

mod format;

pub use format::Format;
