//! Arrow batches as MySQL rows: which column type each Arrow type becomes, and its two encodings.

mod column;
mod digits;
mod encoder;
mod indirect;
mod json;
mod nanoseconds;
mod number;
mod string;
mod temporal;
mod value;

pub(crate) use column::column_definition;
pub(crate) use encoder::{RowEncoder, RowEncoding, align};
