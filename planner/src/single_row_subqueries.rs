//! A scalar subquery gives one row or none; several are MySQL's error 1242.
//!
//! DataFusion counts the rows where it runs a subquery by itself. Plans that are cut into stages have joins in its place,
//! and a join with several rows only makes more rows. So each uncorrelated subquery that may give several is wrapped:
//!
//! ```text
//!   (SELECT x FROM t)   ──▶   Projection x ◀── Aggregate single_value(x) ◀── SELECT x FROM t
//! ```
//!
//! A correlated one is planned by DataFusion only where it is known to give one row.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, FetchType, LogicalPlan, LogicalPlanBuilder, Subquery};
use datafusion::optimizer::AnalyzerRule;

use crate::functions::single_value;

/// Wraps scalar subqueries that may give several rows.
#[derive(Debug)]
pub(crate) struct SingleRowSubqueries;

impl AnalyzerRule for SingleRowSubqueries {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            node.map_expressions(|expr| expr.transform_up(guarded))
        })
        .data()
    }

    fn name(&self) -> &str {
        "single_row_subqueries"
    }
}

fn guarded(expr: Expr) -> Result<Transformed<Expr>> {
    match expr {
        Expr::ScalarSubquery(subquery)
            if subquery.outer_ref_columns.is_empty() && !at_most_one_row(&subquery.subquery) =>
        {
            let plan = guard(&subquery.subquery)?;
            Ok(Transformed::yes(Expr::ScalarSubquery(Subquery {
                subquery: Arc::new(plan),
                ..subquery
            })))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn guard(plan: &LogicalPlan) -> Result<LogicalPlan> {
    // More columns than one are refused later, in DataFusion's words.
    let Ok([column]) = <[Column; 1]>::try_from(plan.schema().columns()) else {
        return Ok(plan.clone());
    };
    let value = single_value().call(vec![Expr::Column(column.clone())]);
    let computed = value.schema_name().to_string();
    LogicalPlanBuilder::from(plan.clone())
        .aggregate(Vec::<Expr>::new(), vec![value])?
        .project([
            Expr::Column(Column::from_name(computed)).alias_qualified(column.relation, column.name)
        ])?
        .build()
}

/// Whether a plan cannot give a second row, whatever is in its tables.
fn at_most_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::Limit(limit) => {
            matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(0 | 1))))
                || at_most_one_row(&limit.input)
        }
        LogicalPlan::Sort(sort) => {
            sort.fetch.is_some_and(|rows| rows <= 1) || at_most_one_row(&sort.input)
        }
        LogicalPlan::Projection(node) => at_most_one_row(&node.input),
        LogicalPlan::SubqueryAlias(node) => at_most_one_row(&node.input),
        LogicalPlan::Filter(node) => at_most_one_row(&node.input),
        LogicalPlan::Window(node) => at_most_one_row(&node.input),
        LogicalPlan::Values(values) => values.values.len() <= 1,
        LogicalPlan::EmptyRelation(_) => true,
        _ => false,
    }
}
