//! The list of functions, and how a session gets them.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::ScalarUDF;

/// Every scalar function of this crate.
pub fn scalar_functions() -> Vec<Arc<ScalarUDF>> {
    Vec::new()
}

/// Puts the functions into a session (`SessionState` and `SessionContext`'s state both are registries), over DataFusion's
/// of the same name. Coordinator and workers both call it, after DataFusion's defaults are in.
pub fn register_functions(registry: &mut dyn FunctionRegistry) -> Result<()> {
    for function in scalar_functions() {
        registry.register_udf(function)?;
    }
    Ok(())
}
