//! A hinted relation in the logical plan.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::{DFSchemaRef, internal_err};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use datafusion::sql::sqlparser::ast::TableFactor;

use super::{JoinHint, JoinHintExec};
use crate::statement::HINT_QUOTE;

/// Hands its input on, and says how it is to be joined.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
struct JoinHintNode {
    hint: JoinHint,
    input: LogicalPlan,
}

impl UserDefinedLogicalNodeCore for JoinHintNode {
    fn name(&self) -> &str {
        "JoinHint"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        HashSet::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "JoinHint: {}", self.hint)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        match <[LogicalPlan; 1]>::try_from(inputs) {
            Ok([input]) => Ok(Self {
                hint: self.hint,
                input,
            }),
            Err(inputs) => internal_err!("a hint has one input, not {}", inputs.len()),
        }
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![output_columns.to_vec()])
    }
}

/// Whether a side of a join has a hint of its own.
pub(crate) fn is_hinted_side(plan: &LogicalPlan) -> bool {
    let mut at = plan;
    loop {
        if let LogicalPlan::Extension(extension) = at
            && extension.node.as_any().is::<JoinHintNode>()
        {
            return true;
        }
        let inputs = at.inputs();
        let [input] = inputs.as_slice() else {
            return false;
        };
        at = input;
    }
}

/// Finds the brackets that are called by a hint.
#[derive(Debug)]
pub(crate) struct HintedRelations;

impl RelationPlanner for HintedRelations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let hint = match &relation {
            TableFactor::NestedJoin {
                alias: Some(alias), ..
            } if alias.name.quote_style == Some(HINT_QUOTE) => JoinHint::named(&alias.name.value),
            _ => None,
        };
        let (
            Some(hint),
            TableFactor::NestedJoin {
                table_with_joins, ..
            },
        ) = (hint, &relation)
        else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let input = context.plan(table_with_joins.relation.clone())?;
        let node = JoinHintNode { hint, input };
        let plan = LogicalPlan::Extension(Extension {
            node: Arc::new(node),
        });
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(
            plan, None,
        ))))
    }
}

/// From the logical node to the physical one.
#[derive(Debug)]
pub(crate) struct HintPlanner;

#[async_trait]
impl ExtensionPlanner for HintPlanner {
    async fn plan_extension(
        &self,
        _: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        _: &SessionState,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(node), [input]) = (node.as_any().downcast_ref::<JoinHintNode>(), inputs) else {
            return Ok(None);
        };
        Ok(Some(Arc::new(JoinHintExec::new(
            node.hint,
            Arc::clone(input),
        ))))
    }
}
