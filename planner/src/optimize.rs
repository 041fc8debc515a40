//! From a logical plan to an optimised one with the same columns.

use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast};

/// The plan after the rules that settle what it means: its columns have their types from here on.
pub fn analyze(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    state
        .analyzer()
        .execute_and_check(plan, state.config_options(), |_, _| {})
}

/// An analyzed plan after the rules that make it cheap.
///
/// Some of DataFusion's rules widen a decimal (a `sum` beside a `count(DISTINCT …)` becomes a sum of sums). Clients were
/// told the type before, so it is cast back.
pub fn optimize(analyzed: &LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    let promised = analyzed.schema();
    let plan = state
        .optimizer()
        .optimize(analyzed.clone(), state, |_, _| {})?;
    let is_decimal = |data_type: &DataType| matches!(data_type, DataType::Decimal128(..));
    let mut widened = false;
    let columns: Vec<Expr> = plan
        .schema()
        .iter()
        .zip(promised.fields())
        .map(|((qualifier, field), promised)| {
            let column = Expr::Column((qualifier, field).into());
            let (is, was) = (field.data_type(), promised.data_type());
            if is == was || !is_decimal(is) || !is_decimal(was) {
                return column;
            }
            widened = true;
            cast(column, was.clone()).alias_qualified(qualifier.cloned(), field.name())
        })
        .collect();
    match widened {
        false => Ok(plan),
        true => LogicalPlanBuilder::from(plan).project(columns)?.build(),
    }
}
