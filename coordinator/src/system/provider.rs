//! A system table as DataFusion sees it: its rows are made when it is scanned.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::datasource::TableProvider;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::definition::Definition;
use super::schemas::rows;
use super::shown_names::queried_schema;
use super::wanted::Wanted;
use crate::planning::StatementContext;
use crate::rows::batch;

/// One system table of one catalog, for one statement.
#[derive(Debug)]
pub(super) struct SystemTable {
    context: StatementContext,
    catalog: String,
    database: &'static str,
    definition: &'static Definition,
    schema: SchemaRef,
}

impl SystemTable {
    pub fn new(
        context: StatementContext,
        catalog: String,
        database: &'static str,
        definition: &'static Definition,
    ) -> Self {
        Self {
            context,
            catalog,
            database,
            schema: queried_schema(definition.columns),
            definition,
        }
    }
}

#[async_trait]
impl TableProvider for SystemTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(filters
            .iter()
            .map(|filter| match Wanted::understands(filter) {
                // Inexact: the filter runs again, so that a list may hold more than was asked for.
                true => TableProviderFilterPushDown::Inexact,
                false => TableProviderFilterPushDown::Unsupported,
            })
            .collect())
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut wanted = Wanted::by_filters(filters);
        wanted.columns = projection.map(|projection| {
            projection
                .iter()
                .filter_map(|index| self.schema.fields().get(*index))
                .map(|field| field.name().clone())
                .collect()
        });
        let rows = rows(
            &self.context,
            &self.catalog,
            self.database,
            self.definition,
            &wanted,
        )
        .await
        .and_then(|rows| batch(Arc::clone(&self.schema), self.definition.columns, &rows))
        .map_err(|error| DataFusionError::External(Box::new(error)))?;
        let plan = MemorySourceConfig::try_new_exec(
            &[vec![rows]],
            Arc::clone(&self.schema),
            projection.cloned(),
        )?;
        Ok(plan)
    }
}
