//! Expressions over the table's columns, made to fit one file.
//!
//! The names in a footer are already the table's (see [`file_columns`](super::file_columns)), so what is left is
//! types that were widened since the file was written, columns that it does not have, and the partition values that
//! stand for them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
    replace_columns_with_literals,
};
use datafusion::scalar::ScalarValue;

/// The values of a file's identity partition fields by column name, for columns that the file itself lacks (the
/// specification's "column projection", rule 1). Files of one partition share them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FileConstants(pub(crate) Arc<HashMap<String, ScalarValue>>);

/// Makes adapters for the files of a scan, or for one file when it has constants.
#[derive(Debug, Clone, Default)]
pub(crate) struct ColumnAdapterFactory {
    pub(crate) constants: Option<FileConstants>,
}

impl PhysicalExprAdapterFactory for ColumnAdapterFactory {
    fn create(
        &self,
        logical_file_schema: SchemaRef,
        physical_file_schema: SchemaRef,
    ) -> Result<Arc<dyn PhysicalExprAdapter>> {
        // DataFusion's adapter casts a column whose nullability or metadata alone differ, and behind a cast a column
        // is worse to prune and to filter by. A column of the right type is taken as the file has it.
        let fields: Vec<_> = logical_file_schema
            .fields()
            .iter()
            .map(
                |logical| match physical_file_schema.fields().find(logical.name()) {
                    Some((_, physical)) if physical.data_type() == logical.data_type() => {
                        Arc::clone(physical)
                    }
                    _ => Arc::clone(logical),
                },
            )
            .collect();
        let inner = DefaultPhysicalExprAdapterFactory.create(
            Arc::new(Schema::new(fields)),
            Arc::clone(&physical_file_schema),
        )?;
        let constants = match &self.constants {
            Some(FileConstants(constants)) => constants
                .iter()
                .filter(|(name, _)| physical_file_schema.fields().find(name).is_none())
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            None => HashMap::new(),
        };
        Ok(Arc::new(ColumnAdapter { inner, constants }))
    }
}

#[derive(Debug)]
struct ColumnAdapter {
    inner: Arc<dyn PhysicalExprAdapter>,
    constants: HashMap<String, ScalarValue>,
}

impl PhysicalExprAdapter for ColumnAdapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let expr = if self.constants.is_empty() {
            expr
        } else {
            replace_columns_with_literals(expr, &self.constants)?
        };
        self.inner.rewrite(expr)
    }
}
