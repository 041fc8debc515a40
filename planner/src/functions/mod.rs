//! MySQL's functions that DataFusion does not have, or has with another meaning.
//!
//! They are ordinary scalar functions, registered by name in every session, the coordinator's and the workers':
//! a fragment that travels names them and the worker looks them up. What can be said with DataFusion's own functions is rewritten
//! into them instead, in [`statement`](crate::statement).

mod checked_sum;
mod date_arithmetic;
mod date_format;
mod date_parts;
mod date_ranges;
mod datetimes;
mod exact_numbers;
mod extremes;
mod fold_groups;
mod json;
mod json_path;
mod listing;
mod locate;
mod nearest_whole;
mod normal_float;
mod number_text;
mod operators;
mod ordered_lists;
mod periods;
mod register;
mod row_function;
mod row_key;
mod sha1;
mod single_value;
mod spans;
mod str_to_date;
mod theta_sketch;
mod unix_time;
mod uuid_text;
mod week;
mod with_extension;

use datafusion::logical_expr::ScalarUDF;

pub(crate) use checked_sum::checked_sum;
pub(crate) use date_ranges::moment_of_digits;
pub(crate) use exact_numbers::{checked, divided, is_exact, rounded};
pub use listing::function_names;
pub(crate) use nearest_whole::nearest_whole;
pub(crate) use normal_float::{has_floats, is_normal_float, normal_float};
pub use register::{aggregate_functions, expr_planners, register_functions, scalar_functions};
pub(crate) use row_key::{has_row_key, row_key};
pub(crate) use single_value::single_value;
pub use theta_sketch::{THETA_SKETCH, has_theta_sketch, sketched_values};
pub(crate) use uuid_text::uuid_text;
pub(crate) use with_extension::{extension_of, with_extension};

/// Whether a function, of those that rules put into plans, gives null if an argument is null.
pub(crate) fn is_null_for_null(function: &ScalarUDF) -> bool {
    is_normal_float(function) || is_exact(function)
}
