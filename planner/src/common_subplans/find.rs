//! Which parts of a plan are the same.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::LogicalPlan;

use super::node::shared;
use crate::repeatable::is_repeatable;

/// The plan with each aggregate that it holds more than once marked as shared, the outermost where one holds another.
pub(crate) fn share_subplans(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut known: HashMap<Subplan, Uses> = HashMap::new();
    let mut recursive = false;
    plan.apply_with_subqueries(|node| {
        // What a recursive query reads is another in each round.
        recursive |= matches!(node, LogicalPlan::RecursiveQuery(_));
        if let Some(subplan) = Subplan::of(node)? {
            let number = known.len();
            known
                .entry(subplan)
                .or_insert(Uses { number, count: 0 })
                .count += 1;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    known.retain(|_, uses| uses.count > 1);
    if recursive || known.is_empty() {
        return Ok(plan);
    }
    let marked = plan.transform_down_with_subqueries(|node| {
        let uses = match Subplan::of(&node)? {
            Some(subplan) => known.get(&subplan),
            None => None,
        };
        Ok(match uses {
            Some(uses) => {
                Transformed::new(shared(uses.number, node), true, TreeNodeRecursion::Jump)
            }
            None => Transformed::no(node),
        })
    })?;
    Ok(marked.data)
}

struct Uses {
    number: usize,
    count: usize,
}

/// A part of a plan that may be shared. Two are equal if they read the same versions of the same tables in the same way.
struct Subplan {
    plan: LogicalPlan,
    /// Where each scan's table lies. A query resolves a version of a table once.
    tables: Vec<*const ()>,
}

impl Subplan {
    /// `None` for what is no aggregate of tables' rows, or gives other rows each time or in each place.
    fn of(plan: &LogicalPlan) -> Result<Option<Self>> {
        if !matches!(plan, LogicalPlan::Aggregate(_)) {
            return Ok(None);
        }
        let mut tables = Vec::new();
        let mut fixed = true;
        plan.apply(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                tables.push(Arc::as_ptr(&scan.source).cast());
            }
            node.apply_expressions(|expr| {
                fixed &= is_repeatable(expr);
                Ok(TreeNodeRecursion::Continue)
            })?;
            Ok(match fixed {
                true => TreeNodeRecursion::Continue,
                false => TreeNodeRecursion::Stop,
            })
        })?;
        Ok((fixed && !tables.is_empty()).then(|| Self {
            plan: plan.clone(),
            tables,
        }))
    }
}

impl PartialEq for Subplan {
    fn eq(&self, other: &Self) -> bool {
        self.tables == other.tables && self.plan == other.plan
    }
}

impl Eq for Subplan {}

impl Hash for Subplan {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.plan.hash(state);
    }
}
