use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// The plan with each expression in it changed, from the innermost out; the names of its columns stay.
pub(crate) fn change_expressions(
    plan: LogicalPlan,
    change: impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|plan| {
        let schema = match &plan {
            LogicalPlan::TableScan(scan) => scan.source_schema()?,
            plan => merge_schema(&plan.inputs()),
        };
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(|expr| change(expr, &schema))?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })?
        .map_data(LogicalPlan::recompute_schema)
    })
    .data()
}

/// What filters inside of a scan may name: all columns of the table.
trait SourceSchema {
    fn source_schema(&self) -> Result<DFSchema>;
}

impl SourceSchema for datafusion::logical_expr::TableScan {
    fn source_schema(&self) -> Result<DFSchema> {
        DFSchema::try_from_qualified_schema(self.table_name.clone(), &self.source.schema())
    }
}
