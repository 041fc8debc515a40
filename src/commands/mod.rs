//! What each command does.

mod generate;
mod run;
mod serve;
mod sql;
mod worker;

pub use generate::redbi_size;
pub use run::run;
