//! A shared part in the logical plan, and how it becomes physical.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use datafusion::common::{DFSchemaRef, internal_err};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

use super::exec::SharedSubplanExec;
use super::rows::SharedRows;

/// Hands its input on, which occurs elsewhere in the plan under the same number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
struct SharedSubplanNode {
    number: usize,
    input: LogicalPlan,
}

/// The part of a plan that has that number, marked as shared.
pub(super) fn shared(number: usize, input: LogicalPlan) -> LogicalPlan {
    LogicalPlan::Extension(Extension {
        node: Arc::new(SharedSubplanNode { number, input }),
    })
}

impl UserDefinedLogicalNodeCore for SharedSubplanNode {
    fn name(&self) -> &str {
        "SharedSubplan"
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

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "SharedSubplan: number={}", self.number)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        match <[LogicalPlan; 1]>::try_from(inputs) {
            Ok([input]) => Ok(Self {
                number: self.number,
                input,
            }),
            Err(inputs) => internal_err!("a shared subplan has one input, not {}", inputs.len()),
        }
    }
}

/// Gives the places of one query that have the same number the same rows. One for each query.
#[derive(Debug, Default)]
pub(crate) struct SharedSubplanPlanner {
    rows: Mutex<HashMap<usize, Arc<SharedRows>>>,
}

#[async_trait]
impl ExtensionPlanner for SharedSubplanPlanner {
    async fn plan_extension(
        &self,
        _: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        _: &SessionState,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(node), [input]) = (node.as_any().downcast_ref::<SharedSubplanNode>(), inputs)
        else {
            return Ok(None);
        };
        let mut known = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = Arc::clone(known.entry(node.number).or_default());
        Ok(Some(Arc::new(SharedSubplanExec::new(
            node.number,
            Arc::clone(input),
            rows,
        ))))
    }
}
