//! `AVG` of decimals as what it is, a sum by a count: DataFusion's own cuts off what a division leaves.
//!
//! ```text
//!   Aggregate: groupBy=[k], aggr=[avg(d)]      Projection: k, decimal_divide(sum(d), count(d)) AS avg(d)
//!                                        ──►     Aggregate: groupBy=[k], aggr=[sum(d), count(d)]
//! ```
//!
//! Sums and counts that the query asks for anyway are shared. Parts of both are merged as ever, on any worker.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Expr, ExprSchemable, LogicalPlan, Projection, Window,
    WindowFunctionDefinition, cast,
};
use datafusion::optimizer::AnalyzerRule;

use crate::functions::{checked_sum, divided};

/// Goes over a plan whose types were made alike.
#[derive(Debug)]
pub(crate) struct DecimalAverages;

impl AnalyzerRule for DecimalAverages {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Aggregate(of) => aggregate(of),
            LogicalPlan::Window(of) => window(of),
            other => Ok(Transformed::no(other)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "decimal_averages"
    }
}

fn aggregate(of: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let groups = of.schema.fields().len() - of.aggr_expr.len();
    let Some(split) = Split::of(&of.aggr_expr, of.input.schema()) else {
        return Ok(Transformed::no(LogicalPlan::Aggregate(of)));
    };
    let inner = Aggregate::try_new(of.input, of.group_expr, split.inner)?;
    let mut columns = leading_columns(&inner.schema, groups);
    columns.extend(split.outer);
    let input = Arc::new(LogicalPlan::Aggregate(inner));
    let plan = Projection::try_new(columns, input)?;
    Ok(Transformed::yes(LogicalPlan::Projection(plan)))
}

fn window(of: Window) -> Result<Transformed<LogicalPlan>> {
    let Some(split) = Split::of(&of.window_expr, of.input.schema()) else {
        return Ok(Transformed::no(LogicalPlan::Window(of)));
    };
    let passed = of.input.schema().fields().len();
    let inner = Window::try_new(split.inner, of.input)?;
    let mut columns = leading_columns(&inner.schema, passed);
    columns.extend(split.outer);
    let input = Arc::new(LogicalPlan::Window(inner));
    let plan = Projection::try_new(columns, input)?;
    Ok(Transformed::yes(LogicalPlan::Projection(plan)))
}

fn leading_columns(schema: &DFSchema, count: usize) -> Vec<Expr> {
    let columns = schema.columns().into_iter().take(count);
    columns.map(Expr::Column).collect()
}

/// What takes the place of expressions some of which are averages.
struct Split {
    /// The aggregates that are left to compute.
    inner: Vec<Expr>,
    /// One for each of the expressions, over the columns that `inner` gives.
    outer: Vec<Expr>,
}

impl Split {
    /// None if there is no average of decimals.
    fn of(exprs: &[Expr], schema: &DFSchema) -> Option<Split> {
        let averages: Vec<Option<Average>> =
            exprs.iter().map(|expr| Average::of(expr, schema)).collect();
        if averages.iter().all(Option::is_none) {
            return None;
        }
        let mut inner: Vec<Expr> = exprs
            .iter()
            .zip(&averages)
            .filter(|(_, average)| average.is_none())
            .map(|(expr, _)| expr.clone())
            .collect();
        let names = NamePreserver::new_for_projection();
        let mut outer = Vec::with_capacity(exprs.len());
        for (expr, average) in exprs.iter().zip(averages) {
            let Some(average) = average else {
                let (relation, name) = expr.qualified_name();
                outer.push(Expr::Column(Column::new(relation, name)));
                continue;
            };
            let sum = column_of(average.sum, &mut inner);
            let count = column_of(average.count, &mut inner);
            let quotient = divided(sum, cast(count, DataType::Decimal128(20, 0)));
            let quotient = cast(quotient, average.of);
            outer.push(names.save(expr).restore(quotient));
        }
        Some(Split { inner, outer })
    }
}

/// The column that gives an aggregate, which is added if nothing gives it yet.
fn column_of(aggregate: Expr, inner: &mut Vec<Expr>) -> Expr {
    let known = inner.iter().find(|known| *unaliased(known) == aggregate);
    let (relation, name) = match known {
        Some(known) => known.qualified_name(),
        None => {
            let name = format!("__average_part_{}", inner.len());
            inner.push(aggregate.alias(&name));
            (None, name)
        }
    };
    Expr::Column(Column::new(relation, name))
}

fn unaliased(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => unaliased(&alias.expr),
        other => other,
    }
}

struct Average {
    sum: Expr,
    count: Expr,
    /// The type of the average.
    of: DataType,
}

impl Average {
    fn of(expr: &Expr, schema: &DFSchema) -> Option<Average> {
        let expr = unaliased(expr);
        let parts = match expr {
            Expr::AggregateFunction(call) if call.func.name() == "avg" => {
                let part = |func: Arc<AggregateUDF>| {
                    Expr::AggregateFunction(AggregateFunction {
                        func,
                        params: call.params.clone(),
                    })
                };
                (part(checked_sum()), part(count_udaf()))
            }
            Expr::WindowFunction(call) if call.fun.name() == "avg" => {
                let part = |func: Arc<AggregateUDF>| {
                    Expr::WindowFunction(Box::new(WindowFunction {
                        fun: WindowFunctionDefinition::AggregateUDF(func),
                        params: call.params.clone(),
                    }))
                };
                (part(checked_sum()), part(count_udaf()))
            }
            _ => return None,
        };
        // A type that cannot be told, as of a parameter, is no decimal yet.
        match expr.get_type(schema) {
            Ok(of @ DataType::Decimal128(..)) => Some(Average {
                sum: parts.0,
                count: parts.1,
                of,
            }),
            _ => None,
        }
    }
}
