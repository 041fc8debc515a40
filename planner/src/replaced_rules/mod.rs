//! DataFusion's rules with those in place of which others go, each under the name of the one that it replaces.
//!
//! | name | instead | since DataFusion's |
//! |---|---|---|
//! | `eliminate_cross_join` | [`plain_cross_joins`] | takes long where many tables are joined |
//! | `replace_distinct_aggregate` | [`kept_distinct`] | drops a DISTINCT that is needed |
//! | `push_down_filter` | [`whole_not_in`] | filters the subquery of `NOT IN` |
//! | `FilterPushdown` | [`same_name_filters`] | goes by names where columns share one |
//! | `ProjectionPushdown` | [`one_sided_joins`] | takes the columns of semi joins for those of both sides |
//! | `extract_leaf_expressions`, `push_down_leaf_projections` | none | lose columns of joins, and take maps inside structs for structs |

mod kept_distinct;
mod one_sided_joins;
mod plain_cross_joins;
mod same_name_filters;
mod stop;
mod whole_not_in;

use std::sync::Arc;

use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

use kept_distinct::KeptDistinct;
use one_sided_joins::OneSidedJoins;
use plain_cross_joins::PlainCrossJoins;
use same_name_filters::SameNameFilters;
use whole_not_in::WholeNotIn;

type LogicalRule = Arc<dyn OptimizerRule + Send + Sync>;
type PhysicalRule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// Rules over logical plans.
pub(crate) fn logical_rules() -> Vec<LogicalRule> {
    let left_out = ["extract_leaf_expressions", "push_down_leaf_projections"];
    let replacements: [LogicalRule; 3] = [
        Arc::new(PlainCrossJoins::default()),
        Arc::new(KeptDistinct::default()),
        Arc::new(WholeNotIn::default()),
    ];
    let rules = Optimizer::new().rules.into_iter();
    rules
        .filter(|rule| !left_out.contains(&rule.name()))
        .map(|rule| {
            let instead = replacements.iter().find(|it| it.name() == rule.name());
            instead.cloned().unwrap_or(rule)
        })
        .collect()
}

/// Rules over physical plans.
pub(crate) fn physical_rules() -> Vec<PhysicalRule> {
    let replacements: [PhysicalRule; 2] = [
        Arc::new(SameNameFilters::default()),
        Arc::new(OneSidedJoins::default()),
    ];
    let rules = PhysicalOptimizer::new().rules.into_iter();
    rules
        .map(|rule| {
            let instead = replacements.iter().find(|it| it.name() == rule.name());
            instead.cloned().unwrap_or(rule)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rule under a name that DataFusion does not have would replace nothing.
    #[test]
    fn each_replacement_is_among_the_rules() {
        let text = format!("{:?}", logical_rules());
        for rule in ["PlainCrossJoins", "KeptDistinct", "WholeNotIn"] {
            assert_eq!(text.matches(rule).count(), 1, "{rule} in {text}");
        }
        let text = format!("{:?}", physical_rules());
        assert_eq!(text.matches("SameNameFilters").count(), 1, "{text}");
        assert_eq!(text.matches("OneSidedJoins").count(), 2, "{text}");
        assert_eq!(logical_rules().len(), Optimizer::new().rules.len() - 2);
    }
}
