//! The aggregate functions that metadata may answer.

use std::sync::Arc;

use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use super::aggregate_input::AggregateInput;

/// What one aggregate function asks of a group's rows.
pub(super) struct Question {
    pub(super) kind: QuestionKind,
    /// Over the table's columns.
    pub(super) of: Arc<dyn PhysicalExpr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionKind {
    /// How many are not null.
    Count,
    Min,
    Max,
}

impl Question {
    /// `None` if it is something that metadata never tells.
    pub(super) fn of(function: &AggregateFunctionExpr, input: &AggregateInput<'_>) -> Option<Self> {
        let kind = match function.fun().name() {
            "count" => QuestionKind::Count,
            "min" => QuestionKind::Min,
            "max" => QuestionKind::Max,
            _ => return None,
        };
        // The smallest of distinct values is the smallest.
        if (function.is_distinct() && kind == QuestionKind::Count)
            || !function.order_bys().is_empty()
            || function.is_reversed()
        {
            return None;
        }
        let [of] = function.expressions().try_into().ok()?;
        Some(Self {
            kind,
            of: input.resolve(&of)?,
        })
    }
}
