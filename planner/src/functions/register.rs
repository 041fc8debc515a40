//! The list of functions, and how a session gets them.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};

use super::operators::{Division, Logic, Widening};

/// Every scalar function of this crate.
pub fn scalar_functions() -> Vec<Arc<ScalarUDF>> {
    [
        super::date_parts::functions(),
        super::date_ranges::functions(),
        super::date_format::functions(),
        super::str_to_date::functions(),
        super::date_arithmetic::functions(),
        super::unix_time::functions(),
        super::spans::functions(),
        super::locate::functions(),
        super::number_text::functions(),
        super::periods::functions(),
        super::sha1::functions(),
        super::json::functions(),
        super::exact_numbers::functions(),
        super::normal_float::functions(),
        super::row_key::functions(),
        super::nearest_whole::functions(),
        super::with_extension::functions(),
        super::uuid_text::functions(),
    ]
    .concat()
}

/// Every aggregate function of this crate.
pub fn aggregate_functions() -> Vec<Arc<AggregateUDF>> {
    let mut functions = super::extremes::functions();
    functions.extend(super::ordered_lists::functions());
    functions.push(super::checked_sum::checked_sum());
    functions.push(super::single_value::single_value());
    functions.push(super::theta_sketch::theta_sketch());
    functions
}

/// What plans MySQL's operators; needed where SQL is planned, so not on workers.
pub fn expr_planners() -> Vec<Arc<dyn ExprPlanner>> {
    vec![Arc::new(Division), Arc::new(Logic), Arc::new(Widening)]
}

/// Puts the functions and MySQL's division into a session, over DataFusion's functions of the same name. `SessionState` and
/// `SessionContext`'s state are such registries. Coordinator and workers both call it, after DataFusion's defaults are in: a plan
/// names its functions, and the worker looks them up.
pub fn register_functions(registry: &mut dyn FunctionRegistry) -> Result<()> {
    for function in scalar_functions() {
        registry.register_udf(function)?;
    }
    registry.register_udf(crate::buckets::route_function())?;
    for function in aggregate_functions() {
        registry.register_udaf(function)?;
    }
    for planner in expr_planners() {
        registry.register_expr_planner(planner)?;
    }
    Ok(())
}
