//! `COUNT(DISTINCT …)` of structs, lists and of several columns, which is one of structs.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use super::plan_expressions::change_expressions;
use crate::functions::{has_row_key, row_key};

/// Counts such values by their bytes ([`row_key`]). It goes after the rules that make equal values alike.
#[derive(Debug)]
pub(crate) struct CountedRows;

impl AnalyzerRule for CountedRows {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        change_expressions(plan, |expr, schema| Ok(counted(expr, schema)))
    }

    fn name(&self) -> &str {
        "counted_rows"
    }
}

fn counted(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::AggregateFunction(AggregateFunction { func, mut params })
            if func.name() == "count" && params.distinct =>
        {
            let mut changed = false;
            for arg in &mut params.args {
                if arg.get_type(schema).is_ok_and(|of| has_row_key(&of)) {
                    *arg = row_key(std::mem::take(arg));
                    changed = true;
                }
            }
            let expr = Expr::AggregateFunction(AggregateFunction { func, params });
            Transformed::new_transformed(expr, changed)
        }
        other => Transformed::no(other),
    }
}
