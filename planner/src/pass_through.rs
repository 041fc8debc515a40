//! What nodes say of themselves that hand on the rows of their one input. For use inside `impl ExecutionPlan`; each takes
//! the name of the field that holds the input.

/// Its rows are partitioned and ordered as they come, and no other partitioning is wanted.
macro_rules! partitioned_as_input {
    ($input:ident) => {
        fn properties(&self) -> &std::sync::Arc<datafusion::physical_plan::PlanProperties> {
            self.$input.properties()
        }

        fn children(&self) -> Vec<&std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>> {
            vec![&self.$input]
        }

        fn maintains_input_order(&self) -> Vec<bool> {
            vec![true]
        }

        fn benefits_from_input_partitioning(&self) -> Vec<bool> {
            vec![false]
        }
    };
}

/// It is as large as its input.
macro_rules! sized_as_input {
    ($input:ident) => {
        fn partition_statistics(
            &self,
            partition: Option<usize>,
        ) -> datafusion::error::Result<std::sync::Arc<datafusion::common::Statistics>> {
            self.$input.partition_statistics(partition)
        }

        fn cardinality_effect(
            &self,
        ) -> datafusion::physical_plan::execution_plan::CardinalityEffect {
            datafusion::physical_plan::execution_plan::CardinalityEffect::Equal
        }
    };
}

/// Filters from above go on to its input.
macro_rules! filters_go_to_input {
    () => {
        fn gather_filters_for_pushdown(
            &self,
            _: datafusion::physical_plan::filter_pushdown::FilterPushdownPhase,
            parent_filters: Vec<
                std::sync::Arc<dyn datafusion::physical_plan::PhysicalExpr>,
            >,
            _: &datafusion::common::config::ConfigOptions,
        ) -> datafusion::error::Result<
            datafusion::physical_plan::filter_pushdown::FilterDescription,
        > {
            datafusion::physical_plan::filter_pushdown::FilterDescription::from_children(
                parent_filters,
                &self.children(),
            )
        }

        fn handle_child_pushdown_result(
            &self,
            _: datafusion::physical_plan::filter_pushdown::FilterPushdownPhase,
            child: datafusion::physical_plan::filter_pushdown::ChildPushdownResult,
            _: &datafusion::common::config::ConfigOptions,
        ) -> datafusion::error::Result<
            datafusion::physical_plan::filter_pushdown::FilterPushdownPropagation<
                std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>,
            >,
        > {
            Ok(datafusion::physical_plan::filter_pushdown::FilterPushdownPropagation::if_all(child))
        }
    };
}

pub(crate) use {filters_go_to_input, partitioned_as_input, sized_as_input};
