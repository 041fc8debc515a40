//! DataFusion's own options, set so that SQL means what it means in MySQL.

use datafusion::common::config::ConfigOptions;
use datafusion::config::Dialect;

/// Sets the options that decide what SQL means. Sessions of the coordinator call it before they plan.
pub fn configure_sql(options: &mut ConfigOptions) {
    let parser = &mut options.sql_parser;
    parser.dialect = Dialect::MySQL;
    // 0.1 is a DECIMAL, so that 0.06 + 0.01 = 0.07.
    parser.parse_float_as_decimal = true;
    // NULL sorts before every value: first when ascending, last when descending.
    parser.default_null_ordering = "nulls_min".to_owned();
    parser.enable_ident_normalization = true;
    parser.recursion_limit = 200;
}
