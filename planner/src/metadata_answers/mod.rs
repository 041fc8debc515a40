//! Counts, smallest and largest values from what manifests say of files, without opening them.
//!
//! ```text
//!   Aggregate Final                      Aggregate Final
//!     Aggregate Partial                    Union
//!       Filter                 ─────▶        MetadataAnswerExec        files of which all is known
//!         DataSourceExec                     Aggregate Partial
//!                                              Filter
//!                                                DataSourceExec        the others
//! ```
//!
//! A file answers for itself if no deletes apply to it, all its rows pass the filters, its rows are of one group, and what
//! is asked of it is in its metrics exactly. If every file does, its rows are the whole answer, and nothing is left to run.

mod aggregate_input;
mod codec;
mod file_values;
mod group_answers;
mod node;
mod questions;
mod rule;
mod scan_facts;

pub(crate) use codec::{decode_answer, encode_answer};
pub(crate) use node::MetadataAnswerExec;
pub(crate) use rule::MetadataAnswers;
pub(crate) use scan_facts::{FactsCell, FilePlace, ScanFacts};
