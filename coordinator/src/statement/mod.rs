//! The one statement path: what each family of statements does. [`execute`] is the way in.

mod analyze;
mod call;
mod catalog_ddl;
mod ddl;
mod execute;
mod explain;
mod insert;
mod insert_mapping;
mod kill;
mod parameters;
mod prepare;
mod query;
mod refs;
mod set;
mod show;
mod show_create;
mod show_filter;
mod show_stats;
mod sorted_rows;
mod table_types;

pub(crate) use execute::execute;
pub(crate) use parameters::bind;
pub use prepare::Prepared;
pub(crate) use prepare::prepare;
pub(crate) use set::use_named;
