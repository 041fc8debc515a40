//! A side of a join in the logical plan.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::{DFSchemaRef, internal_err};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

use super::SizeEstimate;
use super::exec::SizeEstimateExec;

/// Hands its input on, and says how large it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
struct SizeEstimateNode {
    size: SizeEstimate,
    input: LogicalPlan,
}

/// A plan that is estimated to be of that size.
pub(crate) fn estimated(size: SizeEstimate, input: LogicalPlan) -> LogicalPlan {
    LogicalPlan::Extension(Extension {
        node: Arc::new(SizeEstimateNode { size, input }),
    })
}

impl UserDefinedLogicalNodeCore for SizeEstimateNode {
    fn name(&self) -> &str {
        "SizeEstimate"
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
        write!(
            f,
            "SizeEstimate: about {} rows, {} bytes",
            self.size.rows, self.size.bytes
        )
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        match <[LogicalPlan; 1]>::try_from(inputs) {
            Ok([input]) => Ok(Self {
                size: self.size,
                input,
            }),
            Err(inputs) => internal_err!("an estimate has one input, not {}", inputs.len()),
        }
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![output_columns.to_vec()])
    }
}

/// From the logical node to the physical one.
#[derive(Debug)]
pub(crate) struct SizeEstimatePlanner;

#[async_trait]
impl ExtensionPlanner for SizeEstimatePlanner {
    async fn plan_extension(
        &self,
        _: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        _: &SessionState,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(node), [input]) = (node.as_any().downcast_ref::<SizeEstimateNode>(), inputs)
        else {
            return Ok(None);
        };
        Ok(Some(Arc::new(SizeEstimateExec::new(
            node.size,
            Arc::clone(input),
        ))))
    }
}
